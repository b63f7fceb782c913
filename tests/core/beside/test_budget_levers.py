"""Budgets that Karpenter does not know, kept by levers: which Nodes are left open, and never too many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.beside.facts.budgets import BudgetHolds, BudgetsAsLevers, LeftOpen
from tenure.core.beside.facts.levers import LeverBlocks
from tenure.core.beside.levers import LeverDecider
from tenure.core.beside.limits import limited
from tenure.core.decision import Patch, Verdict
from tenure.core.gates.facts import BudgetUnreadable
from tenure.core.policy.deciders import decide_all
from tenure.core.reasons import Reason
from tenure.model.api import names
from tenure.model.api.meta import ApiObject, format_time
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import NODE_POOLS
from tenure.model.snapshot.snapshot import EVERY_CLASS, Change
from tenure.model.snapshot.unreadable import stand_in
from tests.core.beside.scenes import SETTINGS, marks
from tests.core.beside.test_levers import window
from tests.core.build import DISRUPTED, NOW, a_claim, a_node, a_policy, a_pool, ago, condition
from tests.properties.thoroughness import tried
from tests.snapshots import snapshot_with

HOUR = timedelta(hours=1)
ONE = [{"nodes": "1"}]
DRIFTED = (condition("Drifted"),)


def a_pair(name: str, *, drifted: bool = False, age: float = 600, **node: Any) -> tuple[Any, Any]:
    claim = a_claim(name, conditions=DRIFTED if drifted else (), creation_timestamp=ago(age))
    return claim, a_node(f"node-{name}", claim=name, **node)


def pairs(*names_: str, **fields: Any) -> list[ApiObject]:
    """The first is the oldest."""
    found = (a_pair(name, age=1000 - number, **fields) for number, name in enumerate(names_))
    return [thing for pair in found for thing in pair]


def evaluated(*objects: ApiObject, now: datetime = NOW, **more: Any) -> list[Verdict]:
    snapshot = snapshot_with(*objects, ours=EVERY_CLASS, **more)
    return decide_all(LeverDecider(SETTINGS), snapshot, SETTINGS, now)


def of_node(verdicts: Iterable[Verdict], name: str) -> Verdict:
    (found,) = (one for one in verdicts if (one.subject.kind, one.subject.name) == ("Node", name))
    return found


def facts_of(verdict: Verdict, kind: type[Any]) -> list[Any]:
    return [fact for fact in verdict.facts if isinstance(fact, kind)]


def applied(objects: Sequence[ApiObject], verdicts: Iterable[Verdict]) -> list[ApiObject]:
    """As the API server has them after the writes."""
    writes = {one.action.name: one.action for one in verdicts if isinstance(one.action, Patch)}
    return [_written(one, writes.get(one.name)) for one in objects]


def _written(thing: ApiObject, write: Patch | None) -> ApiObject:
    if write is None or not isinstance(thing, Node):
        return thing
    merged = {**thing.annotations, **write.body["metadata"]["annotations"]}
    kept = {key: value for key, value in merged.items() if value is not None}
    return msgspec.structs.replace(
        thing, metadata=msgspec.structs.replace(thing.metadata, annotations=kept)
    )


def open_nodes(objects: Iterable[ApiObject]) -> set[str]:
    nodes = (one for one in objects if isinstance(one, Node))
    return {one.name for one in nodes if one.annotations.get(names.DO_NOT_DISRUPT) != "true"}


def settled(*objects: ApiObject, now: datetime = NOW) -> list[ApiObject]:
    """Until nothing is written any more."""
    state = list(objects)
    for _ in range(5):
        verdicts = evaluated(*state, now=now)
        if not any(one.action for one in verdicts):
            return state
        state = applied(state, verdicts)
    raise AssertionError("it does not settle")


def policy(*budgets: dict[str, Any], **spec: Any) -> Any:
    return a_policy("slow", budgets=list(budgets), **spec)


def test_as_many_nodes_stay_open_as_the_policy_allows_the_oldest_first() -> None:
    objects = [*pairs("c", "a", "b"), a_pool(), policy({"nodes": "1"})]
    verdicts = evaluated(*objects)
    left = of_node(verdicts, "node-c")
    assert (left.reason, left.action) == (Reason.LEVER_OFF, None)
    assert facts_of(left, LeftOpen)[0].source == "NodePoolPolicy slow"
    held = of_node(verdicts, "node-a")
    assert held.reason is Reason.LEVER_SET
    assert facts_of(held, LeverBlocks)[0].causes == ("budget",)
    assert facts_of(held, BudgetHolds)[0].pool == "general"
    assert isinstance(held.action, Patch)
    written = held.action.body["metadata"]["annotations"]
    assert written[names.DO_NOT_DISRUPT_BECAUSE] == "budgets of NodePoolPolicy slow"
    assert written[names.DO_NOT_DISRUPT_UNTIL] == "unknown"
    assert open_nodes(settled(*objects)) == {"node-c"}


def test_the_pool_says_how_many_are_open() -> None:
    objects = settled(*pairs("a", "b", "c"), a_pool(), policy({"nodes": "1"}))
    (verdict,) = (one for one in evaluated(*objects) if one.subject.kind == "NodePool")
    assert verdict.reason is Reason.BUDGETS_AS_LEVERS
    said = facts_of(verdict, BudgetsAsLevers)[0]
    assert (said.nodes, said.open, said.leaving) == (3, 1, 0)


@pytest.mark.parametrize(
    "budgets",
    [
        [{"nodes": "100%"}],
        [{"nodes": "1", "reasons": ["Expired"]}],
        [{"nodes": "1", "reasons": ["Unhealthy"]}],
        [],
    ],
)
def test_where_all_may_go_nothing_is_set(budgets: list[Any]) -> None:
    objects = [*pairs("a", "b", "c", ready=False), a_pool(), policy(*budgets)]
    assert not any(one.action for one in evaluated(*objects))
    assert open_nodes(objects) == {"node-a", "node-b", "node-c"}


def test_budgets_that_karpenter_keeps_itself_set_no_lever() -> None:
    own = a_pool(disruption={"budgets": [{"nodes": "0"}]})
    assert limited(own) is None
    assert not any(one.action for one in evaluated(*pairs("a", "b"), own))
    both = [*pairs("a", "b", "c"), own, policy({"nodes": "2"})]
    assert len(open_nodes(settled(*both))) == 2


@pytest.mark.parametrize(
    "more", [{"per": names.ZONE}, {"timeZone": "UTC", "schedule": "@daily", "duration": "24h"}]
)
def test_a_budget_of_the_pool_that_karpenter_does_not_know_does(more: dict[str, Any]) -> None:
    own = a_pool(disruption={"budgets": [{"nodes": "1", **more}]})
    objects = settled(*pairs("a", "b"), own)
    assert open_nodes(objects) == {"node-a"}
    held = of_node(evaluated(*objects), "node-b")
    assert facts_of(held, BudgetHolds)[0].source == "NodePool general"


@pytest.mark.parametrize("reason", ["Drifted", "Empty", "Underutilized"])
def test_the_tightest_of_the_reasons_that_the_lever_stops_counts(reason: str) -> None:
    budgets = policy({"nodes": "3"}, {"nodes": "1", "reasons": [reason]})
    assert len(open_nodes(settled(*pairs("a", "b", "c", "d"), a_pool(), budgets))) == 1


def test_nodes_that_leave_or_are_not_ready_use_it_up() -> None:
    two = [a_pool(), policy({"nodes": "2"})]
    tainted = a_pair("t", taints=(DISRUPTED,))
    assert open_nodes(settled(*pairs("a", "b"), *tainted, *two)) == {"node-a", "node-t"}
    not_ready = a_pair("u", ready=False, age=1)
    found = open_nodes(settled(*pairs("a", "b"), *not_ready, *two))
    assert found == {"node-a", "node-u"}, "it has used a place: leaving it open costs none"


def test_nodes_that_karpenter_could_disrupt_next_have_a_place_first() -> None:
    one = [a_pool(), policy({"nodes": "1"})]
    objects = settled(*pairs("a", "b", "c"), *one)
    assert open_nodes(objects) == {"node-a"}
    drifts = [
        msgspec.structs.replace(
            thing,
            status=msgspec.structs.replace(
                thing.status, conditions=(*thing.status.conditions, *DRIFTED)
            ),
        )
        if isinstance(thing, NodeClaim) and thing.name == "c"
        else thing
        for thing in objects
    ]
    first = evaluated(*drifts)
    assert of_node(first, "node-a").reason is Reason.LEVER_SET
    assert of_node(first, "node-c").action is None, "node-a is still open as far as we have seen"
    assert open_nodes(settled(*drifts)) == {"node-c"}


def test_an_open_node_keeps_its_place_when_others_come_and_go() -> None:
    limits = [a_pool(), policy({"nodes": "1"})]
    objects = settled(*pairs("b", "c"), *limits)
    assert open_nodes(objects) == {"node-b"}
    on = {names.DO_NOT_DISRUPT: "true", **marks()}
    older = a_pair("a", age=9000, annotations=on)
    assert open_nodes(settled(*objects, *older)) == {"node-b"}
    assert open_nodes(settled(*objects, *a_pair("new", age=1))) == {"node-b"}
    drifted = settled(*pairs("b", "c", drifted=True), *limits)
    again = settled(*drifted, *a_pair("a", age=9000, drifted=True, annotations=on))
    assert open_nodes(again) == {"node-b"}


def test_when_karpenter_takes_a_node_no_other_opens_before_it_is_gone() -> None:
    limits = [a_pool(), policy({"nodes": "1"})]
    objects = settled(*pairs("a", "b", "c", drifted=True), *limits)
    assert open_nodes(objects) == {"node-a"}
    begun = [_tainted(one) if one.name == "node-a" else one for one in objects]
    assert not any(one.action for one in evaluated(*begun))
    gone = [one for one in begun if one.name not in ("a", "node-a")]
    assert open_nodes(settled(*gone)) == {"node-b"}


def _tainted(thing: Any) -> Any:
    return msgspec.structs.replace(
        thing, spec=msgspec.structs.replace(thing.spec, taints=(DISRUPTED,))
    )


def test_a_covered_node_that_leaves_keeps_its_lever() -> None:
    """Karpenter may roll a repair back."""
    objects = settled(*pairs("a", "b"), a_pool(), policy({"nodes": "1"}))
    begun = [_tainted(one) if one.name == "node-b" else one for one in objects]
    assert of_node(evaluated(*begun), "node-b").reason is Reason.LEVER_ON


def test_a_budget_that_is_closed_covers_all_until_it_opens() -> None:
    closed = {"nodes": "0", "schedule": "0 11 * * *", "duration": "2h"}
    objects = [*pairs("a", "b"), a_pool(), policy({"nodes": "1"}, closed)]
    verdicts = evaluated(*objects)
    for name in ("node-a", "node-b"):
        verdict = of_node(verdicts, name)
        assert facts_of(verdict, LeverBlocks)[0].until == NOW + HOUR
        assert verdict.recheck_at == NOW + HOUR
    covered = settled(*objects)
    assert open_nodes(covered) == set()
    assert open_nodes(settled(*covered, now=NOW + HOUR)) == {"node-a"}


def test_a_time_zone_counts() -> None:
    closed = {"nodes": "0", "schedule": "0 12 * * *", "duration": "1h", "timeZone": "Europe/Berlin"}
    objects = [*pairs("a"), a_pool(), policy(closed)]  # In Berlin it is 13:00.
    assert open_nodes(settled(*objects)) == {"node-a"}
    assert open_nodes(settled(*objects, now=NOW - HOUR)) == set()


def test_each_group_of_per_has_places_of_its_own_and_a_selector_leaves_others_alone() -> None:
    zones = [
        thing
        for name, zone in (("a", "x"), ("b", "x"), ("c", "y"), ("d", "y"))
        for thing in a_pair(name, labels={names.ZONE: zone})
    ]
    per = policy({"nodes": "1", "per": names.ZONE})
    assert open_nodes(settled(*zones, a_pool(), per)) == {"node-a", "node-c"}
    selector = {"matchExpressions": [{"key": names.ZONE, "operator": "In", "values": ["x"]}]}
    some = policy({"nodes": "1", "selector": selector})
    assert open_nodes(settled(*zones, a_pool(), some)) == {"node-a", "node-c", "node-d"}


def test_a_window_covers_whatever_budgets_say_and_gives_its_place_to_another() -> None:
    x_only = window("x", team="x")
    objects = [
        *a_pair("a", labels={"team": "x"}, age=900),
        *pairs("b", "c"),
        a_pool(),
        policy({"nodes": "1"}),
        x_only,
    ]
    found = settled(*objects)
    assert open_nodes(found) == {"node-b"}
    verdict = of_node(evaluated(*found), "node-a")
    assert facts_of(verdict, LeverBlocks)[0].causes == ("window",)


def test_a_node_that_is_not_initialized_is_covered_and_has_no_place() -> None:
    new = a_claim("new", stage=2), a_node("node-new", claim="new")
    found = settled(*pairs("a"), *new, a_pool(), policy({"nodes": "5"}))
    assert open_nodes(found) == {"node-a"}


def test_what_users_wrote_has_a_place_before_others_and_is_not_touched() -> None:
    ignored = a_pair("u", annotations={names.DO_NOT_DISRUPT: "2h"}, age=1)
    found = settled(*pairs("a", "b"), *ignored, a_pool(), policy({"nodes": "1"}))
    assert open_nodes(found) == {"node-u"}
    protected = a_pair("p", annotations={names.DO_NOT_DISRUPT: "true"})
    found = settled(*pairs("a", "b"), *protected, a_pool(), policy({"nodes": "1"}))
    assert open_nodes(found) == {"node-a"}


@pytest.mark.parametrize("other", [policy({"nodes": "many"}), a_policy("b", budgets=ONE)])
def test_a_policy_that_is_refused_closes_the_pool(other: Any) -> None:
    first = () if other.name == "slow" else (policy({"nodes": "100%"}),)
    objects = [*pairs("a", "b"), a_pool(), *first, other]
    verdict = of_node(evaluated(*objects), "node-a")
    assert verdict.reason is Reason.LEVER_SET
    assert facts_of(verdict, BudgetUnreadable)
    assert open_nodes(settled(*objects)) == set()


def test_without_the_policy_all_levers_go() -> None:
    objects = settled(*pairs("a", "b", "c"), a_pool(), policy({"nodes": "1"}))
    rest = [one for one in objects if one.name != "slow"]
    verdicts = evaluated(*rest)
    assert of_node(verdicts, "node-c").reason is Reason.LEVER_REMOVED
    assert open_nodes(settled(*rest)) == {"node-a", "node-b", "node-c"}


# -- starts ---------------------------------------------------------------------------

TWO_AN_HOUR = {"nodes": "2", "within": "1h"}


def remembering(budget: dict[str, Any], *starts: tuple[str, datetime]) -> Any:
    entries = [
        {"pool": "general", "claim": f"uid-{claim}", "at": format_time(at), "reason": "Drifted"}
        for claim, at in starts
    ]
    found = policy(budget)
    content = {"spec": msgspec.to_builtins(found.spec), "status": {"disruptionStarts": entries}}
    made = msgspec.convert(content, type(found))
    return msgspec.structs.replace(made, metadata=found.metadata)


def test_departures_that_are_remembered_use_up_a_budget_with_within() -> None:
    nodes = [*pairs("a", "b", "c"), a_pool()]
    assert len(open_nodes(settled(*nodes, remembering(TWO_AN_HOUR)))) == 2
    one = remembering(TWO_AN_HOUR, ("gone", NOW - HOUR / 2))
    assert len(open_nodes(settled(*nodes, one))) == 1
    two = remembering(TWO_AN_HOUR, ("gone", NOW - HOUR / 2), ("too", NOW - HOUR / 4))
    covered = settled(*nodes, two)
    assert open_nodes(covered) == set()
    later = of_node(evaluated(*covered), "node-a").recheck_at
    assert later == NOW + HOUR / 2 + timedelta(seconds=15)
    assert len(open_nodes(settled(*covered, now=later))) == 1


def test_a_departure_counts_before_it_is_remembered_and_once() -> None:
    nodes = [*pairs("a", "b", "c"), a_pool()]
    leaving = a_pair("t", taints=(DISRUPTED,))
    found = settled(*nodes, *leaving, remembering(TWO_AN_HOUR))
    assert open_nodes(found) - {"node-t"} == {"node-a"}
    known = remembering(TWO_AN_HOUR, ("t", NOW - timedelta(minutes=1)))
    assert open_nodes(settled(*nodes, *leaving, known)) - {"node-t"} == {"node-a"}


def test_a_start_that_cannot_be_read_closes_the_budget() -> None:
    broken = remembering(TWO_AN_HOUR, ("gone", NOW + 5 * HOUR))
    assert open_nodes(settled(*pairs("a", "b"), a_pool(), broken)) == set()


# -- never too many -------------------------------------------------------------------


@tried(40)
@given(
    limit=st.integers(0, 4),
    rounds=st.lists(
        st.fixed_dictionaries(
            {
                "drifted": st.sets(st.integers(0, 5)),
                "leaves": st.none() | st.integers(0, 5),
                "writes": st.integers(0, 6),
            }
        ),
        max_size=6,
    ),
)
def test_open_and_leaving_nodes_are_never_more_than_the_limit(
    limit: int, rounds: list[dict[str, Any]]
) -> None:
    """Whatever drifts, whichever open Node Karpenter takes, and however few of our writes arrive."""
    left = set(range(6))
    state = settled(*_six(left, set()), a_pool(), policy({"nodes": str(limit)}))
    for one in rounds:
        state = _drifting(state, one["drifted"])
        taken = f"node-w{one['leaves']}"
        if taken in open_nodes(state):
            state = [_tainted(thing) if thing.name == taken else thing for thing in state]
        verdicts = [verdict for verdict in evaluated(*state) if verdict.action]
        state = applied(state, verdicts[: one["writes"]])
        assert len(open_nodes(state)) <= limit


def _six(left: set[int], drifted: set[int]) -> list[ApiObject]:
    found = (a_pair(f"w{number}", drifted=number in drifted) for number in sorted(left))
    return [thing for pair in found for thing in pair]


def _drifting(state: list[ApiObject], drifted: set[int]) -> list[ApiObject]:
    claims = {
        f"w{number}": a_pair(f"w{number}", drifted=number in drifted)[0] for number in range(6)
    }
    return [claims.get(thing.name, thing) for thing in state]


def test_when_a_pool_that_cannot_be_read_is_deleted_its_nodes_are_asked_by_themselves() -> None:
    """Else a lever that it had closed would stay: no budget is left."""
    odd = stand_in(a_pool(), "spec is no object", field="spec")
    snapshot = snapshot_with(*pairs("a", "b"), a_policy("slow", budgets=ONE), ours=EVERY_CLASS)
    touched = set(LeverDecider(SETTINGS).touched(Change(NODE_POOLS, odd.name, odd, None), snapshot))
    assert {"node-a", "node-b"} <= touched
