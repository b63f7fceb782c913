"""A plan that is on its way is not made twice, whatever constraints its pods have."""

from __future__ import annotations

import msgspec
import pytest

from tenure.packing.demand.problem import ExistingNode, Problem
from tenure.packing.demand.volumes import attachable
from tenure.packing.pack import pack
from tenure.packing.result import Packing
from tests.packing.judges.nodes import HOSTNAME, planned
from tests.packing.mixes import a_mix


def launched(problem: Problem, plan: Packing) -> tuple[list[ExistingNode], dict[str, str]]:
    """The claims as nodes that have their labels and have not registered, and who goes there."""
    nodes: list[ExistingNode] = []
    named: dict[str, str] = {}
    for number, claim in enumerate(plan.claims):
        place = planned(claim, number, problem)
        template = next(one for one in problem.templates if one.pool == claim.pool)
        kind = next(one for one in template.instance_types if one.name == claim.instance_type)
        volumes = {attachable(name): most * 10**9 for name, most in kind.volume_limits.items()}
        nodes.append(
            ExistingNode(
                name=place.name,
                labels={**place.labels, HOSTNAME: place.name},
                taints=template.taints,
                available={**kind.allocatable, **volumes},
                initialized=False,
            )
        )
        named |= dict.fromkeys(claim.pods, place.name)
    return nodes, named


@pytest.mark.parametrize("start", range(0, 300, 50))
def test_no_pod_that_is_claimed_for_is_claimed_for_again(start: int) -> None:
    for seed in range(start, start + 50):
        problem = a_mix(seed)
        plan = pack(problem)
        nodes, named = launched(problem, plan)
        there = (*problem.nodes, *nodes)
        again = pack(msgspec.structs.replace(problem, nodes=there, nominated=named))
        claimed = {uid for claim in again.claims for uid in claim.pods}
        assert (seed, claimed & named.keys()) == (seed, set())
        moved = {uid for uid, name in named.items() if again.placed.get(uid) != name}
        assert (seed, moved) == (seed, set())
