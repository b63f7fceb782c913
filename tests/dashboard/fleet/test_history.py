"""What was seen of each node, bounded."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tenure.dashboard.fleet import history
from tenure.dashboard.fleet.history import Recorder
from tenure.dashboard.fleet.values import Frame, History, NodeView, Tone, Totals
from tests.builders import MINUTE, SECOND

START = datetime(2026, 3, 2, 12, tzinfo=UTC)


def a_view(
    name: str, phase: str = "in service", tone: Tone = Tone.SERVING, **more: object
) -> NodeView:
    return NodeView(
        key=f"NodeClaim/{name}",
        name=name,
        phase=phase,
        tone=tone,
        reason=phase,
        because="because",
        created_at=START,
        **more,  # type: ignore[arg-type]
    )


def recorded(*steps: tuple[timedelta, list[NodeView]]) -> History:
    recorder = Recorder()
    for after, views in steps:
        totals = Totals(nodes={Tone.SERVING: len(views)}, price=1000 * len(views))
        recorder.record(Frame(at=START + after, totals=totals, nodes=tuple(views)))
    made = recorder.history()
    assert made is not None
    return made


def test_a_life_is_one_lane_with_its_phases_and_instants() -> None:
    deadline = START + 30 * MINUTE
    found = recorded(
        (0 * SECOND, [a_view("a", "launching", Tone.COMING)]),
        (20 * SECOND, [a_view("a", "booting", Tone.COMING)]),
        (40 * SECOND, [a_view("a", zone="zone-a")]),
        (60 * SECOND, [a_view("a", zone="zone-a")]),
        (5 * MINUTE, [a_view("a", "draining", Tone.LEAVING, deadline=deadline)]),
        (6 * MINUTE, []),
    )
    (lane,) = found.lanes
    assert [
        (one.phase, one.begin - START, one.end and one.end - START) for one in lane.segments
    ] == [
        ("launching", 0 * SECOND, 20 * SECOND),
        ("booting", 20 * SECOND, 40 * SECOND),
        ("in service", 40 * SECOND, 5 * MINUTE),
        ("draining", 5 * MINUTE, 6 * MINUTE),
    ]
    assert [(mark.what, mark.at - START) for mark in lane.marks] == [
        ("created", 0 * SECOND),
        ("launched", 20 * SECOND),
        ("ready", 40 * SECOND),
        ("deadline", 30 * MINUTE),
        ("gone", 6 * MINUTE),
    ]
    assert lane.zone == "zone-a"
    assert [cost.price for cost in found.cost] == [1000, 1000, 1000, 1000, 1000, 0]
    assert (found.since, found.at, found.cut) == (START, START + 6 * MINUTE, False)


def test_gone_nodes_are_forgotten_before_living_ones_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(history, "LANES_MAX", 3)
    found = recorded(
        (0 * SECOND, [a_view("lives"), a_view("gone-1"), a_view("gone-2")]),
        (10 * SECOND, [a_view("lives"), a_view("gone-2")]),
        (20 * SECOND, [a_view("lives")]),
        (30 * SECOND, [a_view("lives"), a_view("new")]),
    )
    assert {lane.name for lane in found.lanes} == {"lives", "gone-2", "new"}
    assert found.cut


def test_many_phases_and_a_long_time_take_no_more_memory() -> None:
    steps = [(number * 10 * SECOND, [a_view("a", f"phase-{number % 2}")]) for number in range(3000)]
    found = recorded(*steps)
    (lane,) = found.lanes
    assert len(lane.segments) == history.SEGMENTS_MAX
    assert found.cut
    assert len(found.cost) <= history.SAMPLES_MAX
    assert found.cost[0].at == START
    assert found.at - found.cost[-1].at < 10 * MINUTE


def test_the_history_of_a_large_old_fleet_has_a_size_that_many_can_ask_for() -> None:
    """2,000 nodes whose lanes are full; each reader who is slow holds a copy of it in the leader's memory."""
    from datetime import UTC, datetime, timedelta

    import msgspec

    from tenure.dashboard.fleet.history import LANES_MAX, SEGMENTS_MAX, Recorder
    from tenure.dashboard.fleet.values import Frame, NodeView, Tone, Totals

    began = datetime(2026, 1, 5, tzinfo=UTC)
    recorder = Recorder()
    for number in range(SEGMENTS_MAX):
        nodes = tuple(
            NodeView(
                key=f"NodeClaim/general-{node:05}",
                name=f"general-{node:05}",
                phase=("in service", "drifted")[number % 2],
                tone=Tone.SERVING,
                reason="InService",
                because="a sentence of two hundred characters " * 6,
                created_at=began,
            )
            for node in range(LANES_MAX)
        )
        at = began + timedelta(minutes=number)
        recorder.record(Frame(at=at, totals=Totals(), nodes=nodes))
    assert len(msgspec.json.encode(recorder.history())) <= 4 * 2**20
