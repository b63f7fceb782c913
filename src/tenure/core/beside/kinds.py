"""The levers: annotations of Nodes that Karpenter honours, with our marks beside each.

A further lever is an entry here, one in the guard's list (``safety.beside``) and one in the checkers'.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tenure.core.decision import Concern
from tenure.core.gates.reasons import TRAITS, Disruption
from tenure.core.windows.windows import REPAIR_ACTIONS
from tenure.model.api import names


class LeverKind(msgspec.Struct, frozen=True, kw_only=True):
    #: What Karpenter reads on a Node.
    annotation: str
    #: The marks: by which program, why, until when.
    by: str
    because: str
    until: str
    concern: Concern
    #: What it stops, in words.
    what: str
    #: What Karpenter may do without it.
    verb: str
    #: What it stops, each as users call it, and the actions by which windows name it.
    stopped: tuple[tuple[str, frozenset[str]], ...]
    #: The first release of Karpenter that knows it.
    since: tuple[int, int]

    @property
    def marks(self) -> tuple[str, ...]:
        return self.by, self.because, self.until

    @property
    def short(self) -> str:
        """Without the domain, for metrics."""
        return self.annotation.partition("/")[2]

    @property
    def actions(self) -> frozenset[str]:
        return frozenset().union(*(actions for _, actions in self.stopped))


#: Drift, emptiness and consolidation. Expiration is not among them: Karpenter expires nodes whatever the
#: annotation says.
DISRUPTION: Final = LeverKind(
    annotation=names.DO_NOT_DISRUPT,
    by=names.DO_NOT_DISRUPT_BY,
    because=names.DO_NOT_DISRUPT_BECAUSE,
    until=names.DO_NOT_DISRUPT_UNTIL,
    concern=Concern.LEVER,
    what="voluntary disruption",
    verb="disrupt",
    stopped=(
        ("drift", TRAITS[Disruption.DRIFTED].window_actions),
        ("consolidation of empty nodes", TRAITS[Disruption.EMPTY].window_actions),
        ("consolidation", TRAITS[Disruption.UNDERUTILIZED].window_actions),
    ),
    since=(1, 6),
)
#: Karpenter's own repair, behind its feature gate NodeRepair.
REPAIR: Final = LeverKind(
    annotation=names.DO_NOT_REPAIR,
    by=names.DO_NOT_REPAIR_BY,
    because=names.DO_NOT_REPAIR_BECAUSE,
    until=names.DO_NOT_REPAIR_UNTIL,
    concern=Concern.REPAIR_LEVER,
    what="repair",
    verb="repair",
    stopped=(("repair", REPAIR_ACTIONS),),
    since=(1, 15),
)
LEVERS: Final = (DISRUPTION, REPAIR)
