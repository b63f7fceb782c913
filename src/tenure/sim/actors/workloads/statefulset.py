"""StatefulSets: pods with lasting names, one at a time or all at once.

An ordinal whose pod is still in the API, terminating or not, is taken: the successor is created
when the old pod has *gone*, so that no name ever runs twice. In this order:

1. ordinals below ``replicas``, lowest first: an empty one gets its claims and its pod; a finished
   pod is deleted. ``OrderedReady`` goes on to the next ordinal only when this one is available
   and not terminating; ``Parallel`` does not wait;
2. ordinals above, highest first: deleted, in ``OrderedReady`` one after the other;
3. pods of an older template, highest first, one after the other (``RollingUpdate`` down to its
   ``partition``; ``OnDelete`` never).

Claims stay when pods go. Not modelled: old revisions (every new pod is of the present
template), ``maxUnavailable``, and a retention policy that deletes claims.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from tenure.model.api.resource import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from tenure.sim.actors.workloads.failedcreate import create_pod
from tenure.sim.actors.workloads.ownedpods import Group, OwnedPods, is_ready, phase, ready_since
from tenure.sim.actors.workloads.statefulpods import (
    REVISION_LABEL,
    claims_for,
    ordinal_of,
    revision_of,
    stateful_pod,
)
from tenure.sim.actors.workqueue import WorkQueue, queue_key
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.store.store import Store
from tenure.sim.virtual.environment import Environment

_FINISHED: Final = ("Succeeded", "Failed")
_NO_PODS: Final = Group()

#: Pods by their ordinal in the set.
ByOrdinal = dict[int, Obj]


class StatefulSets:
    def __init__(self, env: Environment, store: Store) -> None:
        self._env = env
        self._store = store
        self._queue = WorkQueue(env, self._look)
        #: None until there is a stateful set: clusters without any do not pay for following pods.
        self._pods: OwnedPods | None = None
        store.subscribe(STATEFUL_SETS, self._on_set, replay=True)

    def _on_set(self, _type: str, new: Obj, old: Obj | None) -> None:
        if self._pods is None:
            self._pods = OwnedPods(self._store, STATEFUL_SETS.kind)
            self._pods.listen(self._queue.add)
        if old is None or new["spec"] is not old["spec"]:
            self._queue.add(queue_key(new))

    def _look(self, namespace: str, name: str) -> None:
        stateful_set = self._store.find(STATEFUL_SETS, namespace, name)
        if stateful_set is None or "deletionTimestamp" in stateful_set["metadata"]:
            return
        group = self._pods.of(stateful_set["metadata"]["uid"]) if self._pods else _NO_PODS
        by_ordinal = _by_ordinal(stateful_set, group)
        missing, leaving = self._next(stateful_set, by_ordinal)
        for ordinal in missing:
            self._create(stateful_set, ordinal)
        for pod in leaving:
            self._store.delete(PODS, namespace, pod["metadata"]["name"])
        if not missing and not leaving:  # Otherwise when the changed pods have been seen.
            self._write_status(stateful_set, by_ordinal)

    def _next(self, stateful_set: Obj, by_ordinal: ByOrdinal) -> tuple[list[int], list[Obj]]:
        """The ordinals to fill and the pods to delete now."""
        ordered = stateful_set["spec"].get("podManagementPolicy") != "Parallel"
        missing, leaving, settled = self._fill(stateful_set, by_ordinal, ordered=ordered)
        if ordered and not settled:
            return missing, leaving
        leaving += self._shrink(stateful_set, by_ordinal, ordered=ordered)
        if not missing and not leaving:
            leaving = _outdated(stateful_set, by_ordinal)
        return missing, leaving

    def _fill(
        self, stateful_set: Obj, by_ordinal: ByOrdinal, *, ordered: bool
    ) -> tuple[list[int], list[Obj], bool]:
        """Ordinals without a pod, finished pods, and whether every ordinal is as it should be."""
        missing: list[int] = []
        finished: list[Obj] = []
        for ordinal in _wanted(stateful_set):
            pod = by_ordinal.get(ordinal)
            if pod is None:
                missing.append(ordinal)
            elif phase(pod) in _FINISHED:
                finished += [] if _is_leaving(pod) else [pod]
            elif not _is_leaving(pod) and self._is_available(stateful_set, pod):
                continue
            if ordered:
                return missing, finished, False
        return missing, finished, True

    @staticmethod
    def _shrink(stateful_set: Obj, by_ordinal: ByOrdinal, *, ordered: bool) -> list[Obj]:
        """Pods above the last place, highest first."""
        last = _wanted(stateful_set)
        condemned = [by_ordinal[ordinal] for ordinal in sorted(by_ordinal, reverse=True)
                     if ordinal not in last]  # fmt: skip
        if not ordered:
            return [pod for pod in condemned if not _is_leaving(pod)]
        broken = [pod for pod in condemned if not _is_healthy(pod)]
        # One that is not healthy waits for a lower one that is not healthy either.
        highest = condemned[:1]
        may_go = all(not _is_leaving(pod) and (_is_healthy(pod) or pod is broken[-1])
                     for pod in highest)  # fmt: skip
        return highest if may_go else []

    def _is_available(self, stateful_set: Obj, pod: Obj) -> bool:
        """Ready for long enough; looks again when it is."""
        since = ready_since(pod)
        if since is None or phase(pod) != "Running":
            return False
        wait = timedelta(seconds=stateful_set["spec"].get("minReadySeconds") or 0)
        if not wait or not since:
            return True
        due = datetime.fromisoformat(since) + wait
        if due > self._env.now():
            self._queue.add_at(queue_key(stateful_set), due)
        return due <= self._env.now()

    def _create(self, stateful_set: Obj, ordinal: int) -> None:
        for claim in claims_for(stateful_set, ordinal):
            metadata = claim["metadata"]
            where = (PERSISTENT_VOLUME_CLAIMS, metadata["namespace"], metadata["name"])
            if self._store.find(*where) is None:
                self._store.create(PERSISTENT_VOLUME_CLAIMS, claim)
        create_pod(self._store, stateful_pod(stateful_set, ordinal), stateful_set, STATEFUL_SETS)

    def _write_status(self, stateful_set: Obj, by_ordinal: ByOrdinal) -> None:
        available = sum(self._is_available(stateful_set, pod) for pod in by_ordinal.values())
        status = status_of(stateful_set, by_ordinal, available)
        if status != stateful_set.get("status"):
            self._store.update(STATEFUL_SETS, {**stateful_set, "status": status}, "status")


def status_of(stateful_set: Obj, by_ordinal: ByOrdinal, available: int) -> dict[str, Any]:
    revision = revision_of(stateful_set)
    before = dig(stateful_set, "status", "currentRevision") or revision
    staying = [pod for pod in by_ordinal.values() if not _is_leaving(pod)]
    updated = sum(_revision(pod) == revision for pod in staying)
    ready = sum(is_ready(pod) for pod in by_ordinal.values())
    # The rollout is over when every pod is of the current template and ready.
    current = revision if updated == ready == stateful_set["spec"]["replicas"] else before
    counts = {
        "readyReplicas": ready,
        "currentReplicas": sum(_revision(pod) == current for pod in staying),
        "updatedReplicas": updated,
    }
    return {
        "observedGeneration": stateful_set["metadata"]["generation"],
        "replicas": len(by_ordinal),
        **{key: count for key, count in counts.items() if count},
        "availableReplicas": available,
        "currentRevision": current,
        "updateRevision": revision,
        "collisionCount": 0,
    }


def _outdated(stateful_set: Obj, by_ordinal: ByOrdinal) -> list[Obj]:
    """The next pod of an older template to go: the highest, once all above it are healthy."""
    strategy = stateful_set["spec"].get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return []
    wanted, revision = _wanted(stateful_set), revision_of(stateful_set)
    partition = dig(strategy, "rollingUpdate", "partition") or 0
    for ordinal in reversed(wanted[partition:]):
        pod = by_ordinal.get(ordinal)
        if pod is not None and _revision(pod) != revision and not _is_leaving(pod):
            return [pod]
        if pod is None or not _is_healthy(pod):
            return []
    return []


def _wanted(stateful_set: Obj) -> range:
    spec = stateful_set["spec"]
    start: int = dig(spec, "ordinals", "start") or 0
    return range(start, start + spec["replicas"])


def _by_ordinal(stateful_set: Obj, group: Group) -> ByOrdinal:
    found = ((ordinal_of(stateful_set, pod), pod) for pod in group.pods.values())
    by_ordinal = {ordinal: pod for ordinal, pod in found if ordinal is not None}
    return dict(sorted(by_ordinal.items()))


def _revision(pod: Obj) -> str:
    revision: str = (pod["metadata"].get("labels") or {}).get(REVISION_LABEL, "")
    return revision


def _is_leaving(pod: Obj) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _is_healthy(pod: Obj) -> bool:
    return phase(pod) == "Running" and is_ready(pod) and not _is_leaving(pod)
