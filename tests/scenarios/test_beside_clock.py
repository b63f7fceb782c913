"""Beside Karpenter with a clock that is an hour off: no lever goes early, and no deadline is set by it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tenure.model.api import names
from tenure.model.api import resource as r
from tenure.sim.world import DEFAULT_EPOCH
from tests.builders import HOUR, MINUTE
from tests.scenarios.test_beside_karpenter import beside, freeze, levers
from tests.scenarios.test_beside_repair import FORCEFUL, leaving, notes_of, unhealthy
from tests.scenarios.test_beside_repair import beside as with_nodes
from tests.scenarios.test_pool_policies import a_policy

SKEWS = pytest.mark.parametrize("skew", [HOUR, -HOUR], ids=["ahead", "behind"])


@SKEWS
def test_no_lever_is_removed_by_a_clock_that_is_wrong(skew: timedelta) -> None:
    """It is when the clocks agree again, and meanwhile the log says why not."""
    with beside(freeze(5 * MINUTE, 40 * MINUTE)) as story:
        assert all(levers(story))
        story.infrastructure.faults.set(clock_offset=skew)
        story.run_until(DEFAULT_EPOCH + 39 * MINUTE)
        assert all(levers(story)), "the window is open by the API server's clock"
        story.run_until(DEFAULT_EPOCH + 50 * MINUTE)
        assert all(levers(story)), "nothing is taken away while the clock is wrong"
        story.infrastructure.faults.set(clock_offset=timedelta())
        story.run(2 * MINUTE)
        assert not any(levers(story))
        assert story.checkers.violations == []


@SKEWS
def test_a_lever_is_set_although_the_clock_is_wrong_and_says_until_when_by_the_calendar(
    skew: timedelta,
) -> None:
    """Setting one takes nothing away. A clock that is put back does not make a replica forget the time that has passed."""
    with beside(freeze(70 * MINUTE, 130 * MINUTE)) as story:
        story.infrastructure.faults.set(clock_offset=skew)
        story.run_until(DEFAULT_EPOCH + 100 * MINUTE)
        until = {one.get(names.DO_NOT_DISRUPT_UNTIL) for one in levers(story)}
        assert until == {"2026-01-05T10:10:00Z"}
        story.infrastructure.faults.set(clock_offset=timedelta())
        story.run(2 * MINUTE)
        assert all(levers(story))
        story.run_until(DEFAULT_EPOCH + 132 * MINUTE)
        assert not any(levers(story))
        assert story.checkers.violations == []


@SKEWS
def test_no_claim_is_stamped_or_deleted_by_a_clock_that_is_wrong(skew: timedelta) -> None:
    with with_nodes(a_policy(repair=FORCEFUL)) as story:
        story.infrastructure.faults.set(clock_offset=skew)
        story.run(MINUTE)
        (name,) = unhealthy(story)
        story.run(20 * MINUTE)
        there = notes_of(story.store.get(r.NODE_CLAIMS, "", name))
        assert (leaving(story), names.TERMINATION_TIMESTAMP in there) == ([], False)
        story.infrastructure.faults.set(clock_offset=timedelta())
        story.run(2 * MINUTE)
        assert [one["metadata"]["name"] for one in leaving(story)] == [name]
        assert story.checkers.violations == []
