"""What consolidation knows of a node: its price, its disruption cost, since when it is quiet."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from tenure.core.disrupt.consolidation.figures import (
    disruption_cost,
    eviction_cost,
    price_of,
    quiet_since,
)
from tenure.model.api.names import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tests.packing.build import a_pod, a_type

COST, DELETION = "karpenter.sh/disruption-cost", "controller.kubernetes.io/pod-deletion-cost"


def _annotated(annotations: dict[str, str], **fields: Any) -> Pod:
    pod = a_pod(owner="ReplicaSet", **fields)
    metadata = msgspec.structs.replace(pod.metadata, annotations=annotations)
    return msgspec.structs.replace(pod, metadata=metadata)


@pytest.mark.parametrize(
    ("annotations", "priority", "cost"),
    [
        ({}, 0, 1.0),
        ({DELETION: str(2**27)}, 0, 2.0),
        ({COST: str(2**27), DELETION: str(-(2**27))}, 0, 2.0),
        ({COST: "1.5", DELETION: str(2**27)}, 0, 1.0),
        ({COST: "1_000_000"}, 0, 1.0),
        ({COST: "9" * 5000}, 0, 1.0),
        ({COST: str(2**31)}, 0, 1.0),
        ({COST: str(-(2**31))}, 0, -10.0),
        ({}, 2**25, 2.0),
        ({}, 2_000_000_000, 10.0),
    ],
)
def test_the_cost_of_an_eviction(annotations: dict[str, str], priority: int, cost: float) -> None:
    assert eviction_cost(_annotated(annotations, priority=priority)) == cost


def test_the_cost_of_a_node_counts_pods_that_have_to_move() -> None:
    ordinary = _annotated({})
    willing = _annotated({COST: str(-(2**28))})
    daemon = a_pod("agent", owner="DaemonSet")
    assert disruption_cost([]) == 1.0
    assert disruption_cost([ordinary, ordinary, willing, daemon]) == 3.0


def test_a_price_that_is_missing_or_zero_is_none() -> None:
    types = {one.name: one for one in (a_type("m", 4, available=False), a_type("free", price=0.0))}

    def price(type_: str, zone: str = "a", term: str = "on-demand") -> int | None:
        labels = {INSTANCE_TYPE: type_, ZONE: zone, CAPACITY_TYPE: term}
        return price_of(msgspec.convert({"metadata": {"name": "n", "labels": labels}}, Node), types)

    assert price("m") == 200_000
    assert [price("m", zone="z"), price("m", term="spot"), price("free"), price("x")] == [None] * 4


def test_a_node_is_quiet_since_the_last_pod_came_or_went() -> None:
    claim = _claim("2030-01-01T01:00:00Z")
    pod = a_pod(created="2030-01-01T00:00:00Z")
    assert quiet_since(claim, [pod], None) == _at(1)
    assert quiet_since(claim, [a_pod(created="2030-01-01T03:00:00Z")], None) == _at(3)
    assert quiet_since(claim, [pod], _at(4)) == _at(4)
    agent = a_pod(created="2030-01-01T05:00:00Z", owner="DaemonSet")
    assert quiet_since(claim, [agent], None) == _at(1)
    assert quiet_since(_claim(None), [pod], None) is None


def test_when_a_pod_was_bound_counts_not_when_it_was_created() -> None:
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2030-01-01T06:00:00Z"}
    pod = a_pod(created="2030-01-01T00:00:00Z")
    status = msgspec.convert({"conditions": [bound]}, type(pod.status))
    pod = msgspec.structs.replace(pod, status=status)
    assert quiet_since(_claim("2030-01-01T01:00:00Z"), [pod], None) == _at(6)


def _claim(initialized: str | None) -> NodeClaim:
    said = {"type": "Initialized", "status": "True", "lastTransitionTime": initialized}
    status = {"conditions": [said] if initialized else []}
    return msgspec.convert({"metadata": {"name": "c"}, "status": status}, NodeClaim)


def _at(hour: int) -> datetime:
    return datetime(2030, 1, 1, hour, tzinfo=UTC)
