"""What the budgets of a pool leave, by reason: for its status, metrics and ``explain``."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tenure.core.gates import fleet
from tenure.core.gates.fleet import fleet_of
from tenure.core.gates.reasons import Disruption
from tenure.core.gates.remaining import PoolBudgets, Remaining, by_reason
from tenure.core.marks.ownership import uses_budgets
from tenure.model.api.names import REPLACED_BY, ZONE
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, NODES
from tenure.model.snapshot.snapshot import Snapshot, Tables
from tests.core.build import NOW, a_claim, a_node
from tests.core.gates.test_velocity import pool_with
from tests.snapshots import SERVED, snapshot_with

HOUR = timedelta(hours=1)
IN_A = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}
IN_B = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}


def left(*budgets: dict[str, Any], leaving: str = "") -> dict[str, Remaining]:
    """Of six nodes: four in zone a, two in zone b."""
    pool, objects = pool_with(*budgets), list[Any]()
    for number, zone in enumerate("aaaabb"):
        name = f"{zone}{number}"
        marks = {REPLACED_BY: "x"} if name in leaving.split() else {}
        objects += [a_claim(name, annotations=marks)]
        objects += [a_node(f"node-{name}", claim=name, labels={ZONE: zone})]
    fleet = fleet_of("general", snapshot_with(pool, *objects))
    found = by_reason(pool, fleet, NOW)
    told = [(r, one.nodes if one.limited else None, one.changes_at) for r, one in found]
    assert PoolBudgets().allowed(pool, fleet, NOW) == told, "the status says the same"
    return dict(found)


@pytest.mark.parametrize(
    ("budget", "leaving", "nodes"),
    [
        ({"nodes": "3"}, "", 3),
        ({"nodes": "3"}, "a0 b4", 1),
        ({"nodes": "3"}, "a0 a1 a2 a3", 0),
        ({"nodes": "1", "per": ZONE}, "", 2),
        ({"nodes": "1", "per": ZONE}, "a0 a1", 1),
        ({"nodes": "1", "selector": IN_A}, "", 3),
        ({"nodes": "1", "selector": IN_A}, "a0", 2),
        ({"nodes": "1", "selector": IN_A}, "a0 b4", 1),
        ({"nodes": "0", "selector": IN_A}, "b4 b5", 0),
    ],
)
def test_groups_add_up_and_what_a_budget_does_not_select_is_not_limited(
    budget: dict[str, Any], leaving: str, nodes: int
) -> None:
    assert {one.nodes for one in left(budget, leaving=leaving).values()} == {nodes}


@pytest.mark.parametrize(
    ("budgets", "leaving", "nodes"),
    [
        pytest.param([("0", IN_A), ("0", IN_B)], "", 0, id="every node is held by one of them"),
        pytest.param([("1", IN_A), ("0", IN_B)], "", 1, id="one of zone a"),
        pytest.param([("1", IN_A), ("1", IN_B)], "a0", 1, id="one of zone b, a is used up"),
        pytest.param([("9", None), ("0", IN_B)], "", 4, id="no more than there are"),
        pytest.param([("3", None), ("0", IN_A)], "", 2, id="the other zone"),
    ],
)
def test_a_node_that_one_budget_holds_is_none_that_another_lets_go(
    budgets: list[tuple[str, Any]], leaving: str, nodes: int
) -> None:
    blocks = [{"nodes": n} | ({"selector": s} if s is not None else {}) for n, s in budgets]
    assert {one.nodes for one in left(*blocks, leaving=leaving).values()} == {nodes}


def test_a_budget_counts_for_its_reasons_and_says_when_that_changes() -> None:
    office = {"nodes": "0", "reasons": ["Drifted"], "schedule": "0 9 * * *", "duration": "8h"}
    found = left({"nodes": "2"}, office)
    assert found.pop(Disruption.DRIFTED) == Remaining(0, NOW + 5 * HOUR)
    assert set(found.values()) == {Remaining(2)}


def test_a_budget_that_cannot_be_read_leaves_nothing_for_any_reason() -> None:
    broken = {"nodes": "1", "schedule": "0 0 * * *", "duration": "1h", "timeZone": "Mars/Olympus"}
    assert set(left({"nodes": "3"}, broken).values()) == {Remaining(0)}


def test_without_a_budget_there_is_no_limit() -> None:
    assert not any(one.limited for one in left().values())


def test_nodes_are_counted_again_only_where_something_has_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted: list[str] = []

    def noted(claim: NodeClaim, node: Node) -> bool:
        counted.append(claim.name)
        return uses_budgets(claim, node)

    monkeypatch.setattr(fleet, "uses_budgets", noted)
    tables = Tables()
    tables.put(NODE_POOLS, pool_with())
    for name in "ab":
        tables.put(NODE_CLAIMS, a_claim(name))
        tables.put(NODES, a_node(f"node-{name}", claim=name))
    snapshot = Snapshot(tables, ours=SERVED)
    first = fleet_of("general", snapshot)
    assert counted == ["a", "b"]
    assert fleet_of("general", snapshot) == first
    assert counted == ["a", "b"]
    tables.put(NODE_CLAIMS, a_claim("a", annotations={REPLACED_BY: "x"}))
    assert fleet_of("general", snapshot).all.leaving == ("node-a",)
    tables.put(NODES, a_node("node-b", claim="b", ready=False))
    assert fleet_of("general", snapshot).all.not_ready == ("node-b",)
    tables.put(NODE_POOLS, pool_with({"nodes": "1", "per": ZONE}))
    tables.put(NODES, a_node("node-a", claim="a", labels={ZONE: "z"}))
    assert fleet_of("general", snapshot).nodes[0].labels == {ZONE: "z"}
    tables.remove(NODES, "node-a")
    assert [one.name for one in fleet_of("general", snapshot).nodes] == ["node-b"]
