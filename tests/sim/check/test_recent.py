"""Which states Tenure may still have seen, for the checkers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tenure.kube.client.client import Client
from tenure.model.api.resource import NODE_CLAIMS, NODES, Resource
from tenure.sim.check.read import State
from tenure.sim.world import World
from tests.builders import MINUTE, SECOND, a_cluster, a_deployment


@pytest.fixture
def world() -> Iterator[World]:
    """A cluster with one node, and nothing has changed for a while; Tenure is down."""
    world = World()
    for manifest in a_cluster(a_deployment()):
        world.apply(manifest)
    world.run(5 * MINUTE)
    world.crash(stay_down=True)
    yield world
    world.close()


def label(world: World, kind: Resource, value: str) -> None:
    """A user writes a label on the only object of that kind."""
    (thing,) = world.store.list(kind)
    patch = {"metadata": {"labels": {"example.com/edit": value}}}
    world.store.patch(kind, "", thing["metadata"]["name"], patch)


def edits(state: State) -> tuple[str | None, str | None]:
    """The labels on the claim and on the Node."""
    claim, node = (
        next(iter(state[kind].values()))["metadata"]["labels"].get("example.com/edit")
        for kind in (NODE_CLAIMS, NODES)
    )
    return claim, node


def test_the_watch_of_each_kind_is_late_by_itself(world: World) -> None:
    label(world, NODE_CLAIMS, "one")
    world.run(SECOND)
    label(world, NODES, "one")
    world.run(SECOND)
    seen = {edits(state) for state in world.checkers.recent.seen()}
    assert seen == {("one", "one"), ("one", None), (None, "one"), (None, None)}


def test_a_version_that_refused_tenures_write_may_be_unknown_to_it(world: World) -> None:
    (stale,) = world.store.list(NODE_CLAIMS)
    label(world, NODE_CLAIMS, "one")
    world.run(SECOND)
    version = {"resourceVersion": stale["metadata"]["resourceVersion"]}
    late = {"metadata": {**version, "labels": {"example.com/edit": "two"}}}
    call = Client(world.transport).patch(NODE_CLAIMS, stale["metadata"]["name"], late)
    with pytest.raises(Exception, match="modified"):
        world.loop.run_until_complete(call)
    assert None in {edits(state)[0] for state in world.checkers.recent.past()}


def test_a_version_that_tenure_wrote_is_known_to_it(world: World) -> None:
    (claim,) = world.store.list(NODE_CLAIMS)
    patch = {"metadata": {"labels": {"example.com/edit": "two"}}}
    call = Client(world.transport).patch(NODE_CLAIMS, claim["metadata"]["name"], patch)
    world.loop.run_until_complete(call)
    world.run(SECOND)
    assert {edits(state)[0] for state in world.checkers.recent.past()} == {"two"}
