"""The status of PodDisruptionBudgets: how many of the pods may be taken away right now.

Healthy is a pod that is ready, not terminating, and not just evicted. What is wanted:

* ``minAvailable: 3``        three healthy pods, out of those that are there;
* ``minAvailable: "50%"``    half of what the pods' owners want, rounded up;
* ``maxUnavailable``         what the owners want, less this number or percentage (rounded up).

Owners are counted by their scale, a Deployment's through its ReplicaSets, so that a budget does
not shrink with the pods that are missing. Pods without an owner count for nothing there. An
owner that cannot be counted closes the budget (``SyncFailed``).

The eviction API notes whom it has evicted in ``disruptedPods``; such a pod counts as gone until
it is seen terminating, at most two minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from tenure.model.api.resource import (
    DEPLOYMENTS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
)
from tenure.sim.actors.pdb.coveredpods import CoveredPods, Member, Namespace, Owner
from tenure.sim.actors.workloads.ownedpods import controller_of
from tenure.sim.actors.workqueue import WorkQueue, queue_key
from tenure.sim.apiserver.objects.numbers import count_of
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import DELETED
from tenure.sim.virtual.environment import Environment

_EVICTION_FORGOTTEN_AFTER: Final = timedelta(minutes=2)
_SCALED: Final = {
    "ReplicaSet": REPLICA_SETS,
    "StatefulSet": STATEFUL_SETS,
    "Deployment": DEPLOYMENTS,
}


class Need(msgspec.Struct, frozen=True):
    expected: int
    healthy: int


class PdbController:
    def __init__(self, env: Environment, store: Store) -> None:
        self._env = env
        self._store = store
        self._queue = WorkQueue(env, self._look)
        self._namespaces: dict[str, Namespace] = {}
        store.subscribe(POD_DISRUPTION_BUDGETS, self._on_budget, replay=True)
        store.subscribe(PODS, self._on_pod, replay=True)
        for resource in _SCALED.values():
            store.subscribe(resource, self._on_workload)

    def _on_budget(self, type_: str, new: Obj, old: Obj | None) -> None:
        name = new["metadata"]["name"]
        namespace = self._namespace(new)
        if type_ == DELETED:
            namespace.end(name)
            return
        if old is None or old["spec"].get("selector") != new["spec"].get("selector"):
            namespace.begin(name, new["spec"])
        budget = namespace.budgets[name]
        budget.spec = new["spec"]
        respecified = old is None or new["spec"] is not old["spec"]
        if respecified or new.get("status") is not budget.written:
            self._queue.add(queue_key(new))

    def _on_pod(self, type_: str, pod: Obj, _old: Obj | None) -> None:
        metadata = pod["metadata"]
        member = None if type_ == DELETED else Member.of(pod)
        for name in self._namespace(pod).put(metadata["name"], member):
            self._queue.add(f"{metadata['namespace']}/{name}")

    def _namespace(self, obj: Obj) -> Namespace:
        return self._namespaces.setdefault(obj["metadata"]["namespace"], Namespace())

    def _on_workload(self, _type: str, new: Obj, old: Obj | None) -> None:
        """A workload's scale is part of what its budgets expect."""
        if old is None or old["spec"] is new["spec"]:  # Nearly always: a new status.
            return
        if old["spec"].get("replicas") == new["spec"].get("replicas"):
            return
        for name in self._namespace(new).budgets:
            self._queue.add(f"{new['metadata']['namespace']}/{name}")

    def _look(self, namespace: str, name: str) -> None:
        stored = self._store.find(POD_DISRUPTION_BUDGETS, namespace, name)
        budget = self._namespaces[namespace].budgets.get(name)
        if stored is None or budget is None:
            return
        evicted = self._evicted(stored, budget)
        gone = sum(budget.pods[pod].healthy for pod in evicted)
        healthy = budget.healthy - gone
        need, now = self._need(budget), self._store.stamp
        if isinstance(need, Need):
            status = settled(stored, need, healthy, now=now)
        else:
            status = failed(stored, need, now=now)
        status.pop("disruptedPods", None)
        if evicted:
            status["disruptedPods"] = evicted
        if status != stored.get("status"):
            update = {**stored, "status": status}
            written = self._store.update(POD_DISRUPTION_BUDGETS, update, "status")
            budget.written = written["status"]

    def _evicted(self, stored: Obj, budget: CoveredPods) -> dict[str, str]:
        """Pods whose eviction was allowed and that do not show it yet."""
        now = self._env.now()
        waiting: dict[str, str] = {}
        for pod, since in sorted((dig(stored, "status", "disruptedPods") or {}).items()):
            forgotten_at = datetime.fromisoformat(since) + _EVICTION_FORGOTTEN_AFTER
            known = budget.pods.get(pod)
            if known is None or known.leaving or forgotten_at <= now:
                continue
            waiting[pod] = since
            self._queue.add_at(queue_key(stored), forgotten_at)
        return waiting

    def _need(self, budget: CoveredPods) -> Need | str:
        """What the budget asks for, or why that cannot be told."""
        least, most = budget.spec.get("minAvailable"), budget.spec.get("maxUnavailable")
        if isinstance(least, int):
            return Need(expected=len(budget.pods), healthy=least)
        scales: dict[Owner, int] = {}
        for owner in budget.owners:
            root, replicas = self._scale(owner)
            if replicas is None:
                return f"{root[0]} {root[2]!r} has no scale to count pods by"
            scales[root] = replicas
        expected = sum(scales.values())
        if least is not None:
            return Need(expected, count_of(least, expected, round_up=True))
        fewer = count_of(most, expected, round_up=True) if most is not None else expected
        return Need(expected, max(0, expected - fewer))

    def _scale(self, owner: Owner) -> tuple[Owner, int | None]:
        """The workload at the top, and how many pods it wants, if that is known."""
        kind, namespace, name = owner
        resource = _SCALED.get(kind)
        workload = self._store.find(resource, namespace, name) if resource else None
        if workload is None:
            return owner, None
        parent = controller_of(workload)
        if parent is not None and parent["kind"] == DEPLOYMENTS.kind:
            return self._scale((DEPLOYMENTS.kind, namespace, parent["name"]))
        return owner, workload["spec"]["replicas"]


def settled(stored: Obj, need: Need, healthy: int, *, now: Callable[[], str]) -> dict[str, Any]:
    allowed = max(0, healthy - need.healthy) if need.expected > 0 else 0
    condition = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
    return {
        "currentHealthy": healthy,
        "desiredHealthy": need.healthy,
        "expectedPods": need.expected,
        "disruptionsAllowed": allowed,
        "observedGeneration": stored["metadata"]["generation"],
        "conditions": _conditions(stored, *condition, message="", now=now),
    }


def failed(stored: Obj, why: str, *, now: Callable[[], str]) -> dict[str, Any]:
    """Nothing may go while we cannot count; the last numbers stay."""
    return {
        **(stored.get("status") or {}),
        "disruptionsAllowed": 0,
        "observedGeneration": stored["metadata"]["generation"],
        "conditions": _conditions(stored, "False", "SyncFailed", message=why, now=now),
    }


def _conditions(
    stored: Obj, status: str, reason: str, *, message: str, now: Callable[[], str]
) -> list[Obj]:
    conditions = dig(stored, "status", "conditions") or []
    since = next(
        (
            condition["lastTransitionTime"]
            for condition in conditions
            if condition["type"] == "DisruptionAllowed" and condition["status"] == status
        ),
        None,
    )
    return [
        {
            "type": "DisruptionAllowed",
            "status": status,
            "reason": reason,
            "message": message,
            "observedGeneration": stored["metadata"]["generation"],
            "lastTransitionTime": since or now(),
        }
    ]
