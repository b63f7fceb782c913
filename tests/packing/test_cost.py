"""The cost of a plan for each pod does not grow with their number: counted in operations, not seconds."""

from __future__ import annotations

import sys
from collections import Counter
from types import FrameType
from typing import Any

from benchmarks.scheduling import workloads
from tenure.model.api.names import ZONE
from tenure.packing.demand.problem import Problem
from tenure.packing.demand.terms import PREFERENCES_MAX
from tenure.packing.pack import pack
from tests.packing.build import a_pod, a_pool, a_type, pods
from tests.packing.demand.test_topology import spread
from tests.packing.test_constraints import preferring, term

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


def test_a_thousand_preferences_cost_no_more_than_the_heaviest_that_count() -> None:
    """One pod of a tenant had taken a thousand rounds, and all pods wait for these."""
    one, all_ = (calls(of(preferences)).total() for preferences in (PREFERENCES_MAX, 1_000))
    assert all_ <= 4 * one, "each is read, once"


def of(preferences: int) -> Problem:
    """A pod that prefers to be near to pods that are nowhere, and others that are spread."""
    terms = [(1, term(ZONE, {"app": f"nowhere-{number}"})) for number in range(preferences)]
    spec = preferring("podAffinity", *terms)
    others = pods(10, **spread(ZONE))
    return Problem(pods=(a_pod(**spec), *others), templates=(a_pool(),), preferences=True)


def test_a_reason_asks_for_the_limits_of_a_pool_once() -> None:
    """It had asked once for each instance type, and a pool at its limit refuses every pod."""
    types = [a_type(f"m-{number:03d}", 4) for number in range(100)]
    pool = a_pool(types=types, limits={"cpu": "1"})
    counts = calls(Problem(pods=(a_pod(),), templates=(pool,)))
    asked = next(count for file, count in counts.items() if file.endswith("offers/limits.py"))
    assert asked < 20 * len(types)
