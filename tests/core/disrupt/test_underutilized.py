"""Underutilized nodes: what of a plan becomes a command, and what ends one."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tenure.core.decision import Create, Delete, Verdict
from tenure.core.disrupt.consolidation.offered import prices_of
from tenure.core.disrupt.consolidation.prices import Offered
from tenure.core.disrupt.facts.commands import NoLongerDue
from tenure.core.disrupt.facts.consolidation import NodeUnderutilized, PodsHaveNoRoom
from tenure.core.disrupt.orchestrate import ReplacementDecider
from tenure.core.disrupt.pipeline import DisruptionDecider
from tenure.core.gates.operations import Gate
from tenure.core.provision.decider import ProvisionDecider
from tenure.core.provision.facts import StaysWithNode
from tenure.core.reasons import Reason
from tenure.model.api.names import (
    CAPACITY_TYPE,
    DISRUPTION_REASON,
    INSTANCE_TYPE,
    REPLACED_BY,
    REPLACEMENT_FAILED,
    REPLACES,
    ZONE,
)
from tenure.model.api.nodeclaim import Requirement
from tenure.model.api.nodepool import NodePool
from tenure.model.cloud.offering import InstanceType
from tenure.model.snapshot.consolidation import ConsolidationPlan, PlannedLaunch, PlannedMove
from tenure.packing.consolidate.facts import NoCheaperReplacement, PriceUnknown, ScoreTooLow
from tenure.packing.consolidate.rules import PriceRules
from tests.core.build import (
    DISRUPTED,
    NOW,
    a_claim,
    a_class,
    a_node,
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
from tests.core.disrupt.test_question import pod

SOLD = {INSTANCE_TYPE: "large", ZONE: "zone-a", CAPACITY_TYPE: "on-demand"}
LARGE, SMALL = a_type("large", cpu="8", price=200_000), a_type("small", cpu="2", price=60_000)
FREE = {"consolidateAfter": "1m", "budgets": [{"nodes": "100%"}]}
ON_DEMAND = {"key": CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]}


def node(name: str, type_: str = "large", **fields: Any) -> Any:
    labels = {**SOLD, INSTANCE_TYPE: type_}
    size = {"cpu": "2" if type_ == "small" else "8", "memory": "8Gi", "pods": "20"}
    status = {"capacity": size, "allocatable": size}
    return a_node(f"node-{name}", claim=name, labels=labels, status=status, **fields)


def there(name: str, *, cpu: str = "1", came: float = 600, **fields: Any) -> list[Any]:
    """A node with one pod."""
    return [
        a_claim(name, **fields),
        node(name),
        pod(f"web-{name}", name, came=came, requests={"cpu": cpu}),
    ]


def move(*names: str, launches: int = 0) -> PlannedMove:
    new = PlannedLaunch(
        pool="general",
        instance_type="small",
        zone="zone-a",
        capacity_type="on-demand",
        price=60_000,
    )
    return PlannedMove(
        claims=names,
        nodes=tuple(f"node-{name}" for name in names),
        launches=(new,) * launches,
        price=200_000 * len(names),
        worst=60_000 * launches,
        cost=2.0 * len(names),
        pods=len(names),
    )


def verdicts(
    *objects: Any,
    moves: tuple[PlannedMove, ...] = (move("a"),),
    offered: tuple[InstanceType, ...] = (LARGE, SMALL),
    now: datetime = NOW,
    going: frozenset[str] = frozenset(),
) -> list[Verdict]:
    pool = a_pool(disruption=FREE, requirements=[ON_DEMAND])
    pools = [] if any(isinstance(one, NodePool) for one in objects) else [pool]
    plan = ConsolidationPlan(at=ago(5), moves=moves, going=going)
    known: dict[str, Any] = {"instance_types": types(*offered), "consolidation": plan}
    return evaluated(DisruptionDecider(), a_class(), *pools, *objects, now=now, **known)


def on_claim(*objects: Any, name: str = "a", **known: Any) -> Verdict:
    return about(verdicts(*objects, **known), f"NodeClaim/{name}")


def created(found: list[Verdict]) -> list[Create]:
    return [one.action for one in found if isinstance(one.action, Create)]


# -- candidates ------------------------------------------------------------------------------


def test_a_node_of_a_move_whose_pods_fit_elsewhere_is_taken_away() -> None:
    found = on_claim(*there("a"), *there("b"))
    assert found.reason is Reason.REPLACING
    marks = body_of(found)["metadata"]["annotations"]
    assert (marks[REPLACED_BY], marks[DISRUPTION_REASON]) == ("", "Underutilized")
    why = fact_of(found, NodeUnderutilized)
    assert (why.saves, why.cost, why.pods) == (200_000, 2.0, 1)
    assert found.facts == (why,)  # Where its pods go is not told twice.


def test_without_a_plan_no_node_is_a_candidate() -> None:
    assert not verdicts(*there("a"), *there("b"), moves=())


def test_moves_are_made_in_their_order_one_at_a_time() -> None:
    three = [*there("a"), *there("b"), *there("c")]
    found = verdicts(*three, moves=(move("b"), move("a")))
    assert about(found, "NodeClaim/b").action is not None
    assert about(found, "NodeClaim/a").reason is Reason.DISRUPTION_WAITS


@pytest.mark.parametrize(
    "more",
    [
        [pod("debug", "a", owner="")],
        [pod("db-0", "a", owner="StatefulSet", deletion_timestamp=ago(5))],
    ],
)
def test_a_pod_that_came_since_may_keep_the_node(more: list[Any]) -> None:
    assert not verdicts(*there("a"), *there("b"), *more)


def test_a_node_without_pods_is_for_another_method() -> None:
    empty = a_claim("a"), node("a")
    assert not verdicts(*empty, *there("b"))


def test_a_pod_that_came_starts_consolidate_after_again() -> None:
    found = verdicts(*there("a", came=20), *there("b"))
    pool = about(found, "NodePool/general")
    assert pool.recheck_at == ahead(40)
    assert not [one for one in found if one.action is not None]


def test_a_claim_that_has_another_node_by_now_is_no_candidate() -> None:
    other = PlannedMove(claims=("a",), nodes=("node-z",), price=1)
    assert not verdicts(*there("a"), *there("b"), moves=(other,))


@pytest.mark.parametrize(
    "block", [{"consolidationPolicy": "WhenEmpty"}, {"consolidateAfter": "Never"}]
)
def test_a_pool_that_keeps_its_nodes_has_no_candidates(block: dict[str, str]) -> None:
    pool = a_pool(disruption=FREE | block)
    assert not verdicts(*there("a"), *there("b"), pool)


def test_budgets_are_gates_of_each_candidate() -> None:
    closed = a_pool(disruption={**FREE, "budgets": [{"nodes": "0", "reasons": ["Underutilized"]}]})
    found = on_claim(*there("a"), *there("b"), closed)
    assert (found.gate, found.action) == (Gate.BUDGET, None)


# -- plans -----------------------------------------------------------------------------------


def test_a_replacement_lists_only_what_is_cheaper() -> None:
    """The pod would fit on both types. Spot is cheaper, and is what is launched."""
    pool = a_pool(disruption=FREE)
    found = verdicts(*there("a"), pool, moves=(move("a", launches=1),))
    (new,) = created(found)
    wanted = {one["key"]: one["values"] for one in new.body["spec"]["requirements"]}
    assert wanted[INSTANCE_TYPE] == ["large", "small"]
    assert wanted[CAPACITY_TYPE] == ["spot"]
    on_demand = verdicts(*there("a"), moves=(move("a", launches=1),))
    (new,) = created(on_demand)
    wanted = {one["key"]: one["values"] for one in new.body["spec"]["requirements"]}
    assert wanted[INSTANCE_TYPE] == ["small"]
    assert new.disrupts_for == "Underutilized"


def test_a_plan_whose_prices_have_changed_is_rejected() -> None:
    dear = a_type("small", cpu="2", price=250_000)
    found = on_claim(*there("a"), moves=(move("a", launches=1),), offered=(LARGE, dear))
    assert found.reason is Reason.CONSOLIDATION_REJECTED
    assert fact_of(found, NoCheaperReplacement).price == 200_000


def test_a_move_says_what_it_saves_as_it_is_made() -> None:
    """It was planned without a new node. Since then the other node has become full."""
    found = on_claim(*there("a"), *there("b", cpu="7900m"))
    why = fact_of(found, NodeUnderutilized)
    assert (why.saves, why.price, why.launches) == (140_000, 200_000, ("small",))


@pytest.mark.parametrize(("price", "goes"), [(60_000, True), (180_000, False)])
def test_balanced_is_asked_again_for_the_move_that_is_made(price: int, goes: bool) -> None:
    """A half of what is disturbed for more or for less than a quarter of the price."""
    pool = a_pool(disruption=FREE | {"consolidationPolicy": "Balanced"}, requirements=[ON_DEMAND])
    small = a_type("small", cpu="2", price=price)
    full = there("b", cpu="7900m")
    found = on_claim(*there("a"), *full, pool, offered=(LARGE, small))
    assert found.reason is (Reason.REPLACING if goes else Reason.CONSOLIDATION_REJECTED)
    if not goes:
        assert fact_of(found, ScoreTooLow).pool == "general"


@pytest.mark.parametrize(("listed", "price"), [(("small",), 60_000), (("small", "large"), 200_000)])
def test_what_is_not_launched_yet_counts_at_its_worst(listed: tuple[str, ...], price: int) -> None:
    """It may become any of the types that it lists."""
    types_ = Requirement(key=INSTANCE_TYPE, operator="In", values=listed)
    terms = Requirement(key=CAPACITY_TYPE, operator="In", values=("on-demand",))
    new = a_claim("new", stage=0, spec={"requirements": (types_, terms)})
    assert prices_of([new], _offered()) == [price]


def _offered() -> Offered:
    rules = PriceRules(spot_to_spot=False, fee_cpus=3)
    return Offered(types={"general": {one.name: one for one in (LARGE, SMALL)}}, rules=rules)


def test_a_replacement_without_a_price_is_not_known_to_be_cheaper() -> None:
    new = a_claim("new", labels={INSTANCE_TYPE: "gone", CAPACITY_TYPE: "on-demand"})
    assert prices_of([new], _offered()) == PriceUnknown("gone", "on-demand")


def test_a_rejected_move_does_not_stop_the_next() -> None:
    found = verdicts(
        *there("a", cpu="7900m"), *there("b"), *there("c"), moves=(move("a"), move("b"))
    )
    assert about(found, "NodeClaim/a").reason is Reason.CONSOLIDATION_REJECTED
    assert about(found, "NodeClaim/b").action is not None


def test_no_pod_is_moved_onto_a_node_within_its_own_consolidate_after() -> None:
    busy = on_claim(*there("a"), *there("b", came=10), offered=(LARGE,))
    assert busy.reason is Reason.CONSOLIDATION_REJECTED
    assert busy.recheck_at == ahead(50)
    quiet = on_claim(*there("a"), *there("b"), offered=(LARGE,))
    assert quiet.action is not None


def test_no_pod_is_moved_onto_a_node_that_goes_because_it_is_empty() -> None:
    said = condition("Empty", reason="NoReschedulablePods", at=ago(1))
    empty = a_claim("b", conditions=[said]), node("b")
    goes = on_claim(*there("a"), *empty, offered=(LARGE,), going=frozenset({"node-b"}))
    assert goes.reason is Reason.CONSOLIDATION_REJECTED
    taken = on_claim(*there("a"), *there("b"), offered=(LARGE,), going=frozenset({"node-b"}))
    assert taken.action is not None
    stays = on_claim(*there("a"), *empty, offered=(LARGE,))
    assert stays.action is not None


# -- commands under way ----------------------------------------------------------------------


def begun(by: str = "", name: str = "a", **fields: Any) -> list[Any]:
    """The node is being consolidated."""
    marks = {REPLACED_BY: by, DISRUPTION_REASON: "Underutilized"}
    said = condition("DisruptionReason", reason="Underutilized", at=ago(9))
    found = there(name, annotations=marks, conditions=[said], **fields)
    found[1] = node(name, taints=[DISRUPTED])
    return found


def replacement(type_: str, term: str = "on-demand") -> list[Any]:
    labels = {INSTANCE_TYPE: type_, ZONE: "zone-a", CAPACITY_TYPE: term}
    return [a_claim("new", labels=labels, annotations={REPLACES: "uid-a"}), node("new", type_)]


def test_it_terminates_when_its_pods_still_fit() -> None:
    found = on_claim(*begun(), *there("b"), moves=())
    assert isinstance(found.action, Delete)


def test_it_is_called_off_when_its_pods_have_no_room_any_more() -> None:
    found = on_claim(*begun(cpu="4"), *there("b", cpu="5"), moves=())
    assert found.reason is Reason.DISRUPTION_CANCELLED
    assert PodsHaveNoRoom() in found.facts


def test_nodes_whose_pods_have_no_room_do_not_wait_for_each_other() -> None:
    """Nothing is launched for pods of either, so each would wait for the other without end."""
    stuck = [*begun(cpu="4"), *begun(name="c", cpu="4"), *there("b", cpu="5")]
    for name in ("a", "c"):
        found = on_claim(*stuck, moves=(), name=name)
        assert found.reason is Reason.DISRUPTION_CANCELLED
        assert PodsHaveNoRoom() in found.facts


def test_no_other_node_waits_for_pods_that_stay_with_their_node() -> None:
    stuck = begun(name="c", cpu="4")
    found = on_claim(*begun("new"), *replacement("small"), *stuck, *there("b", cpu="6"), moves=())
    assert isinstance(found.action, Delete)


@pytest.mark.parametrize(("price", "goes"), [(60_000, True), (250_000, False)])
def test_a_replacement_must_still_be_cheaper_when_it_is_up(price: int, goes: bool) -> None:
    small = a_type("small", cpu="2", price=price)
    found = on_claim(*begun("new"), *replacement("small"), moves=(), offered=(LARGE, small))
    assert isinstance(found.action, Delete) == goes
    if not goes:
        assert found.reason is Reason.DISRUPTION_CANCELLED
        assert fact_of(found, NoCheaperReplacement).price == 200_000
        marks = body_of(found)["metadata"]["annotations"]
        assert marks[REPLACEMENT_FAILED] == "1", "its pool pauses before it launches again"


def test_a_pool_that_keeps_its_nodes_from_now_on_ends_it() -> None:
    pool = a_pool(disruption=FREE | {"consolidationPolicy": "WhenEmpty"})
    found = evaluated(
        ReplacementDecider(), a_class(), pool, *begun(), *there("b"), instance_types=types(LARGE)
    )
    told = about(found, "NodeClaim/a")
    assert told.reason is Reason.DISRUPTION_CANCELLED
    assert fact_of(told, NoLongerDue).claim == "a"


def test_nothing_is_provisioned_for_pods_whose_node_may_stay() -> None:
    found = evaluated(
        ProvisionDecider(),
        a_class(),
        a_pool(disruption=FREE),
        *begun(cpu="4"),
        *there("b", cpu="5"),
        instance_types=types(LARGE),
    )
    assert not created(found)
    told = about(found, "Pod/default/web-a")
    assert (told.reason, told.facts[-1]) == (Reason.STAYS_FOR_NOW, StaysWithNode("node-a"))
