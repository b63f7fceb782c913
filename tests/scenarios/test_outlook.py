"""That a drain would not be graceful is said once, on the claim, long before there is one."""

from __future__ import annotations

from typing import Any

from tenure.model.api.resource import EVENTS, NODE_CLAIMS
from tenure.sim.scenario.dsl import Story
from tests.builders import HOUR, MINUTE, a_cluster, a_deployment, a_node_class, a_pool


def graceful(story: Story) -> list[tuple[str, str]]:
    """Status and reason of the condition, on each claim that has it."""
    return [
        (condition["status"], condition["reason"])
        for claim in story.store.list(NODE_CLAIMS)
        for condition in claim["status"]["conditions"]
        if condition["type"] == "GracefulDrain"
    ]


def warnings(story: Story) -> list[Any]:
    return [e for e in story.store.list(EVENTS) if e["reason"] == "DrainNotGraceful"]


def test_a_grace_above_the_period_is_told_on_the_claim_and_by_one_event() -> None:
    slow = a_deployment(replicas=2)
    slow["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 600
    never = {"consolidateAfter": "Never"}  # The rollout leaves a node empty.
    pool = a_pool(template={"terminationGracePeriod": "5m"}, disruption=never)
    with Story(a_node_class(), pool, slow) as story:
        story.run(1 * HOUR)
        assert graceful(story) == [("False", "GraceLongerThanPeriod")]
        (event,) = warnings(story)
        assert (event["type"], event["count"]) == ("Warning", 1)
        assert event["involvedObject"]["kind"] == "NodeClaim"
        assert "10m is longer than terminationGracePeriod 5m" in event["message"]

        quick = a_deployment(replicas=2)
        quick["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 30
        story.apply(quick)
        story.run(10 * MINUTE)
        assert {status for status, _ in graceful(story)} == {"True"}, "mended"


def test_a_cluster_of_which_there_is_nothing_to_say_has_no_such_condition() -> None:
    with Story(*a_cluster(a_deployment(replicas=2))) as story:
        story.run(10 * MINUTE)
        assert graceful(story) == []
        assert warnings(story) == []
