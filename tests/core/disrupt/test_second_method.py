"""A second method changes nothing but the list of methods: pacing, gates, roll back come along."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
import pytest

from tenure.core.decision import Create, Delete, Verdict
from tenure.core.disrupt.facts.commands import RolledBack, UnknownReason
from tenure.core.disrupt.facts.planning import NodesWatched, PlannedFirst, ReplacementsCreated
from tenure.core.disrupt.method import Methods
from tenure.core.disrupt.methods import METHODS
from tenure.core.disrupt.orchestrate import ReplacementDecider
from tenure.core.disrupt.pipeline import DisruptionDecider
from tenure.core.disrupt.simulate import LeavingNode, Plan, Simulation
from tenure.core.facts import Fact
from tenure.core.gates.facts import BudgetUse
from tenure.core.reasons import Reason
from tenure.core.windows.facts import WindowBlocks
from tenure.model.api.meta import Condition
from tenure.model.api.names import (
    DISRUPTION_REASON,
    DO_NOT_DISRUPT,
    REPLACED_BY,
    REPLACEMENT_FAILED,
    REPLACES,
)
from tenure.model.api.node import Node
from tenure.model.api.nodepool import NodePool
from tenure.model.api.window import MaintenanceWindow
from tenure.model.settings import Settings
from tenure.ports.outcome import OK
from tenure.providers.kwok.repairs import kwok_statements
from tenure.runtime.telemetry.metrics import Metrics
from tests.core.build import (
    DISRUPTED,
    a_claim,
    a_class,
    a_node,
    a_pod,
    a_pool,
    about,
    ago,
    body_of,
    condition,
    evaluated,
    fact_of,
    types,
)
from tests.core.disrupt.retired import BOTH, REASON, RETIRE, NotRetired, Retired, RetiredMethod

ANY = {"budgets": [{"nodes": "100%"}]}
_CREATED = "karpenter_nodeclaims_created_total"
BIG = {"cpu": "3", "memory": "1Gi"}


def retired(name: str = "a", *more: Condition, **fields: Any) -> Node:
    annotations = {RETIRE: "yes", **fields.pop("annotations", {})}
    status = {"conditions": (condition("Ready"), *more)}
    return a_node(f"node-{name}", claim=name, annotations=annotations, status=status, **fields)


def unhealthy() -> Condition:
    return Condition(
        type="KWOKUnhealthy", status="True", reason="Test", last_transition_time=ago(60)
    )


def full(name: str = "a", *more: Condition, **fields: Any) -> list[Any]:
    pod = a_pod(f"web-{name}", node=f"node-{name}", requests=BIG)
    return [a_claim(name), retired(name, *more, **fields), pod]


def verdicts(*objects: Any, methods: Methods = BOTH, **known: Any) -> list[Verdict]:
    usual: dict[str, Any] = {"repair_statements": kwok_statements(), "instance_types": types()}
    pools = [] if any(isinstance(one, NodePool) for one in objects) else [a_pool(disruption=ANY)]
    decider = DisruptionDecider(methods=methods)
    return evaluated(decider, a_class(), *pools, *objects, **usual | known)


def on_claim(*objects: Any, name: str = "a", **more: Any) -> Verdict:
    return about(verdicts(*objects, **more), f"NodeClaim/{name}")


def test_its_replacement_is_launched_first() -> None:
    found = verdicts(*full())
    (created,) = [verdict.action for verdict in found if isinstance(verdict.action, Create)]
    assert created.body["metadata"]["annotations"][REPLACES] == "uid-a"
    told = about(found, "NodeClaim/a")
    assert told.reason is Reason.REPLACING
    assert told.facts == (Retired("node-a"), ReplacementsCreated((created.name,)))
    watched = about(found, "NodePool/general")
    assert watched.facts == (NodesWatched("retired", ("a",), "Retired", 1),)


def test_its_replacement_is_counted_by_its_reason() -> None:
    (verdict,) = [one for one in verdicts(*full()) if isinstance(one.action, Create)]
    metrics = Metrics()
    metrics.acted(verdict, OK, None)
    created = [line for line in metrics.render().decode().splitlines() if _CREATED in line]
    (counted,) = [line for line in created if line.endswith(" 1.0")]
    assert 'reason="retired"' in counted


def test_the_command_has_its_reason() -> None:
    told = on_claim(a_claim(), retired())
    assert body_of(told)["metadata"]["annotations"] == {REPLACED_BY: "", DISRUPTION_REASON: REASON}


def test_without_the_method_nothing_happens() -> None:
    assert verdicts(*full(), methods=METHODS) == []


def test_a_budget_without_reasons_paces_it() -> None:
    closed = [{"nodes": "0"}]
    told = on_claim(a_pool(disruption={"budgets": closed}), *full())
    assert told.reason is Reason.DISRUPTION_BLOCKED
    budget = fact_of(told, BudgetUse)
    assert (budget.reasons, budget.limit, budget.total) == ((), 0, 1)
    others = [{"nodes": "0", "reasons": ["Unhealthy"]}]
    assert on_claim(a_pool(disruption={"budgets": others}), *full()).reason is Reason.REPLACING


def test_nodes_that_are_not_ready_use_its_budget() -> None:
    pool = a_pool(disruption={"budgets": [{"nodes": "1"}]})
    down = [a_claim("x"), a_node("node-x", claim="x", ready=False)]
    assert on_claim(pool, *full(), *down).reason is Reason.DISRUPTION_BLOCKED


def test_the_annotation_of_the_node_blocks_it() -> None:
    told = on_claim(*full(annotations={DO_NOT_DISRUPT: "true"}))
    assert told.reason is Reason.DISRUPTION_BLOCKED
    assert [blocker.subject.kind for blocker in told.blockers] == ["Node"]


def test_neither_a_veto_of_repair_nor_the_switch_blocks_it() -> None:
    vetoed = full(annotations={"karpenter.sh/do-not-repair": "true"})
    assert on_claim(*vetoed).reason is Reason.REPLACING


# -- carrying out ----------------------------------------------------------------------------


def going(**fields: Any) -> list[Any]:
    marks = {REPLACED_BY: "b", DISRUPTION_REASON: REASON}
    reasoned = condition("DisruptionReason", reason=REASON)
    new = [a_claim("b", annotations={REPLACES: "uid-a"}), a_node("node-b", claim="b")]
    claim = a_claim(annotations=marks, conditions=[reasoned])
    return [claim, *new, a_pod("web-a", node="node-a", requests=BIG), fields.get("node", closed())]


def closed(**fields: Any) -> Node:
    return retired(taints=(DISRUPTED,), **fields)


def test_it_terminates_without_a_bound_once_its_replacement_is_initialized() -> None:
    told = on_claim(*going())
    assert told.reason is Reason.REPLACED
    assert isinstance(told.action, Delete)
    assert told.commits is not None
    assert (told.commits.reason, told.commits.bound) == ("retired", None)


def test_it_is_rolled_back_when_no_longer_wanted() -> None:
    node = a_node("node-a", claim="a", taints=(DISRUPTED,))
    found = evaluated(ReplacementDecider(BOTH), a_class(), a_pool(), *going(node=node))
    told = about(found, "NodeClaim/a")
    assert told.reason is Reason.DISRUPTION_CANCELLED
    assert told.facts == (NotRetired("node-a"), RolledBack("node-a"))
    assert body_of(told)["metadata"]["annotations"] == {REPLACED_BY: None, DISRUPTION_REASON: None}


def test_a_command_of_a_method_that_is_gone_is_rolled_back() -> None:
    found = evaluated(ReplacementDecider(METHODS), a_class(), a_pool(), *going())
    told = about(found, "NodeClaim/a")
    assert told.reason is Reason.DISRUPTION_CANCELLED
    assert UnknownReason(REASON) in told.facts


def test_before_it_terminates_the_annotation_of_the_node_is_asked_again() -> None:
    objects = going(node=closed(annotations={DO_NOT_DISRUPT: "true"}))
    assert not [one for one in verdicts(*objects) if isinstance(one.action, Delete)]
    found = evaluated(ReplacementDecider(BOTH), a_class(), a_pool(), *objects)
    told = about(found, "NodeClaim/a")
    assert told.reason is Reason.DISRUPTION_CANCELLED
    assert body_of(told)["metadata"]["annotations"] == {REPLACED_BY: None, DISRUPTION_REASON: None}


# -- a plan that the method rejects --------------------------------------------------------


class TooDear(Fact, frozen=True):
    new: tuple[str, ...]
    came: tuple[str, ...]

    def __str__(self) -> str:
        return "too dear"


class ThriftyMethod(RetiredMethod):
    """It takes no plan that launches something, or has."""

    def rejects(
        self,
        leaving: Sequence[LeavingNode],
        plan: Plan,
        simulation: Simulation,
        settings: Settings,
        now: datetime,
    ) -> Fact | None:
        new, came = (tuple(one.name for one in some) for some in (plan.claims, plan.came))
        return TooDear(new, came) if new or came else None


THRIFTY = Methods((*METHODS, ThriftyMethod()))


def test_a_plan_that_its_method_rejects_writes_nothing() -> None:
    found = verdicts(*full(), methods=THRIFTY)
    assert [one.action for one in found if one.action is not None] == []
    told = about(found, "NodeClaim/a")
    assert told.reason is Reason.DISRUPTION_BLOCKED
    assert told.facts[0] == Retired("node-a")
    rejected = fact_of(told, TooDear)
    assert (len(rejected.new), rejected.came) == (1, ())
    assert on_claim(a_claim(), retired(), methods=THRIFTY).reason is Reason.REPLACING


def test_what_was_launched_for_a_plan_that_is_rejected_is_left_over() -> None:
    new = a_claim("b", annotations={REPLACES: "uid-a"})
    found = verdicts(*full(), new, a_node("node-b", claim="b"), methods=THRIFTY)
    told = about(found, "NodeClaim/a")
    assert told.reason is Reason.DISRUPTION_BLOCKED
    assert fact_of(told, TooDear) == TooDear((), ("b",))
    assert about(found, "NodeClaim/b").reason is Reason.REPLACEMENT_LEFT_OVER


def test_a_plan_is_asked_about_again_before_its_node_terminates() -> None:
    told = on_claim(*going(), methods=THRIFTY)
    assert told.reason is Reason.DISRUPTION_CANCELLED
    assert told.facts == (TooDear((), ("b",)), RolledBack("node-a"))
    marks = body_of(told)["metadata"]["annotations"]
    assert {mark for mark, value in marks.items() if value is None} == {
        REPLACED_BY,
        DISRUPTION_REASON,
    }
    assert marks[REPLACEMENT_FAILED] == "1", "the pool pauses: what was launched is of no use"


# -- maintenance windows ---------------------------------------------------------------------

#: A method that windows name as Drift.
AS_DRIFT = Methods((*METHODS, RetiredMethod(window_actions=frozenset({"Drift"}))))


def freeze(action: str) -> MaintenanceWindow:
    """Always active: it has neither schedules nor dates."""
    raw = {"metadata": {"name": "freeze"}, "spec": {"actions": [action]}}
    return msgspec.convert(raw, MaintenanceWindow)


@pytest.mark.parametrize(("action", "blocks"), [("Drift", True), ("Repair", False)])
def test_the_window_that_names_its_action_blocks_it(action: str, blocks: bool) -> None:
    told = on_claim(*full(), freeze(action), methods=AS_DRIFT)
    assert (told.reason is Reason.DISRUPTION_BLOCKED) is blocks
    assert (WindowBlocks("freeze", ("Drift",), "node-a") in told.facts) is blocks


@pytest.mark.parametrize(("action", "blocks"), [("Drift", True), ("Repair", False)])
def test_the_window_that_names_its_action_rolls_it_back(action: str, blocks: bool) -> None:
    decider, window = ReplacementDecider(AS_DRIFT), freeze(action)
    told = about(evaluated(decider, a_class(), a_pool(), *going(), window), "NodeClaim/a")
    assert (told.reason is Reason.DISRUPTION_CANCELLED) is blocks
    deleted = [
        one
        for one in verdicts(*going(), window, methods=AS_DRIFT)
        if isinstance(one.action, Delete)
    ]
    assert bool(deleted) is not blocks


# -- two methods -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("methods", "reason"),
    [
        pytest.param(BOTH, "Unhealthy", id="repair first"),
        pytest.param(Methods(reversed(tuple(BOTH))), REASON, id="retired first"),
    ],
)
def test_of_two_methods_that_want_a_node_the_first_has_it(methods: Methods, reason: str) -> None:
    node = retired("a", unhealthy())
    found = verdicts(a_claim(), node, methods=methods)
    told = about(found, "NodeClaim/a")
    assert body_of(told)["metadata"]["annotations"][DISRUPTION_REASON] == reason
    pool = about(found, "NodePool/general")
    assert set(pool.facts) == {
        NodesWatched("unhealthy or not up yet", ("a",), "Unhealthy", 1),
        NodesWatched("retired", ("a",), "Retired", 1),
    }


def test_candidates_of_the_first_method_are_planned_first() -> None:
    unhealthy_node = a_node(
        "node-z", claim="z", status={"conditions": (condition("Ready"), unhealthy())}
    )
    pod = a_pod("web-z", node="node-z", requests=BIG)
    found = verdicts(a_claim("z"), unhealthy_node, pod, *full())
    assert about(found, "NodeClaim/z").reason is Reason.REPLACING
    assert PlannedFirst("z") in about(found, "NodeClaim/a").facts


def test_a_method_may_do_without_replacements() -> None:
    alone = Methods((RetiredMethod(needs_replacement=False),))
    told = on_claim(*full(), methods=alone)
    assert body_of(told)["metadata"]["annotations"][REPLACED_BY] == ""
