"""A few fixed days in every test run; ``make fuzz`` lives through new ones."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest

from tenure.sim.check.rules import RULES
from tests.folders import ROOT
from tests.fuzz.beside import live_beside
from tests.fuzz.day import DRIFTY, GOVERNED, HELD, LEAKY, SHORT, UNHEALTHY_DAY, VOLUNTARY, live

#: Days that showed something once stay here, with what it was.
KEPT = {
    14: "an instance lost before its Node appeared",
    25: "a kubelet that fell silent and came back after everything seemed at rest",
    27: "a Node that appeared while its claim was released",
    97: "a Node deleted before it was registered",
}


#: Days that together reach every rule of the checkers.
REACHING = ((3, LEAKY), (4, HELD), (9, HELD), (4, UNHEALTHY_DAY), (3, VOLUNTARY))


@pytest.mark.parametrize("seed", [*range(1, 13), *KEPT])
def test_a_troubled_day_ends_at_rest_and_breaks_no_promise(seed: int) -> None:
    outcome = live(seed, SHORT)
    assert outcome.problems == ()
    assert outcome.launched > 0


@pytest.mark.parametrize("seed", [1, 3, 45])
def test_a_day_on_which_nodes_need_reboots_ends_at_rest_too(seed: int) -> None:
    outcome = live(seed, LEAKY)
    assert outcome.problems == ()
    assert outcome.reboots > 3


@pytest.mark.parametrize("seed", [7, 9, 11, 17])
def test_a_day_on_which_nodes_are_replaced_gracefully_ends_at_rest_too(seed: int) -> None:
    outcome = live(seed, UNHEALTHY_DAY)
    assert outcome.problems == ()
    assert outcome.replaced >= 2


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_on_a_day_of_releases_and_edits_every_claim_knows_whether_it_has_drifted(seed: int) -> None:
    outcome = live(seed, DRIFTY)
    assert outcome.problems == ()
    assert outcome.drifted > 0


@pytest.mark.parametrize("seed", [4, 5])
def test_a_day_on_which_repairs_are_held_ends_at_rest_too(seed: int) -> None:
    assert live(seed, HELD).problems == ()


@pytest.mark.parametrize("seed", [2, 3, 15])
def test_a_day_on_which_nodes_are_taken_away_by_choice_ends_at_rest_too(seed: int) -> None:
    outcome = live(seed, VOLUNTARY)
    assert outcome.problems == ()
    assert sum(outcome.begun.values()) > 0


@pytest.mark.parametrize("seed", [1, 2])
def test_a_day_on_which_policies_come_tie_and_go_ends_at_rest_too(seed: int) -> None:
    outcome = live(seed, GOVERNED)
    assert outcome.problems == ()
    assert sum(outcome.begun.values()) > 0


def test_random_days_reach_every_rule_of_the_checkers() -> None:
    """A rule that is never asked would never report anything."""
    asked: Counter[str] = Counter()
    for seed, pace in REACHING:
        outcome = live(seed, pace)
        assert outcome.problems == ()
        asked.update(outcome.asked)
    # No other day is lived beside Karpenter.
    assert [rule for rule in RULES if not asked[rule]] == ["beyond levers", "open beyond budgets"]
    asked.update(live_beside(2).asked)
    assert [rule for rule in RULES if not asked[rule]] == []


@pytest.mark.parametrize("seed", [1, 2, 3, 11])
def test_a_day_beside_karpenter_opens_no_more_nodes_than_budgets_let_go(seed: int) -> None:
    """The second showed that the checkers counted nodes whose instance was terminating; the last, that the guard
    took the end of a replacement that is left over for a repair."""
    outcome = live_beside(seed)
    assert outcome.problems == ()
    assert outcome.asked["open beyond budgets"] > 0


@pytest.mark.parametrize("seed", [3, 12, 26, 94])
def test_a_day_beside_karpenter_on_which_users_edit_levers_ends_at_rest_too(seed: int) -> None:
    """The last three showed a lever that a window would have set on a Node without a NodeClaim, and the guard refused."""
    assert live_beside(seed, meddling=True).problems == ()


def test_the_same_seed_lives_the_same_day_twice_and_another_one_does_not() -> None:
    assert live(5, SHORT).digest == live(5, SHORT).digest
    assert live(5, SHORT).digest != live(6, SHORT).digest


def test_the_same_seed_lives_the_same_day_in_every_process() -> None:
    script = "from tests.fuzz.day import SHORT, live; print(live(7, SHORT).digest)"
    digests = set()
    for hash_seed in ("1", "2"):
        run = subprocess.run(  # noqa: S603  # our own interpreter, a fixed script
            [sys.executable, "-c", script],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(run.stdout)
    assert len(digests) == 1
    assert digests.pop().strip() == live(7, SHORT).digest
