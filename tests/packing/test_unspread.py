"""Pods that their spread keeps out: what is told again, a whole packing says as well."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from tenure.model.api.names import ZONE
from tenure.model.api.pod import Pod
from tenure.model.snapshot.derived import Derived
from tenure.packing.demand.problem import ExistingNode, PoolTemplate, Problem
from tenure.packing.demand.steps import at_once
from tenure.packing.pack import pack
from tenure.packing.unspread import Unspread
from tests.packing.build import a_node, a_pod, a_pool, a_type
from tests.packing.demand.test_topology import spread

POOL = a_pool("a", (a_type("m", 4),))
#: Zone a is sold out.
WITHOUT_A = a_pool("a", (a_type("m", 4, zones=("b", "c")),))


def over_zones(labels: dict[str, str], skew: int = 1) -> dict[str, Any]:
    return spread(ZONE, skew, labelSelector={"matchLabels": labels})


def a_fleet(random: Random, templates: tuple[PoolTemplate, ...]) -> Fleet:
    nodes = []
    for number in range(9):
        name, zone = f"n{number}", "abc"[number % 3]
        there = [
            a_pod(
                f"{name}-{i}",
                random.choice(["1", "500m"]),
                labels={"app": (app := random.choice(["web", "web", "web", "db"]))},
                nodeName=name,
                **(over_zones({"app": app}, random.choice([1, 1, 2])) if i else {}),
            )
            for i in range(random.choice([2, 2, 2, 3]))
        ]
        node = a_node(name, "8", labels={ZONE: zone}, holding=there)
        left = {**node.available, "cpu": random.choice((0, 0, 0, 5 * 10**8))}
        nodes.append(msgspec.structs.replace(node, available=left))
    return Fleet(tuple(nodes), templates)


class Fleet:
    def __init__(
        self, nodes: tuple[ExistingNode, ...], templates: tuple[PoolTemplate, ...]
    ) -> None:
        self.nodes, self.templates, self.derived = nodes, templates, Derived()

    def without(self, number: int) -> Problem:
        nodes = list(self.nodes)
        nodes[number] = msgspec.structs.replace(nodes[number], closed=True)
        return Problem(
            pods=self.nodes[number].pods,
            nodes=tuple(nodes),
            all_nodes=True,
            templates=self.templates,
            derived=self.derived,
        )


def refused_twice(fleet: Fleet) -> tuple[int, int]:
    """How many plans come to nothing, and how many of these are told without a packing."""
    unspread, refused, known = Unspread(), 0, 0
    for number in range(len(fleet.nodes)):
        problem = fleet.without(number)
        told = at_once(unspread.first(problem, problem.nodes))
        whole = pack(problem)
        refused += bool(whole.unplaced)
        if told is None:
            unspread.learn(problem, whole)
        else:
            known += 1
            assert told[0].uid in whole.unplaced, "it is left out"
            assert told[1].why is whole.unplaced[told[0].uid].why
    return refused, known


@pytest.mark.parametrize("templates", [(WITHOUT_A,), (POOL,), ()], ids=["zone", "all", "none"])
@pytest.mark.parametrize("start", range(0, 40, 20))
def test_what_is_told_again_a_packing_says_as_well(
    start: int, templates: tuple[PoolTemplate, ...]
) -> None:
    found = [refused_twice(a_fleet(Random(start + n), templates)) for n in range(20)]
    if templates != (POOL,):
        assert any(known for _, known in found), "something is told"


def a_zone_of(count: int, **more: Any) -> Fleet:
    """Full nodes, as many in each of three zones; the first ones in zone a."""
    nodes = [
        a_node(f"{zone}{i}", "2", labels={ZONE: zone}, holding=(web(f"{zone}{i}", **more),))
        for zone in "abc"
        for i in range(count)
    ]
    return Fleet(tuple(nodes), (WITHOUT_A,))


def web(node: str, **more: Any) -> Pod:
    app = {"app": "web"}
    return a_pod(f"p-{node}", "2", labels=app, nodeName=node, **over_zones(app, **more))


def test_of_the_nodes_of_a_zone_that_is_sold_out_one_is_packed() -> None:
    fleet = a_zone_of(6)
    unspread = Unspread()
    problem = fleet.without(0)
    assert at_once(unspread.first(problem, problem.nodes)) is None, "nothing is known yet"
    unspread.learn(problem, pack(problem))
    for number in range(1, 6):
        problem = fleet.without(number)
        assert at_once(unspread.first(problem, problem.nodes)) is not None
    problem = fleet.without(6)
    assert at_once(unspread.first(problem, problem.nodes)) is None, "another zone"


def test_a_skew_that_leaves_another_zone_is_for_the_packing() -> None:
    unspread = Unspread()
    strict, wide = a_zone_of(4), a_zone_of(4, skew=2)
    problem = strict.without(0)
    unspread.learn(problem, pack(problem))
    problem = wide.without(1)
    assert not pack(problem).unplaced
    assert at_once(unspread.first(problem, problem.nodes)) is None
