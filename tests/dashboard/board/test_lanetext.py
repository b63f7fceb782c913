"""A stretch of a node's life of which no verdict is known, or only its reason, is a whole line all the same."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tenure.dashboard.board.lanetext import lane_text
from tenure.dashboard.fleet.values import Lane, Segment, Tone

AT = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("reason", "because", "line"),
    [
        ("", "", "12:00:00    ● in service for 10m00s so far"),
        ("InService", "", "12:00:00    ● in service for 10m00s so far  InService"),
        ("InService", "x", "12:00:00    ● in service for 10m00s so far  InService: x"),
    ],
    ids=["no-verdict", "forgotten", "told"],
)
def test_a_stretch_without_a_sentence(reason: str, because: str, line: str) -> None:
    segment = Segment(
        begin=AT, phase="in service", tone=Tone.SERVING, reason=reason, because=because
    )
    lane = Lane(key="NodeClaim/a", name="a", pool="general", segments=(segment,))
    assert lane_text(lane, AT + timedelta(minutes=10)).plain.splitlines()[0] == line
