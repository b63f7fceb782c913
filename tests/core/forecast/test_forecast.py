"""What a forecast says of a few nodes: this input, this calendar, these starts, this reason."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from tenure.core.disrupt.expiration import spread_of
from tenure.core.disrupt.facts.candidates import ExpiresByForce
from tenure.core.forecast.facts import BudgetShare
from tenure.core.forecast.forecast import Horizon, forecast
from tenure.core.forecast.result import Forecast, MomentKind, Rotation
from tenure.core.gates.facts import BudgetUnreadable, VoluntaryDisruptionOff
from tenure.core.protect.protection import Protection
from tenure.core.windows.facts import OutsideAllowWindows, WindowBlocks
from tenure.model.api.names import (
    DISRUPTION_REASON,
    DO_NOT_DISRUPT,
    EMPTY_CONDITION,
    REBOOT_GRACE_PERIOD,
    REPLACED_BY,
    REPLACES,
)
from tenure.model.api.nodepool import NodePool
from tenure.model.api.resource import MAINTENANCE_WINDOWS
from tenure.model.api.window import MaintenanceWindow
from tenure.model.settings import Settings
from tests.core.build import (
    DISRUPTED,
    LAUNCHED,
    NOW,
    REGISTERED,
    SETTINGS,
    a_claim,
    a_class,
    a_node,
    a_pod,
    a_pool,
    ago,
    ahead,
    condition,
    meta,
)
from tests.snapshots import snapshot_with

HOUR, DAY, SECOND = timedelta(hours=1), timedelta(days=1), timedelta(seconds=1)
#: What the new nodes of these claims took; and a drain.
BOOT, DRAIN = timedelta(minutes=50), SETTINGS.drain_min
#: From the second evening on it is closed.
NIGHT = {"cron": "0 22 3 3 *", "duration": "48h"}
DRIFTED = condition("Drifted", at=ago(60))


def window(name: str = "nightly", kind: str = "Allow", **spec: Any) -> MaintenanceWindow:
    spec = {"type": kind, "actions": ["Drift"], **spec}
    found = msgspec.convert({"spec": spec}, MaintenanceWindow)
    return msgspec.structs.replace(found, metadata=meta(name))


def nightly(cron: str = "0 2 * * *", duration: str = "2h", **spec: Any) -> MaintenanceWindow:
    return window(schedules=[{"cron": cron, "duration": duration}], **spec)


def nodes(count: int, *, drifted: bool = True, **spec: Any) -> list[Any]:
    """Each with a pod."""
    found: list[Any] = []
    spec = {"expire_after": "Never", **spec}
    for index in range(count):
        name = f"n{index:02}"
        said = [DRIFTED] if drifted else []
        found += [
            a_claim(name, conditions=said, spec=spec),
            a_node(f"node-{name}", claim=name),
            a_pod(f"web-{name}", node=f"node-{name}"),
        ]
    return found


def foretold(
    *objects: Any, days: int = 14, settings: Settings = SETTINGS, **fields: Any
) -> Forecast:
    pools = [] if any(isinstance(one, NodePool) for one in objects) else [a_pool()]
    snapshot = snapshot_with(a_class(), *pools, *objects)
    return forecast(snapshot, settings, NOW, Horizon(days * DAY), **fields)


def starts(found: Forecast) -> list[datetime]:
    return [one.at.replace(microsecond=0) for one in found.starts]


def rotation(found: Forecast) -> Rotation:
    (one,) = found.pools[0].rotations
    return one


def one_at_once(nodes: str = "1", **budget: Any) -> NodePool:
    return a_pool(disruption={"budgets": [{"nodes": nodes, **budget}]})


# -- starts ----------------------------------------------------------------------------------


def test_one_after_the_other_starts_when_the_last_is_gone() -> None:
    found = foretold(one_at_once(), *nodes(3))
    assert starts(found) == [NOW, NOW + BOOT + DRAIN, NOW + 2 * (BOOT + DRAIN)]
    assert [one.claim for one in found.starts] == ["n00", "n01", "n02"]
    assert (found.peak.nodes, found.pools[0].peak.nodes) == (1, 1)
    last = found.starts[-1].ends_at
    assert last is not None
    assert last.replace(microsecond=0) == NOW + 3 * (BOOT + DRAIN)


def test_drift_waits_for_the_night_and_none_starts_that_would_not_be_up_in_time() -> None:
    found = foretold(one_at_once(), *nodes(5), nightly())
    first = NOW + 14 * HOUR
    assert found.windows[0].changes[:3] == (first, first + 2 * HOUR, first + DAY)
    assert len(found.windows[0].changes) == 28
    # The second night the third and fourth; a third would be up at 04:30.
    each = BOOT + DRAIN
    assert starts(found) == [
        *(first, first + each),
        *(first + DAY, first + DAY + each),
        first + 2 * DAY,
    ]
    assert (rotation(found).started, rotation(found).waiting) == (5, 0)


def test_empty_nodes_need_no_replacement_and_come_first() -> None:
    empty = [
        a_claim("z", conditions=[DRIFTED], spec={"expire_after": "Never"}),
        a_node("node-z", claim="z"),
    ]
    found = foretold(one_at_once(), *nodes(1), *empty)
    assert [(one.claim, one.replaced) for one in found.starts] == [("z", False), ("n00", True)]
    assert starts(found) == [NOW, NOW + DRAIN]


def test_a_budget_by_velocity_paces_the_starts() -> None:
    found = foretold(one_at_once("2", within="3h"), *nodes(5))
    span = 3 * HOUR + 15 * SECOND
    assert starts(found) == [NOW, NOW, NOW + span, NOW + span, NOW + 2 * span]


def test_a_percentage_counts_new_nodes_once_they_are_initialized() -> None:
    """A tenth of 11 nodes is 2."""
    found = foretold(one_at_once("10%"), *nodes(10), days=1)
    assert starts(found)[:3] == [NOW, NOW + BOOT, NOW + 2 * BOOT]
    assert found.peak.nodes == 2


def test_a_budget_with_a_schedule_opens_and_closes() -> None:
    pool = a_pool(
        disruption={
            "budgets": [
                {"nodes": "0", "schedule": "0 8 * * *", "duration": "8h"},
                {"nodes": "1"},
            ]
        }
    )
    found = foretold(pool, *nodes(1), days=1)
    assert starts(found) == [NOW + 4 * HOUR]
    (budget,) = found.budgets
    assert (budget.active, budget.changes) == (True, (NOW + 4 * HOUR, NOW + 20 * HOUR))


def test_each_zone_has_its_own_share() -> None:
    objects = nodes(4)
    for index, node in enumerate(objects[1::3]):
        labels = {**node.labels, "topology.kubernetes.io/zone": f"zone-{index % 2}"}
        objects[3 * index + 1] = msgspec.structs.replace(
            node, metadata=msgspec.structs.replace(node.metadata, labels=labels)
        )
    found = foretold(one_at_once(per="topology.kubernetes.io/zone"), *objects)
    assert [one.claim for one in found.starts] == ["n00", "n01", "n02", "n03"]
    assert starts(found) == [NOW, NOW, NOW + BOOT + DRAIN, NOW + BOOT + DRAIN]


# -- expiry ----------------------------------------------------------------------------------


def test_nodes_expire_at_the_second_that_their_uid_says() -> None:
    found = foretold(*nodes(3, drifted=False, expire_after="48h"), days=3)
    made = ago(3600)
    due = sorted(made + 48 * HOUR - spread_of(f"uid-n{index:02}", 48 * HOUR) for index in range(3))
    assert [one.at for one in found.expiries] == due
    assert starts(found)[0] == due[0]
    assert {one.reason for one in found.starts} == {"Expired"}


def test_with_always_they_expire_together_and_their_replacements_in_their_turn() -> None:
    pool = a_pool(
        disruption={"expirationPolicy": "Always", "budgets": [{"nodes": "1"}]},
        template={"expireAfter": "12h"},
    )
    found = foretold(pool, *nodes(2, drifted=False, expire_after="12h"), days=1)
    assert starts(found)[:2] == [NOW + 11 * HOUR] * 2
    assert [one.generation for one in found.starts] == [0, 0, 1, 1]
    assert not any(one.approximate for one in found.starts)


def test_a_replacement_of_one_that_expires_when_allowed_is_about_right() -> None:
    pool = a_pool(template={"expireAfter": "20h"})
    found = foretold(pool, *nodes(1, drifted=False, expire_after="20h"), days=3)
    assert [one.generation for one in found.starts] == [0, 1, 2]
    assert [one.approximate for one in found.starts] == [False, True, True]


def test_a_node_that_pods_blocked_is_replaced_and_its_replacement_expires_in_its_turn() -> None:
    pool = a_pool(template={"expireAfter": "20h"})
    found = foretold(pool, *protected("5h", expire_after="Never"), days=2)
    assert [(one.reason, one.generation) for one in found.starts] == [
        ("Drifted", 0),
        ("Expired", 1),
        ("Expired", 2),
    ]


# -- what blocks -----------------------------------------------------------------------------


def test_a_window_that_is_never_active_lets_nothing_start_and_the_reason_is_named() -> None:
    found = foretold(*nodes(2), nightly("0 0 31 2 *"))
    assert (found.starts, found.windows[0].never) == ((), True)
    stuck = rotation(found)
    assert (stuck.due, stuck.started, stuck.waiting, stuck.never) == (2, 0, 2, 2)
    ((count, why),) = stuck.why
    assert count == 2
    assert isinstance(why, OutsideAllowWindows)


def test_late_nodes_are_counted_against_expire_after() -> None:
    """Two of five go within the window of the week, and it has one."""
    weekly = nightly("0 2 * * 0", actions=["Expiration"])
    found = foretold(one_at_once(), *nodes(5, drifted=False, expire_after="24h"), weekly, days=7)
    late = rotation(found)
    assert (late.due, late.started, late.waiting, late.late, late.never) == (5, 2, 3, 5, 0)
    assert late.longest > 4 * DAY
    # The last still waits at the end, and was to go after 24h, of which one had passed.
    assert late.late_by == 6 * DAY + HOUR


def test_a_block_window_with_dates_delays_until_its_end() -> None:
    freeze = window(
        "freeze", "Block", dates=[{"from": "2026-03-01T00:00:00Z", "until": "2026-03-05T06:00:00Z"}]
    )
    found = foretold(*nodes(1), freeze)
    assert starts(found) == [datetime.fromisoformat("2026-03-05T06:00:00Z")]


def test_one_that_is_open_all_the_time_for_another_action_changes_nothing() -> None:
    assert starts(foretold(*nodes(1), window(actions=["Expiration"]))) == [NOW]
    assert starts(foretold(*nodes(1), window("freeze", "Block", actions=["Repair"]))) == [NOW]


def test_an_invalid_window_blocks_and_the_note_says_so() -> None:
    bad = window("bad", "Block", schedules=[{"cron": "* *", "duration": "1h"}])
    found = foretold(*nodes(1), bad)
    assert found.starts == ()
    assert "MaintenanceWindow bad is invalid and blocks for ever" in found.notes[0]
    assert rotation(found).never == 1


def test_windows_that_cannot_be_listed_block_everything() -> None:
    snapshot = snapshot_with(a_class(), a_pool(), *nodes(1))
    snapshot._tables.list_failed(MAINTENANCE_WINDOWS, "forbidden")
    found = forecast(snapshot, SETTINGS, NOW)
    assert found.starts == ()
    assert "cannot be listed: forbidden" in found.notes[0]


def test_switched_off_nothing_starts() -> None:
    off = msgspec.structs.replace(SETTINGS, voluntary_disruption=False)
    found = foretold(*nodes(1), settings=off)
    assert found.starts == ()
    assert "switched off" in found.notes[0]
    ((_, why),) = rotation(found).why
    assert isinstance(why, VoluntaryDisruptionOff)


def test_a_budget_that_cannot_be_read_closes_the_pool() -> None:
    found = foretold(one_at_once("many"), *nodes(1))
    assert found.starts == ()
    assert "budgets[0]" in found.pools[0].problem
    ((_, why),) = rotation(found).why
    assert not isinstance(why, BudgetUnreadable | WindowBlocks)


def test_a_budget_of_none_is_never() -> None:
    stuck = rotation(foretold(one_at_once("0"), *nodes(3)))
    assert (stuck.waiting, stuck.never) == (3, 3)
    assert str(stuck.why[0][1]) == (
        "a budget of NodePool general (0 of 3 nodes) allows 0 disrupted at once"
    )


def test_static_pools_are_candidates_of_nothing() -> None:
    found = foretold(a_pool(replicas=2), *nodes(2))
    assert (found.starts, found.pools[0].rotations) == ((), ())
    assert "spec.replicas" in found.pools[0].problem


# -- protections -----------------------------------------------------------------------------


def protected(value: str, **spec: Any) -> list[Any]:
    objects = nodes(1, **spec)
    pod = a_pod("web-n00", node="node-n00", annotations={DO_NOT_DISRUPT: value})
    return [*objects[:2], pod]


def test_a_protected_pod_delays_the_start_until_its_end_is_reached() -> None:
    found = foretold(*protected("5h"))
    (end,) = [one.at for one in found.moments if one.kind is MomentKind.PROTECTION]
    assert end == NOW + 4 * HOUR
    assert starts(found) == [end]


def test_a_protection_without_an_end_is_never() -> None:
    stuck = rotation(foretold(*protected("true")))
    assert (stuck.waiting, stuck.never) == (1, 1)
    assert isinstance(stuck.why[0][1], Protection)


def test_with_a_grace_period_it_starts_and_its_drain_lasts_that_long() -> None:
    found = foretold(*protected("true", termination_grace_period="6h"))
    (start,) = found.starts
    assert start.at == NOW
    assert start.ends_at == NOW + BOOT + 6 * HOUR


def test_a_node_that_one_method_may_take_does_not_wait_for_another() -> None:
    """A grace period ends a drain for drift; a recommendation is not that urgent."""
    claim, node, pod = protected("true", termination_grace_period="6h")
    said = (*claim.status.conditions, condition("RebalanceRecommended", at=ago(60)))
    claim = msgspec.structs.replace(
        claim, status=msgspec.structs.replace(claim.status, conditions=said)
    )
    found = foretold(claim, node, pod)
    assert [one.reason for one in found.starts] == ["Drifted"]
    assert [one.waiting for one in found.pools[0].rotations] == [0, 0]


def test_a_node_with_two_reasons_is_a_candidate_of_both_and_starts_or_waits_for_one() -> None:
    """Drifted now, and expired before the window of either comes; one starts in it."""
    sunday = nightly("0 2 * * 0", "55m", actions=["Drift", "Expiration"])
    found = foretold(one_at_once(), *nodes(2, expire_after="72h"), sunday, days=7)
    expired, drifted = found.pools[0].rotations
    assert (expired.reason, drifted.reason) == ("Expired", "Drifted")
    assert (drifted.now, drifted.due, drifted.started, drifted.waiting) == (2, 2, 0, 0)
    assert drifted.otherwise == 2
    assert (expired.due, expired.started, expired.waiting, expired.otherwise) == (2, 1, 1, 0)
    ((_, why),) = expired.why
    (begun,) = found.starts
    assert isinstance(why, OutsideAllowWindows)
    assert why.node != f"node-{begun.claim}", "the one that waits is named"
    assert why.opens > found.until, "and the next night, not the end of the forecast"


# -- what has begun, and what no replica has said yet ---------------------------------------


def test_a_claim_that_no_replica_has_marked_yet_is_a_candidate_from_now_on() -> None:
    found = foretold(*nodes(1, drifted=False), unsaid={"Drifted": frozenset({"n00"})})
    assert starts(found) == [NOW]
    claim, node, _ = nodes(1, drifted=False)
    pool = a_pool(disruption={"consolidateAfter": "30m"})
    found = foretold(pool, claim, node, unsaid={EMPTY_CONDITION: frozenset({"n00"})})
    assert starts(found) == [ahead(1800)]


def test_a_node_that_comes_up_is_said_to_be_foreseen_later() -> None:
    """Without a word a replacement that is being launched looks as if it never expired."""
    new = a_claim("n99", stage=LAUNCHED, spec={"expire_after": "1h"})
    (note,) = foretold(new, days=2).notes
    assert note == "nothing is foreseen of 1 new node until it is initialized: n99"
    assert foretold(*nodes(1), days=2).notes == ()


def test_a_node_that_terminates_uses_the_budget_until_it_is_gone() -> None:
    gone = a_claim("z", deletion_timestamp=ago(2), spec={"expire_after": "Never"})
    found = foretold(one_at_once(), *nodes(1), gone, a_node("node-z", claim="z"))
    assert starts(found) == [NOW + DRAIN - 2 * SECOND]


def first_night(found: Forecast) -> bool:
    """Whether the first start is at the opening of the window."""
    return starts(found)[:1] == [NOW + 14 * HOUR]


def test_a_replacement_that_comes_up_keeps_no_place_until_the_night() -> None:
    """Registered and not Ready: of the node that it replaces the end is known."""
    marks = {REPLACED_BY: "new", DISRUPTION_REASON: "Drifted"}
    old = a_claim("z", conditions=[DRIFTED], spec={"expire_after": "Never"}, annotations=marks)
    new = a_claim(
        "new",
        stage=REGISTERED,
        annotations={REPLACES: "uid-z"},
        creation_timestamp=ago(30),
        spec={"expire_after": "Never"},
    )
    leaving = a_node("node-z", claim="z", taints=[DISRUPTED])
    coming = a_node("node-new", claim="new", ready=False, creation_timestamp=ago(20))
    pool = one_at_once("10%")
    found = foretold(pool, *nodes(7), old, leaving, new, coming, nightly())
    assert first_night(found)
    # Alone, too: before it is initialized no budget counts it.
    assert first_night(foretold(pool, *nodes(7), new, coming, nightly()))


def test_a_command_that_is_rolled_back_gives_its_place_back_now() -> None:
    """The mark of the claim is gone, and the taint of its Node is not yet."""
    claim = a_claim("z", spec={"expire_after": "Never"})
    tainted = a_node("node-z", claim="z", taints=[DISRUPTED])
    found = foretold(one_at_once("10%"), *nodes(7), claim, tainted, nightly())
    assert first_night(found)
    assert starts(foretold(one_at_once("10%"), *nodes(7), claim, tainted))[0] == NOW
    # One that is not Ready keeps it all the same.
    broken = a_node("node-z", claim="z", taints=[DISRUPTED], ready=False)
    assert foretold(one_at_once("10%"), *nodes(7), claim, broken).starts == ()


def test_a_command_whose_replacement_is_gone_gives_its_place_back_now() -> None:
    marks = {REPLACED_BY: "lost", DISRUPTION_REASON: "Empty"}
    claim = a_claim("z", spec={"expire_after": "Never"}, annotations=marks)
    tainted = a_node("node-z", claim="z", taints=[DISRUPTED])
    found = foretold(one_at_once("10%"), *nodes(7), claim, tainted)
    assert starts(found)[0] == NOW


def test_a_node_that_reboots_is_back_at_its_bound_at_the_latest() -> None:
    bound, back = timedelta(minutes=5), timedelta(minutes=20)
    asked = condition("Rebooting", "True", "RebootRequested", at=ago(60))
    drains = a_claim(
        "z",
        conditions=[asked],
        annotations={REBOOT_GRACE_PERIOD: "5m"},
        spec={"expire_after": "Never"},
    )
    node = a_node("node-z", claim="z")
    found = foretold(one_at_once("10%"), *nodes(7), drains, node)
    assert starts(found)[0] == ago(60) + bound + back
    issued = condition("RebootIssued", "True", "RebootIssued", at=ago(30))
    boots = a_claim("z", conditions=[asked, issued], spec={"expire_after": "Never"})
    found = foretold(one_at_once("10%"), *nodes(7), boots, node)
    assert starts(found)[0] == ago(30) + back
    assert first_night(foretold(one_at_once("10%"), *nodes(7), boots, node, nightly()))


def test_a_node_that_is_not_ready_keeps_its_place_and_is_named_instead_of_the_window() -> None:
    """It was initialized; nothing says when it is Ready again."""
    claim = a_claim("z", spec={"expire_after": "Never"})
    broken = a_node("node-z", claim="z", ready=False)
    found = foretold(one_at_once("10%"), *nodes(7), claim, broken, nightly())
    assert found.starts == ()
    stuck = rotation(found)
    assert (stuck.waiting, stuck.never) == (7, 0)
    ((count, why),) = stuck.why
    assert (count, type(why)) == (7, BudgetShare)
    assert str(why) == (
        "a budget of NodePool general (10% of 8 nodes) allows 1 disrupted at once; "
        "1 is in use with no known end: Node node-z (not Ready)"
    )
    # With room for one more it only slows them down.
    assert first_night(foretold(one_at_once("2"), *nodes(7), claim, broken, nightly()))


def test_a_drain_without_an_end_is_named_instead_of_the_window() -> None:
    gone = a_claim("z", deletion_timestamp=ago(2), spec={"expire_after": "Never"})
    pod = a_pod("db", node="node-z", annotations={DO_NOT_DISRUPT: "true"})
    pool = one_at_once("10%")
    found = foretold(pool, *nodes(7), gone, a_node("node-z", claim="z"), pod, nightly())
    ((_, why),) = rotation(found).why
    assert isinstance(why, BudgetShare)
    assert why.kept == (("node-z", "draining"),)


def test_a_budget_of_none_is_named_instead_of_the_window_that_opens_each_night() -> None:
    stuck = rotation(foretold(one_at_once("0"), *nodes(3), nightly()))
    assert (stuck.waiting, stuck.never) == (3, 3)
    ((_, why),) = stuck.why
    assert isinstance(why, BudgetShare)


def test_a_window_that_never_opens_is_named_although_the_budget_is_used_up() -> None:
    claim, broken = a_claim("z"), a_node("node-z", claim="z", ready=False)
    found = foretold(one_at_once("10%"), *nodes(7), claim, broken, nightly("0 0 31 2 *"))
    whys = [type(why) for one in found.pools[0].rotations for _, why in one.why]
    assert OutsideAllowWindows in whys


def test_a_node_that_has_just_become_a_candidate_at_the_end_is_in_time() -> None:
    """Another one has waited for its window since the beginning, and is not."""
    freeze = window("freeze", "Block", actions=["Expiration"], schedules=[NIGHT])
    new = rotation(foretold(*nodes(1, drifted=False, expire_after="49h5m"), freeze, days=2))
    assert (new.waiting, new.overdue, new.late, new.in_time) == (1, 0, 0, True)
    old = rotation(foretold(*nodes(1), nightly("0 2 * * 0"), days=2))
    assert (old.waiting, old.overdue, old.never, old.in_time) == (1, 1, 0, False)


@pytest.mark.parametrize("days", [1, 14, 90])
def test_nothing_starts_after_the_horizon(days: int) -> None:
    found = foretold(one_at_once(), *nodes(3), nightly("0 2 * * 3"), days=days)
    assert found.until == NOW + days * DAY
    assert all(one.at <= found.until for one in found.starts)


# -- beside Karpenter --------------------------------------------------------------------------

BESIDE = msgspec.structs.replace(SETTINGS, beside_karpenter=True)


def test_beside_karpenter_the_nodes_that_karpenter_expires_by_force_are_foreseen() -> None:
    found = foretold(*nodes(2, expire_after="120h"), settings=BESIDE)
    at = {one.at for one in found.moments}
    assert [one.kind for one in found.moments] == [MomentKind.FORCED_EXPIRY] * 2
    assert at == {a_claim("n00").created_at + 5 * DAY}, (
        "not a second earlier: Karpenter spreads nothing"
    )
    assert all(isinstance(one.what, ExpiresByForce) for one in found.moments)
    assert [(one.name, one.expired_by_force) for one in found.pools] == [("general", 2)]
    assert not found.starts


def test_beside_karpenter_no_expiry_after_the_end_of_the_forecast_is_told() -> None:
    found = foretold(*nodes(2, expire_after="720h"), settings=BESIDE)
    assert (found.moments, found.pools[0].expired_by_force) == ((), 0)


def test_beside_karpenter_it_is_said_that_drift_and_consolidation_are_not_foreseen() -> None:
    (note,) = foretold(*nodes(1), settings=BESIDE).notes
    assert note.startswith("drift, emptiness and consolidation are Karpenter's")
    assert foretold(*nodes(1)).notes == ()


def test_in_charge_the_same_nodes_expire_by_choice() -> None:
    found = foretold(*nodes(2, expire_after="120h"))
    assert (found.moments, len(found.expiries)) == ((), 2)
    assert found.pools[0].expired_by_force == 0
