"""The scheduler: gives every pending pod a node, or tells it why there is none.

Like kube-scheduler as far as decisions about nodes depend on it:

1. Its pods: not bound, not terminating, not finished, without scheduling gates, and asking
   for no other scheduler.
2. Order: priority, then age (``scheduling.queue``).
3. Where: filters, then what volumes and other pods say, then the best score
   (``scheduling.search``).
4. A pod that fits nowhere gets ``PodScheduled=False`` with reason ``Unschedulable``; it is
   tried again when something happens that may help: a node comes, its labels, taints, cordon
   or capacity change, a pod leaves a node, where other pods have a say, any pod moves, and where
   volumes have one, a claim, volume, class, attachment or what a node attaches changes.
   Nothing is polled.

One pod is bound every ``pause``. A message that only changed its numbers is rewritten at most
every ``retell_after``, for the same reason for which kube-scheduler backs off: a thousand
waiting pods would otherwise be rewritten for every node that joins.

5. A pod that fits nowhere takes the room of pods of lower priority (``scheduling.preemption``),
   unless its ``preemptionPolicy`` is Never: they are deleted with their grace, and the pod is nominated
   to that node. No pod of equal or lower priority gets the room of a nominated pod (``Reservations``),
   no matter which program nominated it, and the pod tries that node first. One that may preempt and finds no node to do so on
   is nominated no longer.

6. A claim that waits for its first consumer is told the node, and gets its volume there. The pod is
   bound at once: its kubelet waits for the volume, where kube-scheduler would.

Not modelled: how much storage a driver has left, and other scheduler profiles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from tenure.errors import ApiError
from tenure.model.api.resource import (
    NAMESPACES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
)
from tenure.sim.actors.scheduling.classes import Classes, PodClass, same_demand, same_needs
from tenure.sim.actors.scheduling.placement import NodeState, Placement, Reservations
from tenure.sim.actors.scheduling.preemption import Preemption
from tenure.sim.actors.scheduling.queue import Line, Queue
from tenure.sim.actors.scheduling.search import Search
from tenure.sim.actors.scheduling.storagechanges import watch_storage
from tenure.sim.actors.scheduling.volumes import PodVolumes
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import DELETED
from tenure.sim.virtual.environment import Environment

NAME: Final = "default-scheduler"
_FINISHED: Final = ("Succeeded", "Failed")
_TARGET: Final = "DisruptionTarget"


class Scheduler:
    def __init__(
        self,
        env: Environment,
        store: Store,
        *,
        pause: timedelta = timedelta(milliseconds=10),
        retell_after: timedelta = timedelta(seconds=10),
    ) -> None:
        self._env = env
        self._store = store
        self._pause = pause
        self._retell_after = retell_after
        self._classes = Classes()
        self._class_of: dict[str, PodClass] = {}
        self._placement = Placement()
        self._queue = Queue()
        self._volumes = PodVolumes(store, self._placement)
        self._search = Search(
            self._placement,
            self._classes,
            env.random_for("scheduler"),
            self._namespace_labels,
            self._volumes,
        )
        self._announcements: dict[PodClass, Announcement] = {}
        self._preemption = Preemption(self._placement, self._find, self._budgets)
        self._reservations = Reservations(self._placement)
        #: Pods we bound whose binding we have not been told of yet.
        self._assumed: dict[str, str] = {}
        self._armed = False
        store.subscribe(NODES, self._on_node, replay=True)
        store.subscribe(PODS, self._on_pod, replay=True)
        watch_storage(store, self._reconsider_claim)

    # What happens in the cluster.

    def _on_node(self, type_: str, node: Obj, _old: Obj | None) -> None:
        name = node["metadata"]["name"]
        if type_ == DELETED:
            self._placement.drop_node(name)
            self._reconsider(None)
        elif (state := self._placement.put_node(node)) is not None:
            self._reconsider(state)

    def _on_pod(self, type_: str, pod: Obj, old: Obj | None) -> None:
        key = _key(pod)
        if type_ == DELETED:
            self._forget(key)
            return
        cls = self._classify(key, pod, old)
        node = pod["spec"].get("nodeName", "")
        if node:
            self._assumed.pop(key, None)
            self._queue.discard(key)
            self._release(key)
            self._settle(key, cls, pod, node)
        elif key in self._assumed:
            pass  # An older story: we know already where it goes.
        elif _waits(pod):
            tried = old is not None and same_needs(old, pod)
            self._queue.add(key, cls, pod["metadata"]["creationTimestamp"], tried=tried)
            self._reserve(key, cls)
            self._arm()
        else:
            self._queue.discard(key)
            self._release(key)

    def _reconsider_claim(self, namespace: str = "", name: str = "") -> None:
        """What pods with the claim wait for may have come; without a name: pods with any."""
        for line in self._queue.parked():
            if any(not name or use.name == name for use in line.cls.claims) and (
                namespace in ("", line.cls.kin.namespace)
            ):
                self._queue.activate(line)
                self._arm()

    def _classify(self, key: str, pod: Obj, old: Obj | None) -> PodClass:
        known = self._class_of.get(key)
        if known is not None and old is not None and same_demand(old, pod):
            return known
        cls = self._class_of[key] = self._classes.join(pod)
        if known is not None:
            self._leave(known)
        return cls

    def _leave(self, cls: PodClass) -> None:
        self._classes.leave(cls)
        if not cls.members:
            self._search.forget(cls)
            self._announcements.pop(cls, None)

    def _settle(self, key: str, cls: PodClass, pod: Obj, node: str) -> None:
        if dig(pod, "status", "phase") in _FINISHED:
            state = self._placement.remove(key)
        else:
            leaving = "deletionTimestamp" in pod["metadata"]
            state = self._placement.place(key, cls, node, leaving=leaving)
        if state is not None:
            self._reconsider(state)

    def _forget(self, key: str) -> None:
        self._queue.discard(key)
        self._release(key)
        self._assumed.pop(key, None)
        state = self._placement.remove(key)
        if state is not None:
            self._reconsider(state)
        cls = self._class_of.pop(key, None)
        if cls is not None:
            self._leave(cls)

    def _reconsider(self, node: NodeState | None) -> None:
        """Something changed on this node, or on all (None): whom may that help?"""
        nominated = self._reservations.on(node)
        for line in self._queue.parked():
            announcement = self._announcements.get(line.cls)
            crowded_out = announcement is not None and announcement.crowded_out
            if (
                line.cls.social
                or crowded_out
                or any(key in line.pods for key in nominated)
                or (node is not None and node.source and self._may_help(line.cls, node))
            ):
                self._queue.activate(line)
                self._arm()

    def _may_help(self, cls: PodClass, node: NodeState) -> bool:
        """One that is nominated elsewhere is tried wherever it could go, as kube-scheduler does."""
        return (
            self._search.may_fit(cls, node)
            or self._reservations.yields_to(cls, node.name)
            or (bool(cls.nominated) and self._search.accepts(cls, node))
        )

    # What the scheduler does about it.

    def _arm(self) -> None:
        if not self._armed:
            self._armed = True
            self._env.after(self._pause, self._turn)

    def _turn(self) -> None:
        """Bind one pod; park every class before it that fits nowhere."""
        self._armed = False
        while (turn := self._queue.next()) is not None:
            with self._reservations.seen_by(turn.pod, turn.line.cls):
                outcome = self._search.find(turn.line.cls)
            if outcome.node is not None:
                self._release(turn.pod)
                self._bind(turn.pod, turn.line.cls, outcome.node)
                break
            self._queue.park(turn.line)
            self._announce(turn.line, outcome.message, crowded_out=outcome.crowded_out)
            self._preempt(turn.pod, turn.line.cls)
        if self._queue.next() is not None:
            self._arm()

    def _preempt(self, key: str, cls: PodClass) -> None:
        """A pod that may preempt, and finds no node for it, is nominated to none any more."""
        pod = self._find(key)
        if pod is None or pod["spec"].get("preemptionPolicy") == "Never":
            return
        if cls.nominated and self._preemption.waits(cls, cls.nominated):
            return
        choice = self._preemption.choose(cls, self._search.crowded(cls))
        node = choice.node if choice is not None else ""
        for victim in choice.victims if choice is not None else ():
            self._evict(victim.key, key)
        if node != cls.nominated:
            self._write_status(key, {"nominatedNodeName": node or None})

    def _evict(self, key: str, by: str) -> None:
        pod = self._find(key)
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            return
        others = [c for c in dig(pod, "status", "conditions") or [] if c["type"] != _TARGET]
        target = {
            "type": _TARGET,
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{NAME}: preempting to accommodate a higher priority pod {by}",
            "lastTransitionTime": self._store.stamp(),
        }
        self._write_status(key, {"conditions": [*others, target]})
        namespace, _, name = key.partition("/")
        self._store.delete(PODS, namespace, name, uid=pod["metadata"]["uid"])

    def _reserve(self, key: str, cls: PodClass) -> None:
        """Keep the room that the pod is nominated to; others see it as taken."""
        if cls.nominated:
            self._reservations.keep(key, cls, cls.nominated)
        else:
            self._release(key)

    def _release(self, key: str) -> None:
        if (state := self._reservations.drop(key)) is not None:
            self._reconsider(state)

    def _find(self, key: str) -> Obj | None:
        namespace, _, name = key.partition("/")
        return self._store.find(PODS, namespace, name)

    def _budgets(self) -> list[Obj]:
        return [*self._store.list(POD_DISRUPTION_BUDGETS)]

    def _write_status(self, key: str, status: Obj) -> None:
        namespace, _, name = key.partition("/")
        self._store.patch(PODS, namespace, name, {"status": status}, subresource="status")

    def _bind(self, key: str, cls: PodClass, node: NodeState) -> None:
        namespace, _, name = key.partition("/")
        self._queue.discard(key)
        try:
            self._store.bind(namespace, name, node.name)
        except ApiError:
            return  # It has gone or was bound by someone else; we shall hear of it.
        self._assumed[key] = node.name
        self._volumes.select_node(cls, node.name)
        self._placement.place(key, cls, node.name, leaving=False)
        self._reconsider(node)

    def _announce(self, line: Line, message: str, *, crowded_out: bool) -> None:
        now = self._env.now()
        told = self._announcements.get(line.cls)
        if told is None:
            told = self._announcements[line.cls] = Announcement(now, message)
        told.crowded_out = crowded_out
        audience: Iterable[str] = line.untold
        if message != told.message:
            if now < told.at + self._retell_after:
                self._retell_later(line.cls, told)
            else:
                told.at, told.message = now, message
                audience = line.pods
        for key in [*audience]:
            self._tell(key, message)
        line.untold.clear()

    def _retell_later(self, cls: PodClass, told: Announcement) -> None:
        if not told.pending:
            told.pending = True
            self._env.at(told.at + self._retell_after, self._retell, cls, told)

    def _retell(self, cls: PodClass, told: Announcement) -> None:
        told.pending = False
        line = self._queue.line(cls)
        if line is not None:
            self._queue.activate(line)
            self._arm()

    def _tell(self, key: str, message: str) -> None:
        namespace, _, name = key.partition("/")
        pod = self._store.find(PODS, namespace, name)
        if pod is None or pod["spec"].get("nodeName"):
            return
        conditions = unscheduled(pod, message, self._store.stamp())
        self._store.patch(
            PODS, namespace, name, {"status": {"conditions": conditions}}, subresource="status"
        )

    def _namespace_labels(self, name: str) -> Mapping[str, str]:
        namespace = self._store.find(NAMESPACES, "", name)
        labels: Mapping[str, str] | None = dig(namespace, "metadata", "labels")
        return labels or {}


class Announcement:
    """What the pods of a class were told last, and when."""

    __slots__ = ("at", "crowded_out", "message", "pending")

    def __init__(self, at: datetime, message: str) -> None:
        self.at = at
        self.message = message
        self.crowded_out = False
        self.pending = False


def unscheduled(pod: Obj, message: str, now: str) -> list[Obj]:
    """The pod's conditions, saying that no node was found; the transition is kept."""
    conditions: list[Obj] = dig(pod, "status", "conditions") or []
    others = [condition for condition in conditions if condition["type"] != "PodScheduled"]
    since = now
    for condition in conditions:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            since = condition.get("lastTransitionTime") or now
    return [
        *others,
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
            "lastTransitionTime": since,
        },
    ]


def _waits(pod: Obj) -> bool:
    spec, metadata = pod["spec"], pod["metadata"]
    return (
        "deletionTimestamp" not in metadata
        and not spec.get("schedulingGates")
        and spec.get("schedulerName") in (None, "", NAME)
        and dig(pod, "status", "phase") not in _FINISHED
    )


def _key(pod: Obj) -> str:
    metadata = pod["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}"
