"""Of several verdicts on one node, which to tell first: that it is unhealthy comes before a disruption of choice
that has not begun, although disruption comes before repair in the order of concerns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tenure.core.decision import Concern, Verdict
from tenure.core.reasons import Reason
from tenure.core.repair.facts import ConditionUnhealthy

#: The node is unhealthy, and its repair waits for something.
OF_HEALTH: Final = frozenset(
    {
        Reason.UNHEALTHY,
        Reason.REPAIR_DUE,
        Reason.REPAIR_BLOCKED,
        Reason.REPAIR_VETOED,
        Reason.REPAIR_OFF,
        Reason.REBOOT_DUE,
    }
)
_NOT_BEGUN: Final = frozenset({Reason.DISRUPTION_BLOCKED, Reason.DISRUPTION_WAITS})


def urgent_first(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """In the order given, but for a repair that is behind a disruption of choice that has not begun."""
    found = list(verdicts)
    if not found or not is_choice_not_begun(found[0]):
        return found
    urgent = next((one for one in found if one.reason in OF_HEALTH), None)
    if urgent is None:
        return found
    return [urgent, *(one for one in found if one is not urgent)]


def is_choice_not_begun(verdict: Verdict) -> bool:
    """A candidate that is not disrupted now, and not for its health."""
    waits = verdict.concern is Concern.DISRUPTION and verdict.reason in _NOT_BEGUN
    return waits and verdict.action is None and not isinstance(verdict.facts[0], ConditionUnhealthy)
