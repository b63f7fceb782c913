"""The facts about objects that cannot be read or evaluated."""

from __future__ import annotations

from typing import Final

from tenure.core.facts import Fact, unreadable
from tenure.model.values.unreadable import UnreadableObject

_CONSEQUENCE: Final = {
    "Pod": "its Node is neither disrupted, repaired nor drained of it before a deadline",
    "PodDisruptionBudget": "no pod that it may cover is evicted before a deadline",
    "Node": "it is neither disrupted, repaired, drained nor terminated before a deadline",
    "NodeClaim": "it is neither disrupted, repaired, drained nor terminated before a deadline",
    "NodePool": "the pool launches nothing, and none of its nodes is disrupted or repaired",
    "MaintenanceWindow": "it blocks the actions that it names on the Nodes that it selects",
    "NodePoolPolicy": "no node of the pools that it may select is disrupted by choice or repaired",
    "VolumeAttachment": "its Node waits for it before a deadline",
}


class CannotBeRead(Fact, frozen=True):
    why: UnreadableObject

    def __str__(self) -> str:
        return f"{self.why}; {_CONSEQUENCE.get(self.why.kind, 'it is left alone')}"


class NothingWritten(Fact, frozen=True):
    """The object that an action would have written to."""

    why: UnreadableObject

    def __str__(self) -> str:
        return f"{self.why}, so nothing is written to it"


EXAMPLES: Final[tuple[Fact, ...]] = (
    *(CannotBeRead(unreadable(kind, "web-1")) for kind in _CONSEQUENCE),
    CannotBeRead(unreadable("DaemonSet", "kube-system/agent", "spec.template")),
    NothingWritten(unreadable("Node", "node-1", "status.conditions")),
)
