"""Budgets with ``within``: at most so many starts in any such span, for every leader."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.gates.budgets import UNLIMITED, Allowance, allowance, limit
from tenure.core.gates.facts import StartsUnreadable, VelocityUse
from tenure.core.gates.fleet import fleet_of
from tenure.core.gates.reasons import TRAITS, Disruption
from tenure.core.gates.remaining import Remaining, remaining
from tenure.core.marks.starts import COMMITTED_WITHIN
from tenure.model.api.meta import format_time
from tenure.model.api.names import REPLACED_BY, ZONE
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import STARTS_MAX, DisruptionStart, NodePool
from tests.core.build import NOW, a_claim, a_node, a_pool
from tests.snapshots import snapshot_with

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
TWO_AN_HOUR = {"nodes": "2", "within": "1h"}
MOMENT = timedelta(microseconds=1)


def start(at: datetime | str, claim: str = "gone", **labels: str) -> DisruptionStart:
    written = at if isinstance(at, str) else format_time(at)
    keys = {key.replace("zone", ZONE): value for key, value in labels.items()}
    return DisruptionStart(at=written, claim=f"uid-{claim}", reason="Drifted", labels=keys)


def pool_with(*budgets: dict[str, Any], starts: Sequence[DisruptionStart] = ()) -> NodePool:
    status = {"disruptionStarts": msgspec.to_builtins(list(starts))}
    return a_pool(disruption={"budgets": list(budgets)}, status=status)


def asked(
    pool: NodePool,
    *,
    now: datetime = NOW,
    nodes: int = 8,
    node: Node | None = None,
    claim: NodeClaim | None = None,
) -> Allowance:
    pairs = [(a_claim(f"w{i}"), a_node(f"node-w{i}", claim=f"w{i}")) for i in range(nodes)]
    snapshot = snapshot_with(pool, *(thing for pair in pairs for thing in pair))
    fleet, traits = fleet_of("general", snapshot), TRAITS[Disruption.DRIFTED]
    return allowance(pool, traits, node or a_node("node-w0", claim="w0"), fleet, now, claim=claim)


@pytest.mark.parametrize(
    ("minutes_ago", "allowed"),
    [((), 2), ((30,), 1), ((30, 5), 0), ((59, 30, 5), 0), ((61,), 2), ((61, 59), 1)],
)
def test_starts_in_the_span_are_taken_from_the_budget(
    minutes_ago: tuple[int, ...], allowed: int
) -> None:
    starts = [start(NOW - minutes * MINUTE) for minutes in minutes_ago]
    assert asked(pool_with(TWO_AN_HOUR, starts=starts)).allowed == allowed


def test_it_says_when_the_next_may_start() -> None:
    starts = [start(NOW - 30 * MINUTE), start(NOW - 5 * MINUTE)]
    found = asked(pool_with(TWO_AN_HOUR, starts=starts))
    next_at = NOW + 30 * MINUTE + COMMITTED_WITHIN
    assert isinstance(found.why, VelocityUse)
    assert (found.why.next_at, found.changes_at) == (next_at, next_at)
    pool = pool_with(TWO_AN_HOUR, starts=starts)
    assert asked(pool, now=next_at - MOMENT).allowed == 0
    assert asked(pool, now=next_at).allowed == 1


@pytest.mark.parametrize(("nodes", "allowed"), [(1, 1), (10, 1), (11, 2), (0, 0)])
def test_a_percentage_is_rounded_up(nodes: int, allowed: int) -> None:
    assert asked(pool_with({"nodes": "10%", "within": "1h"}), nodes=nodes).allowed == allowed


def test_it_limits_starts_and_not_how_many_leave_at_once() -> None:
    pool = pool_with(TWO_AN_HOUR)
    leaving = [
        (a_claim(f"x{i}", annotations={REPLACED_BY: "y"}), a_node(f"node-x{i}", claim=f"x{i}"))
        for i in range(5)
    ]
    snapshot = snapshot_with(pool, *(thing for pair in leaving for thing in pair))
    fleet, traits = fleet_of("general", snapshot), TRAITS[Disruption.DRIFTED]
    found = allowance(pool, traits, a_node("node-w0", claim="w0"), fleet, NOW)
    assert found.allowed == 2
    assert limit(pool, traits, fleet, NOW) == 2, (
        "for metrics: the starts that it allows in its span"
    )


@pytest.mark.parametrize(
    ("budget", "starts", "allowed"),
    [
        ({"per": ZONE}, [start(NOW, zone="a")], 1),
        ({"per": ZONE}, [start(NOW, zone="b")], 2),
        # Not recorded: it may have been in any zone. Recorded as empty: it had none.
        ({"per": ZONE}, [start(NOW)], 1),
        ({"per": ZONE}, [start(NOW, zone="")], 2),
        ({"selector": [ZONE, "In", "a"]}, [start(NOW, zone="a"), start(NOW, zone="b")], 1),
        ({"selector": [ZONE, "Exists"]}, [start(NOW, zone="")], 1),
        ({"selector": [ZONE, "In", "a"]}, [start(NOW, zone="")], 2),
        ({"selector": [ZONE, "In", "b"]}, [start(NOW, zone="b")] * 3, UNLIMITED),
        ({"reasons": ["Drifted"]}, [start(NOW)], 1),
        ({"reasons": ["Empty"]}, [start(NOW)] * 3, UNLIMITED),
        ({"schedule": "0 12 * * *", "duration": "1h"}, [start(NOW)], 1),
        ({"schedule": "0 13 * * *", "duration": "1h"}, [start(NOW)] * 3, UNLIMITED),
    ],
)
def test_it_combines_with_per_selector_reasons_and_schedule(
    budget: dict[str, Any], starts: list[DisruptionStart], allowed: int
) -> None:
    if "selector" in budget:
        key, operator, *values = budget["selector"]
        one = {"key": key, "operator": operator, "values": values}
        budget = {"selector": {"matchExpressions": [one]}}
    node = a_node("node-w0", claim="w0", labels={ZONE: "a"})
    pool = pool_with({**TWO_AN_HOUR, **budget}, starts=starts)
    assert asked(pool, node=node).allowed == allowed


@pytest.mark.parametrize("at", ["", "soon", "0000", "9999-12-31T23:59:59Z"])
def test_a_start_that_cannot_be_read_closes_budgets_with_within_and_no_other(at: str) -> None:
    starts = [start(at)]
    found = asked(pool_with({"nodes": "100", "within": "1h"}, starts=starts))
    assert (found.allowed, found.why) == (0, StartsUnreadable("general", 1))
    assert asked(pool_with({"nodes": "3"}, starts=starts)).allowed == 3


def test_a_full_record_closes() -> None:
    starts = [start(NOW - 10 * HOUR)] * STARTS_MAX
    found = asked(pool_with({"nodes": "5000", "within": "24h"}, starts=starts))
    assert (found.allowed, found.why) == (0, StartsUnreadable("general"))


def test_its_own_fresh_start_does_not_count_against_a_candidate() -> None:
    starts = [start(NOW - 30 * MINUTE), start(NOW, "w0")]
    pool = pool_with(TWO_AN_HOUR, starts=starts)
    assert asked(pool, claim=a_claim("w0")).allowed == 1
    assert asked(pool, claim=a_claim("w1")).allowed == 0
    later = NOW + COMMITTED_WITHIN
    assert asked(pool, claim=a_claim("w0")).changes_at == later
    assert asked(pool, claim=a_claim("w0"), now=later).allowed == 0, "it was not committed"


def test_a_command_under_way_has_started() -> None:
    starts = [start(NOW), start(NOW), start(NOW)]
    claim = a_claim("w0", annotations={REPLACED_BY: "x"})
    assert asked(pool_with(TWO_AN_HOUR, starts=starts), claim=claim).allowed == UNLIMITED


@given(
    st.lists(st.integers(0, 3 * 60 * 60), min_size=1, max_size=40),
    st.integers(1, 4),
    st.integers(1, 90),
)
def test_no_window_of_the_span_ever_has_more_starts(
    seconds: list[int], nodes: int, minutes: int
) -> None:
    """Each candidate asks at some instant, is recorded, and is committed as late as it may be."""
    budget = {"nodes": str(nodes), "within": f"{minutes}m"}
    starts: list[DisruptionStart] = []
    committed: list[datetime] = []
    for index, second in enumerate(sorted(seconds)):
        now = NOW + timedelta(seconds=second)
        if asked(pool_with(budget, starts=starts), now=now).allowed:
            starts.append(start(now, f"c{index}"))
            committed.append(now + COMMITTED_WITHIN - MOMENT if index % 2 else now)
    committed.sort()
    for first, beyond in zip(committed, committed[nodes:], strict=False):
        assert beyond - first >= minutes * MINUTE


# -- what is left, for the pool as a whole -----------------------------------------------------


def left(
    pool: NodePool,
    *zones: str,
    leaving: int = 0,
    reason: Disruption = Disruption.DRIFTED,
    now: datetime = NOW,
) -> Remaining:
    objects: list[Any] = []
    for index, zone in enumerate(zones):
        marks = {REPLACED_BY: ""} if index < leaving else {}
        objects.append(a_claim(f"w{index}", annotations=marks))
        objects.append(a_node(f"node-w{index}", claim=f"w{index}", labels={ZONE: zone}))
    fleet = fleet_of("general", snapshot_with(pool, *objects))
    return remaining(pool, TRAITS[reason], fleet, now)


IN_A = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}


@pytest.mark.parametrize(
    ("budgets", "starts", "leaving", "nodes"),
    [
        ([], [], 2, UNLIMITED),
        ([{"nodes": "0", "reasons": ["Empty"]}], [], 0, UNLIMITED),
        ([{"nodes": "3"}], [], 1, 2),
        ([{"nodes": "50%"}, {"nodes": "1", "reasons": ["Drifted"]}], [], 0, 1),
        ([{"nodes": "1", "per": ZONE}], [], 0, 2),
        ([{"nodes": "1", "per": ZONE}], [], 1, 1),
        # Two nodes are not in zone a, and are not limited by it.
        ([{"nodes": "0", "selector": IN_A}], [], 0, 2),
        ([TWO_AN_HOUR], [start(NOW)], 0, 1),
        ([{"nodes": "3"}, TWO_AN_HOUR], [start(NOW), start(NOW)], 0, 0),
        ([{**TWO_AN_HOUR, "per": ZONE}], [start(NOW, zone="a")], 0, 3),
        ([{"nodes": "100", "within": "1h"}], [start("soon")], 0, 0),
        ([{"nodes": "some"}], [], 0, 0),
    ],
)
def test_what_is_left_is_what_the_tightest_budget_leaves(
    budgets: list[dict[str, Any]], starts: list[DisruptionStart], leaving: int, nodes: int
) -> None:
    pool = pool_with(*budgets, starts=starts)
    assert left(pool, "a", "a", "b", "b", leaving=leaving).nodes == nodes


def test_the_next_change_is_an_edge_of_a_schedule_or_the_end_of_a_span() -> None:
    freeze = {"nodes": "0", "schedule": "0 11 * * *", "duration": "2h"}
    begun = [start(NOW - 30 * MINUTE)]
    assert left(pool_with(freeze), "a") == Remaining(0, NOW + HOUR)
    ends = NOW + 30 * MINUTE + COMMITTED_WITHIN
    assert left(pool_with(freeze, TWO_AN_HOUR, starts=begun), "a") == Remaining(0, ends)
    pool = pool_with(TWO_AN_HOUR, starts=begun)
    assert left(pool, "a") == Remaining(1, ends)
    assert left(pool, "a", now=ends) == Remaining(2)
    assert left(pool_with({"nodes": "1"}), "a") == Remaining(1)
