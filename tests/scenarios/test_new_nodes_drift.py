"""A new node has not drifted, whatever its pool asks for: else it would be replaced for ever."""

from __future__ import annotations

import pytest

from tenure.model.api.resource import NODE_CLAIMS
from tenure.sim.scenario.dsl import Story
from tests.builders import MINUTE, a_deployment, a_node_class, a_pool, a_requirement

BUILD = "node.kubernetes.io/windows-build"
CPUS = "karpenter.kwok.sh/instance-cpu"
ZONE = "topology.kubernetes.io/zone"


@pytest.mark.parametrize(
    ("key", "operator", "values"),
    [
        ("example.com/team", "In", ["a", "b"]),
        ("example.com/team", "NotIn", ["a"]),
        ("example.com/team", "Exists", []),
        ("example.com/team", "DoesNotExist", []),
        ("example.com/team", "Gt", ["3"]),
        (CPUS, "Gt", ["3"]),
        (CPUS, "Lt", ["9"]),
        (ZONE, "NotIn", ["zone-a"]),
        ("failure-domain.beta.kubernetes.io/zone", "In", ["zone-b", "zone-c"]),
        ("beta.kubernetes.io/arch", "In", ["amd64", "arm64"]),
        ("topology.kubernetes.io/region", "Exists", []),
        # A well-known label that no instance type has.
        (BUILD, "In", ["10.0.17763"]),
        (BUILD, "In", ["10.0.17763", "10.0.20348"]),
        (BUILD, "Exists", []),
    ],
)
def test_a_new_node_has_not_drifted(key: str, operator: str, values: list[str]) -> None:
    wanted = a_requirement(key, *values, operator=operator)
    pool = a_pool(
        requirements=[wanted],
        template={"taints": [], "terminationGracePeriod": "1h"},
    )
    with Story(a_node_class(), pool, a_deployment(tolerations=[{"operator": "Exists"}])) as story:
        story.run(65 * MINUTE)
        (claim,) = story.all(NODE_CLAIMS)
        assert [c for c in claim["status"]["conditions"] if c["type"] == "Drifted"] == []
