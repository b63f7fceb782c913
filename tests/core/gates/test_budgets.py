"""How many nodes of a pool may be disrupted at once, for which reason, and who is counted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.gates.budgets import UNLIMITED, Allowance, allowance, consuming, limit
from tenure.core.gates.facts import BudgetUnreadable, BudgetUse, NoBudget
from tenure.core.gates.fleet import fleet_of
from tenure.core.gates.reasons import TRAITS, Disruption
from tenure.core.recurrence import Recurrence
from tenure.model.api.meta import ApiObject
from tenure.model.api.names import INITIALIZED, REPLACED_BY, ZONE
from tenure.model.api.node import Node
from tenure.model.api.nodepool import NodePool
from tenure.model.values.cron import Cron
from tests.core.build import (
    DISRUPTED,
    FOREIGN,
    NOW,
    REGISTERED,
    a_claim,
    a_leaving_claim,
    a_leaving_node,
    a_node,
    a_pool,
    condition,
)
from tests.snapshots import snapshot_with

ALL = list(Disruption)
DRIFTED, UNHEALTHY = Disruption.DRIFTED, Disruption.UNHEALTHY
MOMENT = timedelta(microseconds=1)
REBOOTING = (condition("Rebooting"), condition("Initialized", "Unknown", "Rebooting"))

Pair = tuple[ApiObject, ApiObject]


def pool_with(*budgets: dict[str, Any]) -> NodePool:
    return a_pool(disruption={"budgets": list(budgets)})


def pair(name: str, *, claim: dict[str, Any] | None = None, **node: Any) -> Pair:
    return a_claim(name, **(claim or {})), a_node(f"node-{name}", claim=name, **node)


def healthy(count: int) -> list[Pair]:
    return [pair(f"w{index:02}") for index in range(count)]


def leaving(name: str = "x", **fields: Any) -> Pair:
    return a_leaving_claim(name), a_leaving_node(f"node-{name}", claim=name, **fields)


def asked(
    pool: NodePool,
    *pairs: Pair,
    reason: Disruption = DRIFTED,
    node: Node | None = None,
    now: datetime = NOW,
) -> Allowance:
    fleet = fleet_of("general", snapshot_with(pool, *(thing for pair in pairs for thing in pair)))
    return allowance(pool, TRAITS[reason], node or a_node("node-w00"), fleet, now)


def use(nodes: str, limit: int, total: int, **more: Any) -> BudgetUse:
    return BudgetUse(pool="general", nodes=nodes, limit=limit, total=total, **more)


#: The pool has budgets, and none of them applies.
NONE_APPLIES = NoBudget("general", any=True)


# -- how many --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "total", "allowed"),
    [
        ("10%", 1, 1),
        ("10%", 10, 1),
        ("10%", 11, 2),
        ("50%", 3, 2),
        ("100%", 7, 7),
        ("0%", 7, 0),
        ("0", 7, 0),
        ("3", 7, 3),
        ("3", 2, 3),
        ("0" * 12, 7, 0),
        ("0" * 12 + "3", 7, 3),
        ("10%", 0, 0),
        ("9" * 5000, 1, UNLIMITED),
    ],
)
def test_a_share_is_rounded_up_and_a_number_is_that_number(
    nodes: str, total: int, allowed: int
) -> None:
    assert asked(pool_with({"nodes": nodes}), *healthy(total)).allowed == allowed


def test_the_default_is_a_tenth() -> None:
    answer = asked(a_pool(), *healthy(11))
    assert answer == Allowance(2, use("10%", 2, 11))


def test_an_empty_list_sets_no_limit() -> None:
    assert asked(pool_with(), *healthy(2), leaving()) == Allowance(
        UNLIMITED, NoBudget("general", any=False)
    )


def test_the_tightest_wins_and_is_named() -> None:
    answer = asked(pool_with({"nodes": "3"}, {"nodes": "10%"}, {"nodes": "1"}), *healthy(8))
    assert answer == Allowance(1, use("10%", 1, 8))


def test_it_never_falls_below_nothing() -> None:
    answer = asked(a_pool(), *healthy(6), leaving("x"), leaving("y"))
    assert answer == Allowance(
        0,
        use(
            "10%",
            1,
            8,
            leaving=(
                "node-x",
                "node-y",
            ),
        ),
    )


# -- who is counted --------------------------------------------------------------------


@pytest.mark.parametrize("reason", ALL)
@pytest.mark.parametrize(
    "gone",
    [
        leaving(),
        (a_leaving_claim("x"), a_node("node-x", claim="x")),
        (a_claim("x"), a_leaving_node("node-x", claim="x", closed=False)),
        pair("x", taints=(DISRUPTED,)),
        pair("x", claim={"annotations": {REPLACED_BY: "y"}}),
        pair("x", claim={"annotations": {REPLACED_BY: "y"}}, taints=(DISRUPTED,), ready=False),
    ],
    ids=["both", "claim", "node", "tainted", "being-replaced", "everything-at-once"],
)
def test_nodes_that_terminate_count_once_against_every_reason(
    gone: Pair, reason: Disruption
) -> None:
    assert asked(a_pool(), *healthy(7), gone, reason=reason) == Allowance(
        0, use("10%", 1, 8, leaving=("node-x",))
    )


@pytest.mark.parametrize("reason", ALL)
def test_nodes_that_reboot_count_against_every_reason_though_it_is_not_initialized(
    reason: Disruption,
) -> None:
    rebooting = pair("x", claim={"conditions": REBOOTING}, ready=False)
    assert asked(a_pool(), *healthy(7), rebooting, reason=reason) == Allowance(
        0, use("10%", 1, 8, rebooting=("node-x",))
    )


@pytest.mark.parametrize("reason", ALL)
@pytest.mark.parametrize("ready", [False, None])
def test_nodes_that_are_not_ready_count_against_every_reason_but_repair(
    reason: Disruption, ready: bool | None
) -> None:
    answer = asked(a_pool(), *healthy(7), pair("x", ready=ready), reason=reason)
    if reason is UNHEALTHY:
        assert answer == Allowance(1, use("10%", 1, 8))
    else:
        assert answer == Allowance(0, use("10%", 1, 8, not_ready=("node-x",)))


@pytest.mark.parametrize(
    "outsider",
    [
        pair("x", claim={"stage": REGISTERED}, ready=False),
        pair("x", claim={"conditions": (condition("InstanceTerminating"),)}, ready=False),
        pair("x", claim={"ref": FOREIGN}, ready=False),
        pair("x", claim={"labels": {"karpenter.sh/nodepool": "other"}}, ready=False),
        (a_leaving_claim("x"), a_node("node-x", claim="other")),
    ],
    ids=["not-initialized", "ending", "foreign", "of-another-pool", "without-a-node"],
)
def test_nodes_that_do_not_count_are_neither_counted_nor_subtracted(outsider: Pair) -> None:
    assert asked(a_pool(), *healthy(10), outsider) == Allowance(1, use("10%", 1, 10))


def test_the_label_of_the_node_alone_initializes_nothing() -> None:
    labelled = pair("x", claim={"stage": REGISTERED}, labels={INITIALIZED: "true"})
    assert asked(a_pool(), *healthy(10), labelled).why == use("10%", 1, 10)


def test_two_claims_of_one_instance_are_one_node() -> None:
    twin = a_leaving_claim("y", status={"provider_id": "cloud://x"})
    answer = asked(a_pool(), *healthy(7), (*pair("x"),), (twin, a_node("unrelated", claim="u")))
    assert answer.why == use("10%", 1, 8, leaving=("node-x",))


def test_every_node_counts_once() -> None:
    pairs = [leaving(name) for name in "abcde"] + [pair("r", claim={"conditions": REBOOTING})]
    answer = asked(pool_with({"nodes": "9"}), *pairs, pair("u", ready=False))
    assert answer == Allowance(
        2,
        use(
            "9",
            9,
            7,
            leaving=tuple(f"node-{name}" for name in "abcde"),
            rebooting=("node-r",),
            not_ready=("node-u",),
        ),
    )


# -- reasons ---------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ALL)
def test_a_budget_limits_the_reasons_that_it_names(reason: Disruption) -> None:
    answer = asked(pool_with({"nodes": "0", "reasons": ["Drifted", "Expired"]}), reason=reason)
    if reason in (Disruption.DRIFTED, Disruption.EXPIRED):
        assert answer == Allowance(0, use("0", 0, 0, reasons=("Drifted", "Expired")))
    else:
        assert answer == Allowance(UNLIMITED, NONE_APPLIES)


@pytest.mark.parametrize("reason", ALL)
def test_a_budget_that_names_none_limits_all_of_them(reason: Disruption) -> None:
    assert asked(pool_with({"nodes": "0"}), reason=reason).allowed == 0


# -- schedules -------------------------------------------------------------------------

NIGHTLY = {"nodes": "0", "schedule": "0 22 * * *", "duration": "8h"}
TEN_AT_NIGHT = datetime(2026, 3, 2, 22, tzinfo=UTC)
SIX_IN_THE_MORNING = datetime(2026, 3, 3, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    ("at", "closed", "changes_at"),
    [
        (TEN_AT_NIGHT - MOMENT, False, TEN_AT_NIGHT),
        (TEN_AT_NIGHT, True, SIX_IN_THE_MORNING),
        (SIX_IN_THE_MORNING - MOMENT, True, SIX_IN_THE_MORNING),
        (SIX_IN_THE_MORNING, False, TEN_AT_NIGHT + timedelta(days=1)),
    ],
)
def test_a_schedule_begins_at_its_hit_and_is_over_at_its_end_to_the_instant(
    at: datetime, closed: bool, changes_at: datetime
) -> None:
    answer = asked(pool_with(NIGHTLY), *healthy(2), now=at)
    why = use("0", 0, 2, schedule="0 22 * * * for 8h") if closed else NONE_APPLIES
    assert answer == Allowance(0 if closed else UNLIMITED, why, changes_at)


def test_hits_that_overlap_keep_it_on() -> None:
    """Every hour for 90 minutes from 9 to 17: on until 18:30."""
    long = {"nodes": "0", "schedule": "0 9-17 * * *", "duration": "1h30m"}
    answer = asked(pool_with(long), now=NOW)
    assert (answer.allowed, answer.changes_at) == (0, NOW + timedelta(hours=6, minutes=30))
    assert asked(pool_with(long), now=NOW + timedelta(hours=6, minutes=30)).allowed == UNLIMITED


def test_a_schedule_that_never_pauses_never_changes() -> None:
    always = {"nodes": "0", "schedule": "* * * * *", "duration": "24h"}
    answer = asked(pool_with(always), now=NOW)
    assert (answer.allowed, answer.changes_at) == (0, None)


def test_a_day_that_never_comes_limits_nothing() -> None:
    never = {"nodes": "0", "schedule": "0 0 31 2 *", "duration": "8h"}
    assert asked(pool_with(never)) == Allowance(UNLIMITED, NONE_APPLIES)


def test_schedules_are_read_in_their_zone_also_when_the_clocks_change() -> None:
    """In Berlin 9 o'clock is 8:00 UTC in winter and 7:00 UTC from 2026-03-29 on."""
    office = {
        "nodes": "0",
        "schedule": "0 9 * * *",
        "duration": "8h",
        "timeZone": "Europe/Berlin",
    }
    for start in (datetime(2026, 3, 28, 8, tzinfo=UTC), datetime(2026, 3, 29, 7, tzinfo=UTC)):
        before, after = (asked(pool_with(office), now=at) for at in (start - MOMENT, start))
        assert (before.allowed, before.changes_at) == (UNLIMITED, start)
        assert (after.allowed, after.changes_at) == (0, start + timedelta(hours=8))
        assert after.why == use("0", 0, 0, schedule="0 9 * * * for 8h Europe/Berlin")


def test_a_schedule_for_another_reason_says_nothing_about_when_this_one_changes() -> None:
    empty = {**NIGHTLY, "reasons": ["Empty"]}
    assert asked(pool_with({"nodes": "1"}, empty)).changes_at is None
    assert asked(pool_with({"nodes": "1"}, empty), reason=Disruption.EMPTY).changes_at is not None


@given(
    cron=st.sampled_from(["*/7 * * * *", "0 9-17 * * mon-fri", "30 1 * * *", "0 0 1 * *"]),
    minutes=st.sampled_from([0, 1, 7, 8, 61, 24 * 60, 40 * 24 * 60]),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns"]),
    at=st.integers(0, 300 * 24 * 3600).map(lambda seconds: NOW + timedelta(seconds=seconds)),
    share=st.floats(0, 1, exclude_max=True),
)
def test_nothing_changes_before_a_schedule_says(
    cron: str, minutes: int, zone: str, at: datetime, share: float
) -> None:
    read = Cron.parse(cron), timedelta(minutes=minutes), ZoneInfo(zone)
    first = Recurrence(*read).phase(at)
    if first.changes_at is None:  # Its periods overlap for ever.
        assert Recurrence(*read).phase(at + timedelta(days=1000) * share).on
        return
    assert first.changes_at > at
    between = at + (first.changes_at - at) * share
    before = min(between, first.changes_at - MOMENT)
    assert Recurrence(*read).phase(before).on is first.on


# -- per and selector ------------------------------------------------------------------


def zoned(count: int, zone: str) -> list[Pair]:
    return [pair(f"{zone}{index}", labels={ZONE: f"zone-{zone}"}) for index in range(count)]


@pytest.mark.parametrize("key", [ZONE, "failure-domain.beta.kubernetes.io/zone"])
def test_per_counts_the_nodes_of_each_value_apart(key: str) -> None:
    pool = pool_with({"nodes": "1", "per": key})
    fleet = [*zoned(3, "a"), *zoned(2, "b"), leaving("x", labels={ZONE: "zone-a"})]
    in_a = asked(pool, *fleet, node=a_node(labels={ZONE: "zone-a"}))
    assert in_a == Allowance(
        0,
        use("1", 1, 4, per=key, value="zone-a", leaving=("node-x",)),
    )
    in_b = asked(pool, *fleet, node=a_node(labels={ZONE: "zone-b"}))
    assert in_b == Allowance(1, use("1", 1, 2, per=key, value="zone-b"))


def test_nodes_without_the_label_are_a_group_of_their_own() -> None:
    pool = pool_with({"nodes": "1", "per": ZONE})
    fleet = [*zoned(3, "a"), *healthy(1), leaving()]
    assert asked(pool, *fleet, node=a_node()) == Allowance(
        0,
        use("1", 1, 2, per=ZONE, leaving=("node-x",)),
    )


def spot(operator: str, *values: str) -> dict[str, Any]:
    expression = {"key": "karpenter.sh/capacity-type", "operator": operator, "values": values}
    return {"matchExpressions": [expression]}


def test_a_selector_counts_and_limits_only_those_it_selects() -> None:
    pool = pool_with({"nodes": "50%", "selector": spot("In", "spot")})
    labels = {"karpenter.sh/capacity-type": "spot"}
    fleet = [*healthy(9), *(pair(f"s{index}", labels=labels) for index in range(3))]
    assert asked(pool, *fleet, leaving()) == Allowance(UNLIMITED, NONE_APPLIES)
    assert asked(pool, *fleet, leaving("x", labels=labels), node=a_node(labels=labels)) == (
        Allowance(
            1,
            use("50%", 2, 4, selects=True, leaving=("node-x",)),
        )
    )


def test_per_and_selector_go_together() -> None:
    pool = pool_with({"nodes": "1", "per": ZONE, "selector": spot("DoesNotExist")})
    answer = asked(pool, *zoned(2, "a"), *zoned(2, "b"), node=a_node(labels={ZONE: "zone-a"}))
    assert answer.why == use("1", 1, 2, selects=True, per=ZONE, value="zone-a")


# -- what cannot be understood ---------------------------------------------------------


@pytest.mark.parametrize(
    ("broken", "at"),
    [
        ({"nodes": "110%"}, "budgets[1].nodes"),
        ({"nodes": "some"}, "budgets[1].nodes"),
        ({"nodes": "-1"}, "budgets[1].nodes"),
        ({"nodes": "١"}, "budgets[1].nodes"),
        ({"schedule": "0 9 * * *"}, "budgets[1]"),
        ({"duration": "8h"}, "budgets[1]"),
        ({"schedule": "at nine", "duration": "8h"}, "budgets[1].schedule"),
        ({"schedule": "@daily", "duration": "1d"}, "budgets[1].duration"),
        ({"schedule": "@daily", "duration": "-8h"}, "budgets[1].duration"),
        ({"schedule": "@daily", "duration": "8h", "timeZone": "Mars"}, "budgets[1].timeZone"),
        ({"reasons": ["Bored"]}, "budgets[1].reasons[0]"),
        ({"per": "no label!"}, "budgets[1].per"),
        ({"per": "1h"}, "budgets[1].per"),
        ({"within": "25h"}, "budgets[1].within"),
        ({"within": "0h"}, "budgets[1].within"),
        ({"selector": spot("In")}, "budgets[1].selector.matchExpressions[0].values"),
        ({"selector": spot("Like", "x")}, "budgets[1].selector.matchExpressions[0].operator"),
    ],
)
@pytest.mark.parametrize("reason", [UNHEALTHY, DRIFTED])
def test_what_cannot_be_understood_closes_the_pool_and_says_what_it_is(
    broken: dict[str, Any], at: str, reason: Disruption
) -> None:
    pool = pool_with({"nodes": "100%"}, {"nodes": "5", "reasons": ["Empty"]} | broken)
    answer = asked(pool, *healthy(3), reason=reason)
    assert (answer.allowed, answer.changes_at) == (0, None)
    assert isinstance(answer.why, BudgetUnreadable)
    assert answer.why.problem.at == f"spec.disruption.{at}"
    assert limit(pool, TRAITS[reason], fleet_of("general", snapshot_with(pool)), NOW) == 0


# -- the pool as a whole ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("budgets", "most"),
    [
        ([], UNLIMITED),
        ([{"nodes": "10%"}], 1),
        ([{"nodes": "50%"}, {"nodes": "2"}], 2),
        ([{"nodes": "1", "per": ZONE}], 3),
        ([{"nodes": "1", "selector": spot("Exists")}], 6),
        ([{"nodes": "0", "reasons": ["Empty"]}], UNLIMITED),
        ([NIGHTLY], UNLIMITED),
    ],
)
def test_for_the_pool_as_a_whole_groups_add_up(budgets: list[dict[str, Any]], most: int) -> None:
    pool = pool_with(*budgets)
    fleet = [*zoned(3, "a"), *zoned(2, "b"), leaving()]
    snapshot = snapshot_with(pool, *(thing for pair in fleet for thing in pair))
    assert limit(pool, TRAITS[DRIFTED], fleet_of("general", snapshot), NOW) == most


def test_nodes_that_use_budgets_are_counted_by_reason() -> None:
    fleet = [*healthy(2), leaving(), pair("u", ready=False)]
    snapshot = snapshot_with(*(thing for pair in fleet for thing in pair))
    used = {reason: consuming(TRAITS[reason], fleet_of("general", snapshot)) for reason in ALL}
    assert used == {reason: 1 if reason is UNHEALTHY else 2 for reason in ALL}


@given(
    states=st.lists(st.sampled_from(["healthy", "leaving", "unready", "rebooting"]), max_size=12),
    percent=st.integers(0, 100),
    reason=st.sampled_from(ALL),
)
def test_no_more_nodes_are_ever_on_their_way_than_the_budget_says(
    states: list[str], percent: int, reason: Disruption
) -> None:
    """If as many go as are allowed, the budget is full, never more than full by our doing."""
    made = {
        "healthy": lambda name: pair(name),
        "leaving": lambda name: leaving(name),
        "unready": lambda name: pair(name, ready=False),
        "rebooting": lambda name: pair(name, claim={"conditions": REBOOTING}),
    }
    fleet = [made[state](f"n{index:02}") for index, state in enumerate(states)]
    answer = asked(pool_with({"nodes": f"{percent}%"}), *fleet, reason=reason)
    on_their_way = sum(state in ("leaving", "rebooting") for state in states)
    if reason is not UNHEALTHY:
        on_their_way += states.count("unready")
    most = -(-percent * len(states) // 100)
    assert answer.allowed == max(0, most - on_their_way)


def test_a_change_of_another_label_is_no_change_of_the_fleet() -> None:
    pool = pool_with({"nodes": "1", "per": ZONE})
    one, other = (
        fleet_of("general", snapshot_with(pool, *pair("x", labels={ZONE: "a", "job": job})))
        for job in ("web", "batch")
    )
    assert one == other
