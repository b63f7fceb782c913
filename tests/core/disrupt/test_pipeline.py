"""Who may be disrupted gracefully now, what holds the others, and what is launched for it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from tenure.core.decision import Create, Patch, Verdict
from tenure.core.disrupt.facts.candidates import PendingPodsFirst, PodFitsNowhere
from tenure.core.disrupt.facts.planning import (
    NoReschedulablePods,
    PlannedFirst,
    PodsFitElsewhere,
    ReplacementsCreated,
)
from tenure.core.disrupt.pipeline import DisruptionDecider
from tenure.core.gates.facts import BlockedUntil, BudgetUse, DrainUnbounded, PoolPauses
from tenure.core.launchbreaker.ledger import Entry, Kept, written
from tenure.core.launchbreaker.owners import owner_of
from tenure.core.provision.facts import TypesAwaited
from tenure.core.reasons import Reason
from tenure.core.repair.facts import RebootedTooOften, RebootFailedBefore
from tenure.model.api.meta import Condition
from tenure.model.api.names import (
    DISRUPTION_REASON,
    DO_NOT_DISRUPT,
    INSTANCE_TYPE,
    LAUNCH_BREAKER,
    REBOOT_GRACE_PERIOD,
    REBOOT_HISTORY,
    REPAIR_REASON,
    REPLACED_BY,
    REPLACEMENT_FAILED,
    REPLACES,
)
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.snapshot.observations import Observations
from tenure.providers.kwok.repairs import kwok_statements
from tests.core.build import (
    DISRUPTED,
    NOW,
    REGISTERED,
    a_claim,
    a_class,
    a_node,
    a_pdb,
    a_pending_pod,
    a_pod,
    a_pool,
    a_type,
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

A_MINUTE_AGO = ago(60)
BROKEN_CONDITION, REBOOT = "KWOKUnhealthy", "KWOKRebootRequired"
ANY = {"budgets": [{"nodes": "100%"}]}
POOL = a_pool(disruption=ANY)
FREEZE = {"nodes": "0", "schedule": "0 11 * * *", "duration": "2h"}
GRACEFUL = {"terminationMode": "Graceful"}
FAILED = "2 2026-03-02T11:59:30Z"


def unhealthy_node(
    name: str = "a", type_: str = BROKEN_CONDITION, *, since: datetime = A_MINUTE_AGO, **fields: Any
) -> Node:
    told = Condition(type=type_, status="True", reason="Test", last_transition_time=since)
    return a_node(
        f"node-{name}", claim=name, status={"conditions": (condition("Ready"), told)}, **fields
    )


def full(name: str = "a") -> list[Any]:
    """A unhealthy node with one pod that fills it."""
    pod = a_pod(f"web-{name}", node=f"node-{name}", requests={"cpu": "3", "memory": "1Gi"})
    return [a_claim(name), unhealthy_node(name), pod]


def healthy(count: int) -> list[Any]:
    """So many healthy nodes that are full."""
    found: list[Any] = []
    for i in range(count):
        big = {"cpu": "3900m", "memory": "1Gi"}
        pod = a_pod(f"w{i}", node=f"node-w{i}", requests=big)
        found += [a_claim(f"w{i}"), a_node(f"node-w{i}", claim=f"w{i}"), pod]
    return found


def verdicts(*objects: Any, now: datetime = NOW, **known: Any) -> list[Verdict]:
    usual: dict[str, Any] = {"repair_statements": kwok_statements(), "instance_types": types()}
    pools = [] if any(isinstance(one, NodePool) for one in objects) else [POOL]
    return evaluated(DisruptionDecider(), a_class(), *pools, *objects, now=now, **usual | known)


def on_claim(*objects: Any, name: str = "a", **more: Any) -> Verdict:
    return about(verdicts(*objects, **more), f"NodeClaim/{name}")


def created(found: list[Verdict]) -> list[dict[str, Any]]:
    return [body_of(verdict) for verdict in found if isinstance(verdict.action, Create)]


# -- the command --------------------------------------------------------------------------


def test_pods_that_fit_nowhere_else_get_a_new_node_that_says_whom_it_replaces() -> None:
    found = verdicts(*full())
    (body,) = created(found)
    assert body["metadata"]["annotations"][REPLACES] == "uid-a"
    assert body["metadata"]["labels"]["karpenter.sh/nodepool"] == "general"
    name = body["metadata"]["name"]
    told = about(found, "NodeClaim/a")
    assert (told.reason, told.action) == (Reason.REPLACING, None)
    assert told.facts[-1] == ReplacementsCreated((name,))
    assert about(found, f"NodeClaim/{name}").reason is Reason.NEEDED_AS_REPLACEMENT


def test_once_it_exists_the_claim_is_marked_with_it() -> None:
    replacement = a_claim("b", stage=0, annotations={REPLACES: "uid-a"})
    big = {INSTANCE_TYPE: "small"}
    told = on_claim(*full(), _in_flight(replacement, **big))
    assert told.reason is Reason.REPLACING
    assert body_of(told)["metadata"]["annotations"] == {
        REPLACED_BY: "b",
        DISRUPTION_REASON: "Unhealthy",
        REPAIR_REASON: "NodeRepairDue",
    }


def _in_flight(claim: NodeClaim, **labels: str) -> NodeClaim:
    """It has asked for enough room."""
    return a_claim(
        claim.name,
        stage=1,
        annotations=claim.annotations,
        labels=labels,
    )


def test_where_the_pods_fit_elsewhere_nothing_is_launched() -> None:
    room = [a_claim("c"), a_node("node-c", claim="c")]
    found = verdicts(*full(), *room)
    assert not created(found)
    told = about(found, "NodeClaim/a")
    assert body_of(told)["metadata"]["annotations"][REPLACED_BY] == ""
    assert told.facts[-1] == PodsFitElsewhere()


def test_another_unhealthy_node_takes_no_pods_while_it_is_being_replaced() -> None:
    marks = {REPLACED_BY: "", DISRUPTION_REASON: "Unhealthy"}
    other = [a_claim("c", annotations=marks), unhealthy_node("c", taints=(DISRUPTED,))]
    assert len(created(verdicts(*full(), *other, *healthy(8)))) == 1


def test_a_pod_that_fits_nowhere_blocks_it_and_is_named() -> None:
    huge = a_pod(
        "huge", requests={"cpu": "3500m", "memory": "1Gi"}, spec={"node_selector": {"a": "b"}}
    )
    told = on_claim(a_claim(), unhealthy_node(), huge)
    assert (told.reason, told.action) == (Reason.DISRUPTION_BLOCKED, None)
    assert fact_of(told, PodFitsNowhere).pod == "default/huge"


def test_the_node_that_goes_does_not_count_against_its_pools_limits() -> None:
    limited = a_pool(disruption=ANY, limits={"cpu": "4"})
    assert len(created(verdicts(limited, *full()))) == 1
    tighter = a_pool(disruption=ANY, limits={"cpu": "3"})
    assert on_claim(tighter, *full()).reason is Reason.DISRUPTION_BLOCKED


def test_pods_that_wait_get_their_nodes_first() -> None:
    size = {"cpu": "500m", "memory": "1Gi"}
    told = on_claim(*full(), a_pending_pod("waiting", since=ago(20), requests=size))
    assert told.reason is Reason.DISRUPTION_WAITS
    assert told.facts[-2:] == (PendingPodsFirst(), BlockedUntil(ahead(100)))
    assert told.recheck_at == ahead(100)


def test_nothing_waits_for_a_pod_that_gets_no_claim() -> None:
    """Its claim is refused again and again, for example, and every pool would wait for it."""
    size = {"cpu": "500m", "memory": "1Gi"}
    late = a_pending_pod("late", since=ago(120), requests=size)
    assert len(created(verdicts(*full(), late))) == 1


def test_nothing_waits_for_pods_whose_launch_breaker_is_open() -> None:
    waiting = a_pending_pod("waiting", requests={"cpu": "500m", "memory": "1Gi"})
    launches = tuple(Kept(f"n{n}", ago(50 - n), ago(49 - n)) for n in range(3))
    text = written({owner_of(waiting): Entry(launches, opened=ago(48))})
    pool = a_pool(disruption=ANY, annotations={LAUNCH_BREAKER: text or ""})
    found = verdicts(pool, *full(), waiting)
    assert len(created(found)) == 1
    assert about(found, "NodeClaim/a").reason is not Reason.DISRUPTION_WAITS
    known = Observations(repair_statements=kwok_statements(), instance_types=types())
    snapshot = snapshot_with(a_class(), pool, *full(), waiting, observations=known)
    check_honest_recheck(DisruptionDecider(), snapshot, NOW, timedelta(minutes=1))


def test_without_reschedulable_pods_nothing_is_waited_for() -> None:
    waiting = a_pending_pod("waiting", requests={"cpu": "500m", "memory": "1Gi"})
    told = on_claim(a_claim(), unhealthy_node(), waiting, instance_types={})
    assert body_of(told)["metadata"]["annotations"][REPLACED_BY] == ""
    assert told.facts[-1] == NoReschedulablePods()


def test_before_the_cloud_has_said_what_it_offers_nothing_is_planned() -> None:
    told = on_claim(*full(), instance_types={})
    assert told.reason is Reason.DISRUPTION_WAITS
    assert told.facts[-1] == TypesAwaited(("general",))


def test_one_is_planned_at_a_time_the_longest_due_first() -> None:
    older = [a_claim("b"), unhealthy_node("b", since=ago(120)), a_pod("web-b", node="node-b")]
    found = verdicts(*full(), *older, *healthy(8))
    assert about(found, "NodeClaim/b").reason is Reason.REPLACING
    waits = about(found, "NodeClaim/a")
    assert (waits.reason, waits.action) == (Reason.DISRUPTION_WAITS, None)
    assert waits.facts[-1] == PlannedFirst("b")


# -- what holds it -------------------------------------------------------------------------


def test_a_budget_that_allows_nothing_blocks_it_with_the_numbers() -> None:
    told = on_claim(a_pool(disruption={"budgets": [{"nodes": "0"}]}), *full())
    assert (told.reason, told.action) == (Reason.DISRUPTION_BLOCKED, None)
    budget = fact_of(told, BudgetUse)
    assert (budget.nodes, budget.limit, budget.total) == ("0", 0, 1)


def test_a_scheduled_budget_says_when_it_may_change() -> None:
    told = on_claim(a_pool(disruption={"budgets": [FREEZE]}), *full())
    assert (told.reason, told.recheck_at) == (Reason.DISRUPTION_BLOCKED, ahead(3600))


def test_a_node_that_is_not_initialized_needs_no_budget() -> None:
    closed = a_pool(disruption={"budgets": [{"nodes": "0"}]})
    early = a_claim(stage=REGISTERED, conditions=[condition("ReadyOnce")])
    told = on_claim(closed, early, unhealthy_node())
    assert told.reason is Reason.REPLACING


def test_a_blocked_node_takes_no_budget_from_others() -> None:
    one = a_pool(
        disruption={"budgets": [{"nodes": "1"}]},
        repair={
            "terminationMode": "Graceful",
            "maxUnhealthy": "100%",
            "policies": [{"conditionType": BROKEN_CONDITION, "status": "True", "toleration": "1s"}],
        },
    )
    unbounded = kwok_statements()[:1]
    held = [
        a_claim("a"),
        unhealthy_node("a", since=ago(600)),
        a_pod("mine", node="node-a", protected="true"),
    ]
    free = [a_claim("b"), unhealthy_node("b", since=ago(60))]
    found = verdicts(one, *held, *free, repair_statements=unbounded)
    assert about(found, "NodeClaim/a").reason is Reason.DISRUPTION_BLOCKED
    assert about(found, "NodeClaim/b").reason is Reason.REPLACING


@pytest.mark.parametrize(
    "blocker",
    [
        pytest.param([a_pod(protected="true")], id="protected"),
        pytest.param(
            [
                a_pod(conditions=[condition("Ready")]),
                a_pdb(current_healthy=1, desired_healthy=1, expected_pods=1),
            ],
            id="a budget of pods",
        ),
    ],
)
def test_pods_that_must_not_move_need_a_bound(blocker: list[Any]) -> None:
    policy = {"conditionType": "Gpu", "status": "True", "toleration": "30s"}
    repair = {"terminationMode": "Graceful", "policies": [policy]}
    unbounded = a_pool(disruption=ANY, repair=repair)
    told = on_claim(unbounded, a_claim(), unhealthy_node(type_="Gpu"), *blocker)
    assert told.reason is Reason.DISRUPTION_BLOCKED
    assert told.facts[-1] == DrainUnbounded("node-a")
    assert told.blockers
    bounded = {**policy, "terminationGracePeriod": "5m"}
    pool = a_pool(disruption=ANY, repair={**repair, "policies": [bounded]})
    assert (
        on_claim(pool, a_claim(), unhealthy_node(type_="Gpu"), *blocker).reason is Reason.REPLACING
    )
    own = a_claim(spec={"termination_grace_period": "1h"})
    assert (
        on_claim(unbounded, own, unhealthy_node(type_="Gpu"), *blocker).reason is Reason.REPLACING
    )


def test_do_not_disrupt_on_the_node_is_no_veto_of_a_repair() -> None:
    node = unhealthy_node(annotations={DO_NOT_DISRUPT: "true"})
    assert on_claim(a_claim(), node).reason is Reason.REPLACING


@pytest.mark.parametrize(
    ("noted", "until"),
    [
        ("1 2026-03-02T11:59:30Z", 30),
        ("2 2026-03-02T11:59:30Z", 90),
        ("3 2026-03-02T11:59:30Z", 210),
        ("20 2026-03-02T11:59:30Z", 1770),
    ],
)
def test_after_failures_the_pool_pauses_longer_and_longer(noted: str, until: float) -> None:
    failed = [a_claim("b", annotations={REPLACEMENT_FAILED: noted}), *full("b")[1:]]
    told = on_claim(*full(), *failed, *healthy(8))
    assert (told.reason, told.recheck_at) == (Reason.DISRUPTION_WAITS, ahead(until))
    assert told.facts[-1] == PoolPauses("general", "b", ahead(until))


def test_a_pool_that_pauses_does_not_block_the_others() -> None:
    failed = a_claim("b", annotations={REPLACEMENT_FAILED: "5 2026-03-02T11:59:30Z"})
    labels = {"karpenter.sh/nodepool": "other"}
    others = [
        a_pool("other", disruption=ANY),
        a_claim("c", labels=labels),
        unhealthy_node("c", labels=labels),
    ]
    found = verdicts(POOL, failed, unhealthy_node("b"), *others)
    assert about(found, "NodeClaim/b").reason is Reason.DISRUPTION_WAITS
    assert about(found, "NodeClaim/c").reason is Reason.REPLACING


# -- reboots -------------------------------------------------------------------------------


def test_a_reboot_is_committed_on_the_claim_and_launches_nothing() -> None:
    found = verdicts(a_claim(), unhealthy_node(type_=REBOOT), a_pod())
    told = about(found, "NodeClaim/a")
    assert told.reason is Reason.REBOOT_DUE
    assert isinstance(told.action, Patch)
    assert told.action.dated == REBOOT_HISTORY
    assert body_of(told)["metadata"]["annotations"][REBOOT_GRACE_PERIOD] == "1m0s"
    assert not created(found)


def test_after_two_reboots_in_a_day_it_is_replaced_until_the_day_is_over() -> None:
    history = "2026-03-01T13:00:00Z,2026-03-02T11:00:00Z"
    over = condition("Rebooting", "False", "RebootSucceeded", at=ago(3000))
    claim = a_claim(annotations={REBOOT_HISTORY: history}, conditions=[over])
    found = verdicts(claim, unhealthy_node(type_=REBOOT))
    told = about(found, "NodeClaim/a")
    assert told.reason is Reason.REPLACING
    assert RebootedTooOften(2) in told.facts
    assert about(found, "NodePool/general").recheck_at == ahead(3600)


def test_a_node_whose_reboot_has_failed_is_replaced_where_a_gate_blocked_that_then() -> None:
    over = condition("Rebooting", "False", "RebootFailed", at=ago(3000))
    spared = condition("RebootIssued", "False", "Spared", at=ago(3000))
    told = on_claim(a_claim(conditions=[over, spared]), unhealthy_node(type_=REBOOT))
    assert told.reason is Reason.REPLACING
    assert RebootFailedBefore() in told.facts


def test_a_forceful_reboot_asks_no_budget_and_drains_no_pod() -> None:
    pool = a_pool(disruption={"budgets": [{"nodes": "0"}]}, repair={"maxUnhealthy": "100%"})
    told = on_claim(pool, a_claim(), unhealthy_node(type_=REBOOT), a_pod(protected="true"))
    assert told.reason is Reason.REBOOT_DUE
    assert body_of(told)["metadata"]["annotations"][REBOOT_GRACE_PERIOD] == "0s"


# -- nothing to do -------------------------------------------------------------------------


def test_without_unhealthy_nodes_there_is_nothing_to_say() -> None:
    assert not verdicts(a_claim(), a_node(), a_pod())


def test_the_pool_says_when_a_node_that_is_tolerated_may_become_a_candidate() -> None:
    (told,) = verdicts(a_claim(), unhealthy_node(since=ago(10)))
    assert str(told.subject) == "NodePool/general"
    assert (told.reason, told.recheck_at) == (Reason.DISRUPTION_WATCHED, ahead(20))


def test_what_is_repaired_forcefully_is_no_candidate() -> None:
    pool = a_pool(disruption=ANY, repair={"defaultTolerationDuration": "1s"})
    assert not verdicts(pool, a_claim(), unhealthy_node())


def test_a_better_type_is_taken_where_the_old_one_is_sold_out() -> None:
    large = a_type("large", cpu="8", price=300_000)
    dry = {
        ("small", zone, terms): ahead(60)
        for zone in ("zone-a", "zone-b")
        for terms in ("spot", "on-demand")
    }
    found = verdicts(*full(), instance_types=types(a_type(), large), dry_offerings=dry)
    (body,) = created(found)
    values = {r["key"]: r["values"] for r in body["spec"]["requirements"]}
    assert values[INSTANCE_TYPE] == ["large"]
    assert about(found, "NodeClaim/a").recheck_at == ahead(60)


def test_a_node_that_is_ready_and_never_initialized_goes_the_pools_own_way() -> None:
    once = condition("ReadyOnce", at=ago(600))
    slow = a_claim(stage=REGISTERED, conditions=[once], spec={"initialization_ttl": "11m"})
    pod = a_pod(requests={"cpu": "3", "memory": "1Gi"})
    (waiting,) = verdicts(slow, a_node(), pod)
    assert (waiting.reason, waiting.recheck_at) == (Reason.DISRUPTION_WATCHED, ahead(60))
    found = verdicts(slow, a_node(), pod, now=ahead(60))
    assert about(found, "NodeClaim/a").reason is Reason.REPLACING
    assert len(created(found)) == 1
    assert not verdicts(a_pool(repair={}), slow, a_node(), pod, now=ahead(60)), "forcefully"


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([a_pool(disruption={"budgets": [FREEZE]}), *full()], id="a freeze"),
        pytest.param([a_claim(), unhealthy_node(since=ago(29))], id="tolerated"),
        pytest.param([*full(), *full("b")[:2], *healthy(8)], id="one after the other"),
        pytest.param(
            [*full(), a_claim("b", annotations={REPLACEMENT_FAILED: FAILED}), *healthy(8)],
            id="a pause",
        ),
        pytest.param(
            [POOL, a_claim(), unhealthy_node(type_="Gpu"), a_pod(protected="61m")],
            id="a protected pod",
        ),
    ],
)
@pytest.mark.parametrize("seconds", [0.5, 1, 30, 60, 600, 3600])
def test_nothing_changes_before_it_said_it_might(objects: list[Any], seconds: float) -> None:
    known = Observations(repair_statements=kwok_statements(), instance_types=types())
    pools = [] if any(isinstance(one, NodePool) for one in objects) else [POOL]
    snapshot = snapshot_with(a_class(), *pools, *objects, observations=known)
    check_honest_recheck(DisruptionDecider(), snapshot, NOW, timedelta(seconds=seconds))
