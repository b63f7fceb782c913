"""What new nodes cost at the least: never more than they do cost, and enough to rule out most tries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import event, given, settings

from tenure.packing.consolidate.pools import Opened, Pools
from tenure.packing.consolidate.question import Candidate, Question
from tenure.packing.demand.steps import at_once
from tenure.packing.index.whatif import Trial, WhatIf
from tests.packing.build import a_pod, a_pool, pods
from tests.packing.consolidate.build import ask, on
from tests.packing.consolidate.test_preferences import APART, OVER_ZONES, WISHES, questions
from tests.packing.demand.test_topology import WEB

FEES = (0.0, 25_000.0)


def tried(question: Question) -> Iterator[tuple[Pools, Trial, Opened | None]]:
    """The pods of each candidate, and of all together."""
    index = WhatIf(question.nodes, preferences=True)
    pools = Pools(question, index, ())
    for _ in pools.reading:
        pass
    groups: list[tuple[Candidate, ...]] = [(one,) for one in question.candidates]
    for going in (*groups, question.candidates):
        trial = index.take_out(one.name for one in going)
        if trial is None:
            continue
        if trial.left:
            yield pools, trial, None
            opened = pools.some(trial, going)
            if opened is not None:
                yield pools, trial, opened
                pools.undo(opened)
        index.undo(trial)


@given(questions([*WISHES, *OVER_ZONES]))
@settings(max_examples=60, deadline=None)
def test_no_plan_is_cheaper_than_the_bound(question: Question) -> None:
    least: list[float] = []
    for pools, trial, opened in tried(question):
        if opened is None:
            least = [at_once(pools.least(trial, fee)) for fee in FEES]
            continue
        event(f"a bound: {least[0] > 0}")
        for bound, fee in zip(least, FEES, strict=True):
            assert bound <= sum(draft.price + fee for draft in opened.drafts) + 1e-3


def _least(question: Question, fee: float = 0.0) -> float:
    pools, trial, _ = next(tried(question))
    return at_once(pools.least(trial, fee))


def test_pods_that_stay_apart_need_a_node_each() -> None:
    """Five small pods fit on the cheapest node together, which costs as much as one for each of them."""
    together = ask(on("a", "m-08", *pods(5, cpu="10m", labels=WEB)))
    apart = ask(on("a", "m-08", *pods(5, cpu="10m", labels=WEB, **APART)))
    cheapest = min(one.price for kind in a_pool().instance_types for one in kind.offerings)
    assert _least(apart) == pytest.approx(5 * cheapest)
    assert _least(apart, 1_000.0) == pytest.approx(5 * (cheapest + 1_000))
    assert _least(together) < cheapest


def test_where_limits_decide_there_is_no_bound() -> None:
    """A preference may be given up then, and the pods fit on nodes."""
    question = ask(on("a", "m-08", a_pod(labels=WEB, **APART)), pools=[a_pool(limits={"cpu": "1"})])
    assert _least(question) == 0.0
