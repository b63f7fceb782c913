"""DaemonSets: one pod on every node that qualifies.

For each node, in this order:

1. qualifies: selector and affinity match and every hard taint is tolerated. It gets a pod,
   unless one is there, a terminating one included: the successor waits until that is gone.
2. only tolerated so far: a taint without ``NoExecute`` came later. What runs there stays, but
   a pod that goes does not come back. A leaving node (``karpenter.sh/disrupted``) is such.
3. does not qualify: its pods are deleted.

A failed pod is deleted after a growing pause, so that its successor gets a chance. The pods
name their node by affinity and go through the scheduler, as real ones do.

A changed template is rolled out node by node (``maxUnavailable``); surging is not modelled.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from tenure.model.api.resource import DAEMON_SETS, NODES, PODS
from tenure.sim.actors.workloads.daemonnodes import Fate, Fates, NodeView
from tenure.sim.actors.workloads.daemonpods import (
    REVISION_LABEL,
    daemon_pod,
    revision_of,
    target_node,
)
from tenure.sim.actors.workloads.failedcreate import create_pod
from tenure.sim.actors.workloads.ownedpods import Group, OwnedPods, is_active, is_ready, phase
from tenure.sim.actors.workqueue import WorkQueue, queue_key
from tenure.sim.apiserver.objects.numbers import count_of
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import DELETED
from tenure.sim.virtual.environment import Environment

_BACKOFF_FIRST: Final = timedelta(seconds=1)
_BACKOFF_LAST: Final = timedelta(minutes=15)


class DaemonSets:
    def __init__(self, env: Environment, store: Store) -> None:
        self._env = env
        self._store = store
        self._queue = WorkQueue(env, self._look)
        self._nodes: dict[str, NodeView] = {}
        self._known: dict[str, None] = {}
        self._pods = OwnedPods(store, DAEMON_SETS.kind)
        self._fates = Fates()
        self._failures = Failures()
        self._pods.listen(self._queue.add)
        store.subscribe(NODES, self._on_node, replay=True)
        store.subscribe(DAEMON_SETS, self._on_daemon_set, replay=True)

    def _on_node(self, type_: str, node: Obj, _old: Obj | None) -> None:
        name = node["metadata"]["name"]
        before = self._nodes.get(name)
        if type_ == DELETED:
            self._nodes.pop(name, None)
        else:
            view = NodeView.of(node)
            if view == before:
                return
            self._nodes[name] = view
        for key in self._known:
            self._queue.add(key)

    def _on_daemon_set(self, type_: str, new: Obj, old: Obj | None) -> None:
        key = queue_key(new)
        if type_ == DELETED:
            self._known.pop(key, None)
            self._fates.forget(new["metadata"]["uid"])
            self._failures.forget(new["metadata"]["uid"])
        elif old is None or new["spec"] is not old["spec"]:
            self._known[key] = None
            self._queue.add(key)

    def _look(self, namespace: str, name: str) -> None:
        daemon_set = self._store.find(DAEMON_SETS, namespace, name)
        if daemon_set is None or "deletionTimestamp" in daemon_set["metadata"]:
            return
        group = self._pods.of(daemon_set["metadata"]["uid"])
        on_node = _by_node(group)
        fates = self._fates.fates(daemon_set, self._nodes)
        changes = 0
        for node, fate in fates.items():
            changes += self._tend(daemon_set, node, fate, on_node.pop(node, []))
        for pods in on_node.values():  # On nodes that are gone: pod collection takes the bound.
            waiting = [pod for pod in pods if not pod["spec"].get("nodeName")]
            changes += self._delete([pod for pod in waiting if is_active(pod)])
        changes += changes == 0 and self._roll(daemon_set, fates, group)
        if not changes:  # Otherwise when the pods made or deleted here have been seen.
            self._write_status(daemon_set, fates, group)

    def _tend(self, daemon_set: Obj, node: str, fate: Fate, here: list[Obj]) -> int:
        """Make, keep or delete this node's pods; how many were made or deleted."""
        if fate.wanted and not here:
            create_pod(self._store, daemon_pod(daemon_set, node), daemon_set, DAEMON_SETS)
            return 1
        staying = [pod for pod in here if "deletionTimestamp" not in pod["metadata"]]
        if not fate.tolerated:
            return self._delete(staying)
        failed = [pod for pod in staying if phase(pod) == "Failed"]
        healthy = [pod for pod in staying if phase(pod) != "Failed"]
        healthy.sort(key=lambda pod: (not pod["spec"].get("nodeName"), *_age(pod)))
        due = [pod for pod in failed if self._is_due(daemon_set, node, pod)]
        return self._delete([*due, *healthy[1:]])

    def _is_due(self, daemon_set: Obj, node: str, failed: Obj) -> bool:
        now = self._env.now()
        owner, pod = daemon_set["metadata"]["uid"], failed["metadata"]["uid"]
        until = self._failures.until(owner, node, pod, now)
        if until > now:
            self._queue.add_at(queue_key(daemon_set), until)
        return until <= now

    def _delete(self, pods: list[Obj]) -> int:
        for pod in pods:
            self._store.delete(PODS, pod["metadata"]["namespace"], pod["metadata"]["name"])
        return len(pods)

    def _roll(self, daemon_set: Obj, fates: dict[str, Fate], group: Group) -> int:
        """Delete pods of an older template: those that do not work, then within the limit."""
        strategy = daemon_set["spec"].get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete":
            return 0
        revision = revision_of(daemon_set)
        wanted = sum(fate.wanted for fate in fates.values())
        limit = dig(strategy, "rollingUpdate", "maxUnavailable") or 1
        active = sorted(group.active_pods(), key=_age)
        ready = [pod for pod in active if is_ready(pod)]
        allowed = count_of(limit, wanted, round_up=True) - (wanted - len(ready))
        old = [pod for pod in active if _labels(pod).get(REVISION_LABEL) != revision]
        broken = [pod for pod in old if not is_ready(pod)]
        working = [pod for pod in old if is_ready(pod)]
        return self._delete([*broken, *working[: max(0, allowed)]])

    def _write_status(self, daemon_set: Obj, fates: dict[str, Fate], group: Group) -> None:
        status = status_of(daemon_set, fates, group)
        if status != daemon_set.get("status"):
            self._store.update(DAEMON_SETS, {**daemon_set, "status": status}, "status")


class Pause(msgspec.Struct, frozen=True):
    pod: str
    length: timedelta
    until: datetime


class Failures:
    """When a failed pod may be replaced: after a pause that doubles from failure to failure."""

    def __init__(self) -> None:
        self._pauses: dict[str, dict[str, Pause]] = {}

    def until(self, owner: str, node: str, pod: str, now: datetime) -> datetime:
        pauses = self._pauses.setdefault(owner, {})
        last = pauses.get(node)
        if last is None or now > last.until + 2 * _BACKOFF_LAST:
            last = pauses[node] = Pause(pod, _BACKOFF_FIRST, now + _BACKOFF_FIRST)
        elif last.pod != pod:
            length = min(2 * last.length, _BACKOFF_LAST)
            last = pauses[node] = Pause(pod, length, now + length)
        return last.until

    def forget(self, owner: str) -> None:
        self._pauses.pop(owner, None)


def status_of(daemon_set: Obj, fates: dict[str, Fate], group: Group) -> dict[str, Any]:
    revision = revision_of(daemon_set)
    counts = dict.fromkeys(("current", "misscheduled", "ready", "updated"), 0)
    for node, pods in _by_node(group).items():
        running = [pod for pod in pods if is_active(pod)]
        fate = fates.get(node)
        if fate is None or not running:
            continue
        if not fate.wanted:
            counts["misscheduled"] += 1
            continue
        counts["current"] += 1
        counts["ready"] += any(is_ready(pod) for pod in running)
        counts["updated"] += any(_labels(pod).get(REVISION_LABEL) == revision for pod in running)
    desired = sum(fate.wanted for fate in fates.values())
    optional = {
        "updatedNumberScheduled": counts["updated"],
        "numberAvailable": counts["ready"],
        "numberUnavailable": desired - counts["ready"],
        "observedGeneration": daemon_set["metadata"]["generation"],
    }
    return {
        "currentNumberScheduled": counts["current"],
        "desiredNumberScheduled": desired,
        "numberMisscheduled": counts["misscheduled"],
        "numberReady": counts["ready"],
        **{key: value for key, value in optional.items() if value},
    }


def _by_node(group: Group) -> dict[str, list[Obj]]:
    on_node: dict[str, list[Obj]] = {}
    for pod in group.pods.values():
        on_node.setdefault(target_node(pod), []).append(pod)
    return on_node


def _age(pod: Obj) -> tuple[str, str]:
    return pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]


def _labels(obj: Obj) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}
