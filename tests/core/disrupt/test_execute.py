"""The last look before a node that is replaced goes: do its pods still have their capacity?"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from tenure.core.decision import Create, Delete, Patch, Verdict
from tenure.core.disrupt.facts.candidates import (
    CapacityNotInitialized,
    NoCapacityInTime,
    PodFitsNowhere,
    ReservedCapacityTaken,
)
from tenure.core.disrupt.facts.commands import (
    ReplacementsInitialized,
    RolledBack,
    TerminatingWithin,
)
from tenure.core.disrupt.facts.planning import NoReschedulablePods
from tenure.core.disrupt.orchestrate import ReplacementDecider
from tenure.core.disrupt.pipeline import DisruptionDecider
from tenure.core.gates.facts import BudgetUse
from tenure.core.health.facts import CircuitBreakerOpen, Domain, Outage
from tenure.core.reasons import Reason
from tenure.model.api.meta import Condition
from tenure.model.api.names import (
    DISRUPTION_REASON,
    DO_NOT_REPAIR,
    NODEPOOL,
    REPLACED_BY,
    REPLACEMENT_FAILED,
    REPLACES,
    TERMINATION_TIMESTAMP,
    ZONE,
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
    a_leaving_claim,
    a_leaving_node,
    a_node,
    a_pending_pod,
    a_pod,
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

BIG = {"cpu": "3", "memory": "1Gi"}
POD = a_pod(requests=BIG)
NO_BREAKER = a_pool(repair={"maxUnhealthy": "100%"})
HALF = {"cpu": "1500m", "memory": "1Gi"}


def going(by: str = "b", **fields: Any) -> NodeClaim:
    marks = {REPLACED_BY: by, DISRUPTION_REASON: "Unhealthy", **fields.pop("marks", {})}
    reasoned = condition("DisruptionReason", reason="Unhealthy")
    return a_claim(annotations=marks, **{"conditions": [reasoned]} | fields)


def unhealthy_node(*more: Condition, since: float = 60, **fields: Any) -> Node:
    told = Condition(
        type="KWOKUnhealthy", status="True", reason="Test", last_transition_time=ago(since)
    )
    conditions = (condition("Ready"), told, *more)
    return a_node(**{"taints": (DISRUPTED,), "status": {"conditions": conditions}} | fields)


PIPELINE = DisruptionDecider()


def come(name: str = "b", **fields: Any) -> list[Any]:
    """A replacement that is there."""
    claim = a_claim(name, annotations={REPLACES: "uid-a"}, **fields)
    return [claim, a_node(f"node-{name}", claim=name)]


def verdicts(
    *objects: Any,
    now: datetime = NOW,
    decider: DisruptionDecider | ReplacementDecider = PIPELINE,
    **known: Any,
) -> list[Verdict]:
    usual: dict[str, Any] = {"repair_statements": kwok_statements(), "instance_types": types()}
    pools = [] if any(isinstance(one, NodePool) for one in objects) else [a_pool()]
    return evaluated(decider, a_class(), *pools, *objects, now=now, **usual | known)


def on_claim(*objects: Any, **more: Any) -> Verdict:
    return about(verdicts(*objects, **more), "NodeClaim/a")


def rolled_back(*objects: Any, **more: Any) -> Verdict:
    """By who watches the command; nothing is carried out."""
    assert not [one for one in verdicts(*objects, **more) if str(one.subject) == "NodeClaim/a"]
    told = about(verdicts(*objects, decider=ReplacementDecider(), **more), "NodeClaim/a")
    assert told.reason is Reason.DISRUPTION_CANCELLED
    return told


def created(found: list[Verdict]) -> list[Any]:
    return [body_of(verdict) for verdict in found if isinstance(verdict.action, Create)]


def test_with_a_bound_it_is_stamped_so_far_ahead_before_it_is_deleted() -> None:
    told = on_claim(going(), unhealthy_node(), POD, *come())
    assert told.reason is Reason.REPLACED
    within = TerminatingWithin(timedelta(seconds=45))
    assert told.facts == (ReplacementsInitialized(("b",)), within)
    assert isinstance(told.action, Patch)
    assert (told.action.dated, told.action.ahead) == (TERMINATION_TIMESTAMP, timedelta(seconds=45))
    stamped = going(marks={TERMINATION_TIMESTAMP: "2026-03-02T12:00:44Z"})
    then = on_claim(stamped, unhealthy_node(), POD, *come())
    assert isinstance(then.action, Delete)
    assert then.action.precondition is not None
    assert then.action.precondition.name == "node-a"


@pytest.mark.parametrize(
    ("stamp", "written"),
    [
        pytest.param("2026-03-02T12:00:45Z", "deleted", id="written this second"),
        pytest.param("2026-03-02T11:59:46Z", "deleted", id="almost a minute ago"),
        pytest.param("2026-03-02T11:59:45Z", "stamped", id="a minute ago"),
        pytest.param("2026-03-02T08:00:00Z", "stamped", id="in the past"),
        pytest.param("2026-03-02T12:00:46Z", "stamped", id="later than the bound"),
        pytest.param("9999-12-31T23:59:59Z", "stamped", id="at the end of the calendar"),
        pytest.param("soon", "stamped", id="unreadable"),
        pytest.param("", "stamped", id="empty"),
    ],
)
def test_a_stamp_that_was_not_written_for_this_is_written_anew(stamp: str, written: str) -> None:
    """Else its drain would be shorter than its bound, or longer."""
    claim = going(marks={TERMINATION_TIMESTAMP: stamp})
    told = on_claim(claim, unhealthy_node(), POD, *come())
    assert told.reason is Reason.REPLACED
    if written == "deleted":
        assert isinstance(told.action, Delete)
        assert told.recheck_at is not None
        late = on_claim(claim, unhealthy_node(), POD, *come(), now=told.recheck_at)
        assert isinstance(late.action, Patch), "a leader that died in between: anew"
    else:
        assert isinstance(told.action, Patch)
        assert told.action.ahead == timedelta(seconds=45)


def test_without_a_bound_a_stamp_is_taken_off_before_it_goes() -> None:
    own = {"conditionType": "KWOKUnhealthy", "toleration": "1s", "terminationMode": "Graceful"}
    stated = [one for one in kwok_statements() if one.condition_type == "Ready"]
    pool = a_pool(repair={"policies": [{**own, "status": "True"}]})
    stamped = going(marks={TERMINATION_TIMESTAMP: "2026-03-02T12:00:44Z"})
    known: Any = {"repair_statements": tuple(stated)}
    told = on_claim(pool, stamped, unhealthy_node(), POD, *come(), **known)
    assert body_of(told)["metadata"]["annotations"] == {TERMINATION_TIMESTAMP: None}
    then = on_claim(pool, going(), unhealthy_node(), POD, *come(), **known)
    assert isinstance(then.action, Delete)


def test_where_it_stays_for_now_a_stamp_is_taken_off() -> None:
    taken = a_pod("newcomer", node="node-b", requests=BIG)
    stamped = going(marks={TERMINATION_TIMESTAMP: "2026-03-02T12:00:44Z"})
    told = on_claim(stamped, unhealthy_node(), POD, *come(), taken)
    assert told.reason is Reason.DISRUPTION_WAITS
    assert body_of(told)["metadata"]["annotations"] == {TERMINATION_TIMESTAMP: None}


def test_the_claims_own_grace_period_is_not_made_longer_by_a_bound() -> None:
    told = on_claim(going(spec={"termination_grace_period": "10s"}), unhealthy_node(), POD, *come())
    assert isinstance(told.action, Patch)
    assert told.action.ahead == timedelta(seconds=10)
    assert told.facts[-1] == TerminatingWithin(timedelta(seconds=10))


def test_where_nothing_had_to_be_launched_it_goes_at_once() -> None:
    told = on_claim(going(by=""), unhealthy_node())
    assert (told.reason, told.facts[0]) == (Reason.REPLACED, NoReschedulablePods())
    other = a_claim("b"), a_node("node-b", claim="b")
    told = on_claim(going(by=""), unhealthy_node(), POD, *other)
    assert (told.reason, told.facts[0]) == (Reason.REPLACED, ReplacementsInitialized())


def test_before_it_is_closed_or_while_it_is_rolled_back_nothing_is_done() -> None:
    assert not verdicts(going(), unhealthy_node(taints=()), POD, *come())
    unsaid = msgspec.structs.replace(going(), status=a_claim().status)
    assert not verdicts(unsaid, unhealthy_node(), POD, *come()), "it has not said why it goes"
    assert not verdicts(going(marks={DO_NOT_REPAIR: "true"}), unhealthy_node(), POD, *come())
    assert not verdicts(going(by="b,gone"), unhealthy_node(), POD, *come())


def test_where_others_have_taken_the_place_it_waits_for_what_provisioning_launches() -> None:
    taken = a_pod("newcomer", node="node-b", requests=BIG)
    found = verdicts(going(), unhealthy_node(), POD, *come(), taken)
    assert not created(found)
    told = about(found, "NodeClaim/a")
    assert (told.reason, told.action) == (Reason.DISRUPTION_WAITS, None)
    assert told.facts[-1] == ReservedCapacityTaken()


ALMOST = 15 * 60 - 1


@pytest.mark.parametrize(
    ("by", "began", "came"),
    [
        pytest.param("b", ALMOST, ALMOST, id="its replacement was there at once"),
        pytest.param("b", 3600, ALMOST, id="its replacement took long"),
        pytest.param("", ALMOST, 60, id="it needs none"),
    ],
)
def test_a_command_whose_pods_get_no_capacity_in_time_is_rolled_back_with_a_pause(
    by: str, began: int, came: int
) -> None:
    """What provisioning launches is no replacement of the command: it cannot fail."""
    taken = a_pod("newcomer", node="node-b", requests=BIG)
    since = condition("DisruptionReason", reason="Unhealthy", at=ago(began))
    claim = going(by, conditions=[since])
    new = come(conditions=[condition("Initialized", at=ago(came))])
    waits = on_claim(claim, unhealthy_node(), POD, *new, taken)
    assert (waits.reason, waits.recheck_at) == (Reason.DISRUPTION_WAITS, ahead(1))
    told = on_claim(claim, unhealthy_node(), POD, *new, taken, now=ahead(1))
    assert told.reason is Reason.REPLACEMENT_FAILED
    assert told.facts[-1] == RolledBack("node-a", retried=True)
    marks = body_of(told)["metadata"]["annotations"]
    assert marks == {REPLACED_BY: None, DISRUPTION_REASON: None, REPLACEMENT_FAILED: "1"}


@pytest.mark.parametrize(
    ("launched", "reason"),
    [
        pytest.param(1, Reason.DISRUPTION_WAITS, id="before the time was up"),
        pytest.param(0, Reason.REPLACEMENT_FAILED, id="when it was up"),
    ],
)
def test_a_command_waits_in_the_end_only_for_nodes_that_were_launched_in_time(
    launched: int, reason: Reason
) -> None:
    """A node that never registers is launched again and again: there is nearly always one in flight."""
    taken = a_pod("newcomer", node="node-b", requests=BIG)
    began = condition("DisruptionReason", reason="Unhealthy", at=ago(ALMOST))
    new = come(conditions=[condition("Initialized", at=ago(ALMOST))])
    late = a_claim("late", stage=REGISTERED, creation_timestamp=ahead(1 - launched))
    fleet = (NO_BREAKER, going(conditions=[began]), unhealthy_node(), POD, *new, taken, late)
    coming = a_node("node-late", claim="late", ready=False)
    waits = on_claim(*fleet, coming)
    assert (waits.reason, waits.recheck_at) == (Reason.DISRUPTION_WAITS, ahead(1))
    assert fact_of(waits, CapacityNotInitialized).nodes == ("node-late",)
    told = on_claim(*fleet, coming, now=ahead(1))
    assert told.reason is reason
    if told.reason is Reason.REPLACEMENT_FAILED:
        assert fact_of(told, NoCapacityInTime).by == ahead(1)


def test_where_the_limits_forbid_that_what_goes_makes_room() -> None:
    taken = a_pod("newcomer", node="node-b", requests=BIG)
    limited = a_pool(limits={"cpu": "8"})
    found = verdicts(limited, going(), unhealthy_node(), POD, *come(), taken)
    (body,) = created(found)
    assert body["metadata"]["annotations"][REPLACES] == "uid-a"
    told = about(found, "NodeClaim/a")
    assert (told.reason, told.action) == (Reason.REPLACING, None)
    assert told.facts == (ReservedCapacityTaken((body["metadata"]["name"],)),)


def test_and_the_mark_names_it_once_it_is_there() -> None:
    taken = a_pod("newcomer", node="node-b", requests=BIG)
    told = on_claim(going(), unhealthy_node(), POD, *come(), taken, *come("c"))
    assert body_of(told)["metadata"]["annotations"] == {REPLACED_BY: "b,c"}


def test_a_pod_that_waits_has_the_room_first_and_ours_gets_another() -> None:
    """What goes makes room under the pool's limits, for the time of the command."""
    limited = a_pool(limits={"cpu": "8"})
    first = a_pending_pod("first", requests=BIG)
    found = verdicts(limited, going(), unhealthy_node(), POD, *come(), first)
    assert about(found, "NodeClaim/a").reason is Reason.REPLACING
    assert len(created(found)) == 1


def test_but_not_while_others_wait_for_just_that_room() -> None:
    limited = a_pool(limits={"cpu": "8"})
    waiting = [a_pending_pod(name, requests=BIG) for name in ("first", "second")]
    told = on_claim(limited, going(), unhealthy_node(), POD, *come(), *waiting)
    assert told.reason is Reason.DISRUPTION_BLOCKED
    assert fact_of(told, PodFitsNowhere).pod == "default/web"


def test_room_that_others_were_promised_is_not_counted_on_twice() -> None:
    """Two nodes are replaced by two; each keeps its own, in whichever order they come up."""
    other = a_claim(
        "x",
        annotations={REPLACED_BY: "y", DISRUPTION_REASON: "Unhealthy"},
        conditions=[condition("DisruptionReason", reason="Unhealthy")],
    )
    unhealthy = Condition(
        type="KWOKUnhealthy", status="True", reason="Test", last_transition_time=ago(60)
    )
    node = a_node(
        "node-x",
        claim="x",
        taints=(DISRUPTED,),
        status={"conditions": (condition("Ready"), unhealthy)},
    )
    its_pod = a_pod("other", node="node-x", requests=BIG)
    coming = a_claim("y", stage=REGISTERED, annotations={REPLACES: "uid-x"})
    fleet = [other, node, its_pod, coming, a_node("node-y", claim="y", ready=False)]
    found = verdicts(NO_BREAKER, going(), unhealthy_node(), POD, *come(), *fleet)
    assert about(found, "NodeClaim/a").reason is Reason.REPLACED
    assert not created(found)


def test_it_waits_for_a_room_that_is_on_its_way_rather_than_for_another_one() -> None:
    taken = a_pod("newcomer", node="node-b", requests=BIG)
    coming = [
        a_claim("c", stage=REGISTERED),
        a_node("node-c", claim="c", ready=False),
    ]
    found = verdicts(NO_BREAKER, going(), unhealthy_node(), POD, *come(), taken, *coming)
    told = about(found, "NodeClaim/a")
    assert (told.reason, told.action) == (Reason.DISRUPTION_WAITS, None)
    assert told.facts[-1] == CapacityNotInitialized(("node-c",))
    assert not created(found)


def test_only_what_is_due_bounds_the_drain() -> None:
    """Ready=False would bound it to nothing, and is tolerated for ten minutes still."""
    young = Condition(type="Ready", status="False", reason="Down", last_transition_time=ago(5))
    unhealthy = Condition(
        type="KWOKUnhealthy", status="True", reason="Test", last_transition_time=ago(60)
    )
    node = unhealthy_node(status={"conditions": (young, unhealthy)})
    told = on_claim(going(), node, POD, *come())
    assert isinstance(told.action, Patch)
    assert told.action.ahead == timedelta(seconds=45)
    assert told.recheck_at == ahead(595)


def test_what_is_tolerated_again_waits_until_it_is_due() -> None:
    told = on_claim(going(), unhealthy_node(since=10), POD, *come())
    assert (told.reason, told.recheck_at) == (Reason.DISRUPTION_WAITS, ahead(20))


def test_a_protected_pod_rolls_it_back_where_nothing_bounds_the_wait() -> None:
    protected = [going(), unhealthy_node(), a_pod(requests=BIG, protected="true"), *come()]
    assert on_claim(*protected).reason is Reason.REPLACED
    unbounded = tuple(
        msgspec.structs.replace(one, grace_period=None)
        if one.condition_type == "KWOKUnhealthy"
        else one
        for one in kwok_statements()
    )
    rolled_back(*protected, repair_statements=unbounded)


def test_two_small_pods_share_what_was_launched() -> None:
    pods = [a_pod("one", requests=HALF), a_pod("two", requests=HALF)]
    assert on_claim(going(), unhealthy_node(), *pods, *come()).reason is Reason.REPLACED


# -- the gates, for the second time ----------------------------------------------------------


def frozen(*budgets: dict[str, Any], **repair: Any) -> NodePool:
    return a_pool(disruption={"budgets": list(budgets)}, repair={"maxUnhealthy": "100%", **repair})


def another(name: str, replacement: str) -> list[Any]:
    """One more node with a command whose replacement is initialized."""
    claim = a_claim(
        name,
        annotations={REPLACED_BY: replacement, DISRUPTION_REASON: "Unhealthy"},
        conditions=[condition("DisruptionReason", reason="Unhealthy")],
    )
    told = Condition(
        type="KWOKUnhealthy", status="True", reason="Test", last_transition_time=ago(60)
    )
    status = {"conditions": (condition("Ready"), told)}
    node = a_node(f"node-{name}", claim=name, taints=(DISRUPTED,), status=status)
    new = a_claim(replacement, annotations={REPLACES: f"uid-{name}"})
    return [claim, node, new, a_node(f"node-{replacement}", claim=replacement)]


def test_a_budget_that_closed_meanwhile_rolls_it_back() -> None:
    """As for every method: the Node stays tainted for no longer than the budget is open."""
    closed = frozen({"nodes": "0", "schedule": "0 11 * * *", "duration": "2h"})
    told = rolled_back(closed, going(), unhealthy_node(), POD, *come())
    assert fact_of(told, BudgetUse).nodes == "0"


def test_a_budget_does_not_count_the_node_itself() -> None:
    told = on_claim(frozen({"nodes": "1"}), going(), unhealthy_node(), POD, *come())
    assert told.reason is Reason.REPLACED


def test_commands_beyond_a_budget_that_was_lowered_go_one_after_the_other() -> None:
    """Each has its replacement; they must not wait for each other for ever."""
    found = verdicts(frozen({"nodes": "1"}), going(), unhealthy_node(), *come(), *another("x", "y"))
    told = {name: about(found, f"NodeClaim/{name}").reason for name in ("a", "x")}
    assert told == {"a": Reason.REPLACED, "x": Reason.DISRUPTION_BLOCKED}


def test_a_node_that_terminates_uses_the_budget() -> None:
    leaving = [a_leaving_claim("x"), a_leaving_node("node-x", claim="x")]
    told = on_claim(frozen({"nodes": "1"}), going(), unhealthy_node(), POD, *come(), *leaving)
    assert told.reason is Reason.DISRUPTION_BLOCKED
    assert fact_of(told, BudgetUse).leaving == ("node-x",)


def test_a_breaker_that_trips_meanwhile_blocks_it() -> None:
    pool = frozen({"nodes": "100%"}, maxUnhealthy="1")
    told = on_claim(pool, going(), unhealthy_node(), POD, *come(), *another("x", "y"))
    assert (told.reason, told.action) == (Reason.REPAIR_BLOCKED, None)
    assert fact_of(told, CircuitBreakerOpen).max_unhealthy == "1"


def unhealthy_in(zone: str, name: str, pool: str) -> list[Any]:
    told = Condition(
        type="KWOKUnhealthy", status="True", reason="Test", last_transition_time=ago(60)
    )
    labels, status = {ZONE: zone, NODEPOOL: pool}, {"conditions": (condition("Ready"), told)}
    node = a_node(f"node-{name}", claim=name, labels=labels, status=status)
    return [a_claim(name, labels={NODEPOOL: pool}), node]


def test_an_outage_of_its_zone_that_begins_meanwhile_blocks_it() -> None:
    others = [*unhealthy_in("zone-c", "x", "general"), *unhealthy_in("zone-c", "y", "blue")]
    blue = a_pool("blue", repair={"maxUnhealthy": "100%"})
    mine = unhealthy_node(labels={ZONE: "zone-c"})
    told = on_claim(NO_BREAKER, blue, going(), mine, POD, *come(), *others)
    assert (told.reason, told.action) == (Reason.REPAIR_BLOCKED, None)
    outage = fact_of(told, Outage)
    assert (outage.domain, outage.unhealthy) == (Domain("zone", "zone-c"), 3)
    elsewhere = unhealthy_node(labels={ZONE: "zone-d"})
    assert on_claim(NO_BREAKER, blue, going(), elsewhere, POD, *come(), *others).reason is (
        Reason.REPLACED
    )


def test_a_stamp_of_a_command_that_is_rolled_back_is_taken_off() -> None:
    stamped = going(marks={TERMINATION_TIMESTAMP: "2026-03-02T12:00:44Z"})
    told = rolled_back(frozen({"nodes": "0"}), stamped, unhealthy_node(), POD, *come())
    assert body_of(told)["metadata"]["annotations"][TERMINATION_TIMESTAMP] is None


def test_a_pause_of_the_pool_does_not_keep_two_nodes_where_one_is_needed() -> None:
    failed = a_claim("f", annotations={REPLACEMENT_FAILED: "1 2026-03-02T11:59:50Z"})
    told = on_claim(
        NO_BREAKER, going(), unhealthy_node(), POD, *come(), failed, a_node("node-f", claim="f")
    )
    assert told.reason is Reason.REPLACED


def test_once_the_budget_opens_it_goes_and_not_before() -> None:
    opens = frozen({"nodes": "0", "schedule": "0 11 * * *", "duration": "2h"})
    snapshot = snapshot_with(
        a_class(),
        opens,
        going(),
        unhealthy_node(),
        POD,
        *come(),
        observations=Observations(repair_statements=kwok_statements(), instance_types=types()),
    )
    check_honest_recheck(DisruptionDecider(), snapshot, NOW, timedelta(minutes=59))
