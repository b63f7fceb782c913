"""The first hour of a copy: the same nodes and pods, and nothing that a replica of the real cluster would not do.

What such a replica would do is found out as ``tenure plan`` does: the objects of the copy are read through the API, as
those of a real cluster are, and evaluated by the deciders of ``tenure run``, from nothing but what was read.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from tenure.cli.plan.planning import plan_of
from tenure.cli.settings.config import configured
from tenure.core.reasons import Reason
from tenure.errors import SpecError
from tenure.model.api.resource import NODES, PODS, Resource
from tenure.parse.manyobjects import read_objects
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.copied.copy import ClusterCopy, read_copy, resource_of
from tenure.sim.copied.load import load, options_for
from tenure.sim.world import World, WorldOptions
from tests.cli.readclusters import seen
from tests.sim.copied.clusters import KARPENTER

HOUR: Final = timedelta(hours=1)
#: Looks are taken in between: before it nothing is due, after it nothing is left to do.
QUIET: Final = timedelta(seconds=58)
SETTLED: Final = timedelta(minutes=2)
#: Now, or as soon as the budget lets another one go.
MOVES: Final = (Reason.REPLACING, Reason.DISRUPTION_BLOCKED)


def a_copied_world(copy: ClusterCopy | None = None, options: WorldOptions | None = None) -> World:
    copy = copy or read_copy(KARPENTER)
    world = World(options_for(copy, options))
    load(copy, world)
    return world


def as_they_came() -> ClusterCopy:
    """The same objects with all that ``kubectl get -o json`` shows: nothing is left out of them."""
    objects: dict[Resource, list[Obj]] = {}
    for _, one in read_objects(KARPENTER):
        assert not isinstance(one, SpecError)
        if (resource := resource_of(one)) is not None:
            objects.setdefault(resource, []).append(one)
    return ClusterCopy(at=read_copy(KARPENTER).at, objects=objects)


def actions(world: World) -> list[tuple[object, ...]]:
    """Every action that Tenure took, in order: when, why, what, and how it ended."""
    return [
        (one.at, one.subject, one.reason, one.action, one.outcome)
        for one in world.history.entries
        if one.source == "tenure" and one.ended is not None
    ]


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


def test_every_action_of_the_hour_is_what_tenure_run_does_with_the_objects_as_they_came() -> None:
    """By the settings of ``tenure run``, and from every field: what a copy leaves out changes no action."""
    with a_copied_world() as copy:
        copy.run(HOUR)
        done = actions(copy)
    with a_copied_world(
        as_they_came(), WorldOptions(settings=configured({}, {}).settings)
    ) as cluster:
        cluster.run(HOUR)
        assert done == actions(cluster)
    kinds = {action for _, _, _, action, _ in done}
    assert {"Delete", "Evict", "Patch", "Terminate"} <= kinds, kinds
