"""A replacement that is under way: what its next step is, and when it is given up."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tenure.core.decision import Patch, Verdict
from tenure.core.disrupt.facts.commands import (
    NodeClosed,
    NodeRecovered,
    NoSingleNode,
    RepairNotAsked,
    ReplacementGone,
    ReplacementLate,
    ReplacementsAwaited,
    ReplacementsInitialized,
    ReplacementTerminating,
    RolledBack,
    UnknownReason,
)
from tenure.core.disrupt.orchestrate import ReplacementDecider
from tenure.core.disrupt.replacements import failures_of
from tenure.core.facts import Fact
from tenure.core.gates.facts import RepairSwitchedOff, RepairVetoed
from tenure.core.reasons import Reason
from tenure.model.api.meta import Condition
from tenure.model.api.names import (
    DISRUPTION_REASON,
    DO_NOT_REPAIR,
    REPLACED_BY,
    REPLACEMENT_FAILED,
    REPLACES,
    TERMINATION_TIMESTAMP,
)
from tenure.model.api.node import Node, Taint
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import NODE_POOLS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change
from tenure.model.snapshot.unreadable import stand_in
from tenure.providers.kwok.repairs import kwok_statements
from tests.core.build import (
    DISRUPTED,
    NOW,
    REGISTERED,
    SETTINGS,
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
    said,
)
from tests.snapshots import snapshot_with

DECIDER = ReplacementDecider()
REASONED = condition("DisruptionReason", reason="Unhealthy")


def going(by: str = "b", **fields: Any) -> NodeClaim:
    """The claim ``a``, marked; its Node says that it is unhealthy."""
    marks = {REPLACED_BY: by, DISRUPTION_REASON: "Unhealthy", **fields.pop("marks", {})}
    return a_claim(annotations=marks, **{"conditions": [REASONED]} | fields)


def coming(**fields: Any) -> NodeClaim:
    return a_claim("b", annotations={REPLACES: "uid-a"}, **fields)


def unhealthy_node(
    *, taints: Any = (DISRUPTED,), type_: str = "KWOKUnhealthy", **fields: Any
) -> Node:
    told = (
        condition("Ready"),
        Condition(type=type_, status="True", reason="Test", last_transition_time=ago(60)),
    )
    return a_node(taints=taints, status={"conditions": told}, **fields)


def verdicts(*objects: Any, now: datetime = NOW, settings: Settings = SETTINGS) -> list[Verdict]:
    lenient = {"policies": [{"conditionType": "KWOKUnhealthy", "toleration": "Never"}]}
    pools = (a_pool(), a_pool("lenient", repair=lenient))
    known = kwok_statements()
    return evaluated(DECIDER, *pools, *objects, now=now, settings=settings, repair_statements=known)


def on_claim(*objects: Any, **more: Any) -> Verdict:
    return about(verdicts(*objects, **more), "NodeClaim/a")


def test_first_the_node_is_closed_for_new_pods() -> None:
    others = Taint(key="mine", value="1", effect="NoSchedule")
    told = on_claim(
        going(conditions=[]), unhealthy_node(taints=(others,)), coming(stage=REGISTERED)
    )
    assert told.reason is Reason.REPLACING
    taints = body_of(told)["spec"]["taints"]
    assert [taint["key"] for taint in taints] == ["mine", "karpenter.sh/disrupted"]


def test_then_the_claim_says_why() -> None:
    told = on_claim(going(conditions=[]), unhealthy_node(), coming(stage=REGISTERED))
    assert said(told)["DisruptionReason"] == ("True", "Unhealthy")


def test_then_it_waits_for_replacements_that_are_not_initialized_and_node_and_claim_say_so() -> (
    None
):
    found = verdicts(going(), unhealthy_node(), coming(stage=REGISTERED))
    told = about(found, "NodeClaim/a")
    assert (told.reason, told.action, told.recheck_at) == (Reason.REPLACING, None, None)
    assert told.facts == (ReplacementsAwaited((("b", None),), "Unhealthy"),)
    assert about(found, "Node/node-a").facts == told.facts


@pytest.mark.parametrize(
    "stamp", ["2026-03-02T11:00:00Z", "2026-03-02T12:00:44Z", "2027-01-01T00:00:00Z", "soon", ""]
)
def test_a_stamp_is_taken_off_while_its_replacement_comes_up(stamp: str) -> None:
    stamped = going(marks={TERMINATION_TIMESTAMP: stamp})
    told = on_claim(stamped, unhealthy_node(), coming(stage=REGISTERED))
    assert told.reason is Reason.STALE_DEADLINE
    assert body_of(told)["metadata"]["annotations"] == {TERMINATION_TIMESTAMP: None}
    there = on_claim(stamped, unhealthy_node(), coming())
    assert (there.reason, there.action) == (Reason.REPLACING, None), "it may go with that one"


def test_of_two_claims_with_one_node_neither_is_replaced() -> None:
    """To which claim the Node belongs is not known, and it has no second verdict."""
    twin = a_claim("c", annotations=going().annotations, status={"provider_id": "cloud://a"})
    found = verdicts(going(), twin, unhealthy_node(), coming(stage=REGISTERED))
    assert {str(verdict.subject) for verdict in found} == {"NodeClaim/a", "NodeClaim/c"}
    assert {verdict.reason for verdict in found} == {Reason.DISRUPTION_CANCELLED}


def test_once_every_replacement_is_initialized_it_only_waits() -> None:
    told = on_claim(going(), unhealthy_node(), coming())
    assert (told.reason, told.action) == (Reason.REPLACING, None)
    assert told.facts == (ReplacementsInitialized(("b",)), NodeClosed("node-a"))


@pytest.mark.parametrize(
    ("replacement", "why"),
    [
        pytest.param(None, ReplacementGone("b"), id="gone"),
        pytest.param(a_claim("b"), ReplacementGone("b"), id="another of that name"),
        pytest.param(
            a_leaving_claim("b", annotations={REPLACES: "uid-a"}),
            ReplacementTerminating("b"),
            id="leaving",
        ),
        pytest.param(
            coming(stage=REGISTERED, conditions=[condition("ReadyOnce", at=ago(600))]),
            ReplacementLate("b", NOW),
            id="ten minutes Ready, and not initialized",
        ),
    ],
)
def test_a_replacement_fails_and_the_mark_goes_with_a_note(
    replacement: NodeClaim | None, why: Fact
) -> None:
    told = on_claim(going(), unhealthy_node(), *([replacement] if replacement else []))
    assert told.reason is Reason.REPLACEMENT_FAILED
    assert told.facts == (why, RolledBack("node-a", retried=True))
    assert isinstance(told.action, Patch)
    assert told.action.dated == REPLACEMENT_FAILED
    assert body_of(told)["metadata"]["annotations"] == {
        REPLACED_BY: None,
        DISRUPTION_REASON: None,
        REPLACEMENT_FAILED: "1",
    }


def test_its_own_initialization_ttl_counts_where_it_has_one() -> None:
    slow = coming(
        stage=REGISTERED,
        conditions=[condition("ReadyOnce", at=ago(600))],
        spec={"initialization_ttl": "20m"},
    )
    told = on_claim(going(), unhealthy_node(), slow)
    assert (told.reason, told.recheck_at) == (Reason.REPLACING, ahead(600))
    assert (
        on_claim(going(), unhealthy_node(), slow, now=ahead(600)).reason
        is Reason.REPLACEMENT_FAILED
    )


def test_failures_are_counted_on_the_claim_and_forgotten_after_a_while() -> None:
    before = going(marks={REPLACEMENT_FAILED: "2 2026-03-02T11:00:00Z"})
    told = on_claim(before, unhealthy_node())
    assert body_of(told)["metadata"]["annotations"][REPLACEMENT_FAILED] == "3"
    assert failures_of(before).times == 2
    assert told.recheck_at == ahead(3600)
    then = on_claim(before, unhealthy_node(), now=ahead(3600))
    assert body_of(then)["metadata"]["annotations"][REPLACEMENT_FAILED] == "1"


def test_switching_node_repair_off_stops_what_is_under_way() -> None:
    off = Settings(node_repair=False)
    told = on_claim(going(), unhealthy_node(), coming(stage=REGISTERED), settings=off)
    assert told.reason is Reason.DISRUPTION_CANCELLED
    assert RepairSwitchedOff() in told.facts


@pytest.mark.parametrize(
    "noted", ["", "2", "x 2026-03-02T11:00:00Z", "2 yesterday", "2 2026-03-02T11:00:00", "9999 x"]
)
def test_a_note_that_cannot_be_read_is_none(noted: str) -> None:
    assert failures_of(a_claim(annotations={REPLACEMENT_FAILED: noted})).at is None


@pytest.mark.parametrize(
    ("claim", "node", "why"),
    [
        pytest.param(going(), a_node(taints=(DISRUPTED,)), NodeRecovered("node-a"), id="recovered"),
        pytest.param(
            going(marks={DO_NOT_REPAIR: "true"}),
            unhealthy_node(),
            RepairVetoed("NodeClaim", "a", "true"),
            id="vetoed",
        ),
        pytest.param(going(), None, NoSingleNode("a", 0), id="no Node"),
        pytest.param(
            a_claim(annotations={REPLACED_BY: "b"}),
            unhealthy_node(),
            UnknownReason(""),
            id="no reason",
        ),
        pytest.param(
            going(labels={"karpenter.sh/nodepool": "lenient"}),
            unhealthy_node(labels={"karpenter.sh/nodepool": "lenient"}),
            RepairNotAsked("node-a", "lenient"),
            id="the pool changed its mind",
        ),
    ],
)
def test_without_a_reason_left_the_mark_goes_and_nothing_is_noted(
    claim: NodeClaim, node: Node | None, why: Fact
) -> None:
    told = on_claim(claim, coming(stage=REGISTERED), *([node] if node else []))
    assert told.reason is Reason.DISRUPTION_CANCELLED
    assert why in told.facts
    assert body_of(told)["metadata"]["annotations"][REPLACED_BY] is None
    assert REPLACEMENT_FAILED not in body_of(told)["metadata"]["annotations"]


def test_a_stamp_goes_with_the_mark() -> None:
    stamped = going(marks={TERMINATION_TIMESTAMP: "2026-03-02T12:00:44Z"})
    told = on_claim(stamped, unhealthy_node())
    assert body_of(told)["metadata"]["annotations"][TERMINATION_TIMESTAMP] is None


def test_a_taint_that_no_command_stands_behind_is_taken_off_and_the_condition_after_it() -> None:
    forgotten = a_claim(conditions=[REASONED])
    told = on_claim(forgotten, unhealthy_node())
    assert told.reason is Reason.DISRUPTION_FORGOTTEN
    assert body_of(told)["spec"]["taints"] == []
    then = on_claim(forgotten, unhealthy_node(taints=()))
    assert "DisruptionReason" not in said(then)
    assert "Initialized" in said(then)


def test_claims_that_terminate_or_reboot_keep_its_marks() -> None:
    assert not verdicts(a_leaving_claim(conditions=[REASONED]), a_leaving_node())
    rebooting = a_claim(conditions=[REASONED, condition("Rebooting")])
    assert not verdicts(rebooting, a_node())


def test_foreign_and_plain_claims_are_left_alone() -> None:
    assert not verdicts(a_claim(), a_node())


def test_a_mark_that_is_left_over_is_looked_at_again_when_its_pool_can_be_read() -> None:
    pool, claim = a_pool(), a_claim(conditions=(condition("DisruptionReason"),))
    broken = stand_in(pool, "a decider failed", decoded=True)
    snapshot = snapshot_with(claim, broken)
    change = Change(NODE_POOLS, pool.name, broken, pool)
    assert claim.name in set(ReplacementDecider().touched(change, snapshot))
    unchanged = Change(NODE_POOLS, pool.name, pool, pool)
    assert claim.name not in set(ReplacementDecider().touched(unchanged, snapshot))
