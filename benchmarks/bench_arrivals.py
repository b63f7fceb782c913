"""Pods that arrive one after the other, in sixty patterns: nodes and price against one plan for all of them.

    python -m benchmarks.run arrivals
    python -m benchmarks.bench_arrivals 0 60    (which of the patterns)

Virtual time, whole cluster: four Deployments spread over four zones, instances that take 20 to 40 seconds, no consolidation. A
pattern is how many pods come, and how many a second. Packing.md, §5: at most 1.25 times the nodes (or one more) and 1.03 times the price.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import product
from typing import Any, Final

import msgspec

from benchmarks.figures import Figure, Figures
from tenure.model.api.names import CAPACITY_TYPE, OS
from tenure.model.api.pod import Pod
from tenure.model.matching.requirement import Requirement
from tenure.model.matching.requirements import Requirements
from tenure.packing.demand.problem import PoolTemplate, Problem
from tenure.packing.pack import pack
from tests.scenarios.test_arrivals import TYPES, Arrival, a_spread_deployment

PODS: Final = (200, 300, 400, 600)
PER_SECOND: Final = (4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 20, 25, 33, 60)
PATTERNS: Final = tuple(product(PER_SECOND, PODS))
NODES_TIMES: Final = 1.25
PRICE_TIMES: Final = 1.03
#: Patterns above a limit, of sixty: all but four are streams of at most six pods a second, which fill no large node.
ABOVE_MAX: Final = 15


class Outcome(msgspec.Struct, frozen=True):
    per_second: int
    pods: int
    nodes: int
    dollars: float
    nodes_together: int
    dollars_together: float

    @property
    def above(self) -> bool:
        nodes_max = max(NODES_TIMES * self.nodes_together, self.nodes_together + 1)
        return self.nodes > nodes_max or self.dollars > PRICE_TIMES * self.dollars_together

    def __str__(self) -> str:
        return (
            f"{self.pods} pods, {self.per_second} a second: {self.nodes} nodes at ${self.dollars:.2f}, "
            f"together {self.nodes_together} at ${self.dollars_together:.2f}"
            f"{'   ABOVE' if self.above else ''}"
        )


def together(pods: int) -> tuple[int, float]:
    """Nodes and dollars of one plan for all of them."""
    pool = PoolTemplate(
        pool="general",
        requirements=Requirements.of(
            [
                Requirement.of(OS, "In", ("linux",)),
                Requirement.of(CAPACITY_TYPE, "In", ("on-demand",)),
                Requirement.of("karpenter.kwok.sh/instance-cpu", "Lt", ("33",)),
            ]
        ),
        instance_types=TYPES,
    )
    waiting = tuple(_pod(1 + number % 4, number) for number in range(pods))
    plan = pack(Problem(pods=waiting, templates=(pool,)))
    assert not plan.unplaced
    return len(plan.claims), plan.price / 1e6


def _pod(deployment: int, number: int) -> Pod:
    template: dict[str, Any] = a_spread_deployment(deployment, 0)["spec"]["template"]
    name = {"name": f"p{number}", "uid": f"p{number}", "namespace": "default"}
    metadata = {**template.get("metadata", {}), **name}
    return msgspec.convert({"metadata": metadata, "spec": template["spec"]}, Pod)


def outcome(per_second: int, pods: int) -> Outcome:
    with Arrival(pods, per_second) as story:
        story.until_all_run()
        assert story.running() == pods
        return Outcome(per_second, pods, story.count("nodes"), story.dollars, *together(pods))


def measure(patterns: Sequence[tuple[int, int]] = PATTERNS) -> Figures:
    found = []
    for pattern in patterns:
        found.append(outcome(*pattern))
        print(f"  {found[-1]}", flush=True)
    above = sum(one.above for one in found)
    return Figures(
        title=f"pods that arrive in {len(found)} patterns",
        relative=(
            Figure(what="patterns above a limit", value=above, limit=ABOVE_MAX),
            Figure(
                what="nodes against one plan, most",
                value=max(one.nodes / one.nodes_together for one in found),
            ),
            Figure(
                what="price against one plan, most",
                value=max(one.dollars / one.dollars_together for one in found),
            ),
        ),
        absolute=(),
    )


if __name__ == "__main__":
    first, last = map(int, sys.argv[1:] or (0, len(PATTERNS)))
    for figure in measure(PATTERNS[first:last]).relative:
        print(figure)
