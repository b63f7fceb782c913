"""The cost of a plan for each pod does not grow with their number: counted in operations, not seconds."""

from __future__ import annotations

import sys
from collections import Counter
from types import FrameType
from typing import Any

from benchmarks.scheduling import workloads
from tenure.packing.demand.problem import Problem
from tenure.packing.pack import pack

TYPES = workloads.karpenters_types(60)
#: Of packing.md: from 10,000 pods to 100,000. Here it is from 1,000 to 10,000, where more of the
#: cost is that of classes, which become relatively fewer.
GROWTH_MAX = 1.2


def calls(problem: Problem) -> Counter[str]:
    """How often each file's functions are called."""
    counts: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            counts[frame.f_code.co_filename] += 1

    sys.setprofile(note)
    try:
        pack(problem)
    finally:
        sys.setprofile(None)
    return counts


def test_the_cost_of_a_pod_does_not_grow() -> None:
    few, many = (
        calls(workloads.a_problem(workloads.diverse(count), TYPES)) for count in (1_000, 10_000)
    )
    assert many.total() / 10_000 <= GROWTH_MAX * few.total() / 1_000


def test_equal_pods_cost_next_to_nothing() -> None:
    few, many = (
        calls(workloads.a_problem(workloads.zone_spread(count), TYPES)) for count in (400, 4_000)
    )
    assert many.total() <= 4 * few.total()
