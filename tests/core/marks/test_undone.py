"""A node that pods of consolidated nodes needed after all holds consolidation of its pool."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tenure.core.gates.reasons import CONSOLIDATING, Disruption
from tenure.core.marks.undone import PAUSE, PAUSE_MAX, paused_until, undoing
from tenure.model.api.meta import ApiObject
from tenure.model.api.names import CONSOLIDATION_UNDONE, DISRUPTION_REASON, REPLACED_BY
from tests.core.build import NOW, a_claim, a_pod, a_pool, ago
from tests.snapshots import snapshot_with


def a_leaving_claim(
    reason: str = Disruption.UNDERUTILIZED, created: int = 3600, **more: str
) -> ApiObject:
    marks = {REPLACED_BY: "", DISRUPTION_REASON: reason, **more}
    return a_claim(
        "old", annotations=marks, creation_timestamp=ago(created), deletion_timestamp=ago(5)
    )


def mark(*objects: ApiObject, came: int = 3) -> str | None:
    """Of a claim that is created now for a pod that came so many seconds ago."""
    found = undoing(snapshot_with(a_pool(), *objects), CONSOLIDATING)
    pod = a_pod(creation_timestamp=ago(came))
    return found.mark("general", [pod]).get(CONSOLIDATION_UNDONE) if found is not None else None


def test_a_claim_beside_a_node_that_is_being_consolidated_is_marked() -> None:
    assert mark(a_claim("a"), a_leaving_claim()) == "1"
    assert mark(a_claim("a"), a_leaving_claim("Drifted")) is None
    assert mark(a_claim("a")) is None


def test_a_claim_for_a_pod_that_was_there_before_undoes_nothing() -> None:
    """A Deployment that grows while nodes are consolidated."""
    assert mark(a_leaving_claim(), came=6) is None
    assert mark(a_leaving_claim(), came=5) == "1"


def test_each_time_in_a_row_counts_also_that_of_the_node_that_leaves() -> None:
    again = a_leaving_claim(created=60, **{CONSOLIDATION_UNDONE: "2"})
    assert mark(again) == "3"


def test_the_count_begins_anew_after_a_quiet_time_as_long_as_the_pause() -> None:
    twice = 2 * 2 * int(PAUSE.total_seconds())
    for created, count in ((twice + 5, "3"), (twice + 6, "1")):
        before = a_claim(
            "b", creation_timestamp=ago(created), annotations={CONSOLIDATION_UNDONE: "2"}
        )
        assert mark(before, a_leaving_claim()) == count


@pytest.mark.parametrize(
    ("written", "lasts"),
    [
        ("1", PAUSE),
        ("2", 2 * PAUSE),
        ("4", 8 * PAUSE),
        ("9", PAUSE_MAX),
        ("99999999999", PAUSE_MAX),
        ("often", PAUSE),
    ],
)
def test_the_pause_doubles_up_to_a_bound(written: str, lasts: timedelta) -> None:
    claim = a_claim("a", creation_timestamp=ago(60), annotations={CONSOLIDATION_UNDONE: written})
    assert paused_until([claim, a_claim("b")]) == claim.created_at + lasts
    assert claim.created_at < NOW
