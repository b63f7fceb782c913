"""No step of a search is long, nor grows with the cluster: a turn of the loop may have to wait for one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import FrameType
from typing import Any

import msgspec
import pytest

from tenure.model.api.names import ZONE
from tenure.packing.consolidate.question import Candidate, Question
from tenure.packing.consolidate.search import Search
from tenure.packing.demand.steps import FREED_A_STEP
from tests.packing.build import a_node, a_pod, a_pool
from tests.packing.consolidate.build import ask, on
from tests.packing.consolidate.test_preferences import ANYWAY, APART
from tests.packing.demand.test_topology import WEB, spread
from tests.packing.test_constraints import preferring, zone_in
from tests.packing.test_relaxing import all_of

#: More functions than this are not called in one step: some 10 ms.
CALLS_MAX = 30_000
#: A step that is so short for 800 nodes is short enough for 4,000, even if it grows with them.
SHORT = CALLS_MAX / 5
#: The same of a try.
TRY_MAX = 20_000
#: … of pods of which each is of another class: some 3 ms.
CLASSES_TRY_MAX = 10_000


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
    assert many <= max(1.2 * few, SHORT)
    assert many <= CALLS_MAX


# -- tries ----------------------------------------------------------------------------------------

#: Rather apart, and rather in a zone: a try opens a claim for almost every pod.
TWO_WISHES = all_of(APART, preferring("nodeAffinity", (1, zone_in("b"))))


def _full(pods_each: int, kinds: int, rules: dict[str, Any], limits: Any = None) -> Question:
    """Nodes that waste most of what they have; each pod is of one of so many classes."""
    there = [
        on(
            f"n-{number}",
            "m-32",
            *(
                a_pod(
                    f"p-{number}-{i}",
                    f"{20 + (number * pods_each + i) % kinds}m",
                    labels={**WEB, "kind": str((number * pods_each + i) % kinds)},
                    nodeName=f"n-{number}",
                    **rules,
                )
                for i in range(pods_each)
            ),
        )
        for number in range(8)
    ]
    return ask(*there, pools=[a_pool(limits=limits)])


TRIES: dict[str, Callable[[], Question]] = {
    "few large classes": lambda: _full(50, 4, TWO_WISHES),
    "a class for each pod": lambda: _full(100, 800, TWO_WISHES),
    "soft spreads": lambda: _full(
        50, 10, all_of(ANYWAY, spread(ZONE, whenUnsatisfiable="ScheduleAnyway"))
    ),
    "nothing can be launched": lambda: _full(100, 800, spread(ZONE), {"cpu": "-1000"}),
}


@pytest.mark.parametrize("kind", TRIES)
def test_no_step_of_a_try_is_long(kind: str) -> None:
    search = Search(TRIES[kind]())
    for _ in search.reading:
        pass
    most = CLASSES_TRY_MAX if kind == "a class for each pod" else TRY_MAX
    assert longest_step(search.steps()) <= most


def test_what_a_search_has_read_is_let_go_in_steps() -> None:
    """Else thousands of classes are freed in one go, which takes as long as several steps."""
    there = [
        on(
            f"n-{number}",
            "m-32",
            *(a_pod(f"p-{number}-{i}", f"{10 + number * 20 + i}m") for i in range(20)),
        )
        for number in range(40)
    ]
    search = Search(ask(*there))
    assert len([move for move in search.moves() if move is not None]) > 0
    assert len(search.index.classes) == 800
    left = [800, *(len(search.index.classes) for _ in search.letting_go())]
    assert left[-1] == 0
    assert max(before - after for before, after in pairwise(left)) <= FREED_A_STEP
    assert not search.index.relaxed
