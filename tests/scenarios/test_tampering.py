"""What is written to our objects by hand never costs a protected pod its node."""

from __future__ import annotations

from typing import Any

from tenure.model.api.names import (
    DO_NOT_DISRUPT,
    FINALIZER,
    INITIALIZED,
    NODEPOOL,
    REGISTERED,
)
from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS
from tenure.sim.scenario.dsl import Story
from tests.builders import HOUR, MINUTE, a_cluster, a_deployment

PROTECTED = a_deployment(replicas=1, annotations={DO_NOT_DISRUPT: "true"})
STRIPPED: dict[str, Any] = {
    "metadata": {
        "finalizers": None,
        "labels": {NODEPOOL: None, REGISTERED: None, INITIALIZED: None},
    }
}


def strip(story: Story, patch: dict[str, Any] = STRIPPED) -> str:
    """Remove finalizer and labels from the one Node; its name."""
    name: str = story.the(NODES)["metadata"]["name"]
    story.store.patch(NODES, "", name, patch)
    return name


def test_finalizer_and_labels_of_a_node_come_back() -> None:
    with Story(*a_cluster(PROTECTED)) as story:
        story.run(5 * MINUTE)
        before = story.the(NODES)["metadata"]
        strip(story)
        story.run(MINUTE)
        after = story.the(NODES)["metadata"]
        assert after["finalizers"] == before["finalizers"] == [FINALIZER]
        assert after["labels"] == before["labels"]


def test_a_claim_that_is_deleted_as_its_node_loses_the_finalizer_does_not_cost_its_pod() -> None:
    with Story(*a_cluster(PROTECTED)) as story:
        story.run(5 * MINUTE)
        pod = story.the(PODS)["metadata"]["uid"]
        strip(story)
        story.delete_claim()
        story.run(HOUR)
        assert story.the(PODS)["metadata"]["uid"] == pod
        assert story.running("web") == 1
        assert story.the(NODES)["metadata"]["finalizers"] == [FINALIZER]
        assert story.count("instances", "running") == 1


def test_a_claim_that_loses_its_finalizer_does_not_cost_the_pod_that_is_drained() -> None:
    with Story(*a_cluster(PROTECTED)) as story:
        story.run(5 * MINUTE)
        pod = story.the(PODS)["metadata"]["uid"]
        claim = story.the(NODE_CLAIMS)["metadata"]["name"]
        story.delete_claim()
        story.run(MINUTE)
        story.store.patch(NODE_CLAIMS, "", claim, {"metadata": {"finalizers": None}})
        story.run(HOUR)
        assert story.the(PODS)["metadata"]["uid"] == pod
        assert story.running("web") == 1
        assert story.count("instances", "running") == 1
        story.store.patch(
            PODS,
            "default",
            story.the(PODS)["metadata"]["name"],
            {"metadata": {"annotations": {DO_NOT_DISRUPT: None}}},
        )
        story.run(10 * MINUTE)
        assert story.the(PODS)["metadata"]["uid"] != pod
        assert story.count("instances", "running") == 1
        assert story.running("web") == 1
        # Without a claim for longer than garbage collection takes, and rightly so.
        assert {broken.rule for broken in story.checkers.violations} <= {"leaked instance"}
        story.checkers.violations.clear()
