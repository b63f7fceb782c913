# ruff: noqa: ARG001 (every gate takes the same arguments)
"""Everything that may block a disruption: one ordered list of gates.

A gate is a small pure function. It answers None, or what blocks: the reason code, the facts, the
blockers and until when. Which gates are asked depends on the operation (``operations``); the
order is always the same. Of those that block, ``longest`` says which a verdict tells of.

They are asked when an operation is planned, and again right before it is carried out: before a
claim is stamped and before it is deleted, before a reboot is committed, and until its drain is over.

Repair, reboots and voluntary disruption share this list. So this module imports neither ``repair``
nor ``reboot``: what they know comes in as ``GateFacts``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from tenure.core.facts import Fact, instants_of
from tenure.core.gates.budgets import Allowance, allowance
from tenure.core.gates.facts import (
    BlockedByObject,
    BlockedUntil,
    ClaimWithoutPool,
    DisruptionRulesUnusable,
    DrainUnbounded,
    OthersFirst,
    PoolPauses,
    RepairNotRequested,
    RepairRulesUnusable,
    RepairSwitchedOff,
    RepairVetoed,
    VoluntaryDisruptionOff,
    WindowClosesTooSoon,
)
from tenure.core.gates.gatefacts import Blocked, GateFacts, LaunchTime
from tenure.core.gates.operations import (
    ASKED,
    Gate,
    Operation,
)
from tenure.core.gates.podblockers import blockers_of, ends_last
from tenure.core.protect.protection import Protection, protection_on
from tenure.core.reasons import Reason
from tenure.core.terminate.facts.pods import PdbAllowsNoMore
from tenure.core.windows.windows import (
    Closed,
    closed_by,
    closes_by,
    closes_soon_at,
    windows_change_at,
)
from tenure.core.writes import subject_of
from tenure.model.api.meta import earlier
from tenure.model.api.names import DO_NOT_REPAIR
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.settings import Settings
from tenure.model.values.problem import problems_from
from tenure.schema.semantics.disruption import disruption_problems

#: A pause that ends later than this from now was not written by Tenure.
PAUSE_MAX: Final = timedelta(minutes=30)


#: When these may change, more nodes may count as unhealthy: that is no end.
_NO_END: Final = frozenset({Gate.OUTAGE, Gate.BREAKER})


def first_blocked(
    operation: Operation,
    facts: GateFacts,
    settings: Settings,
    now: datetime,
    *,
    only: Iterable[Gate] = tuple(Gate),
) -> Blocked | None:
    """The first gate that blocks, of those that the operation asks and that are in ``only``."""
    asked = ASKED[operation] & frozenset(only)
    blocked = next(_found(operation, asked, facts, settings, now), None)
    if blocked is None:
        return None
    blocked = _rechecked(_dated(blocked, now), operation, facts, now)
    return in_window(blocked, facts) if Gate.WINDOW in asked else blocked


def all_blocked(
    operation: Operation,
    facts: GateFacts,
    settings: Settings,
    now: datetime,
    *,
    only: Iterable[Gate] = tuple(Gate),
) -> tuple[Blocked, ...]:
    """Every gate that blocks, in their order; each with when the answer of any of them may differ."""
    asked = ASKED[operation] & frozenset(only)
    found = [_dated(one, now) for one in _found(operation, asked, facts, settings, now)]
    if not found:
        return ()
    instants = [_change_at(ASKED[operation], facts, now)]
    instants += [at for one in found for at in (one.until, one.recheck_at)]
    at = min((at for at in instants if at is not None), default=None)
    return tuple(msgspec.structs.replace(one, recheck_at=at) for one in found)


def _found(
    operation: Operation,
    asked: frozenset[Gate],
    facts: GateFacts,
    settings: Settings,
    now: datetime,
) -> Iterator[Blocked]:
    missing = {name for gate in asked for name in NEEDS[gate] if getattr(facts, name) is UNSET}
    if missing:
        raise AssertionError(f"gates for {operation} without {', '.join(sorted(missing))}")
    found = (GATES[gate](facts, settings, now) for gate in Gate if gate in asked)
    return (one for one in found if one is not None)


def in_window(blocked: Blocked, facts: GateFacts) -> Blocked:
    """With the next chance, where windows are closed when the gate lets it pass."""
    windows, traits, node, until = facts.windows, facts.traits, facts.node, blocked.until
    if until is None or blocked.gate in (Gate.WINDOW, Gate.CLOSING) or node is None:
        return blocked
    if isinstance(windows, UnsetType) or isinstance(traits, UnsetType) or not windows:
        return blocked
    closed = closed_by(windows, node, traits.window_actions, until)
    if closed is None:
        return blocked
    why = (*blocked.facts, closed.chance)
    return msgspec.structs.replace(blocked, facts=why, until=closed.opens_at)


def start_in_time(blocked: Blocked, facts: GateFacts, launch: LaunchTime, now: datetime) -> Blocked:
    """With the next chance of a node that waits for others, where a window closes too soon for it.

    When the others are over is not known. If a start now were too late already, later ones are, too.
    """
    windows, traits, node = facts.windows, facts.traits, facts.node
    if blocked.gate is not Gate.BUDGET or blocked.until is not None or blocked.closed:
        return blocked
    if isinstance(windows, UnsetType) or isinstance(traits, UnsetType) or not windows or not node:
        return blocked
    asked = windows, node, traits.window_actions, now
    soon_at = closes_soon_at(*asked, launch.takes)
    if (found := closes_by(*asked, launch.up_at(now))) is None:
        at = min((at for at in (blocked.recheck_at, soon_at) if at is not None), default=None)
        return msgspec.structs.replace(blocked, recheck_at=at)
    late = _too_late(launch, *found)
    instants = (blocked.recheck_at, late.recheck_at, soon_at)
    return msgspec.structs.replace(
        blocked,
        facts=(*blocked.facts, *late.facts),
        until=late.until,
        recheck_at=min(at for at in instants if at is not None),
    )


def _rechecked(blocked: Blocked, operation: Operation, facts: GateFacts, now: datetime) -> Blocked:
    order = tuple(Gate)
    before = ASKED[operation].intersection(order[: order.index(blocked.gate)])
    instants = (blocked.until, blocked.recheck_at, _change_at(before, facts, now))
    at = min((at for at in instants if at is not None), default=None)
    return msgspec.structs.replace(blocked, recheck_at=at)


def _dated(blocked: Blocked, now: datetime) -> Blocked:
    """With until when, if that is known and the gate has not said so."""
    until = blocked.until
    if until is None or until <= now or blocked.gate in _NO_END:
        return blocked
    if any(instants_of(blocked.facts)):
        return blocked
    return msgspec.structs.replace(blocked, facts=(*blocked.facts, BlockedUntil(until)))


def changes_at(operation: Operation, facts: GateFacts, now: datetime) -> datetime | None:
    """When a gate that lets it pass may block it although nothing changes."""
    return _change_at(ASKED[operation], facts, now)


def _change_at(asked: frozenset[Gate], facts: GateFacts, now: datetime) -> datetime | None:
    instants = [facts.breakers_change_at if Gate.BREAKER in asked else None]
    if Gate.WINDOW in asked:
        windows = () if isinstance(facts.windows, UnsetType) else facts.windows
        instants.append(windows_change_at(windows, now))
        instants.append(_closing_at(facts, instants[-1]) if Gate.CLOSING in asked else None)
    if Gate.BUDGET in asked:
        found = allowance_of(facts, now)
        instants.append(found.changes_at if found is not None else None)
    return min((at for at in instants if at is not None and at > now), default=None)


def _closing_at(facts: GateFacts, closes_at: datetime | None) -> datetime | None:
    """From when on a window that closes then blocks a launch."""
    if closes_at is None or isinstance(facts.launches, UnsetType) or not facts.launches:
        return None
    return earlier(closes_at, max(one.takes for one in facts.launches))


# -- the gates, in order -------------------------------------------------------------------


def switched_off(facts: GateFacts, settings: Settings, now: datetime) -> Blocked | None:
    """Node repair, or voluntary disruption, is switched off; beside Karpenter: it is Karpenter's."""
    if facts.off is not None:
        choice = _is_voluntary(facts)
        reason = Reason.VOLUNTARY_DISRUPTION_OFF if choice else Reason.REPAIR_LEFT
        return Blocked(gate=Gate.OFF, reason=reason, facts=(facts.off,))
    if _is_voluntary(facts):
        off = Reason.VOLUNTARY_DISRUPTION_OFF, (VoluntaryDisruptionOff(),)
        if settings.voluntary_disruption:
            return None
        return Blocked(gate=Gate.OFF, reason=off[0], facts=off[1])
    if facts.left is not None:
        return Blocked(gate=Gate.OFF, reason=Reason.REPAIR_LEFT, facts=(facts.left,))
    if settings.node_repair:
        return None
    return Blocked(gate=Gate.OFF, reason=Reason.REPAIR_OFF, facts=(RepairSwitchedOff(),))


def unusable_rules(facts: GateFacts, settings: Settings, now: datetime) -> Blocked | None:
    """The pool's ``repair`` block cannot be used, or beside Karpenter there is none; for voluntary
    disruption: its ``disruption`` block."""
    if _is_voluntary(facts):
        return _unusable_disruption(facts)
    why: Fact | None = None
    if facts.pool is None and not settings.legacy_node_repair:
        why = ClaimWithoutPool(facts.claim.name)
    elif facts.pool is not None and facts.broken:
        why = RepairRulesUnusable(facts.pool.name, facts.broken)
    elif facts.pool is not None and settings.beside_karpenter and facts.pool.spec.repair is None:
        why = RepairNotRequested(facts.pool.name)
    if why is None:
        return None
    return Blocked(gate=Gate.RULES, reason=Reason.REPAIR_OFF, facts=(why,))


def _unusable_disruption(facts: GateFacts) -> Blocked | None:
    problems = () if facts.pool is None else problems_from(disruption_problems(facts.pool))
    if facts.pool is None or not problems:
        return None
    return Blocked(
        gate=Gate.RULES,
        reason=Reason.DISRUPTION_BLOCKED,
        facts=(DisruptionRulesUnusable(facts.pool.name, problems[:1]),),
        closed=True,
    )


def _is_voluntary(facts: GateFacts) -> bool:
    return not isinstance(facts.traits, UnsetType) and facts.traits.voluntary


def vetoed(facts: GateFacts, settings: Settings, now: datetime) -> Blocked | None:
    """``karpenter.sh/do-not-repair`` on the Node or its claim."""
    for thing in (facts.node, facts.claim):
        veto = protection_on(thing, DO_NOT_REPAIR) if thing is not None else None
        if thing is not None and veto is not None and now < veto.until:
            return Blocked(
                gate=Gate.VETO,
                reason=Reason.REPAIR_VETOED,
                facts=(veto_on(thing, veto),),
                until=veto.ends_at,
            )
    return None


def outside_windows(facts: GateFacts, settings: Settings, now: datetime) -> Blocked | None:
    """A maintenance window forbids it now: a Block window is active, or no Allow window is."""
    windows, traits, node = facts.windows, facts.traits, facts.node
    if isinstance(windows, UnsetType) or isinstance(traits, UnsetType) or node is None:
        return None  # Windows select Nodes by their labels.
    if (found := closed_by(windows, node, traits.window_actions, now)) is None:
        return None
    return Blocked(
        gate=Gate.WINDOW,
        reason=Reason.DISRUPTION_BLOCKED,
        facts=found.facts,
        until=found.opens_at,
        recheck_at=found.changes_at,
    )


def in_outage(facts: GateFacts, settings: Settings, now: datetime) -> Blocked | None:
    """Most nodes with its zone, image or instance type are unhealthy, and it is not the probe."""
    if facts.outage is UNSET or not facts.outage:
        return None
    return Blocked(
        gate=Gate.OUTAGE,
        reason=Reason.REPAIR_BLOCKED,
        facts=facts.outage,
        until=facts.breakers_change_at,
    )


def breaker_tripped(facts: GateFacts, settings: Settings, now: datetime) -> Blocked | None:
    """More nodes of its pool are unhealthy than ``maxUnhealthy`` allows."""
    if facts.breaker is UNSET or facts.breaker is None:
        return None
    return Blocked(
        gate=Gate.BREAKER,
        reason=Reason.REPAIR_BLOCKED,
        facts=(facts.breaker,),
        until=facts.breakers_change_at,
    )


def pausing(facts: GateFacts, settings: Settings, now: datetime) -> Blocked | None:
    """A replacement of the pool has failed, and the pool pauses: nothing is replaced meanwhile."""
    if not isinstance(facts.traits, UnsetType) and not facts.traits.needs_replacement:
        return None
    pauses = () if facts.pauses is UNSET else facts.pauses
    near = [(until, name) for until, name in pauses if until - now <= PAUSE_MAX]
    until, name = max(near, default=(now, ""))
    if until <= now:
        return None
    why = PoolPauses(facts.claim.pool_name, name, until)
    return Blocked(gate=Gate.PAUSE, reason=Reason.DISRUPTION_WAITS, facts=(why,), until=until)


def over_budget(facts: GateFacts, settings: Settings, now: datetime) -> Blocked | None:
    """The budgets of its pool allow no more disruptions for this reason."""
    found = allowance_of(facts, now)
    if found is None or found.allowed > facts.started - found.counted:
        return None
    first = OthersFirst(facts.started - found.counted)
    why = (found.why,) if found.allowed == 0 else (found.why, first)
    return Blocked(
        gate=Gate.BUDGET,
        reason=Reason.DISRUPTION_BLOCKED,
        facts=why,
        until=found.changes_at,
        closed=found.closed,
    )


def allowance_of(facts: GateFacts, now: datetime) -> Allowance | None:
    """What the budgets allow for it; None: it needs none."""
    pool, node, fleet, traits = facts.pool, facts.node, facts.fleet, facts.traits
    if fleet is UNSET or traits is UNSET:
        return None
    if pool is None or node is None or not facts.claim.initialized:
        return None  # It neither needs nor uses a budget.
    return allowance(pool, traits, node, fleet, now, claim=facts.claim, recorded=facts.recorded)


def blocking_pods(facts: GateFacts, settings: Settings, now: datetime) -> Blocked | None:
    """Pods that must not be evicted now, or a Node that must not be disrupted."""
    traits, claim, drain = facts.traits, facts.claim, facts.drain
    if traits is UNSET or drain is UNSET:
        return None
    found = tuple(blockers_of(traits, claim, drain, settings, now, bound=facts.bound))
    if not found:
        return None
    found = tuple(sorted(found, key=ends_last, reverse=True))
    subject = found[0].subject
    name = f"{subject.namespace}/{subject.name}" if subject.namespace else subject.name
    first = BlockedByObject(subject.kind, name, found[0].fact, len(found) - 1)
    with_bound = blockers_of(traits, claim, drain, settings, now, bound=timedelta())
    unbounded = next(with_bound, None) is None
    return Blocked(
        gate=Gate.PODS,
        reason=Reason.DISRUPTION_BLOCKED,
        facts=(first, DrainUnbounded(drain.node.name)) if unbounded else (first,),
        blockers=found,
        until=min((one.until for one in found if one.until is not None), default=None),
        # A PDB that allows no more for now opens again by itself.
        closed=not all(isinstance(one.fact, PdbAllowsNoMore) for one in found),
    )


def without_capacity(facts: GateFacts, settings: Settings, now: datetime) -> Blocked | None:
    """Its pods fit nowhere, within the limits of the pools: known once the plan is made."""
    if facts.unplaced is UNSET or facts.unplaced is None:
        return None
    reason = Reason.DISRUPTION_WAITS if facts.passing else Reason.DISRUPTION_BLOCKED
    found = (facts.unplaced,)
    return Blocked(gate=Gate.LIMITS, reason=reason, facts=found, until=facts.replan_at)


def closes_too_soon(facts: GateFacts, settings: Settings, now: datetime) -> Blocked | None:
    """A window closes before new nodes can be initialized, by the recent launches of their pool."""
    windows, traits, node, launches = facts.windows, facts.traits, facts.node, facts.launches
    if isinstance(windows, UnsetType) or isinstance(traits, UnsetType) or node is None:
        return None
    if isinstance(launches, UnsetType) or not launches or not windows:
        return None
    last = max(launches, key=lambda one: one.up_at(now))
    found = closes_by(windows, node, traits.window_actions, now, last.up_at(now))
    if found is None:
        return None
    return _too_late(last, *found)


def _too_late(launch: LaunchTime, closed: Closed, at: datetime) -> Blocked:
    why, *more = closed.facts
    return Blocked(
        gate=Gate.CLOSING,
        reason=Reason.DISRUPTION_BLOCKED,
        facts=(WindowClosesTooSoon(launch.pool, launch.takes, at, why), *more),
        until=closed.opens_at,
        recheck_at=at,
    )


GATES: Final[Mapping[Gate, Callable[[GateFacts, Settings, datetime], Blocked | None]]] = {
    Gate.OFF: switched_off,
    Gate.RULES: unusable_rules,
    Gate.VETO: vetoed,
    Gate.WINDOW: outside_windows,
    Gate.OUTAGE: in_outage,
    Gate.BREAKER: breaker_tripped,
    Gate.PAUSE: pausing,
    Gate.BUDGET: over_budget,
    Gate.PODS: blocking_pods,
    Gate.LIMITS: without_capacity,
    Gate.CLOSING: closes_too_soon,
}

#: Without which facts a gate is not asked. None is an answer, too: there is no pool, for example.
NEEDS: Final[Mapping[Gate, tuple[str, ...]]] = {
    Gate.OFF: (),
    Gate.RULES: (),
    Gate.VETO: (),
    Gate.WINDOW: ("windows", "traits"),
    Gate.OUTAGE: ("outage",),
    Gate.BREAKER: ("breaker",),
    Gate.PAUSE: ("pauses",),
    Gate.BUDGET: ("fleet", "traits"),
    Gate.PODS: ("traits", "drain"),
    Gate.LIMITS: ("unplaced",),
    Gate.CLOSING: ("windows", "traits", "launches"),
}


def veto_on(thing: Node | NodeClaim, veto: Protection) -> Fact:
    """What is said of a ``karpenter.sh/do-not-repair`` that has not ended."""
    if veto.problem is not None:
        return veto.problem
    subject = subject_of(thing)
    return RepairVetoed(
        subject.kind, subject.name, veto.value, veto.until, unreadable=veto.unreadable
    )
