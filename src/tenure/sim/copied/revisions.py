"""Which revision of its template a copied workload is at, by the name that its cluster gave it.

The embedded controllers tell templates apart by a fingerprint of their own. A workload says which revision its
template had, so that the pods that came along count as pods of this template and are not rolled.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tenure.model.api.resource import DAEMON_SETS, DEPLOYMENTS, PODS, REPLICA_SETS, STATEFUL_SETS
from tenure.sim.actors.workloads.daemonpods import REVISION_LABEL
from tenure.sim.actors.workloads.deployment import HASH_LABEL
from tenure.sim.actors.workloads.ownedpods import controller_of
from tenure.sim.actors.workloads.podtemplate import KNOWN_REVISION, fingerprint
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.copied.copy import ClusterCopy

_NUMBER: Final = "deployment.kubernetes.io/revision"


class Revisions:
    def __init__(self, copy: ClusterCopy) -> None:
        self._of_deployment = _by_owner(copy.of(REPLICA_SETS), DEPLOYMENTS.kind)
        self._of_daemon_set = _by_owner(copy.of(PODS), DAEMON_SETS.kind)
        self._of_stateful_set = _by_owner(copy.of(PODS), STATEFUL_SETS.kind)

    def known(self, workload: Obj) -> Obj:
        """The workload as it is stored: it says which revision it is at, if that can be found out."""
        uid = workload["metadata"].get("uid", "")
        revision = ""
        if workload["kind"] == DEPLOYMENTS.kind:
            revision = _current(workload, self._of_deployment.get(uid, []))
        elif workload["kind"] == STATEFUL_SETS.kind:
            said = dig(workload, "status", "updateRevision") or ""
            revision = said or _newest(self._of_stateful_set.get(uid, []))
        elif workload["kind"] == DAEMON_SETS.kind:
            revision = _newest(self._of_daemon_set.get(uid, []))
        if not revision:
            return workload
        mark = fingerprint(workload["spec"]["template"])
        metadata = workload["metadata"]
        annotations = {**(metadata.get("annotations") or {}), KNOWN_REVISION: f"{mark}={revision}"}
        return {**workload, "metadata": {**metadata, "annotations": annotations}}


def _by_owner(objects: Iterable[Obj], kind: str) -> dict[str, list[Obj]]:
    found: dict[str, list[Obj]] = {}
    for one in objects:
        owner = controller_of(one)
        if owner is not None and owner.get("kind") == kind:
            found.setdefault(owner.get("uid", ""), []).append(one)
    return found


def _current(deployment: Obj, owned: list[Obj]) -> str:
    """The hash of the ReplicaSet of the Deployment's own revision; else of the latest one."""
    wanted = _annotation(deployment)
    latest = max(owned, key=_rank, default=None)
    matching = [one for one in owned if wanted and _annotation(one) == wanted]
    chosen = matching[0] if matching else latest
    return str(_labels(chosen).get(HASH_LABEL, "")) if chosen is not None else ""


def _rank(replica_set: Obj) -> tuple[int, str]:
    number = _annotation(replica_set)
    return (int(number) if number.isdecimal() else 0), _age(replica_set)


def _newest(pods: list[Obj]) -> str:
    newest = max(pods, key=_age, default=None)
    return str(_labels(newest).get(REVISION_LABEL, "")) if newest is not None else ""


def _age(obj: Obj) -> str:
    return str(obj["metadata"].get("creationTimestamp", ""))


def _annotation(obj: Obj) -> str:
    return str((obj["metadata"].get("annotations") or {}).get(_NUMBER, ""))


def _labels(obj: Obj) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}
