"""A node's free capacity is computed once for the same objects, and again for any other."""

from __future__ import annotations

from collections.abc import Iterable

from tenure.core.provision.nodecache import Rooms
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tenure.packing.demand.problem import ExistingNode
from tests.core.build import a_claim, a_node, a_pod


class Worker:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self, node: Node, claim: NodeClaim | None, pods: Iterable[Pod]) -> ExistingNode:
        self.count += 1
        return ExistingNode(name=node.name, pods=tuple(pods))


def test_the_same_objects_are_worked_out_once() -> None:
    rooms, work, node, claim, pod = Rooms(), Worker(), a_node(), a_claim(), a_pod()
    first = rooms.on(node, claim, [pod], work)
    assert rooms.on(node, claim, [pod], work) is first
    assert work.count == 1


def test_another_node_claim_or_pod_is_computed_again() -> None:
    rooms, work, node, claim, pod = Rooms(), Worker(), a_node(), a_claim(), a_pod()
    rooms.on(node, claim, [pod], work)
    rooms.on(a_node(), claim, [pod], work)
    rooms.on(a_node(), None, [pod], work)
    assert rooms.on(node, claim, [a_pod()], work).pods == (a_pod(),)
    assert rooms.on(node, claim, [], work).pods == ()
    assert work.count == 5


def test_nodes_that_are_gone_are_forgotten() -> None:
    rooms, work = Rooms(), Worker()
    for name in ("node-a", "node-b"):
        rooms.on(a_node(name), None, [], work)
    rooms.keep({"node-a": a_node()}, {})
    assert len(rooms) == 1
