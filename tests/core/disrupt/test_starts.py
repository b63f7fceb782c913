"""A start is recorded in the pool's status before it is committed, where a budget counts starts."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from tenure.core.decision import Ground, Patch, Verdict
from tenure.core.disrupt.facts.planning import StartRecorded
from tenure.core.disrupt.pipeline import DisruptionDecider
from tenure.core.gates.facts import StartsUnreadable, VelocityUse
from tenure.core.gates.remaining import PoolBudgets
from tenure.core.marks.command import begin
from tenure.core.marks.starts import COMMITTED_WITHIN, departures_in, kept
from tenure.core.pool.status import PoolDecider
from tenure.core.reasons import Reason
from tenure.core.writes import delete_claim
from tenure.model.api.meta import Condition, format_time
from tenure.model.api.names import (
    DISRUPTION_REASON,
    INITIALIZED,
    NODEPOOL,
    REPLACED_BY,
    REPLACES,
    STARTED_AT,
    ZONE,
)
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import STARTS_MAX, NodePool
from tenure.model.snapshot.observations import Observations
from tenure.model.snapshot.unreadable import stand_in
from tenure.providers.kwok.repairs import kwok_statements
from tenure.runtime.executor.guard import veto
from tenure.runtime.executor.handlers import stamped
from tests.core.build import (
    DISRUPTED,
    NOW,
    a_claim,
    a_class,
    a_node,
    a_pool,
    about,
    ago,
    ahead,
    body_of,
    condition,
    evaluated,
    fact_of,
    types,
)
from tests.properties.deciderchecks import check_honest_recheck
from tests.snapshots import snapshot_with

HOURLY = {"nodes": "2", "within": "1h"}
GRACEFUL = {"maxUnhealthy": 9, "terminationMode": "Graceful"}
Start = dict[str, Any]


def start(claim: str, at: datetime | str = NOW, reason: str = "Drifted", **labels: str) -> Start:
    written = at if isinstance(at, str) else format_time(at)
    found: Start = {"at": written, "claim": f"uid-{claim}", "reason": reason}
    return {**found, "labels": labels} if labels else found


def the_pool(*starts: Start, budgets: tuple[dict[str, Any], ...] = (HOURLY,)) -> NodePool:
    status = {"disruptionStarts": list(starts)}
    return a_pool(disruption={"budgets": list(budgets)}, status=status, repair=GRACEFUL)


def unhealthy(name: str = "a", type_: str = "KWOKUnhealthy", **fields: Any) -> Node:
    told = Condition(type=type_, status="True", reason="T", last_transition_time=ago(60))
    ready = (condition("Ready"), told)
    return a_node(f"node-{name}", claim=name, status={"conditions": ready}, **fields)


def planned(pool: NodePool, *names: str, now: datetime = NOW, **node: Any) -> list[Verdict]:
    objects = [thing for name in names for thing in (a_claim(name), unhealthy(name, **node))]
    known: dict[str, Any] = {"repair_statements": kwok_statements(), "instance_types": types()}
    return evaluated(DisruptionDecider(), a_class(), pool, *objects, now=now, **known)


def recorded(found: list[Verdict]) -> list[Start] | None:
    verdict = about(found, "NodePool/general")
    return body_of(verdict)["status"]["disruptionStarts"] if verdict.action is not None else None


# -- before the commit ---------------------------------------------------------------------


def test_a_start_is_recorded_and_then_committed() -> None:
    before = start("gone", ago(600))
    first = planned(the_pool(before), "a")
    assert recorded(first) == [before, {"claim": "uid-a", "reason": "Unhealthy"}]
    waiting = about(first, "NodeClaim/a")
    assert (waiting.reason, waiting.action) == (Reason.REPLACING, None)
    assert fact_of(waiting, StartRecorded).pool == "general"
    then = planned(the_pool(before, start("a", ago(1))), "a")
    assert recorded(then) is None
    assert body_of(about(then, "NodeClaim/a"))["metadata"]["annotations"][REPLACED_BY] == ""


def test_a_reboot_is_recorded_as_well() -> None:
    first = planned(the_pool(), "a", type_="KWOKRebootRequired")
    assert recorded(first) == [{"claim": "uid-a", "reason": "Unhealthy"}]
    assert about(first, "NodeClaim/a").action is None
    then = planned(the_pool(start("a")), "a", type_="KWOKRebootRequired")
    assert isinstance(about(then, "NodeClaim/a").action, Patch)


def test_a_record_that_was_not_committed_in_time_is_made_anew() -> None:
    old = start("a", NOW - COMMITTED_WITHIN)
    found = planned(the_pool(old), "a")
    assert recorded(found) == [old, {"claim": "uid-a", "reason": "Unhealthy"}]


def again(pool: NodePool, used: str) -> list[Verdict]:
    """A command of the claim was rolled back; ``used``: under which instant it had begun."""
    objects = [a_claim("a", annotations={STARTED_AT: used}), unhealthy("a")]
    known: dict[str, Any] = {"repair_statements": kwok_statements(), "instance_types": types()}
    return evaluated(DisruptionDecider(), a_class(), pool, *objects, **known)


def test_a_commit_says_which_record_it_uses() -> None:
    then = planned(the_pool(start("a", ago(1))), "a")
    written = body_of(about(then, "NodeClaim/a"))["metadata"]["annotations"]
    assert written[STARTED_AT] == format_time(ago(1))


def test_a_record_serves_one_commit() -> None:
    first = start("a", ago(3))
    found = again(the_pool(first), used=format_time(ago(3)))
    assert recorded(found) == [first, {"claim": "uid-a", "reason": "Unhealthy"}]
    second = again(the_pool(first, start("a", ago(1))), used=format_time(ago(3)))
    assert REPLACED_BY in body_of(about(second, "NodeClaim/a"))["metadata"]["annotations"]


def test_two_records_of_one_second_serve_two_commits() -> None:
    both = [start("a", ago(1)), start("a", ago(1))]
    found = again(the_pool(*both), used=format_time(ago(1)))
    assert REPLACED_BY in body_of(about(found, "NodeClaim/a"))["metadata"]["annotations"]


def test_a_start_that_was_rolled_back_counts_for_the_claim_itself() -> None:
    starts = [start("x", ago(1800)), start("a", ago(3))]
    verdict = about(again(the_pool(*starts), used=format_time(ago(3))), "NodeClaim/a")
    assert verdict.reason is Reason.DISRUPTION_BLOCKED
    assert fact_of(verdict, VelocityUse).next_at == ahead(1800) + COMMITTED_WITHIN


@pytest.mark.parametrize("forged", ["9999-12-31T23:59:59Z", "yesterday", ""])
def test_a_used_record_that_is_not_ours_does_not_make_starts_be_recorded_for_ever(
    forged: str,
) -> None:
    found = again(the_pool(start("a", ago(1))), used=forged)
    assert recorded(found) is None
    assert REPLACED_BY in body_of(about(found, "NodeClaim/a"))["metadata"]["annotations"]


def test_the_third_in_an_hour_waits_and_says_until_when() -> None:
    starts = [start("x", ago(1800)), start("y", ago(60))]
    found = planned(the_pool(*starts), "a")
    verdict = about(found, "NodeClaim/a")
    assert verdict.reason == Reason.DISRUPTION_BLOCKED
    assert fact_of(verdict, VelocityUse).next_at == ahead(1800) + COMMITTED_WITHIN
    assert verdict.recheck_at == ahead(1800) + COMMITTED_WITHIN
    assert recorded(found) is None


def test_all_starts_of_one_record_are_committed_at_once() -> None:
    """One after the other they would grow old, and be recorded and counted twice."""
    budgets: tuple[dict[str, Any], ...] = ({"nodes": "3", "within": "1h"}, {"nodes": "4"})
    fresh = [start(name, ago(1), reason="Unhealthy") for name in "abc"]
    found = planned(the_pool(*fresh, budgets=budgets), *"abcd")
    assert all(isinstance(about(found, f"NodeClaim/{name}").action, Patch) for name in "abc")
    fourth = about(found, "NodeClaim/d")
    assert (fourth.reason, recorded(found)) == (Reason.DISRUPTION_BLOCKED, None)
    fewer = planned(
        the_pool(*fresh, budgets=({"nodes": "9", "within": "1h"}, {"nodes": "2"})), *"abc"
    )
    assert about(fewer, "NodeClaim/c").reason is Reason.DISRUPTION_BLOCKED, "that counts nodes"


def test_no_more_starts_are_recorded_than_the_status_holds() -> None:
    """The API server would refuse the record; and a full one lets no start be committed."""
    known = [start(f"x{index}", ago(7200 + index)) for index in range(STARTS_MAX - 3)]
    daily = {"nodes": "5000", "within": "24h"}
    found = planned(the_pool(*known, budgets=(daily,)), *"abc")
    more = recorded(found) or []
    assert [one["claim"] for one in more[len(known) :]] == ["uid-a", "uid-b"]
    last = about(found, "NodeClaim/c")
    assert (last.reason, last.gate) == (Reason.DISRUPTION_BLOCKED, "budgets")
    assert fact_of(last, StartsUnreadable) == StartsUnreadable("general")
    assert last.recheck_at is not None
    fresh = [start(name, ago(1)) for name in "ab"]
    found = planned(the_pool(*known, *fresh, budgets=(daily,)), *"abc")
    assert all(about(found, f"NodeClaim/{name}").action is not None for name in "ab")


def test_only_labels_that_budgets_count_by_are_recorded() -> None:
    pool = the_pool(budgets=({**HOURLY, "per": ZONE},))
    labels = {ZONE: "a", "team": "web"}
    [one] = recorded(planned(pool, "a", labels=labels)) or []
    assert one["labels"] == {ZONE: "a"}
    [one] = recorded(planned(pool, "a")) or []
    assert one["labels"] == {ZONE: ""}, "it had none, and that is known"


def test_a_pool_without_within_records_nothing() -> None:
    found = planned(the_pool(budgets=({"nodes": "100%"},)), "a")
    assert recorded(found) is None
    assert about(found, "NodeClaim/a").action is not None


@pytest.mark.parametrize("seconds", [1, 14, 15, 16, 3500, 3554, 3555, 3556, 9999])
@pytest.mark.parametrize(
    "starts",
    [
        (),
        (start("a"),),
        (start("x", ago(60)), start("y", ago(9))),
        (start("x", ahead(70)), start("y", ahead(9))),
    ],
)
def test_it_is_evaluated_again_when_that_makes_a_difference(
    starts: tuple[Start, ...], seconds: int
) -> None:
    later = timedelta(seconds=seconds)
    objects = [a_class(), the_pool(*starts), a_claim("a"), unhealthy("a")]
    seen = Observations(repair_statements=kwok_statements(), instance_types=types())
    snapshot = snapshot_with(*objects, observations=seen)
    check_honest_recheck(DisruptionDecider(), snapshot, NOW, later)
    check_honest_recheck(PoolDecider(PoolBudgets()), snapshot, NOW, later)


# -- what the pool remembers ---------------------------------------------------------------


def status(pool: NodePool, *objects: Any, now: datetime = NOW) -> dict[str, Any]:
    # The hash is written first.
    stamp = about(
        evaluated(PoolDecider(PoolBudgets()), a_class(), pool, now=now), "NodePool/general"
    )
    hashed = body_of(stamp)["metadata"]["annotations"]
    meta = msgspec.structs.replace(pool.metadata, annotations=hashed)
    pool = msgspec.structs.replace(pool, metadata=meta)
    found: dict[str, Any] = body_of(
        about(
            evaluated(PoolDecider(PoolBudgets()), a_class(), pool, *objects, now=now),
            "NodePool/general",
        )
    )["status"]
    return found


def test_starts_are_forgotten_after_the_longest_span() -> None:
    day = {"nodes": "9", "within": "2h"}
    old, recent = start("x", ago(2 * 3600 + 15)), start("y", ago(2 * 3600 + 14))
    pool = the_pool(old, recent, budgets=(HOURLY, day))
    assert status(pool)["disruptionStarts"] == [recent]
    assert status(the_pool(old, budgets=(HOURLY, day)))["disruptionStarts"] is None
    assert status(the_pool(recent, budgets=({"nodes": "1"},)))["disruptionStarts"] is None
    assert "disruptionStarts" not in status(the_pool(recent, budgets=(day,)))


def test_a_departure_that_no_budget_holds_is_recorded_once() -> None:
    leaving = a_claim("a", deletion_timestamp=ago(100))
    seen = start("a", ago(100), "Deleted")
    assert status(the_pool(), leaving)["disruptionStarts"] == [seen]
    assert "disruptionStarts" not in status(the_pool(seen), leaving)


def test_a_departure_of_a_claim_that_cannot_be_read_is_recorded_by_its_node() -> None:
    """A command was recorded when it began; of that, too, only some marks can be read."""
    leaving = stand_in(a_claim("a", deletion_timestamp=ago(100)), "broken", field="status")
    node = a_node("node-a", claim="a", labels={INITIALIZED: "true"})
    assert status(the_pool(), leaving, node)["disruptionStarts"] == [
        start("a", ago(100), "Deleted")
    ]
    marks = {REPLACED_BY: "", DISRUPTION_REASON: "Drifted"}
    commanded = a_claim("a", deletion_timestamp=ago(100), annotations=marks)
    assert "disruptionStarts" not in status(the_pool(), stand_in(commanded, "broken"), node)


def test_a_departure_counts_beside_an_older_start_of_the_same_claim() -> None:
    """Its command was rolled back; now a user deletes the claim."""
    pool = the_pool(start("a", ago(50 * 60)))
    gone = a_claim("a", deletion_timestamp=NOW)
    snapshot = snapshot_with(a_class(), pool, gone, a_node("node-a", claim="a"))
    found = kept(pool, departures_in(pool, snapshot), NOW)
    assert [one.at for one in found] == [format_time(ago(50 * 60)), format_time(NOW)]


@pytest.mark.parametrize(
    ("old", "recorded"),
    [
        pytest.param({}, False, id="the old node stays"),
        pytest.param({"annotations": {REPLACED_BY: "b"}}, True, id="its command counts on it"),
        pytest.param(
            {
                "annotations": {REPLACED_BY: "b", DISRUPTION_REASON: "Drifted"},
                "deletion_timestamp": ago(9),
            },
            True,
            id="pods have come, or will",
        ),
    ],
)
def test_the_removal_of_a_left_over_replacement_is_no_start(
    old: dict[str, Any], recorded: bool
) -> None:
    leaving = a_claim("b", annotations={REPLACES: "uid-a"}, deletion_timestamp=ago(5))
    found = status(the_pool(), a_claim("a", **old), leaving).get("disruptionStarts")
    assert found == ([start("b", ago(5), "Deleted")] if recorded else None)


@pytest.mark.parametrize(
    "claim",
    [
        a_claim("a", deletion_timestamp=ago(2 * 3600)),
        a_claim("a", deletion_timestamp=ago(9), annotations={DISRUPTION_REASON: "Drifted"}),
        a_claim("a", deletion_timestamp=ago(9), stage=1),
        a_claim("a", deletion_timestamp=ago(9), labels={NODEPOOL: "other"}),
    ],
    ids=["long ago", "by a command", "not initialized", "of another pool"],
)
def test_other_departures_are_not_recorded(claim: Any) -> None:
    assert "disruptionStarts" not in status(the_pool(), claim)


@pytest.mark.parametrize("at", ["", "soon", "9999-12-31T23:59:59Z", format_time(ahead(61))])
def test_a_start_that_cannot_be_read_counts_from_now(at: str) -> None:
    """So its effect ends with the span. The executor sets the instant."""
    bad = start("x", at)
    body = {"status": status(the_pool(bad))}
    (one,) = stamped(body, NOW)["status"]["disruptionStarts"]
    assert one == start("x", NOW)


def test_a_clock_that_is_a_little_ahead_is_believed() -> None:
    assert "disruptionStarts" not in status(the_pool(start("x", ahead(60))))


def test_the_record_is_bounded() -> None:
    many = [start(f"x{i}", ago(60)) for i in range(STARTS_MAX)]
    leaving = a_claim("a", deletion_timestamp=ago(9))
    assert "disruptionStarts" not in status(the_pool(*many), leaving)


def test_the_status_says_how_many_more_are_allowed_and_until_when() -> None:
    none_drifted = {"nodes": "0", "reasons": ["Drifted"]}
    found = status(
        the_pool(start("x", ago(600)), budgets=(HOURLY, none_drifted)),
        a_claim("a"),
        a_node("node-a", claim="a"),
    )
    changes_at = format_time(ahead(3000) + COMMITTED_WITHIN)
    by_reason = {one["reason"]: one for one in found["disruptionsAllowed"]}
    assert by_reason["Drifted"] == {"reason": "Drifted", "nodes": 0, "nextChange": changes_at}
    assert by_reason["Expired"] == {"reason": "Expired", "nodes": 1, "nextChange": changes_at}
    unlimited = status(the_pool(budgets=()))["disruptionsAllowed"]
    assert {tuple(one) for one in unlimited} == {("reason",)}


# -- the guard -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("starts", "refused"),
    [
        ((start("a"),), ""),
        ((), "its start is not recorded"),
        ((start("a", NOW - COMMITTED_WITHIN),), "its start is not recorded"),
        ((start("a"), start("x", ago(60))), ""),
        ((start("a"), start("x", ago(60)), start("y", ago(3614))), "allows 2 starts in any 1h"),
        ((start("a"), start("x", ago(60)), start("y", ago(3615))), ""),
        ((start("a"), start("x", "soon")), "cannot be read"),
        ((start("a"), start("x", ahead(61))), "cannot be read"),
    ],
)
def test_the_guard_counts_for_itself(starts: tuple[Start, ...], refused: str) -> None:
    said = guarded(a_claim("a"), *starts)
    assert (refused in said) if refused else not said


@pytest.mark.parametrize(
    ("starts", "refused"),
    [
        ((start("a", ago(3)),), "is not recorded"),
        ((start("a", ago(3)), start("a", ago(1))), ""),
        ((start("a", ago(3)), start("a", ago(3))), ""),
        ((start("a", ago(3)), start("a", ago(1)), start("x", ago(60))), "allows 2 starts"),
    ],
)
def test_for_the_guard_a_record_serves_one_commit(starts: tuple[Start, ...], refused: str) -> None:
    said = guarded(a_claim("a", annotations={STARTED_AT: format_time(ago(3))}), *starts)
    assert (refused in said) if refused else not said


def guarded(claim: NodeClaim, *starts: Start) -> str:
    """Why the guard refuses that a command of the claim begins; empty: it does not."""
    seen = Observations(repair_statements=kwok_statements())
    objects = [a_class(), the_pool(*starts), claim, unhealthy("a")]
    for name in ("b", "c", "d", "e", "f", "g", "h", "i", "j", "k"):
        objects += [a_claim(name), a_node(f"node-{name}", claim=name)]
    snapshot = snapshot_with(*objects, observations=seen)
    return veto(begin(claim, (), "Unhealthy", {}), snapshot, NOW) or ""


def test_the_guard_does_not_count_again_once_a_command_is_marked() -> None:
    starts = [start(name, ago(60)) for name in ("a", "x", "y", "z")]
    marks = {REPLACED_BY: "", DISRUPTION_REASON: "Unhealthy"}
    claim = a_claim("a", annotations=marks)
    node = unhealthy("a", taints=(DISRUPTED,))
    seen = Observations(repair_statements=kwok_statements())
    snapshot = snapshot_with(a_class(), the_pool(*starts), claim, node, observations=seen)
    assert veto(delete_claim(claim, Ground.REPLACED), snapshot, NOW) is None
