"""ReplicaSets: as many active pods as wanted, no more, no less.

A terminating or finished pod is not active, so its replacement is created at once. When there
are too many, the ones to go are chosen in Kubernetes' order: not bound yet, pending, not
ready, lower deletion cost, sharing a node with more of their kind, ready for a shorter time,
younger; the name breaks what ties remain.

Where a rate is given, pods are created no faster than that over all ReplicaSets, as
kube-controller-manager does (20 per second unless it is told otherwise), each set in its turn.

A pod that the API server refuses is tried again, later and later; meanwhile the condition
``ReplicaFailure`` and the event ``FailedCreate`` say why. Pods without an owner are not adopted.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Final

from tenure.errors import ApiError
from tenure.model.api.resource import PODS, REPLICA_SETS
from tenure.sim.actors.workloads.failedcreate import create_pod
from tenure.sim.actors.workloads.ownedpods import Group, OwnedPods, is_ready, phase, ready_since
from tenure.sim.actors.workloads.podtemplate import new_pod
from tenure.sim.actors.workqueue import WorkQueue, queue_key
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.store.store import Store
from tenure.sim.virtual.environment import Environment

#: The condition of a ReplicaSet whose pods are refused.
REPLICA_FAILURE: Final = "ReplicaFailure"

_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}


class ReplicaSets:
    def __init__(
        self, env: Environment, store: Store, *, pods_per_second: float | None = None
    ) -> None:
        self._env = env
        self._interval = timedelta(seconds=1 / pods_per_second) if pods_per_second else None
        self._next_at = env.now()
        self._store = store
        self._queue = WorkQueue(env, self._look)
        self.pods = OwnedPods(store, REPLICA_SETS.kind)
        self.pods.listen(self._queue.add)
        store.subscribe(REPLICA_SETS, self._on_replica_set, replay=True)

    def _on_replica_set(self, _type: str, new: Obj, old: Obj | None) -> None:
        if old is None or new["spec"] is not old["spec"]:
            self._queue.add(queue_key(new))

    def _look(self, namespace: str, name: str) -> None:
        replica_set = self._store.find(REPLICA_SETS, namespace, name)
        if replica_set is None or "deletionTimestamp" in replica_set["metadata"]:
            return
        group = self.pods.of(replica_set["metadata"]["uid"])
        surplus = group.active - replica_set["spec"]["replicas"]
        for created in range(-surplus):
            if not self._may_create():
                # A pod that got one is behind the others.
                again = self._next_at + created * timedelta.resolution
                self._queue.add_at(queue_key(replica_set), again)
                break
            self._create_pod(replica_set, group)
        if surplus > 0:
            for pod in leaving_first(group.active_pods())[:surplus]:
                self._store.delete(PODS, namespace, pod["metadata"]["name"])
        if not surplus:  # Otherwise when the pods made or deleted here have been seen.
            self._write_status(replica_set, group)

    def _may_create(self) -> bool:
        if self._interval is None:
            return True
        now = self._env.now()
        if self._next_at > now:
            return False
        # What a late look missed is made up for, but no more than a second of it.
        self._next_at = max(self._next_at, now - timedelta(seconds=1)) + self._interval
        return True

    def _create_pod(self, replica_set: Obj, group: Group) -> None:
        """Make one pod; a refusal becomes a condition, then it is retried later."""
        template = replica_set["spec"]["template"]
        try:
            create_pod(
                self._store, new_pod(template, replica_set, REPLICA_SETS), replica_set, REPLICA_SETS
            )
        except ApiError as error:
            self._write_status(replica_set, group, failure=error.message)
            raise

    def _write_status(self, replica_set: Obj, group: Group, failure: str = "") -> None:
        available = self._available(replica_set, group)
        status: Obj = {
            "replicas": group.active,
            "fullyLabeledReplicas": group.active,
            "readyReplicas": group.ready,
            "availableReplicas": available,
            "observedGeneration": replica_set["metadata"]["generation"],
        }
        status = {key: value for key, value in status.items() if value or key == "replicas"}
        if failure:
            status["conditions"] = [self._failure(replica_set, failure)]
        if status != replica_set.get("status"):
            self._store.update(REPLICA_SETS, {**replica_set, "status": status}, "status")

    def _failure(self, replica_set: Obj, message: str) -> Obj:
        """The condition; one that is there keeps the instant it began at."""
        known: Obj = next(iter(replica_set["status"].get("conditions") or ()), {})
        return {
            "type": REPLICA_FAILURE,
            "status": "True",
            "reason": "FailedCreate",
            "message": message,
            "lastTransitionTime": known.get("lastTransitionTime") or self._store.stamp(),
        }

    def _available(self, replica_set: Obj, group: Group) -> int:
        """Pods that have been ready for long enough; looks again when the next one is."""
        wait = timedelta(seconds=replica_set["spec"].get("minReadySeconds") or 0)
        if not wait:
            return group.ready
        now = self._env.now()
        due = [
            datetime.fromisoformat(since) + wait
            for pod in group.active_pods()
            if (since := ready_since(pod))
        ]
        if later := [instant for instant in due if instant > now]:
            self._queue.add_at(queue_key(replica_set), min(later))
        return sum(instant <= now for instant in due)


def leaving_first(pods: list[Obj]) -> list[Obj]:
    """The pods in the order in which a shrinking ReplicaSet gives them up."""
    neighbours = Counter(pod["spec"].get("nodeName", "") for pod in pods)

    def rank(pod: Obj) -> tuple[int, ...]:
        node = pod["spec"].get("nodeName", "")
        bound = int(bool(node))
        return bound, _PHASES.get(phase(pod), 2), int(is_ready(pod)), _cost(pod), -neighbours[node]

    # Sorting is stable, so the weakest criterion comes first.
    pods = sorted(pods, key=lambda pod: pod["metadata"]["name"])
    pods.sort(key=lambda pod: pod["metadata"]["creationTimestamp"], reverse=True)
    pods.sort(key=lambda pod: ready_since(pod) or "", reverse=True)
    return sorted(pods, key=rank)


def _cost(pod: Obj) -> int:
    try:
        return int((pod["metadata"].get("annotations") or {}).get(_DELETION_COST, 0))
    except ValueError:
        return 0
