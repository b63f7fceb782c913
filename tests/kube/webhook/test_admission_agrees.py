"""The webhook and the status can never disagree: whatever one refuses, the other says."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.claim.decider import LifecycleDecider
from tenure.core.decider import Decider
from tenure.core.decision import Patch
from tenure.core.pool.status import PoolDecider
from tenure.core.reasons import Reason
from tenure.core.windows.status import WindowDecider
from tenure.model.api.meta import ApiObject
from tenure.model.snapshot.kinds import type_for
from tenure.sim.apiserver.objects.kinds import BY_KIND
from tests.core.build import evaluated
from tests.kube.reviews import Json, a_review, admission
from tests.schema.objects import an_object
from tests.schema.test_problems import (
    BAD_CLAIMS,
    BAD_DISRUPTIONS,
    BAD_REPAIRS,
    BAD_SELECTORS,
    BAD_TEMPLATES,
    BAD_WINDOWS,
    GOOD_TEMPLATES,
)

MAY_DAY = datetime(2026, 5, 1, 12, tzinfo=UTC)
FINALIZERS = ["karpenter.sh/termination"]
VALIDITY = ("ValidationSucceeded", "DisruptionValid", "RepairValid", "Valid")
DECIDERS: dict[str, Decider[Any]] = {
    "NodePool": PoolDecider(),
    "NodeClaim": LifecycleDecider(),
    "MaintenanceWindow": WindowDecider(),
}


def refused(obj: Json) -> list[str]:
    _, reviewed = admission().answer(a_review(obj), MAY_DAY)
    return [str(problem) for problem in reviewed.problems]


def stored(obj: Json) -> ApiObject:
    metadata = {**obj["metadata"], "uid": "u", "resourceVersion": "7", "finalizers": FINALIZERS}
    resource = BY_KIND[obj["apiVersion"], obj["kind"]]
    return msgspec.convert({**obj, "metadata": metadata}, type_for(resource))


def status_says(obj: Json) -> str:
    """The messages of the conditions that are not as they should be, one after the other."""
    kind = obj["kind"]
    (verdict,) = evaluated(DECIDERS[kind], stored(obj))
    while isinstance(verdict.action, Patch) and not verdict.action.subresource:
        obj["metadata"] |= verdict.action.body["metadata"]  # It is stamped first, then evaluated.
        (verdict,) = evaluated(DECIDERS[kind], stored(obj))
    if kind == "NodeClaim":
        return verdict.message if verdict.reason is Reason.LAUNCH_FAILED else ""
    assert isinstance(verdict.action, Patch)
    conditions = verdict.action.body["status"]["conditions"]
    said = [c for c in conditions if c["type"] in VALIDITY and c["status"] == "False"]
    said.sort(key=lambda condition: VALIDITY.index(condition["type"]))
    return "; ".join(condition["message"] for condition in said)


#: What the provider watches only the status knows, so these are let in, with a warning.
UNWATCHED = "a condition that is not watched"
MISSPELT = "a misspelt condition"
POOL_CASES = [
    (says, changes)
    for says, changes, _ in BAD_TEMPLATES + BAD_DISRUPTIONS + BAD_REPAIRS
    if says not in (UNWATCHED, MISSPELT)
]
CASES = [
    *(("NodePool", *case) for case in POOL_CASES + GOOD_TEMPLATES),
    *(("MaintenanceWindow", *case[:2]) for case in BAD_WINDOWS + BAD_SELECTORS),
    *(("NodeClaim", *case[:2]) for case in BAD_CLAIMS),
    *((kind, "fine", {}) for kind in DECIDERS),
]


@pytest.mark.parametrize(
    ("kind", "changes"), [pytest.param(kind, c, id=f"{kind}: {says}") for kind, says, c in CASES]
)
def test_what_is_refused_is_what_the_status_says(kind: str, changes: Json) -> None:
    assert "; ".join(refused(an_object(kind, changes))) == status_says(an_object(kind, changes))


def test_what_depends_on_the_provider_is_let_in_with_a_warning_and_the_status_says_it() -> None:
    (changes,) = (changes for says, changes, _ in BAD_REPAIRS if says == UNWATCHED)
    pool = an_object("NodePool", changes)
    answer, reviewed = admission().answer(a_review(pool), MAY_DAY)
    assert not reviewed.problems
    assert b"which status of GpuBroken means unhealthy" in answer
    assert "does not watch GpuBroken" in status_says(pool)


@given(changes=st.lists(st.sampled_from(POOL_CASES + GOOD_TEMPLATES), max_size=4))
def test_so_it_is_for_mistakes_that_come_together(changes: list[tuple[str, Json]]) -> None:
    together: dict[str, Any] = {}
    for _, change in changes:
        together |= change
    said = status_says(an_object("NodePool", together))
    assert "; ".join(refused(an_object("NodePool", together)))[:1000] == said[:1000]


def apart(cases: list[tuple[str, Json]]) -> list[Json]:
    """Those that change different places, so that taking one away mends nothing but itself."""
    chosen: list[Json] = []
    for _, change in cases:
        taken = [path for each in chosen for path in each]
        if not any(a.startswith(b) or b.startswith(a) for a in change for b in taken):
            chosen.append(change)
    return chosen


@given(
    cases=st.lists(st.sampled_from(POOL_CASES), max_size=6),
    mended=st.sets(st.integers(0, 5)),
    weight=st.integers(1, 100),
)
def test_a_change_that_only_mends_is_never_refused(
    cases: list[tuple[str, Json]], mended: set[int], weight: int
) -> None:
    before: Json = {}
    after: Json = {"spec.weight": weight}
    for index, change in enumerate(apart(cases)):
        before |= change
        after |= change if index not in mended else {}
    review = a_review(an_object("NodePool", after), old=an_object("NodePool", before))
    assert admission().answer(review, MAY_DAY)[1].problems == ()
