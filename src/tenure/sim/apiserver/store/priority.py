"""What a pod's priorityClassName stands for at the moment the pod is created."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tenure.model.api.resource import PODS, PRIORITY_CLASSES
from tenure.sim.apiserver.objects.refusals import forbidden

if TYPE_CHECKING:
    from tenure.sim.apiserver.store.store import Store

SYSTEM_CLASSES: Final = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_PREEMPT: Final = "PreemptLowerPriority"


def resolve(store: Store, name: str) -> tuple[str, int, str]:
    """(class name, value, preemption policy); an empty name asks for the global default."""
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
