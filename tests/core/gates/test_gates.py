"""The gates: one order for all, and each operation asks those of its row."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from tenure.core.disrupt.facts import PendingPodsFirst
from tenure.core.gates.explained import EXPLAINED
from tenure.core.gates.facts import BlockedUntil, PoolPauses
from tenure.core.gates.fleet import fleet_of
from tenure.core.gates.gates import (
    ASKED,
    GATES,
    NEEDS,
    PLAN_ONLY,
    ROLLS_BACK,
    Gate,
    GateFacts,
    Operation,
    first_blocked,
)
from tenure.core.gates.traits import Traits
from tenure.core.health.facts import CircuitBreakerOpen, Domain, FirstProbe
from tenure.core.reasons import Reason
from tenure.core.terminate.drain import drain_until
from tenure.core.windows.parsed import ParsedWindow
from tenure.model.api.names import DO_NOT_REPAIR
from tenure.model.api.window import ACTIONS
from tests.core.build import NOW, SETTINGS, a_claim, a_node, a_pod, a_pool, ahead
from tests.snapshots import snapshot_with

OFF = msgspec.structs.replace(SETTINGS, node_repair=False)

CLAIM, NODE = a_claim(annotations={DO_NOT_REPAIR: "true"}), a_node()
#: With neither schedules nor dates it is always active.
FREEZE = ParsedWindow(name="freeze", blocks=True, actions=frozenset(ACTIONS))
POOL = a_pool(disruption={"budgets": [{"nodes": "0"}]})
SNAPSHOT = snapshot_with(CLAIM, NODE, POOL, a_pod(protected="true"))


def everything(**fields: Any) -> GateFacts:
    """Facts with which every gate blocks."""
    usual: dict[str, Any] = {
        "claim": CLAIM,
        "node": NODE,
        "pool": POOL,
        "windows": (FREEZE,),
        "broken": "spec.repair is nonsense",
        "outage": (FirstProbe(Domain("zone", "a"), NOW),),
        "breaker": CircuitBreakerOpen("general", 2, 3, 1, "1"),
        "breakers_change_at": ahead(7),
        "pauses": ((ahead(60), "b"),),
        "traits": Traits(reason="Expired"),
        "fleet": fleet_of("general", SNAPSHOT),
        "drain": drain_until(NODE, None, SNAPSHOT),
        "unplaced": PendingPodsFirst(),
    }
    return GateFacts(**usual | fields)


#: Facts of which the gate has nothing to say.
LETS_PASS: dict[Gate, dict[str, Any]] = {
    Gate.RULES: {"broken": ""},
    Gate.VETO: {"claim": a_claim()},
    Gate.WINDOW: {"windows": ()},
    Gate.OUTAGE: {"outage": ()},
    Gate.BREAKER: {"breaker": None},
    Gate.PAUSE: {"pauses": ()},
    Gate.BUDGET: {"pool": a_pool(disruption={"budgets": []})},
    Gate.PODS: {"drain": drain_until(NODE, None, snapshot_with(CLAIM, NODE))},
    Gate.LIMITS: {"unplaced": None},
}


@pytest.mark.parametrize("operation", Operation)
def test_an_operation_asks_the_gates_of_its_row_in_the_order_of_the_list(
    operation: Operation,
) -> None:
    facts, settings, met = everything(), OFF, []
    while (blocked := first_blocked(operation, facts, settings, NOW)) is not None:
        met.append(blocked.gate)
        if blocked.gate is Gate.OFF:
            settings = SETTINGS
        else:
            facts = msgspec.structs.replace(facts, **LETS_PASS[blocked.gate])
    assert met == [gate for gate in Gate if gate in ASKED[operation]]


@pytest.mark.parametrize("gate", Gate)
def test_a_gate_says_that_it_was_this_gate(gate: Gate) -> None:
    blocked = GATES[gate](everything(), OFF, NOW)
    assert blocked is not None
    assert blocked.gate is gate
    assert blocked.facts


def test_a_gate_says_until_when_where_that_is_known() -> None:
    """Also one whose own facts have no instant, such as a budget with a schedule."""
    noon = [{"nodes": "0", "schedule": "0 12 * * *", "duration": "20m"}]
    facts = everything(pool=a_pool(disruption={"budgets": noon}))
    blocked = first_blocked(Operation.VOLUNTARY, facts, SETTINGS, NOW, only={Gate.BUDGET})
    assert blocked is not None
    assert blocked.facts[-1] == BlockedUntil(ahead(20 * 60))
    always = first_blocked(Operation.VOLUNTARY, everything(), SETTINGS, NOW, only={Gate.BUDGET})
    assert always is not None
    assert not any(isinstance(fact, BlockedUntil) for fact in always.facts)
    paused = first_blocked(Operation.VOLUNTARY, everything(), SETTINGS, NOW, only={Gate.PAUSE})
    assert paused is not None
    assert paused.facts == (PoolPauses("general", "b", ahead(60)),), "it says so itself"


@pytest.mark.parametrize("gate", Gate)
def test_each_gate_says_what_it_means_and_what_to_do(gate: Gate) -> None:
    """And not what the other gates with its reason code mean."""
    said = [EXPLAINED[one] for one in Gate if one is not gate]
    assert EXPLAINED[gate].advice not in {one.advice for one in said}
    assert EXPLAINED[gate].meaning not in {one.meaning for one in said}


def test_there_is_a_row_for_every_operation_and_a_function_for_every_gate() -> None:
    assert set(ASKED) == set(Operation)
    assert set(GATES) == set(NEEDS) == set(Gate)
    assert not PLAN_ONLY & ROLLS_BACK


@pytest.mark.parametrize(("gate", "name"), [(gate, name) for gate in Gate for name in NEEDS[gate]])
def test_a_gate_that_is_asked_without_its_facts_is_a_fault_and_lets_nothing_pass(
    gate: Gate, name: str
) -> None:
    facts = everything(**LETS_PASS[gate] | {name: UNSET})
    operation = next(one for one in Operation if gate in ASKED[one])
    with pytest.raises(AssertionError, match=name):
        first_blocked(operation, facts, SETTINGS, NOW, only={gate})
    assert first_blocked(operation, everything(), OFF, NOW, only={gate}) is not None


@pytest.mark.parametrize("operation", Operation)
def test_nothing_is_done_in_spite_of_a_veto_but_voluntary_disruption(operation: Operation) -> None:
    """The veto is on repair; ``do-not-disrupt`` on the Node is what blocks the other one."""
    assert (Gate.VETO in ASKED[operation]) is (operation is not Operation.VOLUNTARY)


def test_switching_repair_off_does_not_stop_time_outs() -> None:
    timeouts = {Operation.GRACEFUL_TIMEOUT, Operation.FORCEFUL_TIMEOUT, Operation.BOOT_TIMEOUT}
    assert {one for one in Operation if Gate.OFF not in ASKED[one]} == {
        *timeouts,
        Operation.VOLUNTARY,
    }


def test_reason_codes_are_those_that_alerts_are_written_for() -> None:
    found = {gate: GATES[gate](everything(), OFF, NOW) for gate in Gate}
    codes = {gate: blocked.reason for gate, blocked in found.items() if blocked is not None}
    assert codes == {
        Gate.OFF: Reason.REPAIR_OFF,
        Gate.RULES: Reason.REPAIR_OFF,
        Gate.VETO: Reason.REPAIR_VETOED,
        Gate.WINDOW: Reason.DISRUPTION_BLOCKED,
        Gate.OUTAGE: Reason.REPAIR_BLOCKED,
        Gate.BREAKER: Reason.REPAIR_BLOCKED,
        Gate.PAUSE: Reason.DISRUPTION_WAITS,
        Gate.BUDGET: Reason.DISRUPTION_BLOCKED,
        Gate.PODS: Reason.DISRUPTION_BLOCKED,
        Gate.LIMITS: Reason.DISRUPTION_BLOCKED,
    }
    assert codes.keys() == set(Gate)


def test_a_pause_longer_than_any_was_not_written_by_tenure() -> None:
    ahead_of_all = everything(pauses=((ahead(31 * 60), "b"),))
    assert GATES[Gate.PAUSE](ahead_of_all, SETTINGS, NOW) is None
