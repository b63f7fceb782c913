"""What safety knows of a reason to disrupt. A reason that it does not know is a voluntary one.

So a new method needs no change here: ``karpenter.sh/do-not-disrupt`` and every maintenance window
hold for it, and every budget that names no reasons.
"""

from __future__ import annotations

from typing import Final

from tenure.model.api import names
from tenure.model.api.window import ACTIONS

UNHEALTHY: Final = "Unhealthy"
REPAIR: Final = "Repair"

#: The actions by which a window names a reason.
_ACTIONS_OF: Final = {
    UNHEALTHY: frozenset({REPAIR}),
    "Empty": frozenset({"Consolidation", "EmptyConsolidation"}),
    "Expired": frozenset({"Expiration"}),
    "Drifted": frozenset({"Drift"}),
    "Rebalance": frozenset({"Rebalance"}),
    "Underutilized": frozenset({"Consolidation", "NonEmptyConsolidation"}),
}


def is_repair(reason: str) -> bool:
    """Whether a Node goes because it is unhealthy: then nothing is marked, or that it is."""
    return reason in ("", UNHEALTHY)


def window_actions(reason: str) -> frozenset[str]:
    """The actions by which a window names the reason; all of them for one that is not known."""
    return _ACTIONS_OF.get(reason or UNHEALTHY, frozenset(ACTIONS))


def veto_of(reason: str) -> str:
    """The annotation that forbids it on a Node or claim."""
    return names.DO_NOT_REPAIR if is_repair(reason) else names.DO_NOT_DISRUPT
