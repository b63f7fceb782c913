"""The last lines of a copy: what became of the cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tenure.cli.copying.differencetext import difference_json, difference_lines
from tenure.sim.copied.difference import Difference, Scene


def test_the_time_that_has_passed_is_told_in_whole_seconds() -> None:
    """``tenure up`` ends at whatever microsecond Ctrl-C is pressed."""
    at = datetime(2026, 3, 2, 10, tzinfo=UTC)
    before = Scene(at=at, nodes={}, pods={}, pending=0)
    took = timedelta(minutes=4, seconds=29, microseconds=234_701)
    after = Scene(at=at + took, nodes={}, pods={}, pending=0)
    found = Difference(before=before, after=after, gone=(), came=(), disruptions={}, moved=())
    assert "What became of the cluster in 4m29s" in list(difference_lines(found))


def test_what_is_not_done_yet_is_told() -> None:
    """A PDB keeps a node in its drain for two days: neither is it gone, nor is the change rolled out."""
    at = datetime(2026, 3, 2, 10, tzinfo=UTC)
    before = Scene(at=at, nodes={}, pods={}, pending=0)
    after = Scene(at=at, nodes={}, pods={}, pending=0, draining=("n2", "n7"), drifted=3)
    found = Difference(
        before=before, after=after, gone=(), came=(), disruptions={"Drifted": 2}, moved=()
    )
    lines = list(difference_lines(found))
    told = lines.index("  disruptions  2 Drifted")
    assert lines[told + 1 : told + 5] == [
        "    draining   2, not gone yet",
        "               n2",
        "               n7",
        "    drifted    3, not replaced yet",
    ]
    nodes = difference_json(found)["nodes"]
    assert (nodes["draining"], nodes["drifted"]) == (("n2", "n7"), 3)
