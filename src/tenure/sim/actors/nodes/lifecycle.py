"""The node-lifecycle controller: what the cluster concludes from a node's condition.

* No heartbeat for 50 s (60 s for a node that never reported): the kubelet's four
  conditions become Unknown, at the next of the controller's passes, 5 s apart.
* Ready=False taints the node not-ready, Ready=Unknown unreachable, both with NoSchedule
  and NoExecute; memory, disk, PID pressure and a missing network taint NoSchedule, and so
  does ``spec.unschedulable``. A taint goes when its cause does. Foreign taints stay.
* When a node stops being Ready, its pods stop being Ready too, so that disruption budgets
  count them as lost.

It acts on events and on timers that a silent kubelet sets off; nothing polls. Simplified:
taints are not rate-limited per zone, as a real controller's NoExecute taints are.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, Protocol

from tenure.model.api.meta import BEGINNING, format_time
from tenure.model.api.names import NOT_READY_TAINT, UNREACHABLE_TAINT, UNSCHEDULABLE_TAINT
from tenure.model.api.resource import NODES, PODS
from tenure.sim.actors.boundpods import BoundPods
from tenure.sim.actors.kubelet.podstatus import is_finished, pod_ready, with_condition
from tenure.sim.actors.nodestatus import READY, status_of, unheard_of
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import ADDED, DELETED
from tenure.sim.virtual.environment import Environment

MONITOR_GRACE: Final = timedelta(seconds=50)
STARTUP_GRACE: Final = timedelta(seconds=60)
MONITOR_EVERY: Final = timedelta(seconds=5)

#: (condition, status) → (taint key, effects).
_TAINTS: Final = {
    (READY, "False"): (NOT_READY_TAINT, ("NoSchedule", "NoExecute")),
    (READY, "Unknown"): (UNREACHABLE_TAINT, ("NoSchedule", "NoExecute")),
    ("MemoryPressure", "True"): ("node.kubernetes.io/memory-pressure", ("NoSchedule",)),
    ("DiskPressure", "True"): ("node.kubernetes.io/disk-pressure", ("NoSchedule",)),
    ("PIDPressure", "True"): ("node.kubernetes.io/pid-pressure", ("NoSchedule",)),
    ("NetworkUnavailable", "True"): ("node.kubernetes.io/network-unavailable", ("NoSchedule",)),
}
_OURS: Final = frozenset({key for key, _ in _TAINTS.values()} | {UNSCHEDULABLE_TAINT})


class Heartbeats(Protocol):
    """What the controller hears of kubelets."""

    def is_alive(self, node: str) -> bool: ...

    def last_renewal(self, node: str) -> datetime | None: ...


class NodeLifecycle:
    def __init__(
        self, environment: Environment, store: Store, pods: BoundPods, heartbeats: Heartbeats
    ) -> None:
        self._environment, self._store, self._pods = environment, store, pods
        self._heartbeats = heartbeats
        store.subscribe(NODES, self._on_node, replay=True)

    def fell_silent(self, node: str) -> None:
        """The kubelet has stopped; in a real cluster the controller would find out."""
        last = self._heartbeats.last_renewal(node) or self._environment.now()
        self._expect(node, last + MONITOR_GRACE)

    def _expect(self, node: str, heard_by: datetime) -> None:
        self._environment.at(_next_pass(heard_by), self._give_up, node)

    def _on_node(self, type_: str, node: Obj, old: Obj | None) -> None:
        if type_ == DELETED or (old is not None and _is_heartbeat(node, old)):
            return
        name = node["metadata"]["name"]
        if type_ == ADDED and not self._heartbeats.is_alive(name):
            grace = MONITOR_GRACE if status_of(node, READY) else STARTUP_GRACE
            self._expect(name, self._environment.now() + grace)
        self._taint(name)
        was_ready = old is not None and status_of(old, READY) == "True"
        if was_ready and status_of(node, READY) != "True":
            self._call_pods_unready(name)

    def _give_up(self, name: str) -> None:
        """The node was silent for too long, unless its kubelet came back."""
        node = self._store.find(NODES, "", name)
        if node is None or self._heartbeats.is_alive(name):
            return
        last = self._heartbeats.last_renewal(name)
        now = self._environment.now()
        if last is not None and now < last + MONITOR_GRACE:
            return  # It came back and fell silent again; that silence has its own timer.
        conditions = unheard_of(dig(node, "status", "conditions") or (), now)
        patch = {"status": {"conditions": conditions}}
        self._store.patch(NODES, "", name, patch, subresource="status")

    def _taint(self, name: str) -> None:
        node = self._store.find(NODES, "", name)
        if node is None:
            return
        taints: list[Obj] = node["spec"].get("taints", [])
        wanted = _wanted(node)
        kept = [t for t in taints if t["key"] not in _OURS or (t["key"], t["effect"]) in wanted]
        present = {(taint["key"], taint["effect"]) for taint in kept}
        missing = [pair for pair in wanted if pair not in present]
        if missing or len(kept) < len(taints):
            at = format_time(self._environment.now())
            new = [{"key": key, "effect": effect, "timeAdded": at} for key, effect in missing]
            self._store.patch(NODES, "", name, {"spec": {"taints": [*kept, *new] or None}})

    def _call_pods_unready(self, node: str) -> None:
        now = self._environment.now()
        for pod in self._pods.on(node):
            if pod_ready(pod) and not is_finished(pod):
                metadata = pod["metadata"]
                fresh = self._store.find(PODS, metadata["namespace"], metadata["name"])
                if fresh is None or fresh["metadata"]["uid"] != metadata["uid"]:
                    continue
                status = {"conditions": with_condition(fresh, "Ready", "False", now)}
                self._store.patch(
                    PODS,
                    metadata["namespace"],
                    metadata["name"],
                    {"status": status},
                    subresource="status",
                )


def _is_heartbeat(node: Obj, old: Obj) -> bool:
    """Nothing new but timestamps: by far the most frequent write, and none of our business."""
    return node["spec"] is old["spec"] and _statuses(node) == _statuses(old)


def _statuses(node: Obj) -> list[tuple[str, str]]:
    return [(c["type"], c["status"]) for c in (node.get("status") or {}).get("conditions") or ()]


def _wanted(node: Obj) -> dict[tuple[str, str], None]:
    """The (key, effect) pairs that the node's state asks for, in a fixed order."""
    wanted: dict[tuple[str, str], None] = {}
    for condition in dig(node, "status", "conditions") or ():
        key, effects = _TAINTS.get((condition["type"], condition["status"]), ("", ()))
        wanted.update(dict.fromkeys((key, effect) for effect in effects))
    if node["spec"].get("unschedulable"):
        wanted[UNSCHEDULABLE_TAINT, "NoSchedule"] = None
    return wanted


def _next_pass(instant: datetime) -> datetime:
    """The controller's first pass at or after the instant."""
    return instant + (BEGINNING - instant) % MONITOR_EVERY
