"""Deployments: one ReplicaSet per template, and the way from the old one to the new one.

A ReplicaSet belongs to a template by its ``pod-template-hash``. ``RollingUpdate`` follows
``tenure.sim.actors.workloads.rollout``; ``Recreate`` waits until the last old pod is gone; a paused
deployment only keeps the size of what it has. Emptied old ReplicaSets beyond
``revisionHistoryLimit`` are deleted, and deleting the Deployment takes everything along by the
store's garbage collection.

Not modelled: proportional scaling in the middle of a rollout (the rollout's own arithmetic gets
there too) and the progress deadline.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tenure.model.api.resource import DEPLOYMENTS, REPLICA_SETS
from tenure.sim.actors.workloads.ownedpods import OwnedPods, controller_of
from tenure.sim.actors.workloads.podtemplate import owner_reference, template_revision
from tenure.sim.actors.workloads.replicaset import REPLICA_FAILURE
from tenure.sim.actors.workloads.revisions import (
    cause_of,
    next_revision,
    numbered,
    revision_of,
    with_revision,
)
from tenure.sim.actors.workloads.rollout import Limits, Size, next_sizes
from tenure.sim.actors.workqueue import WorkQueue, queue_key
from tenure.sim.apiserver.objects.tree import Obj, dig, put
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import DELETED
from tenure.sim.virtual.environment import Environment

HASH_LABEL: Final = "pod-template-hash"
#: The reason of a rollout whose pods are all there.
_COMPLETE: Final = "NewReplicaSetAvailable"
_COUNTED: Final = ("replicas", "readyReplicas", "availableReplicas")


class Deployments:
    def __init__(self, env: Environment, store: Store, pods: OwnedPods) -> None:
        """``pods``: those of the ReplicaSets."""
        self._store = store
        self._queue = WorkQueue(env, self._look)
        self._pods = pods
        #: ReplicaSets by the UID of their Deployment and their own name.
        self._owned: dict[str, dict[str, Obj]] = {}
        #: The template of each Deployment, by UID, with its fingerprint.
        self._marks: dict[str, tuple[Obj, str]] = {}
        pods.listen(self._on_pod)
        store.subscribe(DEPLOYMENTS, self._on_deployment, replay=True)
        store.subscribe(REPLICA_SETS, self._on_replica_set, replay=True)

    def _on_deployment(self, type_: str, new: Obj, old: Obj | None) -> None:
        if type_ == DELETED:
            self._marks.pop(new["metadata"]["uid"], None)
        if old is None or new["spec"] is not old["spec"] or cause_of(new) != cause_of(old):
            self._queue.add(queue_key(new))

    def _on_replica_set(self, type_: str, replica_set: Obj, _old: Obj | None) -> None:
        owner = controller_of(replica_set)
        if owner is None or owner.get("kind") != DEPLOYMENTS.kind:
            return
        metadata = replica_set["metadata"]
        owned = self._owned.setdefault(owner["uid"], {})
        if type_ != DELETED:
            owned[metadata["name"]] = replica_set
        else:
            owned.pop(metadata["name"], None)
            if not owned:
                del self._owned[owner["uid"]]
        self._queue.add(f"{metadata['namespace']}/{owner['name']}")

    def _on_pod(self, replica_set_key: str) -> None:
        """Only a ``Recreate`` waits for pods; all else shows in the ReplicaSets' status."""
        namespace, _, name = replica_set_key.partition("/")
        replica_set = self._store.find(REPLICA_SETS, namespace, name)
        if replica_set is None or replica_set["spec"]["replicas"]:
            return
        if not self._pods.of(replica_set["metadata"]["uid"]).pods:
            owner = controller_of(replica_set)
            if owner is not None:
                self._queue.add(f"{namespace}/{owner['name']}")

    def _look(self, namespace: str, name: str) -> None:
        deployment = self._store.find(DEPLOYMENTS, namespace, name)
        if deployment is None or "deletionTimestamp" in deployment["metadata"]:
            return
        mark = self._mark(deployment)
        owned = self._owned.get(deployment["metadata"]["uid"], {}).values()
        new = [rs for rs in owned if _labels(rs).get(HASH_LABEL) == mark]
        old = [rs for rs in owned if _labels(rs).get(HASH_LABEL) != mark]
        old.sort(key=lambda rs: (rs["metadata"]["creationTimestamp"], rs["metadata"]["name"]))
        if new:
            self._number(new[0], deployment, next_revision(old))
        self._roll(deployment, new[0] if new else None, old)
        self._write_status(deployment, new, old)

    def _number(self, replica_set: Obj, deployment: Obj, number: int) -> None:
        """A template that was there before may be the newest again, or has a new reason to be there."""
        if revision_of(replica_set) >= number and cause_of(deployment) in (
            "",
            cause_of(replica_set),
        ):
            return
        number = max(number, revision_of(replica_set))
        metadata = replica_set["metadata"]
        patch = {"metadata": {"annotations": numbered(replica_set, deployment, number)}}
        self._store.patch(REPLICA_SETS, metadata["namespace"], metadata["name"], patch)

    def _mark(self, deployment: Obj) -> str:
        """The fingerprint of its template, taken again only when that was replaced."""
        template, uid = deployment["spec"]["template"], deployment["metadata"]["uid"]
        known = self._marks.get(uid)
        if known is None or known[0] is not template:
            known = self._marks[uid] = (template, template_revision(deployment))
        return known[1]

    def _roll(self, deployment: Obj, new: Obj | None, old: list[Obj]) -> None:
        spec = deployment["spec"]
        if spec.get("paused"):
            newest = new or (old[-1] if old else None)
            if newest is not None:
                self._resize(newest, spec["replicas"])
        elif dig(spec, "strategy", "type") == "Recreate":
            self._recreate(deployment, new, old)
        elif new is None:
            sizes = [_size(rs) for rs in old]
            empty = Size("", 0, 0)
            first = next_sizes(spec["replicas"], _limits(spec), empty, sizes).get("", 0)
            self._create(deployment, first, old)
        else:
            self._resize_all(deployment, new, old)
            self._prune(spec, old)

    def _resize_all(self, deployment: Obj, new: Obj, old: list[Obj]) -> None:
        spec = deployment["spec"]
        sizes = next_sizes(spec["replicas"], _limits(spec), _size(new), [_size(rs) for rs in old])
        for replica_set in (new, *old):
            name = replica_set["metadata"]["name"]
            if name in sizes:
                self._resize(replica_set, sizes[name])

    def _recreate(self, deployment: Obj, new: Obj | None, old: list[Obj]) -> None:
        for replica_set in old:
            self._resize(replica_set, 0)
        if any(self._pods.of(rs["metadata"]["uid"]).pods for rs in old):
            return
        if new is None:
            self._create(deployment, deployment["spec"]["replicas"], old)
        else:
            self._resize(new, deployment["spec"]["replicas"])

    def _create(self, deployment: Obj, replicas: int, old: list[Obj]) -> None:
        replica_set = new_replica_set(deployment, replicas)
        annotations = numbered(replica_set, deployment, next_revision(old))
        replica_set["metadata"]["annotations"] = annotations
        self._store.create(REPLICA_SETS, replica_set)

    def _resize(self, replica_set: Obj, replicas: int) -> None:
        if replica_set["spec"]["replicas"] != replicas:
            metadata = replica_set["metadata"]
            patch = {"spec": {"replicas": replicas}}
            self._store.patch(REPLICA_SETS, metadata["namespace"], metadata["name"], patch)

    def _prune(self, spec: Obj, old: list[Obj]) -> None:
        empty = [
            rs for rs in old if not rs["spec"]["replicas"] and not dig(rs, "status", "replicas")
        ]
        for rs in empty[: max(0, len(empty) - spec.get("revisionHistoryLimit", 10))]:
            self._store.delete(REPLICA_SETS, rs["metadata"]["namespace"], rs["metadata"]["name"])

    def _write_status(self, deployment: Obj, new: list[Obj], old: list[Obj]) -> None:
        wanted = deployment["spec"]["replicas"]
        total = {field: _total((*new, *old), field) for field in _COUNTED}
        status = {
            **total,
            "updatedReplicas": _total(new, "replicas"),
            "unavailableReplicas": max(0, wanted - total["availableReplicas"]),
            "observedGeneration": deployment["metadata"]["generation"],
        }
        status = {key: value for key, value in status.items() if value}
        enough = total["availableReplicas"] >= wanted - _limits(deployment["spec"]).unavailable
        before = dig(deployment, "status", "conditions") or []
        rolled = total["replicas"] == _total(new, "replicas")
        complete = rolled and wanted == total["replicas"] == total["availableReplicas"]
        status["conditions"] = [
            _available(before, enough=enough, now=self._store.stamp),
            _progressing(before, new, complete=complete, rolled=rolled, now=self._store.stamp),
            *_failing(new, old),
        ]
        number = max(next_revision(old), revision_of(new[0])) if new else 0
        said = with_revision(deployment, number)
        if status != deployment.get("status") or said is not deployment:
            self._store.update(DEPLOYMENTS, {**said, "status": status}, "status")


def new_replica_set(deployment: Obj, replicas: int) -> Obj:
    """The ReplicaSet for the deployment's present template."""
    spec, metadata = deployment["spec"], deployment["metadata"]
    mark = template_revision(deployment)
    labels = {**(dig(spec, "template", "metadata", "labels") or {}), HASH_LABEL: mark}
    selector = put(spec["selector"], ("matchLabels", HASH_LABEL), mark)
    given: dict[str, Any] = {
        "replicas": replicas,
        "selector": selector,
        "template": put(spec["template"], ("metadata", "labels"), labels),
    }
    if spec.get("minReadySeconds"):
        given["minReadySeconds"] = spec["minReadySeconds"]
    return {
        "metadata": {
            "name": f"{metadata['name']}-{mark}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [owner_reference(deployment, DEPLOYMENTS)],
        },
        "spec": given,
    }


def _available(before: list[Obj], *, enough: bool, now: Callable[[], str]) -> Obj:
    status = "True" if enough else "False"
    for condition in before:
        if condition["type"] == "Available" and condition["status"] == status:
            return condition
    return {
        "type": "Available",
        "status": status,
        "reason": "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
        "message": f"Deployment {'has' if enough else 'does not have'} minimum availability.",
        "lastTransitionTime": now(),
        "lastUpdateTime": now(),
    }


def _progressing(
    before: list[Obj], new: list[Obj], *, complete: bool, rolled: bool, now: Callable[[], str]
) -> Obj:
    """A rollout that was complete stays so until there is a new template: helm and others wait for it."""
    known = next((one for one in before if one["type"] == "Progressing"), None)
    was_complete = known is not None and known["reason"] == _COMPLETE
    reason = _COMPLETE if complete or (was_complete and rolled) else "ReplicaSetUpdated"
    if known is not None and known["reason"] == reason:
        return known
    name = new[0]["metadata"]["name"] if new else ""
    done = "has successfully progressed" if reason == _COMPLETE else "is progressing"
    return {
        "type": "Progressing",
        "status": "True",
        "reason": reason,
        "message": f'ReplicaSet "{name}" {done}.',
        "lastTransitionTime": known["lastTransitionTime"] if known is not None else now(),
        "lastUpdateTime": now(),
    }


def _failing(new: list[Obj], old: list[Obj]) -> list[Obj]:
    """The condition of the ReplicaSet whose pods are refused; the new one's comes first."""
    for replica_set in (*new, *old):
        for one in dig(replica_set, "status", "conditions") or ():
            if one["type"] == REPLICA_FAILURE and one["status"] == "True":
                return [{**one, "lastUpdateTime": one["lastTransitionTime"]}]
    return []


def _limits(spec: Obj) -> Limits:
    if dig(spec, "strategy", "type") == "Recreate":
        return Limits(surge=0, unavailable=0)
    given = dig(spec, "strategy", "rollingUpdate") or {}
    surge, unavailable = given.get("maxSurge", "25%"), given.get("maxUnavailable", "25%")
    return Limits.of(spec["replicas"], surge, unavailable)


def _size(replica_set: Obj) -> Size:
    available = dig(replica_set, "status", "availableReplicas") or 0
    return Size(replica_set["metadata"]["name"], replica_set["spec"]["replicas"], available)


def _total(replica_sets: list[Obj] | tuple[Obj, ...], field: str) -> int:
    return sum(dig(rs, "status", field) or 0 for rs in replica_sets)


def _labels(obj: Obj) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}
