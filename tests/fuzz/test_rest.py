"""What counts as rest: what a verdict has announced may happen, and nothing else may."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from tenure.core.decision import Subject
from tenure.model.api.resource import DEPLOYMENTS, NODE_CLAIMS
from tests.builders import HOUR, MINUTE, Manifest, a_deployment, a_node_class, a_pool, a_requirement
from tests.fuzz.rest import announced, restless, settled, unsettled
from tests.runtime.worlds import Tapped

#: One pod of 1500m fills a node of this type.
SMALL: Final = a_requirement("node.kubernetes.io/instance-type", "m7i.large")


@contextmanager
def two_empty_nodes(**disruption: Any) -> Iterator[Tapped]:
    pool: Manifest = a_pool(requirements=[SMALL], disruption=disruption)
    with Tapped(a_node_class(), pool, a_deployment(replicas=2, cpu="1500m")) as world:
        world.run(5 * MINUTE)
        world.store.patch(DEPLOYMENTS, "default", "web", {"spec": {"replicas": 0}})
        world.run(5 * MINUTE)
        yield world


def test_an_empty_node_may_go_when_its_budget_allows_the_next_start() -> None:
    velocity = {"nodes": "1", "within": "20m"}
    with two_empty_nodes(budgets=[{"nodes": "100%"}, velocity]) as world:
        assert restless(world) == [], "what its budget keeps is empty and stays so"
        assert world.count("claims") == 1, "the other one has gone, and uses the budget up"
        before, may_change = settled(world), announced(world)
        world.run(30 * MINUTE)
        assert world.count("claims") == 0
        assert unsettled(world, before, may_change) == []


def test_a_node_that_goes_without_an_announcement_is_reported() -> None:
    with two_empty_nodes(budgets=[{"nodes": "0"}]) as world:
        before, may_change = settled(world), announced(world)
        gone = world.delete_claim()
        world.run(10 * MINUTE)
        problems = " ".join(unsettled(world, before, may_change))
        assert f"claims changed although nothing happened: ['{gone}'" in problems
        assert "ends changed although nothing happened: 0 → 1" in problems


def test_a_node_in_service_may_not_go_by_an_announcement_of_another_kind() -> None:
    """A sentence about it that changes with time says nothing of its end."""
    with Tapped(a_node_class(), a_pool(), a_deployment()) as world:
        world.run(5 * MINUTE)
        claim = world.the(NODE_CLAIMS)["metadata"]
        subject = Subject("NodeClaim", claim["name"], "", claim["uid"])
        before, may_change = settled(world), announced(world) | {subject: world.now + MINUTE}
        world.delete_claim()
        world.run(HOUR)
        problems = " ".join(unsettled(world, before, may_change))
        assert "claims changed although nothing happened" in problems
