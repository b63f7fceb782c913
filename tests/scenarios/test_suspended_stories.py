"""Stories of disruptions and launches once more, with every pass of the pipeline, and every plan for pods, suspended after
every step.

What holds when one is evaluated in one go holds as well when it goes on over many turns, 50 ms apart, while the cluster
changes: no decision may depend on a view of one short moment. Virtual time: each run is like the other.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from tenure.runtime.controller import Controller
from tenure.runtime.evaluate.suspended import SLICE
from tenure.sim.world import World
from tests.scenarios import (
    test_arrivals,
    test_command_stories,
    test_consolidation,
    test_groups,
    test_launch_breaker,
    test_refused_claims,
    test_replacement_capacity,
    test_replacing,
    test_voluntary,
)

STORIES: list[Callable[[], None]] = [
    test_arrivals.test_a_restart_in_the_middle_claims_for_no_pod_twice,
    test_arrivals.test_creations_that_wait_for_others_belong_to_the_same_decision,
    test_command_stories.test_each_new_leader_continues_the_command_of_the_one_before,
    test_command_stories.test_a_replacement_that_a_pod_uses_loses_its_mark_and_stays,
    test_consolidation.test_one_node_after_the_other_goes_while_no_more_than_a_pod_is_missing,
    test_consolidation.test_nodes_that_are_cheaper_together_are_replaced_together,
    test_consolidation.test_consolidation_and_provisioning_do_not_chase_each_other,
    test_groups.test_a_failed_replacement_pauses_the_pools_of_all,
    test_groups.test_a_pdb_that_forbids_the_eviction_of_one_makes_all_wait,
    test_launch_breaker.test_one_owners_trouble_is_not_anothers,
    test_refused_claims.test_a_label_value_that_the_api_refuses_is_said_on_its_pod_alone,
    test_replacement_capacity.test_pods_that_come_meanwhile_do_not_take_the_place_that_was_launched_for_others,
    test_replacement_capacity.test_a_node_does_not_go_before_the_one_that_its_pods_would_fit_on_is_there,
    test_replacement_capacity.test_at_its_limits_a_pool_does_not_give_a_running_pods_place_to_one_that_waits,
    test_replacement_capacity.test_a_replacement_that_is_never_initialized_does_not_stand_in_a_second_time,
    test_replacing.test_the_old_node_stays_with_its_pods_until_the_new_one_is_initialized,
    test_replacing.test_after_a_failure_the_node_takes_pods_again_and_the_pool_pauses,
    test_replacing.test_a_node_that_recovers_while_its_replacement_boots_stays,
    test_voluntary.test_a_cluster_that_scales_to_zero_ends_with_zero_nodes,
    test_voluntary.test_a_pod_that_comes_starts_the_clock_again,
    test_voluntary.test_empty_nodes_go_within_the_budget,
    test_voluntary.test_a_window_that_closes_during_a_drain_does_not_stop_it,
    test_voluntary.test_no_replacement_is_launched_that_would_come_up_after_the_window,
    test_voluntary.test_a_drifted_node_whose_pod_loses_its_capacity_takes_pods_again,
    test_voluntary.test_a_command_whose_capacity_is_taken_and_never_comes_is_rolled_back,
]


class Steps:
    """Of every controller, each step takes as long as a turn has for it, or a part of that."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, takes: float = SLICE) -> None:
        self.suspended, self._takes = 0, takes
        new_controller = World._new_controller

        def slow(world: World) -> Controller:
            controller = new_controller(world)
            self._make_slow(controller)
            return controller

        monkeypatch.setattr(World, "_new_controller", slow)

    def _make_slow(self, controller: Controller) -> None:
        looks = count()

        def stopwatch() -> float:
            self.suspended += controller.evaluator.goes_on
            return next(looks) * self._takes

        controller.evaluator._stopwatch = stopwatch


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__.removeprefix("test_"))
def test_a_story_is_the_same_with_passes_that_are_suspended_after_every_step(
    story: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps(monkeypatch)
    story()
    assert steps.suspended > 10


@pytest.mark.parametrize("steps_a_turn", [2, 3, 5, 7, 15])
@pytest.mark.parametrize(
    "story",
    [
        test_voluntary.test_a_command_whose_capacity_is_taken_and_never_comes_is_rolled_back,
        test_voluntary.test_a_drifted_node_whose_pod_loses_its_capacity_takes_pods_again,
        test_replacement_capacity.test_a_replacement_that_is_never_initialized_does_not_stand_in_a_second_time,
    ],
    ids=lambda story: story.__name__.removeprefix("test_"),
)
def test_time_bounds_a_wait_however_slow_the_passes_are(
    story: Callable[[], None], steps_a_turn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass that begins before a moment and ends after it misses nothing that is decided then."""
    Steps(monkeypatch, SLICE / steps_a_turn)
    story()
