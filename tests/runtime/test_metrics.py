"""What is counted, counted right."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from tenure.model.resource import NODE_POOLS
from tenure.sim.world import World
from tests.builders import MINUTE, a_budget, a_cluster, a_deployment
from tests.runtime.stage import Tapped


def counted(world: World, name: str, **labels: str) -> float:
    text = world.controller.metrics.render().decode()
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def test_a_life_from_creation_to_the_end_is_counted_once() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=3))) as story:
        story.run(3 * MINUTE)
        pool = {"nodepool": "general"}
        assert (
            counted(story, "karpenter_nodeclaims_created_total", reason="provisioned", **pool) == 1
        )
        assert counted(story, "karpenter_nodes_created_total", **pool) == 1
        story.delete_claim()
        story.run(5 * MINUTE)
        assert counted(story, "karpenter_nodeclaims_terminated_total", **pool) == 1
        assert counted(story, "karpenter_nodes_created_total", **pool) == 2
        assert counted(story, "karpenter_pods_eviction_requests_total", code="200") == 3
        assert counted(story, "tenure_actions_total", verb="Launch", outcome="ok") == 2


def test_a_budgets_no_is_a_429_not_a_success() -> None:
    manifests = a_cluster(a_deployment(replicas=2), a_budget("web", minAvailable=2))
    with Tapped(*manifests) as story:
        story.run(3 * MINUTE)
        story.delete_claim()
        story.run(MINUTE)
        refused = counted(story, "karpenter_pods_eviction_requests_total", code="429")
        assert refused == len(story.api_tap.of("EVICT")) >= 5
        assert counted(story, "karpenter_pods_eviction_requests_total", code="200") == 0
        assert counted(story, "tenure_actions_total", verb="Evict", outcome="refused") == refused


def test_a_claim_that_could_not_be_had_is_counted_as_disrupted() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=1))) as story:
        story.infrastructure.faults.set(cloud_dry=(("*", "*", "*"),))
        story.run(MINUTE)
        gone = counted(
            story, "karpenter_nodeclaims_disrupted_total", reason="insufficient_capacity"
        )
        assert gone == counted(story, "karpenter_nodeclaims_terminated_total") >= 1
        assert counted(story, "tenure_actions_total", verb="Launch", outcome="refused") == gone


def test_verdicts_turns_and_what_is_under_way_are_there() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=1))) as story:
        story.run(3 * MINUTE)
        assert counted(story, "tenure_verdicts_total", concern="pool") >= 2
        assert counted(story, "tenure_turns_total") >= 10
        assert counted(story, "tenure_actions_in_flight") == 0
        assert story.store.get(NODE_POOLS, "", "general")["status"]["nodes"] == 1
