"""The first hour of a copy: the same nodes and pods, and nothing that a replica of the real cluster would not do.

What such a replica would do is found out as ``tenure plan`` does: the objects of the copy are read through the API, as
those of a real cluster are, and evaluated by the deciders of ``tenure run``, from nothing but what was read.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from tenure.cli.plan.planning import plan_of
from tenure.core.reasons import Reason
from tenure.model.api.resource import NODES, PODS, Resource
from tenure.sim.copied.copy import read_copy
from tenure.sim.copied.load import load, options_for
from tenure.sim.world import World
from tests.cli.readclusters import seen
from tests.sim.copied.clusters import KARPENTER

HOUR: Final = timedelta(hours=1)
#: Looks are taken in between: before it nothing is due, after it nothing is left to do.
QUIET: Final = timedelta(seconds=58)
SETTLED: Final = timedelta(minutes=2)
#: Now, or as soon as the budget lets another one go.
MOVES: Final = (Reason.REPLACING, Reason.DISRUPTION_BLOCKED)


def a_copied_world() -> World:
    copy = read_copy(KARPENTER)
    world = World(options_for(copy))
    load(copy, world)
    return world


def places(world: World, resource: Resource) -> dict[str, str]:
    """By UID: on which node."""
    return {
        one["metadata"]["uid"]: one["spec"].get("nodeName", "")
        for one in world.store.list(resource)
    }


def test_it_begins_with_the_same_nodes_and_the_same_pods_on_them() -> None:
    copy = read_copy(KARPENTER)
    with a_copied_world() as world:
        for resource, count in ((NODES, 6), (PODS, 43)):
            there = {
                one["metadata"]["uid"]: one["spec"].get("nodeName", "") for one in copy.of(resource)
            }
            assert len(there) == count
            assert places(world, resource) == there


def test_no_node_goes_that_a_plan_of_the_same_objects_would_not_take() -> None:
    planned: set[str] = set()
    with a_copied_world() as world:
        world.run(QUIET)
        assert not going(world), "consolidateAfter is a minute"
        while world.elapsed < SETTLED:
            reading, _ = seen(world)  # Takes its time there, too.
            plan = plan_of(reading.evaluated)
            planned |= {
                str(one.subject)
                for one in (*plan.to_do, *plan.not_now)
                if one.reason in MOVES and one.subject.kind == "NodeClaim"
            }
        world.run(HOUR - world.elapsed)
        assert len(going(world)) == 2
        assert going(world) == planned
        assert len(world.store.list(NODES)) == 4


def going(world: World) -> set[str]:
    return {one.subject for one in world.history.entries if one.reason == Reason.CLAIM_DELETED}
