"""One decision for nodes that do not come up and nodes that fall unhealthy."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from tenure.core.decision import Delete, Patch, Verdict
from tenure.core.facts import Fact
from tenure.core.gates.facts import RepairRulesUnusable, RepairSwitchedOff, RepairVetoed
from tenure.core.health.facts import CircuitBreakerOpen, PoolDefault
from tenure.core.health.readiness import Stage
from tenure.core.reasons import Reason
from tenure.core.repair.decider import RepairDecider
from tenure.core.repair.facts import (
    ConditionUnhealthy,
    MustBeUpBy,
    NeverRepaired,
    NotUp,
    TerminatingAlready,
    ToleratedUntil,
)
from tenure.model.api.meta import Condition
from tenure.model.api.names import DO_NOT_REPAIR, TERMINATION_TIMESTAMP
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.settings import Settings
from tenure.providers.kwok.repairs import kwok_statements
from tests.core.build import (
    NOW,
    REGISTERED,
    a_claim,
    a_leaving_claim,
    a_leaving_node,
    a_node,
    a_pool,
    about,
    ago,
    ahead,
    body_of,
    condition,
    evaluated,
    fact_of,
    said,
)

DECIDER = RepairDecider()
STATEMENTS = kwok_statements(ready=timedelta(minutes=30))
FORCEFUL = a_pool(repair={"defaultTolerationDuration": "10m"})


def verdicts(*objects: Any, now: datetime = NOW, **more: Any) -> list[Verdict]:
    return evaluated(DECIDER, *objects, now=now, repair_statements=STATEMENTS, **more)


def on_claim(*objects: Any, **more: Any) -> Verdict:
    return about(verdicts(*objects, **more), "NodeClaim/a")


def booting(ttl: str | None = "30m", **fields: Any) -> NodeClaim:
    return a_claim(stage=REGISTERED, spec={"readiness_ttl": ttl}, **fields)


def not_ready(
    status: str = "False", *, since: datetime = NOW, name: str = "a", **fields: Any
) -> Node:
    told = Condition(type="Ready", status=status, reason="Broken", last_transition_time=since)
    return a_node(
        f"node-{name}", claim=name, status={"conditions": (told,)}, **{"ready": None} | fields
    )


# -- nodes that do not come up -----------------------------------------------------------


def test_registered_at_one_minute_and_never_ready_it_is_due_thirty_minutes_later() -> None:
    """The seed's instants: registered at T+1m, unknown ever since, TTL 30m: due at T+31m."""
    node = not_ready("Unknown", since=ago(1740), creation_timestamp=ago(1740))
    before = on_claim(FORCEFUL, booting(), node)
    assert before.reason is Reason.BOOTING
    assert before.facts == (
        NotUp(Stage.READINESS, ago(1740), "node-a"),
        MustBeUpBy(Stage.READINESS, "30m", ahead(60)),
    )
    assert (before.action, before.recheck_at) == (None, ahead(60))
    then = on_claim(FORCEFUL, booting(), node, now=ahead(60))
    assert then.reason is Reason.READINESS_TIMEOUT
    assert isinstance(then.action, Patch)
    assert then.action.dated == TERMINATION_TIMESTAMP


def test_a_longer_ttl_is_not_cut_short_by_the_providers_half_hour() -> None:
    node = not_ready(since=ago(2400), creation_timestamp=ago(2400))
    verdict = on_claim(FORCEFUL, booting("45m"), node)
    assert (verdict.reason, verdict.recheck_at) == (Reason.BOOTING, ahead(300))


def test_once_ready_the_ttl_is_spent_and_the_policy_counts() -> None:
    claim = booting("45m", conditions=[condition("ReadyOnce")])
    verdict = on_claim(FORCEFUL, claim, not_ready(since=ago(60), creation_timestamp=ago(7200)))
    assert (verdict.reason, verdict.recheck_at) == (Reason.UNHEALTHY, ahead(540))


def test_it_is_stamped_first_and_then_deleted_on_the_version_that_carries_the_stamp() -> None:
    stamped: dict[str, Any] = {"annotations": {TERMINATION_TIMESTAMP: "2026-03-02T12:00:00Z"}}
    node = not_ready(creation_timestamp=ago(1800))
    verdict = on_claim(FORCEFUL, booting(**stamped), node)
    assert isinstance(verdict.action, Delete)
    assert verdict.action.resource_version == "7"


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        (a_claim(stage=0, creation_timestamp=ago(901)), Reason.LAUNCH_TIMEOUT),
        (
            a_claim(stage=0, conditions=[condition("Launched", at=ago(901))]),
            Reason.REGISTRATION_TIMEOUT,
        ),
    ],
    ids=["never launched", "never registered"],
)
def test_one_that_never_got_that_far_needs_no_breaker(claim: NodeClaim, reason: Reason) -> None:
    blocked = a_pool(repair={"maxUnhealthy": 0})
    verdict = on_claim(blocked, claim)
    assert verdict.reason is reason
    assert verdict.action is not None


def test_a_lost_node_is_noted_waited_for_and_given_up() -> None:
    noticed = on_claim(FORCEFUL, a_claim())
    assert said(noticed)["NodeLost"] == ("True", "NodeNotFound")
    lost = a_claim(conditions=[condition("NodeLost", at=ago(60))])
    waiting = on_claim(FORCEFUL, lost)
    assert (waiting.reason, waiting.recheck_at) == (Reason.NODE_LOST, ahead(840))
    assert on_claim(FORCEFUL, lost, now=ahead(840)).action is not None
    back = on_claim(FORCEFUL, lost, a_node())
    assert said(back)["NodeLost"] == ("False", "NodeFound")


def test_thirty_booting_nodes_of_forty_do_not_trip_the_breaker() -> None:
    fleet: list[Any] = [FORCEFUL]
    for i in range(30):
        fleet += [booting_one(f"b{i}"), not_ready(name=f"b{i}", creation_timestamp=ago(60))]
    for i in range(9):
        fleet += [a_claim(f"w{i}"), a_node(f"node-w{i}", claim=f"w{i}")]
    unhealthy_node = not_ready(since=ago(601), creation_timestamp=ago(7200))
    verdict = on_claim(*fleet, a_claim(), unhealthy_node)
    assert verdict.reason is Reason.REPAIRING


def booting_one(name: str) -> NodeClaim:
    return a_claim(name, stage=REGISTERED, spec={"readiness_ttl": "30m"})


# -- nodes that fall unhealthy -----------------------------------------------------------------


def test_an_unhealthy_node_says_by_which_policy_and_until_when_it_is_tolerated() -> None:
    node = not_ready(since=ago(60), creation_timestamp=ago(7200))
    told = verdicts(FORCEFUL, a_claim(), node)
    verdict = about(told, "NodeClaim/a")
    assert verdict.facts == (
        ConditionUnhealthy(condition="Ready", status="False", reason="Broken", since=ago(60)),
        ToleratedUntil(PoolDefault("10m"), ahead(540)),
    )
    assert about(told, "Node/node-a").facts == verdict.facts


def test_before_it_is_due_it_says_what_would_block_it() -> None:
    node = not_ready(since=ago(60), creation_timestamp=ago(7200))
    off = on_claim(FORCEFUL, a_claim(), node, settings=Settings(node_repair=False))
    due = ToleratedUntil(PoolDefault("10m"), ahead(540))
    assert off.reason is Reason.UNHEALTHY
    assert off.facts[1:] == (due, RepairSwitchedOff())
    noted = {DO_NOT_REPAIR: "1h1m", f"{DO_NOT_REPAIR}-since": "1h1m 2026-03-02T11:00:00Z"}
    told = on_claim(FORCEFUL, a_claim(annotations=noted), node)
    veto = RepairVetoed("NodeClaim", "a", "1h1m", ahead(60))
    assert (told.reason, told.recheck_at) == (Reason.UNHEALTHY, ahead(60))
    assert told.facts[1:] == (due, veto)
    later = on_claim(FORCEFUL, a_claim(annotations=noted), node, now=ahead(60))
    assert later.facts[-1] == due


@pytest.mark.parametrize(
    ("total", "unhealthy_node", "repaired"),
    [(1, 1, True), (3, 1, True), (3, 2, False), (5, 1, True), (5, 2, False), (10, 2, True),
     (10, 3, False)],
)  # fmt: skip
def test_so_many_unhealthy_nodes_may_be_repaired(
    total: int, unhealthy_node: int, repaired: bool
) -> None:
    fleet: list[Any] = [FORCEFUL]
    for i in range(total):
        fleet.append(a_claim(f"c{i}"))
        healthy = a_node(f"node-c{i}", claim=f"c{i}")
        unhealthy = not_ready(since=ago(601), name=f"c{i}", creation_timestamp=ago(7200))
        fleet.append(unhealthy if i < unhealthy_node else healthy)
    told = verdicts(*fleet)
    first = about(told, "NodeClaim/c0")
    assert first.reason is (Reason.REPAIRING if repaired else Reason.REPAIR_BLOCKED)
    assert (first.action is not None) is repaired
    if not repaired:
        for subject in ("Node/node-c0", "NodePool/general"):
            assert about(told, subject).reason is Reason.REPAIR_BLOCKED


def test_leaving_nodes_count_so_no_more_than_the_limit_are_ever_under_way() -> None:
    fleet: list[Any] = [FORCEFUL, a_leaving_claim("b")]
    gone = msgspec.structs.replace
    unhealthy = not_ready(since=ago(601), name="b", creation_timestamp=ago(7200))
    fleet.append(gone(unhealthy, metadata=gone(unhealthy.metadata, deletion_timestamp=ago(1))))
    unhealthy_node = not_ready(since=ago(601), creation_timestamp=ago(7200))
    assert on_claim(*fleet, a_claim(), unhealthy_node).reason is Reason.REPAIR_BLOCKED


@pytest.mark.parametrize("where", ["node", "claim"])
def test_a_veto_blocks_it_and_says_so(where: str) -> None:
    veto: dict[str, Any] = {"annotations": {DO_NOT_REPAIR: "true"}}
    claim = a_claim(**veto if where == "claim" else {})
    node = not_ready(
        since=ago(601), creation_timestamp=ago(7200), **veto if where == "node" else {}
    )
    verdict = on_claim(FORCEFUL, claim, node)
    assert (verdict.reason, verdict.action) == (Reason.REPAIR_VETOED, None)
    kind, name = ("Node", "node-a") if where == "node" else ("NodeClaim", "a")
    assert verdict.facts[-1] == RepairVetoed(kind, name, "true")


def test_a_veto_that_is_invalid_says_so_first() -> None:
    claim = a_claim(annotations={DO_NOT_REPAIR: "tomorrow"})
    verdict = on_claim(FORCEFUL, claim, not_ready(since=ago(601), creation_timestamp=ago(7200)))
    assert verdict.facts[-1] == RepairVetoed("NodeClaim", "a", "tomorrow", unreadable=True)
    assert 'is neither "true", "false" nor a duration' in verdict.message


def test_a_veto_of_two_hours_on_an_old_node_lasts_two_hours_from_when_it_was_seen() -> None:
    veto = {DO_NOT_REPAIR: "2h", f"{DO_NOT_REPAIR}-since": "2h 2026-03-02T11:30:00Z"}
    node = not_ready(since=ago(601), creation_timestamp=ago(864000), annotations=veto)
    verdict = on_claim(FORCEFUL, a_claim(), node)
    assert (verdict.reason, verdict.recheck_at) == (Reason.REPAIR_VETOED, ahead(5400))


@pytest.mark.parametrize(
    ("pool", "why"),
    [
        pytest.param(
            a_pool(repair={"policies": [{"conditionType": "Ready", "toleration": "Never"}]}),
            NeverRepaired,
            id="never",
        ),
        pytest.param(
            a_pool(repair={"maxUnhealthy": "many"}),
            RepairRulesUnusable,
            id="a block that cannot be read",
        ),
    ],
)
def test_what_is_switched_off_or_cannot_be_read_repairs_nothing(pool: Any, why: type[Fact]) -> None:
    node = not_ready(since=ago(86400), creation_timestamp=ago(90000))
    verdict = on_claim(pool, a_claim(), node)
    assert (verdict.reason, verdict.action) == (Reason.REPAIR_OFF, None)
    assert isinstance(verdict.facts[-1], why)


def test_node_repair_can_be_switched_off_and_time_outs_run_all_the_same() -> None:
    off = Settings(node_repair=False)
    unhealthy_node = not_ready(since=ago(601), creation_timestamp=ago(7200))
    assert on_claim(FORCEFUL, a_claim(), unhealthy_node, settings=off).reason is Reason.REPAIR_OFF
    late = not_ready(creation_timestamp=ago(1800))
    assert on_claim(FORCEFUL, booting(), late, settings=off).action is not None


def test_a_transition_in_the_future_counts_as_it_is_written() -> None:
    node = not_ready(since=ahead(3600), creation_timestamp=ago(7200))
    told = on_claim(FORCEFUL, a_claim(), node)
    unhealthy = fact_of(told, ConditionUnhealthy)
    assert (unhealthy.since, unhealthy.ahead) == (ahead(3600), True)
    assert (told.reason, told.recheck_at) == (Reason.UNHEALTHY, ahead(3600))
    then = on_claim(FORCEFUL, a_claim(), node, now=ahead(3600))
    assert (then.reason, then.recheck_at) == (Reason.UNHEALTHY, ahead(4200))
    assert not fact_of(then, ConditionUnhealthy).ahead


def test_claims_taken_over_are_not_evaluated_by_the_ttl() -> None:
    """Karpenter has written no ReadyOnce; Initialized is evidence enough."""
    fleet: list[Any] = [FORCEFUL]
    for i in range(10):
        fleet += [a_claim(f"k{i}"), a_node(f"node-k{i}", claim=f"k{i}")]
    fleet += [a_claim(), not_ready(since=ago(60), creation_timestamp=ago(864000))]
    told = verdicts(*fleet)
    assert {verdict.reason for verdict in told} == {Reason.UNHEALTHY}
    assert all(verdict.action is None for verdict in told)


def test_a_stamp_on_a_claim_that_is_not_due_is_taken_off() -> None:
    stamp: dict[str, Any] = {"annotations": {TERMINATION_TIMESTAMP: "2026-03-02T12:00:00Z"}}
    verdict = on_claim(FORCEFUL, a_claim(**stamp), a_node())
    assert verdict.reason is Reason.STALE_DEADLINE
    assert body_of(verdict)["metadata"]["annotations"] == {TERMINATION_TIMESTAMP: None}


@pytest.mark.parametrize(
    ("claim", "node", "reason"),
    [
        pytest.param(booting, not_ready(creation_timestamp=ago(60)), Reason.BOOTING, id="booting"),
        pytest.param(
            a_claim,
            not_ready(since=ago(60), creation_timestamp=ago(7200)),
            Reason.UNHEALTHY,
            id="tolerated",
        ),
    ],
)
def test_so_is_one_on_a_claim_that_is_not_due_yet(claim: Any, node: Node, reason: Reason) -> None:
    stamp: dict[str, Any] = {"annotations": {TERMINATION_TIMESTAMP: "2026-03-02T12:00:00Z"}}
    verdict = on_claim(FORCEFUL, claim(**stamp), node)
    assert verdict.reason is reason
    assert body_of(verdict)["metadata"]["annotations"] == {TERMINATION_TIMESTAMP: None}


def test_falling_due_while_it_leaves_brings_the_deadline_forward() -> None:
    leaving = a_leaving_claim(spec={"termination_grace_period": "4h"})
    unhealthy = not_ready(since=ago(601), creation_timestamp=ago(7200))
    keep = msgspec.structs.replace
    node = keep(unhealthy, metadata=a_leaving_node().metadata, spec=a_leaving_node().spec)
    verdict = on_claim(FORCEFUL, leaving, node)
    assert isinstance(verdict.action, Patch)
    assert verdict.action.dated == TERMINATION_TIMESTAMP


# -- on a claim that is leaving ----------------------------------------------------------

GRACEFUL = a_pool()


def leaving(
    *conditions: Condition, pool: Any = GRACEFUL, grace: str | None = None, **more: Any
) -> Verdict:
    """What is said of a claim that is being deleted, and whose Node has these conditions."""
    fields: dict[str, Any] = {"stage": 3, "spec": {"termination_grace_period": grace}} | more
    claim = a_leaving_claim(**fields)
    node = a_node(
        ready=None,
        status={"conditions": conditions},
        creation_timestamp=ago(7200),
        deletion_timestamp=ago(30),
    )
    return on_claim(pool, claim, node)


def unhealthy(type_: str, at: datetime = ago(601), reason: str = "X") -> Condition:  # noqa: B008  # frozen
    return condition(type_, "True", reason, at=at)


BROKEN, REBOOT = unhealthy("KWOKUnhealthy"), unhealthy("KWOKRebootRequired")
OWN = {"conditionType": "Gpu", "status": "True", "toleration": "1m"}


@pytest.mark.parametrize(
    ("conditions", "pool", "grace", "span"),
    [
        pytest.param((BROKEN,), GRACEFUL, None, 45, id="Graceful: the bound"),
        pytest.param((BROKEN,), GRACEFUL, "10m", 45, id="sooner than its own"),
        pytest.param((BROKEN,), GRACEFUL, "1m", None, id="its own is over sooner"),
        pytest.param((BROKEN,), FORCEFUL, None, 0, id="Forceful: now"),
        pytest.param((BROKEN,), FORCEFUL, "10m", 0, id="Forceful: now, whatever it has"),
        pytest.param((REBOOT,), GRACEFUL, None, None, id="a reboot"),
        pytest.param((REBOOT,), FORCEFUL, None, None, id="a forceful reboot"),
        pytest.param((REBOOT, BROKEN), GRACEFUL, None, 45, id="the reboot's bound is none"),
        pytest.param(
            (REBOOT, unhealthy("Gpu")),
            a_pool(repair={"terminationMode": "Graceful", "policies": [OWN]}),
            None,
            None,
            id="no bound but a reboot's",
        ),
        pytest.param(
            (unhealthy("Gpu"),),
            a_pool(repair={"terminationMode": "Graceful", "policies": [OWN]}),
            None,
            None,
            id="no bound",
        ),
        pytest.param(
            (REBOOT, unhealthy("Gpu")),
            a_pool(repair={"policies": [OWN]}),
            None,
            0,
            id="one Forceful",
        ),
    ],
)
def test_what_falls_due_brings_the_deadline_forward(
    conditions: Any, pool: Any, grace: str | None, span: int | None
) -> None:
    verdict = leaving(*conditions, pool=pool, grace=grace)
    assert verdict.reason in (Reason.REPAIRING, Reason.REPAIR_DUE)
    if span is None:
        assert verdict.action is None
        return
    assert isinstance(verdict.action, Patch)
    assert verdict.action.dated == TERMINATION_TIMESTAMP
    assert verdict.action.ahead == timedelta(seconds=span)
    assert verdict.action.precondition is not None, "the Node may have recovered by then"


@pytest.mark.parametrize(
    ("held", "reason"),
    [
        pytest.param({"annotations": {DO_NOT_REPAIR: "true"}}, Reason.REPAIR_VETOED, id="veto"),
        pytest.param(
            {"pool": a_pool(repair={"maxUnhealthy": 0})}, Reason.REPAIR_BLOCKED, id="breaker"
        ),
    ],
)
def test_what_blocks_a_repair_blocks_that_too(held: dict[str, Any], reason: Reason) -> None:
    verdict = leaving(BROKEN, **held)
    assert (verdict.reason, verdict.action) == (reason, None)


def test_two_reboots_a_day_do_not_make_the_next_a_replacement_of_a_leaving_node() -> None:
    twice = {"karpenter.sh/reboot-history": "2026-03-02T10:00:00Z,2026-03-02T11:00:00Z"}
    ended = condition("Rebooting", "False", "RebootSucceeded", at=ago(900))
    verdict = leaving(REBOOT, annotations=twice, conditions=[ended])
    assert (verdict.reason, verdict.action) == (Reason.REPAIR_DUE, None)
    assert verdict.facts[-1] == TerminatingAlready("a", no_reboot=True)


def test_a_never_ready_claim_that_was_deleted_has_the_deadline_of_its_ttl() -> None:
    late = not_ready(creation_timestamp=ago(1740), deletion_timestamp=ago(30))
    claim = a_leaving_claim(stage=REGISTERED, spec={"readiness_ttl": "30m"})
    before = on_claim(GRACEFUL, claim, late)
    assert (before.reason, before.action) == (Reason.BOOTING, None)
    assert before.recheck_at == ahead(60)
    then = on_claim(GRACEFUL, claim, late, now=ahead(60))
    assert then.reason is Reason.READINESS_TIMEOUT
    assert isinstance(then.action, Patch)
    assert (then.action.dated, then.action.ahead) == (TERMINATION_TIMESTAMP, timedelta())
    stamped = a_leaving_claim(
        stage=REGISTERED,
        spec={"readiness_ttl": "30m"},
        annotations={TERMINATION_TIMESTAMP: "2026-03-02T12:00:00Z"},
    )
    assert on_claim(GRACEFUL, stamped, late, now=ahead(60)).action is None, "once"


@pytest.mark.parametrize("stage", [0, 1])
def test_a_leaving_claim_without_a_node_has_no_pod_to_wait_for(stage: int) -> None:
    claim = a_leaving_claim(stage=stage, creation_timestamp=ago(7200))
    assert verdicts(GRACEFUL, claim) == []


def test_a_node_of_two_claims_is_not_spoken_of_twice() -> None:
    twin = a_claim("b", status={"provider_id": "cloud://a"})
    found = verdicts(GRACEFUL, a_claim(), twin, not_ready(creation_timestamp=ago(7200)))
    assert {str(v.subject) for v in found} == {"NodeClaim/a", "NodeClaim/b"}


# -- while a node boots ------------------------------------------------------------------


def booting_with(*conditions: Condition, born: float = 60, **more: Any) -> list[Any]:
    """Of which it has these beside not being Ready."""
    told = Condition(type="Ready", status="False", reason="Broken", last_transition_time=ago(born))
    node = a_node(
        ready=None, status={"conditions": (told, *conditions)}, creation_timestamp=ago(born)
    )
    return [booting(**more), node]


NETWORK = a_pool(
    repair={"policies": [{"conditionType": "NetworkUnavailable", "toleration": "10m"}]}
)


def no_network(seconds: float) -> Condition:
    return unhealthy("NetworkUnavailable", ago(seconds))


def test_every_condition_but_ready_is_evaluated_by_its_policy_from_the_start() -> None:
    tolerated = on_claim(NETWORK, *booting_with(no_network(540), born=600))
    assert (tolerated.reason, tolerated.recheck_at) == (Reason.UNHEALTHY, ahead(60))
    due = on_claim(NETWORK, *booting_with(no_network(600), born=660))
    assert due.reason is Reason.REPAIRING
    assert isinstance(due.action, Patch)
    other = on_claim(NETWORK, *booting_with(unhealthy("Gpu"), born=660))
    assert other.reason is Reason.BOOTING, "nothing watches that"


def test_its_ttl_is_looked_at_even_if_the_condition_is_tolerated_for_longer() -> None:
    verdict = on_claim(NETWORK, *booting_with(no_network(30), born=1790))
    assert (verdict.reason, verdict.recheck_at) == (Reason.UNHEALTHY, ahead(10))
    late = on_claim(NETWORK, *booting_with(no_network(30), born=1800))
    assert late.reason is Reason.READINESS_TIMEOUT


def test_where_repair_is_off_it_is_said_that_it_boots() -> None:
    off = Settings(node_repair=False)
    verdict = on_claim(NETWORK, *booting_with(no_network(600), born=660), settings=off)
    assert verdict.reason is Reason.BOOTING


def test_a_hundred_new_nodes_without_a_network_are_no_outage() -> None:
    """They count once their toleration is over, so that a scale-up holds nothing back."""
    fleet: list[Any] = [NETWORK]
    for i in range(9):
        told = (condition("Ready", "False", at=ago(60)), no_network(60))
        node = a_node(
            f"node-b{i}",
            claim=f"b{i}",
            ready=None,
            status={"conditions": told},
            creation_timestamp=ago(60),
        )
        fleet += [booting_one(f"b{i}"), node]
    unhealthy_node = a_node(
        ready=None, status={"conditions": (no_network(601),)}, creation_timestamp=ago(7200)
    )
    first = on_claim(*fleet, a_claim(), unhealthy_node)
    assert first.reason is Reason.REPAIRING
    assert first.recheck_at == ahead(540), "when the others begin to count"
    then = on_claim(*fleet, a_claim(), unhealthy_node, now=ahead(540))
    assert then.reason is Reason.REPAIR_BLOCKED
    found = fact_of(then, CircuitBreakerOpen)
    assert (found.unhealthy, found.total) == (10, 10)


def test_a_claim_without_a_pool_is_blocked_when_unhealthy_and_timed_out_when_it_never_comes() -> (
    None
):
    alone: dict[str, Any] = {"labels": {"karpenter.sh/nodepool": ""}}
    unhealthy_node = not_ready(since=ago(86400), creation_timestamp=ago(90000))
    assert on_claim(a_claim(**alone), unhealthy_node).reason is Reason.REPAIR_OFF
    late = a_claim(stage=0, creation_timestamp=ago(901), **alone)
    assert on_claim(late).reason is Reason.LAUNCH_TIMEOUT


def test_the_legacy_way_repairs_claims_without_a_pool_under_a_breaker_of_the_whole_cluster() -> (
    None
):
    legacy = Settings(legacy_node_repair=True)
    alone: dict[str, Any] = {"labels": {"karpenter.sh/nodepool": ""}}
    unhealthy_node = not_ready(since=ago(86400), creation_timestamp=ago(90000), **alone)
    healthy: list[Any] = []
    for i in range(4):
        healthy += [a_claim(f"w{i}"), a_node(f"node-w{i}", claim=f"w{i}")]
    told = on_claim(a_pool(), a_claim(**alone), unhealthy_node, *healthy, settings=legacy)
    assert told.reason is Reason.REPAIRING
    assert isinstance(told.action, Patch)
    also = not_ready(since=ago(60), name="b", creation_timestamp=ago(90000))
    held = on_claim(
        a_pool(), a_claim(**alone), unhealthy_node, a_claim("b"), also, *healthy, settings=legacy
    )
    assert held.reason is Reason.REPAIRING, "two of six, and two may be"
    third = not_ready(since=ago(60), name="c", creation_timestamp=ago(90000))
    fleet = [
        a_pool(),
        a_claim(**alone),
        unhealthy_node,
        a_claim("b"),
        also,
        a_claim("c"),
        third,
        *healthy,
    ]
    assert on_claim(*fleet, settings=legacy).reason is Reason.REPAIR_BLOCKED


def test_the_legacy_way_repairs_pools_without_a_block_forcefully() -> None:
    unhealthy_node = not_ready(since=ago(86400), creation_timestamp=ago(90000))
    careful = on_claim(a_pool(), a_claim(), unhealthy_node)
    assert (careful.reason, careful.action) == (Reason.REPAIR_DUE, None)
    forced = on_claim(
        a_pool(), a_claim(), unhealthy_node, settings=Settings(legacy_node_repair=True)
    )
    assert forced.reason is Reason.REPAIRING
    assert isinstance(forced.action, Patch)


def test_a_careful_repair_falling_due_while_it_leaves_brings_the_deadline_forward_by_its_bound() -> (
    None
):
    """The provider bounds KWOKUnhealthy to 45 s."""
    told = Condition(type="KWOKUnhealthy", status="True", last_transition_time=ago(60))
    node = a_leaving_node(status={"conditions": (told,)}, creation_timestamp=ago(7200))
    leaving = a_leaving_claim(spec={"termination_grace_period": "4h"})
    verdict = on_claim(a_pool(), leaving, node)
    assert verdict.reason is Reason.REPAIR_DUE
    assert isinstance(verdict.action, Patch)
    assert (verdict.action.dated, verdict.action.ahead) == (
        TERMINATION_TIMESTAMP,
        timedelta(seconds=45),
    )
    soon = a_leaving_claim(annotations={TERMINATION_TIMESTAMP: "2026-03-02T12:00:30Z"})
    assert on_claim(a_pool(), soon, node).action is None, "it has to be gone sooner anyway"


def test_without_a_bound_a_leaving_claim_keeps_its_deadline() -> None:
    pool = a_pool(
        repair={
            "terminationMode": "Graceful",
            "policies": [{"conditionType": "Gpu", "status": "True", "toleration": "10s"}],
        }
    )
    told = Condition(type="Gpu", status="True", last_transition_time=ago(60))
    node = a_leaving_node(status={"conditions": (told,)}, creation_timestamp=ago(7200))
    verdict = on_claim(pool, a_leaving_claim(), node)
    assert (verdict.reason, verdict.action) == (Reason.REPAIR_DUE, None)


def test_a_replacement_that_never_came_up_is_given_up_whatever_the_breaker_says() -> None:
    """Else a pool of one could wait for it for ever."""
    pool = a_pool(repair={"maxUnhealthy": 0, "terminationMode": "Graceful"})
    late = not_ready(creation_timestamp=ago(1800))
    stands_in = booting(annotations={"karpenter.sh/replaces": "uid-b"})
    assert on_claim(pool, booting(), late).reason is Reason.REPAIR_BLOCKED
    given_up = on_claim(pool, stands_in, late)
    assert given_up.reason is Reason.READINESS_TIMEOUT
    assert given_up.action is not None


def test_a_stamp_on_a_node_that_is_repaired_gracefully_is_taken_off_until_its_turn_comes() -> None:
    stamp = {TERMINATION_TIMESTAMP: "2026-03-02T12:00:00Z"}
    told = Condition(type="KWOKUnhealthy", status="True", last_transition_time=ago(60))
    node = a_node(status={"conditions": (told,)}, creation_timestamp=ago(7200))
    verdict = on_claim(a_pool(), a_claim(annotations=stamp), node)
    assert verdict.reason is Reason.REPAIR_DUE
    assert body_of(verdict)["metadata"]["annotations"] == {TERMINATION_TIMESTAMP: None}
    marked = {**stamp, "karpenter.sh/replaced-by": "b"}
    assert on_claim(a_pool(), a_claim(annotations=marked), node).action is None


def test_a_node_that_is_ready_but_not_initialized_says_until_when_it_may_take() -> None:
    """Else it would not be evaluated again."""
    once = condition("ReadyOnce", at=ago(60))
    slow = a_claim(stage=REGISTERED, conditions=[once], spec={"initialization_ttl": "10m"})
    told = on_claim(FORCEFUL, slow, a_node())
    assert (told.reason, told.recheck_at) == (Reason.BOOTING, ahead(540))
    assert told.facts[-1] == MustBeUpBy(Stage.INITIALIZATION, "10m", ahead(540))
    unhealthy = on_claim(FORCEFUL, slow, not_ready(since=ago(10)))
    assert (unhealthy.reason, unhealthy.recheck_at) == (Reason.UNHEALTHY, ahead(540))
    over = on_claim(FORCEFUL, slow, a_node(), now=ahead(540))
    assert over.reason is Reason.INITIALIZATION_TIMEOUT
    assert over.action is not None
    careful = on_claim(a_pool(), slow, a_node(), now=ahead(540))
    assert (careful.reason, careful.action) == (Reason.REPAIR_DUE, None)


def test_a_policy_that_does_not_say_what_unhealthy_means_is_ignored_and_the_others_count() -> None:
    unclear = {"conditionType": "Gpu", "toleration": "10s"}
    clear = {"conditionType": "Ready", "toleration": "10s"}
    pool = a_pool(repair={"policies": [unclear, clear]})
    gpu = Condition(type="Gpu", status="True", last_transition_time=ago(600))
    healthy = a_node(status={"conditions": (condition("Ready"), gpu)}, creation_timestamp=ago(7200))
    assert not verdicts(pool, a_claim(), healthy)
    unhealthy_node = not_ready(since=ago(60), creation_timestamp=ago(7200))
    assert on_claim(pool, a_claim(), unhealthy_node).reason is Reason.REPAIRING
