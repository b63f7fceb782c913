"""A blocked repair is reported on the Node, and only while there is a repair to block."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tenure.core.decision import Patch, Verdict
from tenure.core.gates.operations import OF_REPAIR, Gate
from tenure.core.reasons import Reason
from tenure.core.repair.decider import RepairDecider
from tenure.core.repair.facts import ToleratedUntil
from tenure.model.api.meta import Condition
from tenure.model.api.names import DISRUPTION_REASON, DO_NOT_REPAIR, TERMINATION_TIMESTAMP
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.window import MaintenanceWindow
from tenure.providers.kwok.repairs import kwok_statements
from tests.core.build import (
    SETTINGS,
    a_claim,
    a_leaving_claim,
    a_leaving_node,
    a_node,
    a_pool,
    about,
    ago,
    ahead,
    evaluated,
)

STATEMENTS = kwok_statements(ready=timedelta(minutes=30))
OFF = msgspec.structs.replace(SETTINGS, node_repair=False)
#: With neither schedules nor dates it is always active.
FREEZE = msgspec.convert(
    {"metadata": {"name": "freeze"}, "spec": {"actions": ["Repair"]}}, MaintenanceWindow
)
#: Due for ten minutes.
BROKEN = Condition(type="Broken", status="True", reason="Fan", last_transition_time=ago(1200))
POLICY = {"conditionType": "Broken", "status": "True", "toleration": "10m"}


def pool(mode: str = "Graceful", *policies: dict[str, Any], **repair: Any) -> Any:
    known = {"maxUnhealthy": "100%", "terminationMode": mode, "policies": [POLICY, *policies]}
    return a_pool(repair=known | repair)


def unhealthy(*more: Condition, **fields: Any) -> Node:
    return a_node(status={"conditions": (BROKEN, *more)}, **fields)


def leaving(*more: Condition) -> Node:
    return a_leaving_node(status={"conditions": (BROKEN, *more)})


def repaired(**annotations: str) -> NodeClaim:
    """Deleted by its own graceful repair."""
    return a_leaving_claim(annotations={DISRUPTION_REASON: "Unhealthy", **annotations})


def verdicts(*objects: Any, **more: Any) -> list[Verdict]:
    return evaluated(RepairDecider(), *objects, repair_statements=STATEMENTS, **more)


BLOCKED: dict[Gate, tuple[list[Any], dict[str, Any]]] = {
    Gate.OFF: ([pool(), a_claim(), unhealthy()], {"settings": OFF}),
    Gate.RULES: ([pool(maxUnhealthy="many"), a_claim(), unhealthy()], {}),
    Gate.VETO: ([pool(), a_claim(), unhealthy(annotations={DO_NOT_REPAIR: "true"})], {}),
    Gate.WINDOW: ([pool(), a_claim(), unhealthy(), FREEZE], {}),
    Gate.BREAKER: ([pool(maxUnhealthy=0), a_claim(), unhealthy()], {}),
}


@pytest.mark.parametrize("gate", [gate for gate in Gate if gate in OF_REPAIR - {Gate.OUTAGE}])
@pytest.mark.parametrize("mode", ["Graceful", "Forceful"])
def test_what_blocks_a_repair_is_said_of_the_claim_and_of_its_node(gate: Gate, mode: str) -> None:
    objects, more = BLOCKED[gate]
    if mode == "Forceful" and gate is not Gate.RULES:
        limit = objects[0].spec.repair.max_unhealthy
        objects = [pool(mode, maxUnhealthy=limit), *objects[1:]]
    found = verdicts(*objects, **more)
    claim, node = about(found, "NodeClaim/a"), about(found, "Node/node-a")
    assert claim.action is None
    assert (node.reason, node.facts) == (claim.reason, claim.facts)


def test_nothing_is_said_of_a_repair_that_is_under_way() -> None:
    """Neither that the claim terminates already, nor that a window blocks what has begun."""
    for windows in ((), (FREEZE,)):
        assert verdicts(pool(), repaired(), leaving(), *windows) == []


def test_a_forceful_repair_under_way_is_not_blocked_either() -> None:
    gone = a_leaving_claim(annotations={TERMINATION_TIMESTAMP: "2026-03-02T11:59:30Z"})
    verdict = about(verdicts(pool("Forceful"), gone, leaving(), FREEZE), "NodeClaim/a")
    assert (verdict.reason, verdict.action) == (Reason.REPAIRING, None)


def test_a_condition_that_bounds_the_drain_brings_the_deadline_of_its_repair_forward() -> None:
    worse = {"conditionType": "Worse", "status": "True", "toleration": "10m"}
    bounded = {**worse, "terminationGracePeriod": "1m"}
    late = Condition(type="Worse", status="True", last_transition_time=ago(540))
    objects = (pool("Graceful", bounded), repaired(), leaving(late))
    before = about(verdicts(*objects), "NodeClaim/a")
    assert (before.reason, before.action, before.recheck_at) == (
        Reason.UNHEALTHY,
        None,
        ahead(60),
    )
    assert any(isinstance(fact, ToleratedUntil) for fact in before.facts)
    then = about(verdicts(*objects, now=ahead(60)), "NodeClaim/a")
    assert isinstance(then.action, Patch)
    assert then.action.dated == TERMINATION_TIMESTAMP
    window = about(verdicts(*objects, FREEZE, now=ahead(60)), "NodeClaim/a")
    assert (window.reason, window.action) == (Reason.DISRUPTION_BLOCKED, None)


def test_a_claim_that_a_user_deleted_says_that_its_repair_would_be_due() -> None:
    verdict = about(verdicts(pool(), a_leaving_claim(), leaving()), "NodeClaim/a")
    assert (verdict.reason, verdict.action) == (Reason.REPAIR_DUE, None)
