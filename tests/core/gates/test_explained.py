"""What is advised fits what blocks: an instant to wait for is named only where there is one."""

from __future__ import annotations

import pytest

from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.facts import AT, Fact
from tenure.core.gates.explained import info_of
from tenure.core.gates.facts import BudgetUse, VelocityUse
from tenure.core.gates.operations import Gate
from tenure.core.reasons import Reason
from tenure.core.windows.facts import InvalidWindowBlocks, WindowBlocks

ZERO = BudgetUse(pool="general", nodes="0", limit=0, total=3)
SCHEDULED = BudgetUse(pool="general", nodes="0", schedule="0 9 * * *", limit=0, total=3)
FULL = BudgetUse(pool="general", nodes="1", limit=1, total=3, leaving=("node-1",))
VELOCITY = VelocityUse(
    pool="general", nodes="1", limit=1, total=3, within="1h", starts=(AT,), next_at=AT
)


@pytest.mark.parametrize(
    ("gate", "fact", "advice"),
    [
        (Gate.WINDOW, WindowBlocks("freeze", ("Drift",), "n"), "Delete the MaintenanceWindow"),
        (Gate.WINDOW, WindowBlocks("day", ("Drift",), "n", AT), "Wait until the instant"),
        (Gate.WINDOW, InvalidWindowBlocks("bad", "?", ("Drift",), "n"), "Correct or delete the"),
        (Gate.BUDGET, ZERO, "Raise the budget that is named: it allows no"),
        (Gate.BUDGET, SCHEDULED, "Raise the budget that is named, or wait until its schedule"),
        (Gate.BUDGET, FULL, "Raise the budget that is named, or wait until its schedule"),
        (Gate.BUDGET, VELOCITY, "Wait until the instant that is named, or raise the budget"),
    ],
)
def test_what_is_advised_fits_what_blocks(gate: Gate, fact: Fact, advice: str) -> None:
    verdict = Verdict(
        concern=Concern.DISRUPTION,
        subject=Subject("NodeClaim", "a"),
        reason=Reason.DISRUPTION_BLOCKED,
        facts=(fact,),
        gate=gate,
    )
    assert info_of(verdict).advice.startswith(advice)
