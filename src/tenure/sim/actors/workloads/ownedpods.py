"""Pods by the workload that controls them, with the counts its status needs.

Kept from the store's events, so that a workload of two thousand pods does not read all of
them whenever one becomes ready.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from tenure.model.api.resource import PODS
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import DELETED

_FINISHED: Final = ("Succeeded", "Failed")


class Facts(msgspec.Struct, frozen=True):
    """What a workload reacts to in a pod; most of a pod's updates change none of this."""

    labels: dict[str, str]
    phase: str
    leaving: bool
    ready_since: str | None

    @property
    def active(self) -> bool:
        return not self.leaving and self.phase not in _FINISHED

    @classmethod
    def of(cls, pod: Obj) -> Facts:
        metadata = pod["metadata"]
        leaving = "deletionTimestamp" in metadata
        return cls(metadata.get("labels") or {}, phase(pod), leaving, ready_since(pod))


class Group:
    """One workload's pods. A terminating pod is there, but no longer active."""

    __slots__ = ("_facts", "active", "pods", "ready")

    def __init__(self) -> None:
        self.pods: dict[str, Obj] = {}
        self._facts: dict[str, Facts] = {}
        self.active = 0
        self.ready = 0

    def put(self, name: str, pod: Obj | None) -> bool:
        """Take the pod's new state, or forget it; whether that changes a fact."""
        before = self._facts.pop(name, None)
        after = None if pod is None else Facts.of(pod)
        self.pods.pop(name, None)
        if pod is not None and after is not None:
            self.pods[name], self._facts[name] = pod, after
        if before == after:
            return False
        self._count(before, -1)
        self._count(after, +1)
        return True

    def _count(self, facts: Facts | None, sign: int) -> None:
        if facts is not None and facts.active:
            self.active += sign
            self.ready += sign * (facts.ready_since is not None)

    def active_pods(self) -> list[Obj]:
        return [pod for pod in self.pods.values() if is_active(pod)]


class OwnedPods:
    def __init__(self, store: Store, owner_kind: str) -> None:
        self._kind = owner_kind
        self._groups: dict[str, Group] = {}
        self._listeners: list[Callable[[str], object]] = []
        store.subscribe(PODS, self._on_pod, replay=True)

    def listen(self, listener: Callable[[str], object]) -> None:
        """Be told the owner's ``namespace/name`` when one of its pods changes in a way that counts."""
        self._listeners.append(listener)

    def of(self, uid: str) -> Group:
        """The pods that the workload with this UID controls."""
        return self._groups.get(uid) or Group()

    def _on_pod(self, type_: str, pod: Obj, old: Obj | None) -> None:
        owner = controller_of(pod)
        if owner is None and old is not None:  # It may have been let go just now.
            owner, type_ = controller_of(old), DELETED
        if owner is None or owner.get("kind") != self._kind:
            return
        group = self._groups.setdefault(owner["uid"], Group())
        metadata = pod["metadata"]
        if not group.put(metadata["name"], None if type_ == DELETED else pod):
            return
        if not group.pods:
            del self._groups[owner["uid"]]
        for listener in self._listeners:
            listener(f"{metadata['namespace']}/{owner['name']}")


def controller_of(obj: Obj) -> Obj | None:
    """The owner reference that says who manages this object."""
    owners: list[Obj] = obj["metadata"].get("ownerReferences") or []
    for owner in owners:
        if owner.get("controller"):
            return owner
    return None


def is_active(pod: Obj) -> bool:
    return "deletionTimestamp" not in pod["metadata"] and phase(pod) not in _FINISHED


def is_ready(pod: Obj) -> bool:
    return ready_since(pod) is not None


def ready_since(pod: Obj) -> str | None:
    """When the pod became ready (empty if not recorded); None while it is not."""
    for condition in pod["status"].get("conditions") or ():
        if condition["type"] == "Ready":
            since: str = condition.get("lastTransitionTime") or ""
            return since if condition["status"] == "True" else None
    return None


def phase(pod: Obj) -> str:
    said: str = pod["status"].get("phase") or "Pending"
    return said
