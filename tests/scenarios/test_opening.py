"""New nodes take pods in an order in which no pod needs a second node."""

from __future__ import annotations

import pytest

from tenure.model.api.names import RESERVED_TAINT, ZONE
from tenure.model.api.resource import NODE_CLAIMS, NODES
from tenure.model.settings import Settings
from tenure.sim.cloud.cloud import CloudTimings
from tenure.sim.infrastructure import InfrastructureOptions
from tenure.sim.scenario.dsl import Story
from tenure.sim.world import WorldOptions
from tests.builders import MINUTE, SECOND, Manifest, a_deployment
from tests.scenarios.fleets import a_cluster

SEEDS = range(6)
HIGH: Manifest = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 1000,
    "preemptionPolicy": "Never",
}


def a_mixed_burst() -> list[Manifest]:
    """Pods of low priority that must be in one zone, and pods of high priority in all; each fills a node.

    Those of high priority are planned for all zones, and the scheduler may bind some more of them in one.
    """
    spread = {
        "maxSkew": 3,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "high"}},
    }
    first: Manifest = {"priorityClassName": "high", "priority": 1000}
    low = a_deployment("low", replicas=4, cpu="1500m", nodeSelector={ZONE: "zone-a"})
    high = a_deployment(
        "high", replicas=4, cpu="1500m", topologySpreadConstraints=[spread], **first
    )
    return [HIGH, *a_cluster(low, high, consolidateAfter="Never")]


def a_story(seed: int, settings: Settings | None = None) -> Story:
    boots = CloudTimings(boot_for=20 * SECOND, boot_spread=8 * SECOND)
    infrastructure = InfrastructureOptions(cloud=boots)
    options = WorldOptions(
        seed=seed, infrastructure=infrastructure, settings=settings or Settings()
    )
    return Story(*a_mixed_burst(), options=options)


@pytest.mark.parametrize("seed", SEEDS)
def test_pods_of_high_priority_do_not_take_the_nodes_of_others(seed: int) -> None:
    with a_story(seed) as story:
        story.run(3 * MINUTE)
        assert (story.running("low"), story.running("high")) == (4, 4)
        assert len(story.all(NODE_CLAIMS)) == 8
        assert "NodeOpened" in story.reasons("Node/*")


def test_without_nominations_they_do() -> None:
    """Else the story would show nothing."""
    nodes = []
    for seed in SEEDS:
        with a_story(seed, Settings(nominate_pods=False)) as story:
            story.run(3 * MINUTE)
            nodes.append(len(story.all(NODE_CLAIMS)))
    assert max(nodes) > 8


@pytest.mark.parametrize("tenths", range(0, 100, 7), ids=lambda t: f"killed {t / 10}s after Ready")
def test_a_replica_that_dies_leaves_no_node_closed(tenths: int) -> None:
    with a_story(0) as story:
        story.run(20 * SECOND + tenths * SECOND / 10)
        story.crash()
        story.run(3 * MINUTE)
        assert (story.running("low"), story.running("high")) == (4, 4)
        taints = [taint for node in story.all(NODES) for taint in node["spec"].get("taints", [])]
        assert RESERVED_TAINT not in {taint["key"] for taint in taints}
