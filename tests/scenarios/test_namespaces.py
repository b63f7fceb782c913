"""Pods whose affinity selects namespaces by labels, from the first node to a label that changes."""

from __future__ import annotations

from typing import Any

from tenure.model.api.resource import NAMESPACES, NODES, PODS
from tenure.sim.scenario.dsl import Story
from tests.builders import MINUTE, a_cluster, a_pod

HOSTNAME = "kubernetes.io/hostname"


def a_namespace(name: str, **labels: str) -> dict[str, Any]:
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def in_namespace(namespace: str, pod: dict[str, Any]) -> dict[str, Any]:
    pod["metadata"]["namespace"] = namespace
    return pod


def shy(name: str, team: str) -> dict[str, Any]:
    """On no node with a pod of such a team."""
    term = {
        "topologyKey": HOSTNAME,
        "labelSelector": {},
        "namespaceSelector": {"matchLabels": {"team": team}},
    }
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return a_pod(name, affinity={"podAntiAffinity": required})


def test_pods_get_nodes_by_the_labels_of_namespaces_and_the_scheduler_agrees() -> None:
    with Story(
        *a_cluster(
            a_namespace("red", team="red"),
            a_namespace("blue", team="blue"),
            in_namespace("red", a_pod("one")),
            in_namespace("blue", a_pod("two")),
            shy("shy", "red"),
        )
    ) as story:
        story.run(5 * MINUTE)
        nodes = {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in story.all(PODS)}
        assert all(nodes.values())
        assert nodes["shy"] != nodes["one"]
        assert len(story.all(NODES)) == 2
        assert "SchedulerDisagrees" not in story.reasons("Pod/default/shy")


def test_a_label_that_is_taken_away_lets_the_next_pod_in() -> None:
    """The second shy pod fits where the first could not go."""
    with Story(
        *a_cluster(a_namespace("red", team="red"), in_namespace("red", a_pod("one")))
    ) as story:
        story.run(3 * MINUTE)
        story.apply(shy("first", "red"))
        story.run(3 * MINUTE)
        assert len(story.all(NODES)) == 2
        story.store.patch(NAMESPACES, "", "red", {"metadata": {"labels": {"team": None}}})
        story.apply(shy("second", "red"))
        story.run(3 * MINUTE)
        assert len(story.all(NODES)) == 2
        assert all(pod["spec"].get("nodeName") for pod in story.all(PODS))
