"""Nodes are read once, in steps, and again only where something has changed of them."""

from __future__ import annotations

import pytest

from tenure.core.provision import knownnodes
from tenure.core.provision.knownnodes import NODES_READ, nodes_with_capacity, reading_nodes
from tenure.core.provision.supply import existing_node
from tenure.model.api.node import Node
from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS
from tenure.model.snapshot.snapshot import Snapshot, Tables
from tenure.packing.demand.problem import ExistingNode
from tests.core.build import a_claim, a_node, a_pod


class Read:
    """Which nodes are read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []

        def noted(node: Node, snapshot: Snapshot) -> ExistingNode:
            self.names.append(node.name)
            return existing_node(node, snapshot)

        monkeypatch.setattr(knownnodes, "existing_node", noted)

    def take(self) -> list[str]:
        names, self.names = sorted(self.names), []
        return names


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Read:
    return Read(monkeypatch)


def a_fleet(count: int) -> Tables:
    tables = Tables()
    for number in range(count):
        tables.put(NODES, a_node(f"n{number:03d}", claim=f"c{number}"))
    return tables


def test_reading_is_cut_into_steps_and_can_be_left_between_two_of_them(read: Read) -> None:
    count = 3 * NODES_READ - 1
    snapshot = Snapshot(a_fleet(count))
    steps = reading_nodes(snapshot)
    next(steps)
    assert len(read.take()) == NODES_READ
    next(steps)
    assert len(read.take()) == NODES_READ
    assert len(nodes_with_capacity(snapshot)) == count
    assert len(read.take()) == NODES_READ - 1, "the rest"
    assert next(steps, "the end") == "the end"


def test_only_nodes_that_something_has_changed_of_are_read_again(read: Read) -> None:
    tables = a_fleet(5)
    snapshot = Snapshot(tables)
    nodes_with_capacity(snapshot)
    assert read.take() == ["n000", "n001", "n002", "n003", "n004"]
    nodes_with_capacity(snapshot)
    assert read.take() == []
    tables.put(PODS, a_pod(node="n001"))
    tables.put(NODE_CLAIMS, a_claim("c3"))
    nodes_with_capacity(snapshot)
    assert read.take() == ["n001", "n003"]
    tables.put(PODS, a_pod(node="n002"))  # It cannot move: it is another one, of the same name.
    nodes_with_capacity(snapshot)
    assert read.take() == ["n001", "n002"]
    tables.remove(NODES, "n004")
    assert [node.name for node in nodes_with_capacity(snapshot)] == ["n000", "n001", "n002", "n003"]
    assert read.take() == []


def test_what_happens_between_two_steps_is_not_lost(read: Read) -> None:
    tables = a_fleet(NODES_READ + 5)
    snapshot = Snapshot(tables)
    steps = reading_nodes(snapshot)
    next(steps)
    first = read.take()[0]
    tables.put(PODS, a_pod(node=first))
    tables.remove(NODES, "n000")
    for _ in steps:
        pass
    (found,) = (one for one in nodes_with_capacity(snapshot) if one.name == first)
    assert len(found.pods) == 1
    assert "n000" not in [one.name for one in nodes_with_capacity(snapshot)]


def test_a_node_that_cannot_be_read_is_not_lost(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = Snapshot(a_fleet(3))
    with monkeypatch.context() as failing:
        failing.setattr(knownnodes, "in_service_at", lambda *_: 1 / 0)
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                nodes_with_capacity(snapshot)
    assert len(nodes_with_capacity(snapshot)) == 3
