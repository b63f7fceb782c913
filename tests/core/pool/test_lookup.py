"""A pool's size, and whether its node class can be used."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core.pool.lookup import (
    capacity_of,
    node_class_key,
    node_class_of,
    node_class_problem,
    usage_of,
)
from tenure.model.api.meta import Condition
from tenure.model.api.nodeclaim import NodeClaim
from tests.core.build import (
    FOREIGN,
    LAUNCHED,
    OURS,
    REGISTERED,
    a_claim,
    a_class,
    a_leaving_claim,
    a_node,
    a_pool,
    ago,
    condition,
    units,
)
from tests.snapshots import snapshot_with

FOUR_CPUS = units(cpu=4, memory=8 * 2**30, pods=20, nodes=1)


@pytest.mark.parametrize(
    ("node_class", "problem"),
    [
        pytest.param(
            None, ("NodeClassNotFound", "KWOKNodeClass default does not exist"), id="missing"
        ),
        pytest.param(
            a_class(deletion_timestamp=ago(1)),
            ("NodeClassTerminating", "KWOKNodeClass default is being deleted"),
            id="being deleted",
        ),
        pytest.param(
            a_class(ready=condition("Other")),
            ("NodeClassReadinessUnknown", "KWOKNodeClass default does not say whether it is Ready"),
            id="silent",
        ),
        pytest.param(
            a_class(ready=condition("Ready", "Unknown")),
            ("NodeClassReadinessUnknown", "KWOKNodeClass default does not say whether it is Ready"),
            id="undecided",
        ),
        pytest.param(
            a_class(ready=condition("Ready", "False", "SubnetsNotFound", "no subnet has the tag")),
            ("SubnetsNotFound", "KWOKNodeClass default is not Ready: no subnet has the tag"),
            id="not ready, with a message",
        ),
        pytest.param(
            a_class(ready=Condition(type="Ready", status="False")),
            ("NodeClassNotReady", "KWOKNodeClass default is not Ready: it does not say why"),
            id="not ready, without a message",
        ),
        pytest.param(a_class(), None, id="ready"),
    ],
)
def test_a_node_class_can_be_used_or_says_why_not(node_class: Any, problem: Any) -> None:
    assert node_class_problem(OURS, node_class) == problem


@pytest.mark.parametrize(
    ("claim", "node", "size"),
    [
        pytest.param(a_claim(stage=0), None, units(nodes=1), id="asked for: one node"),
        pytest.param(a_claim(stage=LAUNCHED), None, FOUR_CPUS, id="launched: what it says"),
        pytest.param(
            a_claim(stage=REGISTERED, status={"capacity": {"cpu": "4", "nvidia.com/gpu": "1"}}),
            a_node(status={"capacity": {"cpu": "5", "nvidia.com/gpu": "0"}}),
            {**units(cpu=5, nodes=1), "nvidia.com/gpu": 10**9},
            id="starting: what its Node does not show yet is what the claim says",
        ),
        pytest.param(
            a_claim(status={"capacity": {"cpu": "4", "nvidia.com/gpu": "1"}}),
            a_node(status={"capacity": {"cpu": "5"}}),
            units(cpu=5, nodes=1),
            id="in service: what its Node says",
        ),
        pytest.param(
            a_claim(), a_node(status={"capacity": {}}), FOUR_CPUS, id="a Node that says nothing"
        ),
        pytest.param(
            a_claim(status={"capacity": {"cpu": "many"}}),
            None,
            units(nodes=1),
            id="what cannot be read is one node",
        ),
    ],
)
def test_a_claim_counts_as(claim: NodeClaim, node: Any, size: dict[str, int]) -> None:
    assert capacity_of(claim, {} if node is None else node.capacity) == size


def test_a_pool_is_the_sum_of_its_claims_without_those_being_deleted() -> None:
    snapshot = snapshot_with(
        a_claim(),
        a_node(),
        a_claim("b", stage=LAUNCHED),
        a_leaving_claim("c"),
        a_claim("d", labels={"karpenter.sh/nodepool": "other"}),
    )
    assert usage_of("general", snapshot) == units(cpu=8, memory=16 * 2**30, pods=40, nodes=2)


def test_of_two_nodes_with_one_provider_id_neither_counts() -> None:
    snapshot = snapshot_with(
        a_claim(),
        a_node(status={"capacity": {"cpu": "1"}}),
        a_node("node-b", status={"capacity": {"cpu": "2"}}),
    )
    assert usage_of("general", snapshot) == FOUR_CPUS


def test_the_class_of_a_pool_is_found_by_kind_and_name() -> None:
    snapshot = snapshot_with(a_class())
    assert node_class_of(a_pool(), snapshot) == a_class()
    assert node_class_of(a_pool(ref=FOREIGN), snapshot) is None
    assert node_class_key(OURS) == "KWOKNodeClass/default"
