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

from collections import Counter
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from tenure.model.pod import LabelSelector
from tenure.model.resource import (
    DEPLOYMENTS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
)
from tenure.model.selectors import matches
from tenure.sim.actors.fraction import count_of
from tenure.sim.actors.ownedpods import controller_of, is_ready
from tenure.sim.actors.workqueue import WorkQueue, queue_key
from tenure.sim.environment import Environment
from tenure.sim.store import Store
from tenure.sim.tree import Obj, dig
from tenure.sim.watch import DELETED

_EVICTION_FORGOTTEN_AFTER: Final = timedelta(minutes=2)
_SCALED: Final = {
    "ReplicaSet": REPLICA_SETS,
    "StatefulSet": STATEFUL_SETS,
    "Deployment": DEPLOYMENTS,
}

#: Kind, namespace and name of a workload.
Owner = tuple[str, str, str]


class Need(msgspec.Struct, frozen=True):
    expected: int
    healthy: int


class Budget:
    """One budget's pods, with the numbers that change with every one of them."""

    def __init__(self, spec: Obj) -> None:
        self.spec = spec
        #: No selector covers nothing, an empty one everything.
        self._selector = msgspec.convert(spec.get("selector"), LabelSelector | None)
        self.pods: dict[str, Obj] = {}
        self.healthy = 0
        self.owners: Counter[Owner] = Counter()
        #: The status that we wrote last, to know our own words when we hear them.
        self.written: Obj | None = None

    def covers(self, pod: Obj) -> bool:
        return matches(self._selector, pod["metadata"].get("labels") or {})

    def put(self, name: str, pod: Obj | None) -> bool:
        """Take the pod's new state, or forget it; whether that changes a number."""
        before = self.pods.pop(name, None)
        if before is not None:
            self._count(before, -1)
        if pod is not None:
            self.pods[name] = pod
            self._count(pod, +1)
        if before is None or pod is None:
            return before is not pod
        return _is_healthy(before) != _is_healthy(pod)

    def _count(self, pod: Obj, sign: int) -> None:
        self.healthy += sign * _is_healthy(pod)
        owner = controller_of(pod)
        if owner is not None:
            key = (owner["kind"], pod["metadata"]["namespace"], owner["name"])
            self.owners[key] += sign
            if not self.owners[key]:
                del self.owners[key]


class DisruptionBudgets:
    def __init__(self, env: Environment, store: Store) -> None:
        self._env = env
        self._store = store
        self._queue = WorkQueue(env, self._look)
        #: By namespace and name.
        self._budgets: dict[str, dict[str, Budget]] = {}
        #: Names of the budgets over a pod, by ``namespace/name`` of the pod.
        self._over: dict[str, list[str]] = {}
        store.subscribe(POD_DISRUPTION_BUDGETS, self._on_budget, replay=True)
        store.subscribe(PODS, self._on_pod, replay=True)
        for resource in _SCALED.values():
            store.subscribe(resource, self._on_workload)

    def _on_budget(self, type_: str, new: Obj, old: Obj | None) -> None:
        namespace, name = new["metadata"]["namespace"], new["metadata"]["name"]
        budgets = self._budgets.setdefault(namespace, {})
        if type_ == DELETED:
            budget = budgets.pop(name)
            for pod in budget.pods:
                self._over[f"{namespace}/{pod}"].remove(name)
            return
        if old is None or not _same_selector(new, old):
            self._begin(namespace, name, new["spec"])
        budget = budgets[name]
        budget.spec = new["spec"]
        if new.get("status") is not budget.written:
            self._queue.add(f"{namespace}/{name}")

    def _begin(self, namespace: str, name: str, spec: Obj) -> None:
        before = self._budgets[namespace].get(name)
        for covered in before.pods if before else ():
            self._over[f"{namespace}/{covered}"].remove(name)
        budget = self._budgets[namespace][name] = Budget(spec)
        for pod in self._store.list(PODS, namespace):
            if budget.covers(pod):
                budget.put(pod["metadata"]["name"], pod)
                self._over.setdefault(queue_key(pod), []).append(name)

    def _on_pod(self, type_: str, pod: Obj, old: Obj | None) -> None:
        key, metadata = queue_key(pod), pod["metadata"]
        budgets = self._budgets.get(metadata["namespace"])
        if not budgets:
            self._over.pop(key, None)
            return
        over = self._over.get(key, [])
        if type_ == DELETED:
            self._over.pop(key, None)
        elif old is None or old["metadata"].get("labels") != metadata.get("labels"):
            self._put(over, pod, None)
            over = self._over[key] = [name for name in budgets if budgets[name].covers(pod)]
        self._put(over, pod, None if type_ == DELETED else pod)

    def _put(self, names: list[str], pod: Obj, state: Obj | None) -> None:
        """Give these budgets the pod's new state; look at those whose numbers it changes."""
        namespace, pod_name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        for name in names:
            if self._budgets[namespace][name].put(pod_name, state):
                self._queue.add(f"{namespace}/{name}")

    def _on_workload(self, _type: str, new: Obj, old: Obj | None) -> None:
        """A workload's scale is part of what its budgets expect."""
        if old is None or dig(old, "spec", "replicas") == dig(new, "spec", "replicas"):
            return
        namespace = new["metadata"]["namespace"]
        for name in self._budgets.get(namespace, {}):
            self._queue.add(f"{namespace}/{name}")

    def _look(self, namespace: str, name: str) -> None:
        stored = self._store.find(POD_DISRUPTION_BUDGETS, namespace, name)
        budget = self._budgets.get(namespace, {}).get(name)
        if stored is None or budget is None:
            return
        evicted = self._evicted(stored, budget)
        gone = sum(_is_healthy(budget.pods[pod]) for pod in evicted)
        healthy = budget.healthy - gone
        need, now = self._need(budget), self._store.stamp()
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

    def _evicted(self, stored: Obj, budget: Budget) -> dict[str, str]:
        """Pods whose eviction was allowed and that do not show it yet."""
        now = self._env.now()
        waiting: dict[str, str] = {}
        for pod, since in sorted((dig(stored, "status", "disruptedPods") or {}).items()):
            forgotten_at = datetime.fromisoformat(since) + _EVICTION_FORGOTTEN_AFTER
            known = budget.pods.get(pod)
            if known is None or "deletionTimestamp" in known["metadata"] or forgotten_at <= now:
                continue
            waiting[pod] = since
            self._queue.add_at(queue_key(stored), forgotten_at)
        return waiting

    def _need(self, budget: Budget) -> Need | str:
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


def settled(stored: Obj, need: Need, healthy: int, *, now: str) -> dict[str, Any]:
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


def failed(stored: Obj, why: str, *, now: str) -> dict[str, Any]:
    """Nothing may go while we cannot count; the last numbers stay."""
    return {
        **(stored.get("status") or {}),
        "disruptionsAllowed": 0,
        "observedGeneration": stored["metadata"]["generation"],
        "conditions": _conditions(stored, "False", "SyncFailed", message=why, now=now),
    }


def _conditions(stored: Obj, status: str, reason: str, *, message: str, now: str) -> list[Obj]:
    conditions = dig(stored, "status", "conditions") or []
    since = next(
        (
            condition["lastTransitionTime"]
            for condition in conditions
            if condition["type"] == "DisruptionAllowed" and condition["status"] == status
        ),
        now,
    )
    return [
        {
            "type": "DisruptionAllowed",
            "status": status,
            "reason": reason,
            "message": message,
            "observedGeneration": stored["metadata"]["generation"],
            "lastTransitionTime": since,
        }
    ]


def _is_healthy(pod: Obj) -> bool:
    return "deletionTimestamp" not in pod["metadata"] and is_ready(pod)


def _same_selector(new: Obj, old: Obj) -> bool:
    return bool(new["spec"].get("selector") == old["spec"].get("selector"))
