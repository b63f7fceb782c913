"""A packing in steps: none is long, however many pods there are, and the plan is that of a packing in one go.

A turn of the loop may have to wait for a step; everything else goes on between two of them.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.model.api.names import HOSTNAME, ZONE
from tenure.model.snapshot.derived import Derived
from tenure.packing.demand.problem import Problem
from tenure.packing.demand.steps import Steps
from tenure.packing.pack import pack, packing
from tenure.packing.result import Packing
from tests.packing.build import a_node, a_pod, a_pool
from tests.packing.consolidate.test_steps import longest_step
from tests.packing.mixes import a_mix
from tests.packing.test_constraints import far, near, term
from tests.packing.test_relaxing import all_of

#: More functions than this are not called in one step: some 10 ms.
CALLS_MAX = 30_000
PODS = 1_000


def about(number: int) -> dict[str, str]:
    return {"app": f"app-{number % PODS}"}


def spread_over(key: str, number: int) -> dict[str, Any]:
    return {
        "topologyKey": key,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": about(number)},
    }


#: By what pod number n asks for, beside a size of its own.
RULES: dict[str, Callable[[int], dict[str, Any]]] = {
    "a size each": lambda _: {},
    "apart on nodes and in zones": lambda n: far(
        *(term(HOSTNAME if k % 2 else ZONE, about(n + k)) for k in range(1, 5))
    ),
    "near in a zone": lambda n: near(*(term(ZONE, about(max(0, n - k))) for k in range(3))),
    "spread": lambda n: {
        "topologySpreadConstraints": [
            spread_over(HOSTNAME if k % 2 else ZONE, n + k) for k in range(4)
        ]
    },
    "several terms": lambda n: all_of(
        far(term(HOSTNAME, about(n + 1))),
        {"topologySpreadConstraints": [spread_over(ZONE, n), spread_over(HOSTNAME, n)]},
    ),
    "larger than any node": lambda n: {
        "containers": [
            {"name": "main", "resources": {"requests": {"cpu": str(1_000 + n), "memory": "1Gi"}}}
        ]
    },
}


def a_problem(rules: Callable[[int], dict[str, Any]], limits: Any = None) -> Problem:
    waiting = [a_pod(f"p-{n:04d}", f"{100 + n}m", labels=about(n), **rules(n)) for n in range(PODS)]
    nodes = [
        a_node(
            f"n-{n:03d}",
            "8",
            labels={ZONE: "abc"[n % 3]},
            holding=[a_pod(f"r-{n}-{i}", "750m", labels=about(n)) for i in range(10)],
        )
        for n in range(200)
    ]
    return Problem(pods=tuple(waiting), nodes=tuple(nodes), templates=(a_pool(limits=limits),))


@pytest.mark.parametrize("kind", RULES)
def test_no_step_of_a_packing_is_long(kind: str) -> None:
    assert longest_step(packing(a_problem(RULES[kind]))) <= CALLS_MAX


def test_no_step_is_long_where_limits_let_few_be_served() -> None:
    problem = a_problem(RULES["a size each"], {"cpu": "200"})
    assert longest_step(packing(problem)) <= CALLS_MAX


# -- the same plan ------------------------------------------------------------------------------


def in_turns(random: Random, *problems: Problem) -> list[Packing]:
    """A step of one or the other at a time, until all are made."""
    found: dict[int, Packing] = {}
    under_way = dict(enumerate(map(packing, problems)))
    while under_way:
        number = random.choice(list(under_way))
        if (made := _step(under_way[number])) is not None:
            found[number] = made
            del under_way[number]
    return [found[number] for number in range(len(problems))]


def _step(steps: Steps[Packing]) -> Packing | None:
    try:
        next(steps)
    except StopIteration as end:
        made: Packing = end.value
        return made
    return None


@given(st.integers(0, 10_000), st.integers(0, 10_000), st.integers(0, 99))
def test_what_is_done_between_steps_changes_nothing(one: int, other: int, seed: int) -> None:
    """Bytes are the same: the order counts as well."""
    problems = [a_mix(one), a_mix(other)]
    whole = [msgspec.msgpack.encode(repr(pack(problem))) for problem in problems]
    kept = Derived()  # As it is shared in a cluster: what is read of pods and nodes.
    for problem in problems:
        for pod in problem.pods:
            kept.admit(pod)
    shared = [msgspec.structs.replace(problem, derived=kept) for problem in problems]
    made = in_turns(Random(seed), *shared)
    assert [msgspec.msgpack.encode(repr(each)) for each in made] == whole
