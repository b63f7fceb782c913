"""The gates: one order for all, and each operation asks those of its row."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from tenure.core.disrupt.facts.candidates import PendingPodsFirst
from tenure.core.gates.explained import EXPLAINED
from tenure.core.gates.facts import BlockedUntil, OthersFirst, PoolPauses, WindowClosesTooSoon
from tenure.core.gates.fleet import fleet_of
from tenure.core.gates.gatefacts import GateFacts, LaunchTime
from tenure.core.gates.gates import GATES, NEEDS, changes_at, first_blocked, start_in_time
from tenure.core.gates.operations import (
    ASKED,
    COUNTS_STARTED,
    PLAN_ONLY,
    ROLLS_BACK,
    Gate,
    Operation,
)
from tenure.core.gates.traits import Traits
from tenure.core.health.facts import CircuitBreakerOpen, Domain, FirstProbe
from tenure.core.reasons import Reason
from tenure.core.recurrence import Dates
from tenure.core.terminate.drain import drain_until
from tenure.core.windows.facts import NextChance
from tenure.core.windows.parsed import ParsedWindow
from tenure.model.api.names import DO_NOT_REPAIR
from tenure.model.api.window import ACTIONS
from tests.core.build import (
    NOW,
    SETTINGS,
    a_claim,
    a_leaving_claim,
    a_leaving_node,
    a_node,
    a_pdb,
    a_pod,
    a_pool,
    ahead,
    condition,
)
from tests.snapshots import snapshot_with

OFF = msgspec.structs.replace(SETTINGS, node_repair=False, voluntary_disruption=False)

#: Nodes are taken away by choice.
OF_CHOICE = {Operation.VOLUNTARY, Operation.EXPIRATION}

CLAIM, NODE = a_claim(annotations={DO_NOT_REPAIR: "true"}), a_node()
#: With neither schedules nor dates it is always active.
FREEZE = ParsedWindow(name="freeze", blocks=True, actions=frozenset(ACTIONS))
CLOSED = [{"nodes": "0"}]
READY = a_pod(conditions=[condition("Ready")])
POOL = a_pool(disruption={"budgets": CLOSED})
#: Voluntary disruption cannot use its rules; its budgets can be read.
BROKEN = a_pool(disruption={"budgets": CLOSED, "consolidateAfter": "soon"})
VOLUNTARY, REPAIR = Traits(reason="Expired"), Traits(reason="Unhealthy", voluntary=False)
#: It is not active yet, and blocks before a node could be launched.
SOON = ParsedWindow(
    name="soon",
    blocks=True,
    actions=frozenset(ACTIONS),
    parts=(Dates(ahead(30), ahead(3600)),),
)
SNAPSHOT = snapshot_with(CLAIM, NODE, POOL, a_pod(protected="true"))


def traits_of(operation: Operation) -> Traits:
    return VOLUNTARY if operation in OF_CHOICE else REPAIR


def everything(**fields: Any) -> GateFacts:
    """Facts with which every gate blocks."""
    usual: dict[str, Any] = {
        "claim": CLAIM,
        "node": NODE,
        "pool": BROKEN,
        "windows": (FREEZE, SOON),
        "broken": "spec.repair is nonsense",
        "outage": (FirstProbe(Domain("zone", "a"), NOW),),
        "breaker": CircuitBreakerOpen("general", 2, 3, 1, "1"),
        "breakers_change_at": ahead(7),
        "pauses": ((ahead(60), "b"),),
        "traits": VOLUNTARY,
        "fleet": fleet_of("general", SNAPSHOT),
        "drain": drain_until(NODE, None, SNAPSHOT),
        "unplaced": PendingPodsFirst(),
        "launches": (LaunchTime("general", timedelta(minutes=1)),),
    }
    return GateFacts(**usual | fields)


#: Facts of which the gate has nothing to say.
LETS_PASS: dict[Gate, dict[str, Any]] = {
    Gate.RULES: {"broken": "", "pool": POOL},
    Gate.VETO: {"claim": a_claim()},
    Gate.WINDOW: {"windows": (SOON,)},
    Gate.OUTAGE: {"outage": ()},
    Gate.BREAKER: {"breaker": None},
    Gate.PAUSE: {"pauses": ()},
    Gate.BUDGET: {"pool": a_pool(disruption={"budgets": []})},
    Gate.PODS: {"drain": drain_until(NODE, None, snapshot_with(CLAIM, NODE))},
    Gate.LIMITS: {"unplaced": None},
    Gate.CLOSING: {"launches": ()},
}


@pytest.mark.parametrize("operation", Operation)
def test_an_operation_asks_the_gates_of_its_row_in_the_order_of_the_list(
    operation: Operation,
) -> None:
    facts, settings, met = everything(traits=traits_of(operation)), OFF, []
    while (blocked := first_blocked(operation, facts, settings, NOW)) is not None:
        met.append(blocked.gate)
        if blocked.gate is Gate.OFF:
            settings = SETTINGS
        else:
            facts = msgspec.structs.replace(facts, **LETS_PASS[blocked.gate])
    assert met == [gate for gate in Gate if gate in ASKED[operation]]


@pytest.mark.parametrize("traits", [VOLUNTARY, REPAIR])
@pytest.mark.parametrize("gate", Gate)
def test_a_gate_says_that_it_was_this_gate(gate: Gate, traits: Traits) -> None:
    blocked = GATES[gate](everything(traits=traits), OFF, NOW)
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


class ReadFacts:
    """Facts, and which of them were read."""

    def __init__(self, facts: GateFacts) -> None:
        self._facts = facts
        self.names: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.names.add(name)
        return getattr(self._facts, name)


@pytest.mark.parametrize("gate", Gate)
def test_only_gates_that_say_so_depend_on_what_was_started_in_the_same_pass(gate: Gate) -> None:
    """The others are not asked again once something is started."""
    read: set[str] = set()
    for more in ({}, LETS_PASS.get(gate, {})):
        facts: Any = ReadFacts(everything(**more))
        GATES[gate](facts, SETTINGS, NOW)
        read |= facts.names
    assert bool(read & {"started", "recorded"}) == (gate in COUNTS_STARTED)


@pytest.mark.parametrize(("gate", "name"), [(gate, name) for gate in Gate for name in NEEDS[gate]])
def test_a_gate_that_is_asked_without_its_facts_is_a_fault_and_lets_nothing_pass(
    gate: Gate, name: str
) -> None:
    facts = everything(**LETS_PASS[gate] | {name: UNSET})
    operation = next(one for one in Operation if gate in ASKED[one])
    with pytest.raises(AssertionError, match=name):
        first_blocked(operation, facts, SETTINGS, NOW, only={gate})
    assert first_blocked(operation, everything(), OFF, NOW, only={gate}) is not None


def test_nothing_blocks_an_interruption() -> None:
    facts = everything()
    assert first_blocked(Operation.INTERRUPTION, facts, OFF, NOW) is None


@pytest.mark.parametrize("operation", sorted(set(Operation) - {Operation.INTERRUPTION}))
def test_nothing_is_done_in_spite_of_a_veto_but_voluntary_disruption(operation: Operation) -> None:
    """The veto is on repair; ``do-not-disrupt`` on the Node is what blocks the others."""
    assert (Gate.VETO in ASKED[operation]) is (operation not in OF_CHOICE)


def test_switching_repair_off_does_not_stop_time_outs() -> None:
    timeouts = {Operation.GRACEFUL_TIMEOUT, Operation.FORCEFUL_TIMEOUT, Operation.BOOT_TIMEOUT}
    on = {one for one in Operation if Gate.OFF not in ASKED[one]}
    assert on - {Operation.INTERRUPTION} == timeouts


def test_each_switch_is_for_its_own_operations() -> None:
    no_choice = msgspec.structs.replace(SETTINGS, voluntary_disruption=False)
    no_repair = msgspec.structs.replace(SETTINGS, node_repair=False)
    for traits, mine, other in ((VOLUNTARY, no_choice, no_repair), (REPAIR, no_repair, no_choice)):
        assert GATES[Gate.OFF](everything(traits=traits), mine, NOW) is not None
        assert GATES[Gate.OFF](everything(traits=traits), other, NOW) is None


def test_rules_of_disruption_and_of_repair_are_not_mixed_up() -> None:
    assert GATES[Gate.RULES](everything(broken=""), SETTINGS, NOW) is not None
    assert GATES[Gate.RULES](everything(broken="", traits=REPAIR), SETTINGS, NOW) is None
    assert GATES[Gate.RULES](everything(pool=POOL), SETTINGS, NOW) is None


def test_an_empty_node_goes_while_the_pool_pauses() -> None:
    empty = Traits(reason="Empty", needs_replacement=False)
    assert GATES[Gate.PAUSE](everything(traits=empty), SETTINGS, NOW) is None


@pytest.mark.parametrize(
    ("seconds", "blocks"), [(29, False), (30, False), (31, True)], ids=["before", "just", "after"]
)
def test_a_launch_that_ends_after_the_window_closes_does_not_begin(
    seconds: int, blocks: bool
) -> None:
    launches = (LaunchTime("general", timedelta(seconds=seconds)),)
    facts = everything(windows=(SOON,), launches=launches)
    blocked = GATES[Gate.CLOSING](facts, SETTINGS, NOW)
    assert (blocked is not None) is blocks
    assert changes_at(Operation.VOLUNTARY, facts, NOW) == (
        ahead(30 - seconds) if seconds < 30 else ahead(30)
    )


def test_a_replacement_that_was_launched_before_counts_from_its_launch() -> None:
    launches = (LaunchTime("general", timedelta(seconds=60), since=ahead(-40)),)
    facts = everything(windows=(SOON,), launches=launches)
    assert GATES[Gate.CLOSING](facts, SETTINGS, NOW) is None


def closed(gate: Gate, **fields: Any) -> bool:
    blocked = GATES[gate](everything(**fields), SETTINGS, NOW)
    assert blocked is not None
    return blocked.closed


def test_a_budget_is_closed_where_it_allows_nothing_and_not_where_others_use_it() -> None:
    assert closed(Gate.BUDGET)
    assert closed(Gate.BUDGET, pool=a_pool(disruption={"budgets": [{"nodes": "many"}]}))
    used = a_pool(disruption={"budgets": [{"nodes": "1"}]})
    assert not closed(Gate.BUDGET, pool=used, started=1)


def test_a_budget_that_others_use_at_the_same_instant_says_how_many() -> None:
    pool = a_pool(disruption={"budgets": [{"nodes": "2"}]})
    blocked = GATES[Gate.BUDGET](everything(pool=pool, started=2), SETTINGS, NOW)
    assert blocked is not None
    assert blocked.facts[-1] == OthersFirst(2)


def test_pods_close_it_by_protection_and_not_by_a_pdb_that_is_used_up() -> None:
    def drain(pod: Any, *more: Any) -> Any:
        return drain_until(NODE, None, snapshot_with(CLAIM, NODE, pod, *more))

    assert closed(Gate.PODS, drain=drain(a_pod(protected="true")))
    used_up = a_pdb(expected_pods=2, desired_healthy=1, current_healthy=1)
    assert not closed(Gate.PODS, drain=drain(READY, used_up))
    never = a_pdb(expected_pods=2, desired_healthy=2, current_healthy=2)
    assert closed(Gate.PODS, drain=drain(READY, never))


def test_reason_codes_are_those_that_alerts_are_written_for() -> None:
    found = {gate: GATES[gate](everything(), OFF, NOW) for gate in Gate}
    repair = GATES[Gate.OFF](everything(traits=REPAIR), OFF, NOW)
    rules = GATES[Gate.RULES](everything(traits=REPAIR), OFF, NOW)
    assert repair is not None
    assert repair.reason is Reason.REPAIR_OFF
    assert rules is not None
    assert rules.reason is Reason.REPAIR_OFF
    codes = {gate: blocked.reason for gate, blocked in found.items() if blocked is not None}
    assert codes == {
        Gate.OFF: Reason.VOLUNTARY_DISRUPTION_OFF,
        Gate.RULES: Reason.DISRUPTION_BLOCKED,
        Gate.VETO: Reason.REPAIR_VETOED,
        Gate.WINDOW: Reason.DISRUPTION_BLOCKED,
        Gate.OUTAGE: Reason.REPAIR_BLOCKED,
        Gate.BREAKER: Reason.REPAIR_BLOCKED,
        Gate.PAUSE: Reason.DISRUPTION_WAITS,
        Gate.BUDGET: Reason.DISRUPTION_BLOCKED,
        Gate.PODS: Reason.DISRUPTION_BLOCKED,
        Gate.LIMITS: Reason.DISRUPTION_BLOCKED,
        Gate.CLOSING: Reason.DISRUPTION_BLOCKED,
    }
    assert codes.keys() == set(Gate)


def test_a_pause_longer_than_any_was_not_written_by_tenure() -> None:
    ahead_of_all = everything(pauses=((ahead(31 * 60), "b"),))
    assert GATES[Gate.PAUSE](ahead_of_all, SETTINGS, NOW) is None


def test_a_gate_that_opens_while_windows_are_closed_names_the_next_chance() -> None:
    """The budget is free in twenty minutes, and the night begins in ten hours."""
    noon = [{"nodes": "0", "schedule": "0 12 * * *", "duration": "20m"}]
    days = Dates(ahead(10 * 60), ahead(10 * 3600))
    window = ParsedWindow(name="days", blocks=True, actions=frozenset(ACTIONS), parts=(days,))
    facts = everything(
        pool=a_pool(disruption={"budgets": noon}),
        windows=(window,),
        **LETS_PASS[Gate.PAUSE],
    )
    blocked = first_blocked(Operation.VOLUNTARY, facts, SETTINGS, NOW)
    assert blocked is not None
    assert blocked.gate is Gate.BUDGET
    assert blocked.facts[-1] == NextChance(ahead(10 * 3600), ("days",))
    assert blocked.until == ahead(10 * 3600)
    assert blocked.recheck_at == ahead(10 * 60), "the window begins"


USED_UP = a_pool(disruption={"budgets": [{"nodes": "1"}]})
ONE_GOES = snapshot_with(
    USED_UP, a_claim(), NODE, a_leaving_claim("x"), a_leaving_node("node-x", claim="x")
)


@pytest.mark.parametrize(
    ("takes", "late"), [(timedelta(seconds=30), False), (timedelta(seconds=31), True)]
)
def test_who_waits_for_others_is_told_that_a_window_closes_before(
    takes: timedelta, late: bool
) -> None:
    """The window blocks in thirty seconds, for an hour."""
    facts = everything(
        claim=a_claim(),
        pool=USED_UP,
        windows=(SOON,),
        fleet=fleet_of("general", ONE_GOES),
        **LETS_PASS[Gate.PAUSE],
    )
    blocked = first_blocked(Operation.VOLUNTARY, facts, SETTINGS, NOW)
    assert blocked is not None
    assert (blocked.gate, blocked.until) == (Gate.BUDGET, None)
    told = start_in_time(blocked, facts, LaunchTime("general", takes), NOW)
    assert any(isinstance(one, WindowClosesTooSoon) for one in told.facts) is late
    assert told.until == (ahead(3600) if late else None)
    assert told.recheck_at is not None
    before = told.recheck_at - timedelta(microseconds=1)
    again = start_in_time(blocked, facts, LaunchTime("general", takes), before)
    assert again.facts == told.facts, "nothing is said anew before"
