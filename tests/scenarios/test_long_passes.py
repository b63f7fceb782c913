"""Passes of the pipeline that take long: by the stopwatch each step takes as long as a turn has for it.

So every pass goes on over many turns, 50 ms apart, while the cluster changes. Virtual time all the same: each run is like
the other.
"""

from __future__ import annotations

from itertools import count

from tenure.model.api.resource import NODE_CLAIMS
from tenure.runtime.controller import Controller
from tenure.runtime.evaluate.suspended import SLICE
from tenure.sim.scenario.dsl import Story
from tests.builders import HOUR, MINUTE, SECOND
from tests.scenarios.fleets import (
    Begun,
    Watched,
    a_cluster,
    a_fleet,
    claims,
    label_template,
    scale,
    set_pool,
    uids,
)
from tests.scenarios.signs import is_tainted

BLOCKED = [{"nodes": "0"}]


class Slow(Story):
    def _new_controller(self) -> Controller:
        controller = super()._new_controller()
        looks = count()
        controller.evaluator._stopwatch = lambda: next(looks) * SLICE
        return controller

    @property
    def in_a_pass(self) -> bool:
        return self.controller.evaluator.goes_on


def test_a_claim_that_is_deleted_during_a_pass_is_drained_before_its_end() -> None:
    with Slow(*a_cluster(a_fleet(12), budgets=BLOCKED, consolidateAfter="Never")) as story:
        story.run(5 * MINUTE)
        story.run_while(lambda: story.in_a_pass, at_most=MINUTE, step=SECOND / 20)
        label_template(story, "2")
        story.run_while(lambda: not story.in_a_pass, at_most=MINUTE, step=SECOND / 20)
        name = story.delete_claim()
        node = story.the(NODE_CLAIMS, name=name)["status"]["nodeName"]
        story.run_while(lambda: not is_tainted(story, node), at_most=MINUTE, step=SECOND / 20)
        assert story.in_a_pass, "over 12 candidates, with two verdicts each"
        story.run(MINUTE)
        story.checkers.assert_kept()


def test_a_fleet_that_drifts_is_replaced_within_its_budget() -> None:
    with Slow(*a_cluster(a_fleet(6), budgets=[{"nodes": "2"}], consolidateAfter="Never")) as story:
        story.run(5 * MINUTE)
        watched, begun, before = Watched(story), Begun(story), uids(story)
        label_template(story, "2")
        story.run_while(lambda: bool(uids(story) & before), at_most=HOUR, step=10 * SECOND)
        assert (len(begun.at), watched.most) == (6, 2)
        assert story.count("nodes") == 6, "none was launched twice"
        story.checkers.assert_kept()


def test_a_budget_that_opens_and_pods_that_come_and_go_do_not_keep_a_pass_from_its_end() -> None:
    with Slow(*a_cluster(a_fleet(5), budgets=BLOCKED, consolidateAfter="Never")) as story:
        story.run(5 * MINUTE)
        before = uids(story)
        label_template(story, "2")
        story.run(10 * SECOND)
        set_pool(story, budgets=[{"nodes": "100%"}])
        for replicas in (6, 5) * 30:
            scale(story, replicas)
            story.run(5 * SECOND)
        story.run(10 * MINUTE)
        assert not uids(story) & before
        assert all("deletionTimestamp" not in claim["metadata"] for claim in claims(story))
        story.checkers.assert_kept()


def test_a_crash_in_the_middle_of_passes_loses_nothing() -> None:
    with Slow(*a_cluster(a_fleet(4), consolidateAfter="Never")) as story:
        story.run(5 * MINUTE)
        before = uids(story)
        label_template(story, "2")
        for _ in range(12):
            story.run_while(lambda: not story.in_a_pass, at_most=MINUTE, step=SECOND / 20)
            story.run(SECOND / 4)
            story.crash()
            story.run(20 * SECOND)
        story.run(20 * MINUTE)
        assert not uids(story) & before
        assert story.count("nodes") == 4
        story.checkers.assert_kept()
