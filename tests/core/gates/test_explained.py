"""What is advised fits what blocks, and names it: an instant to wait for only where there is one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.facts import AT, Fact
from tenure.core.gates.explained import EXPLAINED, info_of
from tenure.core.gates.facts import BlockedByObject, BudgetUse, DrainUnbounded, VelocityUse
from tenure.core.gates.operations import Gate
from tenure.core.protect.protection import Protection
from tenure.core.reasons import Reason
from tenure.core.windows.facts import (
    InvalidWindowBlocks,
    NextChance,
    OutsideAllowWindows,
    WindowBlocks,
)
from tenure.model.api.meta import FOR_EVER, format_time
from tenure.model.values.unreadable import UnreadableObject


class Said(Fact, frozen=True):
    """One with no advice of its own."""

    def __str__(self) -> str:
        return "it says so"


SAID = Said()
UNREAD = Protection("", FOR_EVER, problem=UnreadableObject("Pod", "shop/db-0"))
ZERO = BudgetUse(pool="general", nodes="0", limit=0, total=3)
SCHEDULED = BudgetUse(pool="general", nodes="0", schedule="0 9 * * *", limit=0, total=3)
FULL = BudgetUse(pool="general", nodes="1", limit=1, total=3, leaving=("node-1",))
VELOCITY = VelocityUse(
    pool="general", nodes="1", limit=1, total=3, within="1h", starts=(AT,), next_at=AT
)


@pytest.mark.parametrize(
    ("gate", "fact", "advice"),
    [
        (
            Gate.WINDOW,
            WindowBlocks("freeze", ("Drift",), "n"),
            "Delete MaintenanceWindow freeze, or give it",
        ),
        (
            Gate.WINDOW,
            WindowBlocks("day", ("Drift",), "n", AT),
            f"Wait until {format_time(AT)}, or change MaintenanceWindow day: actions, selector",
        ),
        (
            Gate.WINDOW,
            WindowBlocks("day", ("Drift",), "n", AT, ("week",)),
            f"Wait until {format_time(AT)}, or change MaintenanceWindows day, week: actions",
        ),
        (
            Gate.WINDOW,
            OutsideAllowWindows(("nights",), ("Drift",), "n", AT),
            f"Wait until {format_time(AT)}, or change MaintenanceWindow nights: actions",
        ),
        (
            Gate.WINDOW,
            OutsideAllowWindows(("past", "old"), ("Drift",), "n"),
            "Give MaintenanceWindows past, old schedules or dates that come, or delete them.",
        ),
        (
            Gate.WINDOW,
            InvalidWindowBlocks("bad", "?", ("Drift",), "n"),
            "Correct or delete MaintenanceWindow bad.",
        ),
        (Gate.BUDGET, ZERO, "Raise the budget that is named: it allows no"),
        (Gate.BUDGET, SCHEDULED, "Raise the budget that is named, or wait until its schedule"),
        (Gate.BUDGET, FULL, "Raise the budget that is named, or wait until its schedule"),
        (
            Gate.BUDGET,
            VELOCITY,
            f"Wait until {format_time(AT)}, or raise budget 1 of NodePool general.",
        ),
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


@pytest.mark.parametrize(
    ("chance", "advice"),
    [
        (NextChance(AT, ("b",)), f"Wait until {format_time(AT)}, or change MaintenanceWindow b:"),
        (NextChance(None, ("a", "b")), "Change MaintenanceWindows a, b: actions, selector or"),
    ],
    ids=["then", "never"],
)
def test_windows_that_forbid_in_turns_are_waited_for_together(
    chance: NextChance, advice: str
) -> None:
    verdict = Verdict(
        concern=Concern.DISRUPTION,
        subject=Subject("NodeClaim", "a"),
        reason=Reason.DISRUPTION_BLOCKED,
        facts=(WindowBlocks("a", ("Drift",), "n", AT - timedelta(hours=1)), chance),
        gate=Gate.WINDOW,
    )
    assert info_of(verdict).advice.startswith(advice)


@pytest.mark.parametrize(
    ("facts", "advice"),
    [
        (
            (BlockedByObject("PodDisruptionBudget", "default/pay", SAID, 1), DrainUnbounded("n")),
            (
                "Let PodDisruptionBudget default/pay allow an eviction (and 1 more). Or set "
                "terminationGracePeriod of the NodePool, for new NodeClaims."
            ),
        ),
        (
            (BlockedByObject("Pod", "shop/db-0", Protection("true", FOR_EVER)),),
            "Remove the protection of Pod shop/db-0.",
        ),
        (
            (BlockedByObject("Pod", "shop/db-0", Protection("4h", AT)),),
            f"Wait until {format_time(AT)}, or remove the protection of Pod shop/db-0.",
        ),
        (
            (BlockedByObject("Pod", "shop/db-0", Protection("4h", AT), 2),),
            "Remove the protection of Pod shop/db-0 (and 2 more).",
        ),
        (
            (BlockedByObject("Pod", "shop/db-0", UNREAD),),
            "Correct Pod shop/db-0.",
        ),
        ((BlockedByObject("Pod", "shop/db-0", SAID),), EXPLAINED[Gate.PODS].advice),
    ],
    ids=["pdb", "protection", "for a while", "with others", "unreadable", "another"],
)
def test_what_blocks_a_drain_is_named(facts: tuple[Fact, ...], advice: str) -> None:
    verdict = Verdict(
        concern=Concern.DISRUPTION,
        subject=Subject("NodeClaim", "a"),
        reason=Reason.DISRUPTION_BLOCKED,
        facts=facts,
        gate=Gate.PODS,
    )
    assert info_of(verdict).advice == advice
