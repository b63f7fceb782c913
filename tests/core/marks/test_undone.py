"""A node that pods of consolidated nodes needed after all holds consolidation of its pool."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tenure.core.gates.reasons import CONSOLIDATING, Disruption
from tenure.core.marks.undone import PAUSE, PAUSE_MAX, paused_until, undoing
from tenure.model.api.meta import ApiObject
from tenure.model.api.names import CONSOLIDATION_UNDONE, DISRUPTION_REASON, REPLACED_BY
from tenure.model.snapshot.snapshot import Snapshot
from tests.core.build import NOW, a_claim, a_pool, ago
from tests.snapshots import snapshot_with


def a_leaving_claim(reason: str = Disruption.UNDERUTILIZED, **more: str) -> ApiObject:
    marks = {REPLACED_BY: "", DISRUPTION_REASON: reason, **more}
    return a_claim("old", annotations=marks, deletion_timestamp=ago(5))


def marks(snapshot: Snapshot) -> dict[str, str]:
    return undoing(snapshot, CONSOLIDATING)


def test_a_claim_beside_a_node_that_is_being_consolidated_is_marked() -> None:
    assert marks(snapshot_with(a_pool(), a_claim("a"), a_leaving_claim())) == {"general": "1"}
    assert marks(snapshot_with(a_pool(), a_claim("a"), a_leaving_claim("Drifted"))) == {}
    assert marks(snapshot_with(a_pool(), a_claim("a"))) == {}


def test_each_time_in_a_row_counts_also_that_of_the_node_that_leaves() -> None:
    again = a_leaving_claim(**{CONSOLIDATION_UNDONE: "2"})
    assert marks(snapshot_with(a_pool(), again)) == {"general": "3"}


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
