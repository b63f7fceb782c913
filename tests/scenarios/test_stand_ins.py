"""Node classes of other clouds in a scenario: the embedded cloud stands in, and says that it reads nothing of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenure.model.api.resource import EVENTS, NODE_CLAIMS, NODE_POOLS
from tenure.sim.cloud.standins import STAND_INS
from tenure.sim.scenario.load import load_scenario
from tenure.sim.scenario.run import Simulation

EKS = """
name: our pools
objects:
- apiVersion: karpenter.k8s.aws/v1
  kind: EC2NodeClass
  metadata: {name: default}
  spec: {amiSelectorTerms: [{alias: al2023@latest}], role: nodes}
- apiVersion: karpenter.sh/v1
  kind: NodePool
  metadata: {name: general}
  spec:
    template:
      spec:
        requirements:
        - {key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r]}
        - {key: karpenter.k8s.aws/instance-generation, operator: Gt, values: ["5"]}
        nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
- kind: Pod
  apiVersion: v1
  metadata: {name: web, namespace: default}
  spec: {containers: [{name: c, image: "registry.example/c:1", resources: {requests: {cpu: "1"}}}]}
until: 10m
"""


def played(folder: Path, text: str) -> Simulation:
    file = folder / "scenario.yaml"
    file.write_text(text)
    simulation = Simulation(load_scenario(file))
    simulation.run()
    return simulation


def test_pools_of_another_cloud_launch_nodes_that_are_told_to_be_stood_in_for(
    tmp_path: Path,
) -> None:
    simulation = played(tmp_path, EKS)
    try:
        store = simulation.world.store
        (claim,) = store.list(NODE_CLAIMS)
        assert claim["spec"]["nodeClassRef"]["kind"] == "EC2NodeClass"
        labels = claim["metadata"]["labels"]
        type_ = labels["node.kubernetes.io/instance-type"]
        category = labels["karpenter.k8s.aws/instance-category"]
        assert type_[0] == category
        assert category in ("c", "m", "r")
        assert int(labels["karpenter.k8s.aws/instance-generation"]) > 5
        (told,) = [one for one in store.list(EVENTS) if one["reason"] == "StandIn"]
        assert told["involvedObject"]["kind"] == "EC2NodeClass"
        assert told["message"] == (
            "the embedded cloud stands in for the cloud of EC2NodeClass: no field of its spec is read"
        )
    finally:
        simulation.close()


OWN_ZONES = EKS.replace(
    "        requirements:\n",
    "        requirements:\n"
    "        - {key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a, us-east-1b]}\n",
)


def test_a_pool_with_zones_of_its_own_launches_nothing_and_says_which_zones_there_are(
    tmp_path: Path,
) -> None:
    simulation = played(tmp_path, OWN_ZONES)
    try:
        store = simulation.world.store
        assert store.list(NODE_CLAIMS) == []
        events = store.list(EVENTS)
        (told,) = [one for one in events if one["reason"] == "NoCompatibleInstanceTypes"]
        assert told["involvedObject"]["name"] == "general"
        assert told["message"] == (
            "no node is launched: the NodePool requires zone us-east-1a or us-east-1b, "
            "the provider has zones zone-a, zone-b, zone-c"
        )
    finally:
        simulation.close()


def test_a_scenario_gives_the_cloud_the_zones_of_the_pool(tmp_path: Path) -> None:
    zones = "cloud: {zones: [us-east-1a, us-east-1b]}\n"
    simulation = played(tmp_path, OWN_ZONES + zones)
    try:
        (claim,) = simulation.world.store.list(NODE_CLAIMS)
        assert claim["metadata"]["labels"]["topology.kubernetes.io/zone"] in (
            "us-east-1a",
            "us-east-1b",
        )
    finally:
        simulation.close()


def test_a_pool_whose_class_is_not_there_launches_nothing(tmp_path: Path) -> None:
    simulation = played(
        tmp_path, EKS.replace("name: default}\n  spec: {ami", "name: x}\n  spec: {ami")
    )
    try:
        store = simulation.world.store
        assert store.list(NODE_CLAIMS) == []
        (pool,) = store.list(NODE_POOLS)
        conditions = {one["type"]: one["message"] for one in pool["status"]["conditions"]}
        assert "EC2NodeClass default does not exist" in conditions["NodeClassReady"]
    finally:
        simulation.close()


@pytest.mark.parametrize("resource", STAND_INS, ids=str)
def test_a_scenario_without_the_class_has_no_cloud_for_it(tmp_path: Path, resource: object) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text("name: none\nobjects: []\nuntil: 1m\n")
    assert resource not in load_scenario(file).options.infrastructure.stands_in_for
