"""What the search for moves is asked: who may go, what is closed, and why the others stay."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
import pytest

from tenure.core.disrupt.consolidation import figures, podsthere
from tenure.core.disrupt.consolidation.decider import ConsolidationDecider
from tenure.core.disrupt.consolidation.planned import plan_now
from tenure.core.disrupt.consolidation.question import Asked, ask, asking
from tenure.core.disrupt.facts.candidates import PendingPodsFirst, PendingPodsFit, ReservedForPods
from tenure.core.disrupt.facts.consolidation import (
    PodComing,
    PodNotEvicted,
    PodsChangedLately,
    PodStillTerminating,
    PodWithoutController,
)
from tenure.core.facts import Fact
from tenure.core.gates.facts import BlockedByObject, BlockedUntil
from tenure.core.gates.operations import Gate
from tenure.core.provision.demand import is_reschedulable
from tenure.core.provision.facts import TypesAwaited
from tenure.core.reasons import Reason
from tenure.core.terminate.facts.pods import PdbNeverAllows
from tenure.core.windows.facts import OutsideAllowWindows
from tenure.model.api.meta import ApiObject, Condition
from tenure.model.api.names import (
    CAPACITY_TYPE,
    DISRUPTION_REASON,
    DO_NOT_DISRUPT,
    INSTANCE_TYPE,
    NODEPOOL,
    REPLACED_BY,
    REPLACES,
    ZONE,
)
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod, Toleration
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, NODES, PODS
from tenure.model.api.workload import Namespace
from tenure.model.settings import Settings
from tenure.model.snapshot.observations import Observations
from tenure.model.snapshot.snapshot import Snapshot, Tables
from tenure.packing.consolidate.facts import PriceUnknown
from tenure.packing.consolidate.question import Question
from tenure.packing.consolidate.search import Search
from tenure.packing.demand import asked as packing_asked
from tenure.packing.demand.asked import _asked as as_it_asks
from tests.core.build import (
    DISRUPTED,
    NOW,
    SETTINGS,
    a_claim,
    a_class,
    a_node,
    a_pdb,
    a_pending_pod,
    a_pod,
    a_pool,
    a_type,
    a_window,
    about,
    ago,
    ahead,
    condition,
    evaluated,
    meta,
    types,
)
from tests.snapshots import SERVED, snapshot_with

EVERY_NIGHT = {"schedules": [{"cron": "0 22 * * *", "duration": "2h"}]}
SOLD = {INSTANCE_TYPE: "small", ZONE: "zone-a", CAPACITY_TYPE: "on-demand"}


def node(name: str = "a", labels: dict[str, str] = SOLD, **fields: Any) -> Node:
    return a_node(f"node-{name}", claim=name, labels=labels, **fields)


def pod(name: str = "web", on: str = "a", *, came: float = 600, **fields: Any) -> Pod:
    told = condition("PodScheduled", at=ago(came))
    return a_pod(name, node=f"node-{on}", conditions=(told,), **fields)


def asked(
    *objects: ApiObject, settings: Settings = SETTINGS, pool: Any = None, **known: Any
) -> Asked:
    pool = a_pool(disruption={"consolidateAfter": "1m"}) if pool is None else pool
    usual: dict[str, Any] = {"instance_types": types()}
    observations = Observations(**usual | known)
    snapshot = snapshot_with(a_class(), pool, *objects, observations=observations)
    return ask(snapshot, settings, NOW)


def question(*objects: ApiObject, **known: Any) -> Question:
    found = asked(*objects, **known).question
    assert found is not None
    return found


def why(*objects: ApiObject, **known: Any) -> Fact:
    """Why node-a is no candidate."""
    found = asked(*objects, **known)
    assert "node-a" not in found.claims
    return found.why["node-a"][0]


def test_a_quiet_node_with_a_price_is_a_candidate() -> None:
    found = question(a_claim("a"), node(), pod())
    (one,) = found.candidates
    assert (one.name, one.pool, one.price) == ("node-a", "general", 100_000)
    assert (one.instance_type, one.capacity_type, one.cost) == ("small", "on-demand", 2.0)
    assert [each.name for each in found.nodes] == ["node-a"]
    assert found.node_fee_cpus == SETTINGS.node_fee_cpus


def test_the_search_knows_the_labels_of_namespaces() -> None:
    team = Namespace(metadata=meta("shop", labels={"team": "shop"}))
    assert question(a_claim("a"), node(), pod(), team).namespaces == {"shop": {"team": "shop"}}


@pytest.mark.parametrize(
    "disruption",
    [
        {"consolidateAfter": "Never"},
        {"consolidateAfter": "1m", "consolidationPolicy": "WhenEmpty"},
    ],
)
def test_a_pool_may_keep_its_nodes(disruption: dict[str, str]) -> None:
    found = asked(a_claim("a"), node(), pod(), pool=a_pool(disruption=disruption))
    assert found == Asked()


@pytest.mark.parametrize(
    "claim",
    [
        a_claim("a", stage=2),
        a_claim("a", deletion_timestamp=ago(5)),
        a_claim("a", annotations={REPLACED_BY: "", DISRUPTION_REASON: "Drifted"}),
    ],
)
def test_a_node_that_comes_or_leaves_is_none(claim: NodeClaim) -> None:
    assert asked(claim, node(), pod()).question is None


def test_a_price_that_is_missing_or_zero_excludes_a_node() -> None:
    there = a_claim("a"), node(labels={**SOLD, INSTANCE_TYPE: "old"}), pod()
    assert why(*there) == PriceUnknown("old", "on-demand")
    free = types(a_type(price=0))
    assert why(a_claim("a"), node(), pod(), instance_types=free) == PriceUnknown(
        "small", "on-demand"
    )
    unplaced = {INSTANCE_TYPE: "small", CAPACITY_TYPE: "on-demand"}
    assert isinstance(why(a_claim("a"), node(labels=unplaced), pod()), PriceUnknown)


def test_pods_that_would_be_lost_or_are_awaited_keep_their_node() -> None:
    there = a_claim("a"), node(), pod()
    assert why(*there, pod("debug", owner="")) == PodWithoutController("default/debug")
    leaving = pod("db-0", owner="StatefulSet", deletion_timestamp=ago(5))
    assert why(*there, leaving) == PodStillTerminating("default/db-0")
    comes = a_pod("db-1", node="", phase="Pending", nominated="node-a")
    assert why(*there, comes) == PodComing("default/db-1")
    gone = pod("old", deletion_timestamp=ago(300))
    assert question(*there, gone, pod("agent", owner="DaemonSet")).candidates


@pytest.mark.parametrize(
    ("came", "left", "at"),
    [(30.0, None, ahead(30)), (600.0, ago(50), ahead(10)), (600.0, ago(600), None)],
)
def test_it_is_a_candidate_once_its_pods_are_quiet(
    came: float, left: datetime | None, at: datetime | None
) -> None:
    seen = {"node-a": left} if left is not None else {}
    found = asked(a_claim("a"), node(), pod(came=came), pods_left=seen)
    assert (found.question is None) == (at is not None)
    assert (found.quiet_at, found.changes_at) == (at, None)
    if at is not None:
        assert isinstance(found.why["node-a"][0], PodsChangedLately)


def test_gates_are_asked_and_budgets_are_not() -> None:
    there = a_claim("a"), node()
    protected = why(*there, pod(protected="true"))
    assert isinstance(protected, BlockedByObject | BlockedUntil)
    closed = a_pool(disruption={"consolidateAfter": "1m", "budgets": [{"nodes": "0"}]})
    assert question(*there, pod(), pool=closed).candidates


def test_a_node_names_the_gate_that_lasts_longest() -> None:
    """The window opens tonight. To wait for it would be in vain: the PDB never allows an eviction."""
    told = condition("PodScheduled", at=ago(600)), condition("Ready")
    there = a_claim("a"), node(), a_pod("web", node="node-a", conditions=told)
    night = {"type": "Allow", "actions": ["Consolidation"]}
    window = a_window(spec={**night, **EVERY_NIGHT})
    never = a_pdb(expected_pods=1, current_healthy=1, desired_healthy=1)
    assert isinstance(why(*there, window), OutsideAllowWindows)
    blocked = why(*there, window, never)
    assert isinstance(blocked, BlockedByObject)
    assert isinstance(blocked.fact, PdbNeverAllows)
    found = asked(*there, window, never)
    assert found.changes_at == ahead(10 * 3600), "when the window opens, other words may be right"


def test_its_verdict_has_the_gate_and_the_objects_of_all_gates() -> None:
    """What lasts longest first, as of a candidate that is blocked."""
    told = condition("PodScheduled", at=ago(600)), condition("Ready")
    pool = a_pool(disruption={"consolidateAfter": "1m"})
    objects = [
        a_class(),
        pool,
        a_claim("a"),
        node(),
        a_pod("web", node="node-a", conditions=told),
        a_window(spec={"type": "Allow", "actions": ["Consolidation"], **EVERY_NIGHT}),
        a_pdb(expected_pods=1, current_healthy=1, desired_healthy=1),
    ]
    snapshot = snapshot_with(*objects, observations=Observations(instance_types=types()))
    plan = plan_now(ask(snapshot, SETTINGS, NOW), NOW)
    found = evaluated(ConsolidationDecider(), *objects, consolidation=plan)
    for subject in ("NodeClaim/a", "Node/node-a"):
        verdict = about(found, subject)
        assert (verdict.reason, verdict.gate) == (Reason.UNCONSOLIDATABLE, Gate.PODS)
        assert [(str(one.subject), one.lasting, one.until) for one in verdict.blockers] == [
            ("PodDisruptionBudget/default/web", True, None),
            ("MaintenanceWindow/office-hours", False, ahead(10 * 3600)),
        ]
    changed = msgspec.structs.replace(plan, blocked={})
    assert changed.by_node != plan.by_node, "other blockers are another verdict"


def test_a_protection_that_ends_is_asked_about_again_then() -> None:
    found = asked(a_claim("a"), node(), pod(protected="2h", creation_timestamp=ago(3600)))
    assert found.changes_at == ahead(3600)


def test_a_replacement_whose_pods_are_still_to_come_stays() -> None:
    new = a_claim("a", annotations={REPLACES: "uid-b"})
    old = a_claim("b", annotations={REPLACED_BY: "a", DISRUPTION_REASON: "Drifted"})
    found = why(new, node(), pod(), old, node("b", taints=[DISRUPTED]))
    assert found == ReservedForPods("a", "b")


# -- the nodes -----------------------------------------------------------------------------------


def closed(found: Question) -> dict[str, bool]:
    return {each.name: each.closed for each in found.nodes}


def test_destinations_that_take_no_pods_are_closed() -> None:
    found = question(
        *(a_claim("a"), node(), pod()),
        *(a_claim("new", stage=2), node("new", labels={**SOLD})),
        *(a_claim("busy"), node("busy"), pod("api", "busy", came=10)),
        *(a_claim("cordoned"), node("cordoned", unschedulable=True), pod("x", "cordoned")),
        *(a_claim("quiet"), node("quiet"), pod("y", "quiet")),
    )
    assert closed(found) == {
        "node-a": False,
        "node-new": True,
        "node-busy": True,
        "node-cordoned": True,
        "node-quiet": False,
    }


def test_without_consolidate_after_a_node_takes_pods_at_once() -> None:
    pool = a_pool(disruption={"consolidateAfter": "0s"})
    there = a_claim("a"), node(), pod(), a_claim("busy"), node("busy"), pod("api", "busy", came=1)
    assert closed(question(*there, pool=pool)) == {"node-a": False, "node-busy": False}


def test_pending_pods_have_their_room_first() -> None:
    """They fit on one node, which is no candidate then; the other has less room by nothing."""
    waiting = a_pending_pod("next", requests={"cpu": "3"})
    full = pod(requests={"cpu": "3"})
    there = a_claim("a"), node(), full, a_claim("b"), node("b"), pod("api", "b"), waiting
    found = asked(*there)
    assert found.why["node-b"] == (PendingPodsFit("node-b"),)
    assert found.question is not None
    (b,) = (each for each in found.question.nodes if each.name == "node-b")
    assert {each.metadata.name for each in b.pods} == {"api", "next"}


def test_pods_of_a_node_that_leaves_are_where_they_will_be() -> None:
    old = a_claim(
        "old",
        annotations={REPLACED_BY: "", DISRUPTION_REASON: "Drifted"},
        conditions=[Condition(type="DisruptionReason", status="True", last_transition_time=ago(9))],
    )
    leaving = node("old", taints=[DISRUPTED])
    found = question(
        old, leaving, pod("api", "old"), a_claim("a"), node(), pod(), a_claim("b"), node("b")
    )
    by_name = {each.name: each for each in found.nodes}
    assert by_name["node-old"].closed
    assert not by_name["node-old"].pods
    assert sum(len(each.pods) for each in found.nodes) == 2


def test_pods_that_need_new_nodes_get_them_first() -> None:
    waiting = a_pending_pod("next", since=ago(5), requests={"cpu": "4"})
    found = asked(a_claim("a"), node(), pod(), waiting)
    assert (found.question, found.waits) == (None, PendingPodsFirst())


def test_nothing_is_asked_before_instance_types_are_known() -> None:
    other = a_pool(
        "other",
        template={
            "nodeClassRef": {
                "group": "karpenter.kwok.sh",
                "kind": "KWOKNodeClass",
                "name": "second",
            }
        },
    )
    found = asked(a_claim("a"), node(), pod(), other, a_class("second"))
    assert (found.question, found.waits) == (None, TypesAwaited(("other",)))


def test_a_node_with_a_pod_that_is_not_evicted_stays() -> None:
    tolerates = pod(spec={"tolerations": (Toleration(operator="Exists"),)})
    assert why(a_claim("a"), node(), tolerates) == PodNotEvicted("default/web")


def test_a_pod_that_begins_to_terminate_has_gone() -> None:
    """Its requests are free at once: the node is not quiet from then on."""
    ends = pod("old", deletion_timestamp=ahead(20), deletion_grace_period_seconds=30)
    found = why(a_claim("a"), node(), pod(), ends)
    assert isinstance(found, PodsChangedLately | PodStillTerminating)


def test_before_the_provider_was_asked_for_prices_none_is_said_to_be_missing() -> None:
    assert why(a_claim("a"), node(), pod(), instance_types={}) == TypesAwaited(("general",))


# -- the pools -----------------------------------------------------------------------------------


def test_a_move_takes_no_more_nodes_than_budgets_let_go() -> None:
    there = [each for name in "abcde" for each in (a_claim(name), node(name), pod(name, name))]
    pool = a_pool(disruption={"consolidateAfter": "1m", "budgets": [{"nodes": "40%"}]})
    assert question(*there, pool=pool).allowed == {"general": 2}
    free = a_pool(disruption={"consolidateAfter": "1m", "budgets": []})
    assert question(*there, pool=free).allowed == {}


def test_balanced_pools_are_weighed_over_all_their_nodes() -> None:
    pool = a_pool(disruption={"consolidateAfter": "1m", "consolidationPolicy": "Balanced"})
    there = a_claim("a"), node(), pod(), a_claim("b"), node("b"), pod("new", "b", came=1)
    found = question(*there, pool=pool)
    assert [one.name for one in found.candidates] == ["node-a"]
    (totals,) = found.balanced.values()
    assert (totals.price, totals.cost) == (200_000, 4.0)


def test_the_feature_gate_is_handed_on() -> None:
    there = a_claim("a"), node(), pod()
    assert not question(*there).spot_to_spot
    assert question(*there, settings=Settings(spot_to_spot_consolidation=True)).spot_to_spot


def test_an_empty_node_is_no_candidate_and_gets_pods_last() -> None:
    """It goes for the reason Empty; where that is blocked, pods may still come there."""
    agent = pod("agent", on="b", owner="DaemonSet")
    found = asked(a_claim("a"), node("a"), pod(), a_claim("b"), node("b"), agent)
    assert found.empty == ("node-b",)
    assert "node-b" not in found.why
    assert found.question is not None
    assert [one.name for one in found.question.candidates] == ["node-a"]
    assert found.question.last == ("node-b",)


EMPTY = condition("Empty", reason="NoReschedulablePods", at=ago(300))
CLOSED = {"consolidateAfter": "1m", "budgets": [{"nodes": "0", "reasons": ["Empty"]}]}
ONE = {"consolidateAfter": "1m", "budgets": [{"nodes": "1", "reasons": ["Empty"]}]}


def beside_an_empty_node(*more: ApiObject, **fields: Any) -> list[ApiObject]:
    return [
        *(a_claim("a"), node("a"), pod()),
        *(a_claim("b", conditions=[EMPTY], **fields), node("b")),
        *more,
    ]


def test_no_pod_is_moved_onto_a_node_that_goes_because_it_is_empty() -> None:
    """Else it would stay, and the node of the pod would go instead: nothing is saved."""
    found = asked(*beside_an_empty_node())
    assert found.question is not None
    assert found.empty == ("node-b",)
    assert closed(found.question) == {"node-a": False, "node-b": True}


def test_it_goes_too_where_it_waits_for_its_turn_in_a_budget() -> None:
    other = a_claim("c", stage=2, deletion_timestamp=NOW), node("c")
    found = question(*beside_an_empty_node(*other), pool=a_pool(disruption=ONE))
    assert closed(found)["node-b"]


@pytest.mark.parametrize("policy", ["WhenEmpty", "WhenEmptyOrUnderutilized"])
def test_it_goes_by_whichever_policy_its_pool_has(policy: str) -> None:
    spare = a_pool("spare", disruption={"consolidationPolicy": policy})
    found = question(*beside_an_empty_node(spare, labels={NODEPOOL: "spare"}))
    assert closed(found)["node-b"]


def test_an_empty_node_that_a_window_or_a_budget_keeps_takes_no_pods() -> None:
    """Else a node with pods would go in place of the empty one, and its pods would be disturbed for that."""
    window = a_window(spec={"actions": ["EmptyConsolidation"]})
    assert closed(question(*beside_an_empty_node(window)))["node-b"]
    assert closed(question(*beside_an_empty_node(), pool=a_pool(disruption=CLOSED)))["node-b"]


def test_an_empty_node_that_a_window_and_an_annotation_keep_takes_pods() -> None:
    window = a_window(spec={"actions": ["EmptyConsolidation"]})
    vetoed = beside_an_empty_node(window, annotations={DO_NOT_DISRUPT: "true"})
    assert not closed(question(*vetoed))["node-b"]


def test_an_empty_node_that_stays_takes_pods() -> None:
    """An annotation or a pool that consolidates nothing keeps it."""
    vetoed = beside_an_empty_node(annotations={DO_NOT_DISRUPT: "true"})
    never = a_pool("spare", disruption={"consolidateAfter": "Never"})
    assert not closed(question(*vetoed))["node-b"]
    assert not closed(question(*beside_an_empty_node(never, labels={NODEPOOL: "spare"})))["node-b"]


def test_an_empty_node_that_pending_pods_fit_on_stays_and_takes_pods() -> None:
    waiting = a_pending_pod("next", requests={"cpu": "3"})
    full = pod("full", requests={"cpu": "3"})
    found = question(*beside_an_empty_node(full, waiting))
    assert closed(found) == {"node-a": False, "node-b": False}


def test_a_pool_that_goes_between_two_steps_does_no_harm() -> None:
    objects = [a_pool(), a_claim("a"), node("a"), pod()]
    observations = Observations(instance_types=types())
    snapshot = snapshot_with(a_class(), *objects, observations=observations)
    first = next(step for step in _steps(snapshot, 0) if step is not None)
    assert first.question is not None
    for step in range(1, sum(1 for _ in _steps(snapshot, 0))):
        snapshot = snapshot_with(a_class(), *objects, observations=observations)
        assert any(one is not None for one in _steps(snapshot, step))


def _steps(snapshot: Snapshot, without_pool_after: int) -> Iterator[Asked | None]:
    for number, step in enumerate(asking(snapshot, SETTINGS, NOW), start=1):
        yield step
        if number == without_pool_after:
            snapshot.pools.pop("general")  # type: ignore[attr-defined]


def test_pods_that_stay_as_they_are_are_looked_at_for_one_plan_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[str] = []

    def noted(one: Pod) -> bool:
        looked.append(one.name)
        return is_reschedulable(one)

    monkeypatch.setattr(podsthere, "is_reschedulable", noted)
    monkeypatch.setattr(figures, "is_reschedulable", noted)
    tables = Tables()
    pool = a_pool(disruption={"consolidateAfter": "1m"})
    for resource, item in (
        (NODE_POOLS, pool),
        *((NODE_CLAIMS, a_claim(name)) for name in "ab"),
        *((NODES, node(name)) for name in "ab"),
        *((PODS, pod(f"web-{name}", name)) for name in "ab"),
    ):
        tables.put(resource, item)
    snapshot = Snapshot(tables, Observations(instance_types=types()), ours=SERVED)

    def costs() -> list[float]:
        found = ask(snapshot, SETTINGS, NOW).question
        assert found is not None
        return [one.cost for one in found.candidates]

    assert costs() == [2.0, 2.0]
    assert set(looked) == {"web-a", "web-b"}
    looked.clear()
    assert costs() == [2.0, 2.0]
    assert looked == [], "nothing has changed"
    tables.put(PODS, pod("db-b", "b"))
    assert costs() == [2.0, 3.0]
    assert set(looked) == {"db-b", "web-b"}
    tables.put(PODS, pod("db-b", "b", owner=""))
    assert ask(snapshot, SETTINGS, NOW).why == {"node-b": (PodWithoutController("default/db-b"),)}


def test_what_pods_ask_for_is_read_for_one_plan_only(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def noted(one: Pod, placing: Any) -> Any:
        read.append(one.name)
        return as_it_asks(one, placing)

    monkeypatch.setattr(packing_asked, "_asked", noted)
    snapshot = snapshot_with(
        a_class(),
        a_pool(disruption={"consolidateAfter": "1m"}),
        *(a_claim(name) for name in "ab"),
        *(node(name) for name in "ab"),
        pod("web-a", "a"),
        pod("web-b", "b", requests={"cpu": "1"}),
        observations=Observations(instance_types=types()),
    )
    found = [ask(snapshot, SETTINGS, NOW).question for _ in range(2)]
    plans = [list(Search(one).moves()) for one in found if one is not None]
    assert len(plans) == 2
    assert plans[0] == plans[1]
    assert sorted(read) == ["web-a", "web-b"]
