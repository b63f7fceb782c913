"""No step of reading a cluster grows with the cluster: a turn of the loop may have to wait for one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import msgspec
import pytest

from tenure.model.api.names import ZONE
from tenure.packing.consolidate.question import Candidate, Question
from tenure.packing.consolidate.search import Search
from tests.packing.build import a_node, a_pod, a_pool
from tests.packing.consolidate.test_preferences import APART
from tests.packing.demand.test_topology import WEB, spread

#: More functions than this are not called in one step: some 10 ms.
CALLS_MAX = 30_000


def longest_step(steps: Iterator[object]) -> int:
    """How many functions are called in the longest step."""
    longest = calls = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        for _ in steps:
            longest, calls = max(longest, calls), 0
    finally:
        sys.setprofile(None)
    return max(longest, calls)


def _cluster(count: int, rules: dict[str, Any], kinds: int, closed: bool) -> Question:
    nodes = [
        a_node(
            f"n-{number:04d}",
            "32",
            labels={ZONE: "abc"[number % 3]},
            holding=[
                a_pod(
                    f"p-{number}-{i}",
                    "100m",
                    labels={**WEB, "kind": str((number * 20 + i) % kinds)},
                    **rules,
                )
                for i in range(20)
            ],
        )
        for number in range(count)
    ]
    if closed:
        nodes = [nodes[0], *(msgspec.structs.replace(node, closed=True) for node in nodes[1:])]
    candidates = tuple(
        Candidate(
            name=node.name,
            pool="general",
            price=100_000,
            instance_type="m-32",
            capacity_type="on-demand",
        )
        for node in nodes
        if not node.closed
    )
    return Question(nodes=tuple(nodes), candidates=candidates, templates=(a_pool(),))


CLUSTERS: dict[str, Callable[[int], Question]] = {
    "one class": lambda count: _cluster(count, {}, 1, False),
    "a spread": lambda count: _cluster(count, spread(ZONE), 50, False),
    "closed nodes": lambda count: _cluster(count, spread(ZONE), 50, True),
    "preferences": lambda count: _cluster(count, APART, 50, False),
    "every pod another": lambda count: _cluster(count, {}, 20 * count, False),
}


@pytest.mark.parametrize("kind", CLUSTERS)
def test_no_step_of_reading_grows_with_the_cluster(kind: str) -> None:
    few, many = (longest_step(Search(CLUSTERS[kind](count)).reading) for count in (200, 800))
    assert many <= 1.2 * few
    assert many <= CALLS_MAX
