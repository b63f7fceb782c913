"""Which class a new object gets: a pod its priority, a claim that names none its StorageClass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tenure.model.api.resource import PODS, PRIORITY_CLASSES, STORAGE_CLASSES
from tenure.sim.apiserver.objects.refusals import forbidden
from tenure.sim.apiserver.objects.tree import dig

if TYPE_CHECKING:
    from tenure.sim.apiserver.store.store import Store

SYSTEM_CLASSES: Final = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_PREEMPT: Final = "PreemptLowerPriority"
IS_DEFAULT: Final = "storageclass.kubernetes.io/is-default-class"
_MARKS: Final = (IS_DEFAULT, "storageclass.beta.kubernetes.io/is-default-class")


def priority(store: Store, name: str) -> tuple[str, int, str]:
    """(class name, value, preemption policy) of a pod; an empty name asks for the global default."""
    if name:
        found = store.find(PRIORITY_CLASSES, "", name)
        if found is None:
            raise forbidden(PODS, "", f"no PriorityClass with name {name} was found")
        return name, found.get("value", 0), found.get("preemptionPolicy", _PREEMPT)
    chosen = [c for c in store.list(PRIORITY_CLASSES) if c.get("globalDefault")]
    if not chosen:
        return "", 0, _PREEMPT
    # Several defaults are a mistake the API server survives: the lowest wins.
    lowest = min(chosen, key=lambda c: (c.get("value", 0), c["metadata"]["name"]))
    return (
        lowest["metadata"]["name"],
        lowest.get("value", 0),
        lowest.get("preemptionPolicy", _PREEMPT),
    )


def default_class(store: Store) -> str:
    """Of several the newest, of several of one second the first by name; empty: there is none."""
    marked = [
        one["metadata"]
        for one in store.list(STORAGE_CLASSES)
        if any(dig(one, "metadata", "annotations", mark) == "true" for mark in _MARKS)
    ]
    newest = max((one["creationTimestamp"] for one in marked), default="")
    return min((one["name"] for one in marked if one["creationTimestamp"] == newest), default="")
