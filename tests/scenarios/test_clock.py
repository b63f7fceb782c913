"""The wall clock of Tenure's machine is set while it runs; the cluster's own time goes on."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tenure.cli.cluster.embedded import scene_of
from tenure.cli.cluster.question import Question
from tenure.cli.explain.explanation import explanation
from tenure.cli.plan.planning import plan_of
from tenure.core.reasons import Reason
from tenure.model.api.names import DO_NOT_DISRUPT, INSTANCE_TYPE
from tenure.model.api.resource import DEPLOYMENTS, EVENTS, NODE_CLAIMS, NODES, PODS, Resource
from tenure.model.settings import Settings
from tenure.ports.outcome import Ended
from tenure.runtime.executor.clockblocker import depends_on_time
from tenure.sim.scenario.dsl import Story
from tenure.sim.world import WorldOptions
from tests.builders import (
    HOUR,
    MINUTE,
    SECOND,
    a_cluster,
    a_deployment,
    a_node_class,
    a_pool,
    a_requirement,
)
from tests.runtime.worlds import acts

BOTH_WAYS = pytest.mark.parametrize("offset", [-HOUR, HOUR], ids=["back", "ahead"])


def warnings(story: Story) -> list[str]:
    return [entry.message for entry in story.history.entries if entry.subject == "Clock"]


def set_clock(story: Story, offset: timedelta) -> None:
    story.infrastructure.faults.set(clock_offset=offset)


def being_deleted(story: Story, resource: Resource) -> list[str]:
    return [
        one["metadata"]["name"]
        for one in story.all(resource)
        if "deletionTimestamp" in one["metadata"]
    ]


def turns(story: Story) -> float:
    return float(story.controller.metrics.turns._value.get())


@BOTH_WAYS
def test_turns_go_on_after_a_step(offset: timedelta) -> None:
    with Story(*a_cluster(a_deployment(replicas=1))) as story:
        story.run(5 * MINUTE)
        before = turns(story)
        set_clock(story, offset)
        story.apply(a_deployment("second", replicas=3))
        story.run(2 * MINUTE)
        assert turns(story) > before
        assert story.running("second") == 3


@BOTH_WAYS
def test_a_step_is_said_once_counted_and_seen_without_anything_happening(offset: timedelta) -> None:
    with Story(*a_cluster()) as story:
        story.run(MINUTE)
        set_clock(story, offset)
        story.run(10 * SECOND)
        direction = "ahead" if offset > timedelta(0) else "back"
        said, held = warnings(story)
        assert said == (
            f"the wall clock was set {direction} by 1h0m0s: everything is evaluated anew"
        )
        assert "nothing is taken away, and no deadline is set" in held
        assert story.controller.metrics.clock_steps.labels(direction)._value.get() == 1
        story.run(HOUR)
        assert len(warnings(story)) == 2
        set_clock(story, timedelta(0))
        story.run(10 * SECOND)
        assert warnings(story)[-1] == (
            "the clock of this replica agrees with the API server's again"
        )


@BOTH_WAYS
def test_pools_have_a_warning_while_the_clocks_disagree(offset: timedelta) -> None:
    with Story(*a_cluster()) as story:
        story.run(MINUTE)
        set_clock(story, offset)
        story.run(10 * SECOND)
        (event,) = (e for e in story.all(EVENTS) if e["reason"] == Reason.CLOCK_SKEWED)
        assert (event["type"], event["involvedObject"]["kind"]) == ("Warning", "NodePool")
        side = "ahead of" if offset > timedelta(0) else "behind"
        assert event["message"] == (
            f"the clock of this replica is 1h0m0s {side} the API server's: "
            "no disruption begins, nothing is taken away, and no deadline is set, until they agree"
        )


@BOTH_WAYS
def test_a_claim_that_boots_is_not_timed_out_by_a_step(offset: timedelta) -> None:
    with Story(*a_cluster(a_deployment(replicas=1))) as story:
        story.infrastructure.faults.set(never_ready_rate=1.0)
        story.run(2 * MINUTE)
        (claim,) = story.all(NODE_CLAIMS)
        set_clock(story, offset)
        story.run(8 * MINUTE)
        assert [one["metadata"]["uid"] for one in story.all(NODE_CLAIMS)] == [
            claim["metadata"]["uid"]
        ]
        assert "deletionTimestamp" not in story.the(NODE_CLAIMS)["metadata"]
        set_clock(story, timedelta(0))
        story.run(4 * MINUTE)
        assert "deletionTimestamp" not in story.the(NODE_CLAIMS)["metadata"], "15m are not over"
        story.run(5 * MINUTE)
        assert claim["metadata"]["uid"] not in [
            one["metadata"]["uid"] for one in story.all(NODE_CLAIMS)
        ], "the TTL goes on when the clock is right again"


@BOTH_WAYS
def test_nothing_is_taken_away_while_the_clocks_disagree_and_the_outcome_says_so(
    offset: timedelta,
) -> None:
    with Story(*a_cluster(a_deployment(replicas=2))) as story:
        story.run(5 * MINUTE)
        set_clock(story, offset)
        story.run(MINUTE)
        leaving = story.delete_claim()
        story.run(3 * MINUTE)
        side = "ahead of" if offset > timedelta(0) else "behind"
        held = [entry.outcome for entry in acts(story) if entry.ended is Ended.HELD]
        assert held, "evictions were asked for"
        assert f"the clock of this replica is 1h0m0s {side} the API server's" in held[0]
        assert not being_deleted(story, PODS)
        set_clock(story, timedelta(0))
        story.run(3 * MINUTE)
        assert story.store.find(NODE_CLAIMS, "", leaving) is None
        assert story.running("web") == 2


@BOTH_WAYS
def test_what_the_clock_held_is_tried_as_soon_as_the_clocks_agree(offset: timedelta) -> None:
    """A force delete that came later would cut the grace period of the pod."""
    pods = a_deployment(
        replicas=1, annotations={DO_NOT_DISRUPT: "true"}, terminationGracePeriodSeconds=60
    )
    template = {"terminationGracePeriod": "10m"}
    with Story(a_node_class(), a_pool(template=template), pods) as story:
        story.run(5 * MINUTE)
        pod = story.the(PODS)["metadata"]["name"]
        story.delete_claim()
        story.run(8 * MINUTE + 55 * SECOND)
        set_clock(story, offset)  # The pod is force deleted at 14m.
        story.run(35 * SECOND)
        assert pod in [one["metadata"]["name"] for one in story.all(PODS)]
        set_clock(story, timedelta(0))
        story.run(10 * SECOND)
        assert pod not in [one["metadata"]["name"] for one in story.all(PODS)]


def test_a_clock_that_is_ahead_within_the_bound_breaks_no_promise() -> None:
    """Nothing holds a force delete then: it comes as much too early as the clock is ahead."""
    pods = a_deployment(annotations={DO_NOT_DISRUPT: "true"})
    with Story(a_node_class(), a_pool(template={"terminationGracePeriod": "10m"}), pods) as story:
        story.run(5 * MINUTE)
        story.delete_claim()
        set_clock(story, 9 * SECOND)
        story.run(9 * MINUTE + 25 * SECOND)
        assert Reason.FORCED in story.reasons("Pod/*"), "which is 5 s before 14m30s"


def skew_events(story: Story) -> dict[str, Any]:
    """By kind of what they are about."""
    said = [event for event in story.all(EVENTS) if event["reason"] == Reason.CLOCK_SKEWED]
    return {event["involvedObject"]["kind"]: event for event in said}


@BOTH_WAYS
def test_what_is_held_has_a_warning_that_is_written_once(offset: timedelta) -> None:
    with Story(*a_cluster(a_deployment(replicas=2))) as story:
        story.run(5 * MINUTE)
        set_clock(story, offset)
        story.run(MINUTE)
        leaving = story.delete_claim()
        story.run(3 * MINUTE)
        events = skew_events(story)
        assert set(events) == {"NodePool", "NodeClaim"}
        event = events["NodeClaim"]
        assert (event["type"], event["involvedObject"]["name"]) == ("Warning", leaving)
        side = "ahead of" if offset > timedelta(0) else "behind"
        assert event["message"] == (
            f"the clock of this replica is 1h0m0s {side} the API server's: "
            "no disruption begins, nothing is taken away, and no deadline is set, until they agree"
        )
        written = event["count"]
        story.run(30 * MINUTE)
        assert skew_events(story)["NodeClaim"]["count"] == written


@BOTH_WAYS
def test_a_drain_that_is_held_has_one_warning_on_its_node_and_none_on_its_pods(
    offset: timedelta,
) -> None:
    protected = {DO_NOT_DISRUPT: "10m"}
    with Story(*a_cluster(a_deployment(replicas=2, annotations=protected))) as story:
        story.run(5 * MINUTE)
        story.delete_claim()
        story.run(MINUTE)
        (leaving,) = being_deleted(story, NODES)
        set_clock(story, offset)
        story.run(6 * MINUTE)
        assert not being_deleted(story, PODS)
        events = skew_events(story)
        assert set(events) == {"NodePool", "Node"}
        assert events["Node"]["involvedObject"]["name"] == leaving
        set_clock(story, timedelta(0))
        story.run(3 * MINUTE)
        assert leaving not in [node["metadata"]["name"] for node in story.all(NODES)]


@BOTH_WAYS
def test_explain_and_plan_name_the_clock_for_as_long_as_it_holds(offset: timedelta) -> None:
    with Story(*a_cluster(a_deployment(replicas=2))) as story:
        story.run(5 * MINUTE)
        set_clock(story, offset)
        story.run(MINUTE)
        leaving = Question(NODE_CLAIMS, story.delete_claim())
        story.run(3 * MINUTE)
        plan = plan_of(scene_of(story))
        answer = explanation(leaving, scene_of(story))
        assert answer is not None
        assert not [v for v in plan.to_do if depends_on_time(v.action)]  # type: ignore[arg-type]
        (held,) = (v for v in plan.not_now if v.subject.name == leaving.name)
        assert answer.verdicts[0] == held
        side = "ahead of" if offset > timedelta(0) else "behind"
        assert held.blockers[-1].message == answer.held == plan.held
        assert plan.held.startswith(
            f"the clock of this replica is 1h0m0s {side} the API server's: "
        )
        set_clock(story, timedelta(0))
        story.run(10 * SECOND)
        assert plan_of(scene_of(story)).held == ""


@BOTH_WAYS
def test_an_unhealthy_node_is_repaired_when_it_is_due_and_not_sooner(offset: timedelta) -> None:
    repair = {"maxUnhealthy": "100%", "defaultTolerationDuration": "30m"}
    with Story(a_node_class(), a_pool(repair=repair), a_deployment(replicas=1)) as story:
        story.run(3 * MINUTE)
        story.kubelets.silence(story.the(NODES)["metadata"]["name"])
        story.run(5 * MINUTE)
        set_clock(story, offset)
        story.run(20 * MINUTE)
        assert not being_deleted(story, NODE_CLAIMS)
        set_clock(story, timedelta(0))
        story.run(4 * MINUTE)
        assert not being_deleted(story, NODE_CLAIMS), "30m are not over"
        story.run(5 * MINUTE)
        assert "NodeRepair" in story.reasons("NodeClaim/*")


def test_a_step_within_the_bound_moves_our_own_instants_along() -> None:
    """An offering that was sold out is left alone for as long as before."""
    settings = Settings(clock_skew_max=2 * HOUR)
    with Story(*a_cluster(), options=WorldOptions(settings=settings)) as story:
        story.run(MINUTE)
        observations = story.controller.observations
        observations.node_classes.sold_out([("a", "b", "c")], story.now + 3 * MINUTE)
        set_clock(story, HOUR)
        story.run(10 * SECOND)
        assert observations.node_classes.dry_offerings == {
            ("a", "b", "c"): story.host_clock.now() + 170 * SECOND
        }


def test_no_replacement_is_launched_that_could_not_be_followed_by_a_termination() -> None:
    """Three nodes of which one could be smaller: consolidation begins once the clock is right."""
    pool = a_pool(
        requirements=[a_requirement(INSTANCE_TYPE, "m7i.large", "m7i.xlarge")],
        disruption={"consolidateAfter": "30s", "budgets": [{"nodes": "100%"}]},
    )
    with Story(a_node_class(), pool, a_deployment(replicas=6, cpu="1700m")) as story:
        story.run(3 * MINUTE)
        set_clock(story, 2 * HOUR)
        launched = story.cloud.launch_count
        story.store.patch(DEPLOYMENTS, "default", "web", {"spec": {"replicas": 3}})
        story.run(20 * MINUTE)
        assert story.cloud.launch_count == launched
        assert [node for node in story.all(NODES) if node["spec"].get("taints")] == []
        assert "NodeClaim" in skew_events(story)
        before = len(story.all(NODES))
        set_clock(story, timedelta(0))
        story.run(10 * MINUTE)
        assert (len(story.all(NODES)) < before, story.running("web")) == (True, 3)
