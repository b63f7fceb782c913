"""The reasons to disrupt a node, by the names that budgets use, and their traits.

A reason without a method is here, too: budgets may name it, and metrics count by it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from tenure.core.gates.traits import Traits
from tenure.core.windows.windows import REPAIR_ACTIONS


class Disruption(StrEnum):
    UNHEALTHY = "Unhealthy"
    EMPTY = "Empty"
    EXPIRED = "Expired"
    DRIFTED = "Drifted"
    REBALANCE = "Rebalance"
    UNDERUTILIZED = "Underutilized"


TRAITS: Final = {
    Disruption(traits.reason): traits
    for traits in (
        # A node that is not Ready is what it repairs; the Node's own veto is do-not-repair.
        Traits(
            reason=Disruption.UNHEALTHY,
            voluntary=False,
            not_ready_counts=False,
            node_protection_counts=False,
            eventual=True,
            window_actions=REPAIR_ACTIONS,
        ),
        Traits(
            reason=Disruption.EMPTY,
            needs_replacement=False,
            only_empty=True,
            window_actions=frozenset({"Consolidation", "EmptyConsolidation"}),
        ),
        Traits(reason=Disruption.EXPIRED, eventual=True, window_actions=frozenset({"Expiration"})),
        Traits(reason=Disruption.DRIFTED, eventual=True, window_actions=frozenset({"Drift"})),
        Traits(reason=Disruption.REBALANCE, window_actions=frozenset({"Rebalance"})),
        Traits(
            reason=Disruption.UNDERUTILIZED,
            only_fitting=True,
            consolidates=True,
            window_actions=frozenset({"Consolidation", "NonEmptyConsolidation"}),
        ),
    )
}

#: Reasons whose command is called off where its pods have no room without one more node: a launch would
#: undo what it is for.
ONLY_FITTING: Final = frozenset(one.reason for one in TRAITS.values() if one.only_fitting)
#: Reasons that make nodes fewer or cheaper.
CONSOLIDATING: Final = frozenset(one.reason for one in TRAITS.values() if one.consolidates)

#: Of graceful and forceful repair and of reboots.
REPAIR_TRAITS: Final = TRAITS[Disruption.UNHEALTHY]
