"""A spread over zones comes true whatever becomes of nodes: Tenure counts as the scheduler does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tenure.sim.scenario.findings import ExpectationState
from tenure.sim.scenario.load import load_scenario
from tenure.sim.scenario.run import Simulation
from tests.builders import a_node_class, a_pool
from tests.scenarios.files import written

ONE_POD_PER_NODE = {
    "key": "node.kubernetes.io/instance-type",
    "operator": "In",
    "values": ["c7i.large"],
}


def a_spread_deployment(**annotations: str) -> dict[str, Any]:
    """Six pods of one cpu each, two to a zone."""
    labels = {"app": "web"}
    spread = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": labels},
    }
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
    spec = {
        "topologySpreadConstraints": [spread],
        "containers": [{"name": "c", "image": "c", "resources": resources}],
    }
    template = {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 6, "selector": {"matchLabels": labels}, "template": template},
    }


def both_in_zone_a(pick: str) -> dict[str, str]:
    return {"labels": "topology.kubernetes.io/zone=zone-a", "pick": pick}


def each(verb: str, at: str = "3m") -> list[dict[str, Any]]:
    """The same happens to both nodes of the zone."""
    return [{"at": at, verb: both_in_zone_a(pick)} for pick in ("oldest", "newest")]


DELETED = [{"at": event["at"], "delete": {"node": event["delete"]}} for event in each("delete")]
GROWN = [{"at": "5m", "scale": {"deployment": "web", "replicas": 12}}]

STORIES: dict[str, tuple[list[dict[str, Any]], dict[str, str], int]] = {
    "pods terminate on nodes that fell silent": (each("silence"), {}, 6),
    "nodes are cordoned, then more pods come": (each("cordon") + GROWN, {}, 12),
    "leaving nodes are held, then more pods come": (
        DELETED + GROWN,
        {"karpenter.sh/do-not-disrupt": "true"},
        12,
    ),
}


@pytest.mark.parametrize(("events", "annotations", "pods"), STORIES.values(), ids=STORIES.keys())
def test_every_pod_of_a_spread_finds_its_node_although(
    tmp_path: Path, events: list[dict[str, Any]], annotations: dict[str, str], pods: int
) -> None:
    story = {
        "name": "spread",
        "until": "20m",
        "objects": [
            a_node_class(),
            a_pool(requirements=[ONE_POD_PER_NODE]),
            a_spread_deployment(**annotations),
        ],
        "events": events,
        "expect": [
            {"at": "2m", "pods": {"app": "web", "running": 6}},
            {"at": "end", "pods": {"app": "web", "running": pods, "pending": 0}},
        ],
    }
    simulation = Simulation(load_scenario(written(tmp_path, story)))
    try:
        findings = simulation.run().findings
    finally:
        simulation.close()
    assert [finding.held for finding in findings] == [ExpectationState.MET, ExpectationState.MET], (
        findings
    )
