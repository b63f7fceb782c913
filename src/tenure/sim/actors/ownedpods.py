"""Pods by the workload that controls them, with the counts its status needs.

Kept from the store's events, so that a workload of two thousand pods does not read all of
them whenever one becomes ready.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tenure.model.resource import PODS
from tenure.sim.store import Store
from tenure.sim.tree import Obj
from tenure.sim.watch import DELETED

_FINISHED: Final = ("Succeeded", "Failed")


class Group:
    """One workload's pods. A terminating pod is there, but no longer active."""

    __slots__ = ("active", "pods", "ready")

    def __init__(self) -> None:
        self.pods: dict[str, Obj] = {}
        self.active = 0
        self.ready = 0

    def count(self, pod: Obj, sign: int) -> None:
        if is_active(pod):
            self.active += sign
            if is_ready(pod):
                self.ready += sign

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
        if owner is None or owner.get("kind") != self._kind:
            return
        group = self._groups.setdefault(owner["uid"], Group())
        name = pod["metadata"]["name"]
        before = group.pods.pop(name, None)
        if before is not None:
            group.count(before, -1)
        if type_ != DELETED:
            group.pods[name] = pod
            group.count(pod, +1)
        elif not group.pods:
            del self._groups[owner["uid"]]
        if type_ == DELETED or old is None or _counts(old) != _counts(pod):
            for listener in self._listeners:
                listener(f"{pod['metadata']['namespace']}/{owner['name']}")


def controller_of(obj: Obj) -> Obj | None:
    """The owner reference that says who manages this object."""
    owners: list[Obj] = obj["metadata"].get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), None)


def is_active(pod: Obj) -> bool:
    return "deletionTimestamp" not in pod["metadata"] and phase(pod) not in _FINISHED


def is_ready(pod: Obj) -> bool:
    return ready_since(pod) is not None


def ready_since(pod: Obj) -> str | None:
    """When the pod became ready (empty if nobody says); None while it is not."""
    for condition in pod["status"].get("conditions") or ():
        if condition["type"] == "Ready":
            since: str = condition.get("lastTransitionTime") or ""
            return since if condition["status"] == "True" else None
    return None


def phase(pod: Obj) -> str:
    said: str = pod["status"].get("phase") or "Pending"
    return said


def _counts(pod: Obj) -> tuple[object, ...]:
    """What a workload reacts to."""
    metadata = pod["metadata"]
    return (
        metadata.get("labels"),
        "deletionTimestamp" in metadata,
        phase(pod),
        ready_since(pod),
    )
