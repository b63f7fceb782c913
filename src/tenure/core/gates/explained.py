"""What each gate means to an operator, and what to do about it.

Several gates have one reason code; a verdict that one of them blocks names the gate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from tenure.core.decision import Verdict
from tenure.core.facts import Fact, some, told
from tenure.core.gates.facts import (
    BlockedByObject,
    BudgetUse,
    DisruptionRulesUnusable,
    DrainUnbounded,
    VoluntaryDisruptionOff,
)
from tenure.core.gates.operations import Gate
from tenure.core.protect.protection import Protection
from tenure.core.reasons import NO_ADVICE, REASONS, Reason, ReasonInfo
from tenure.core.windows.facts import (
    InvalidWindowBlocks,
    NextChance,
    OutsideAllowWindows,
    WindowActive,
    WindowBlocks,
    blocking_windows,
)
from tenure.model.api.meta import FOR_EVER, format_time
from tenure.model.api.resource import POD_DISRUPTION_BUDGETS


class GateInfo(msgspec.Struct, frozen=True):
    meaning: str
    advice: str


EXPLAINED: Final[Mapping[Gate, GateInfo]] = {
    Gate.OFF: GateInfo(
        "The node is to be disrupted, and that is switched off: node repair or voluntary disruption.",
        "Set --node-repair=true or --voluntary-disruption=true, or repair the node by hand.",
    ),
    Gate.RULES: GateInfo(
        "The node is unhealthy, and not repaired: the repair block of its NodePool cannot be used.",
        "Correct spec.repair of the NodePool, or repair the node by hand.",
    ),
    Gate.VETO: GateInfo(
        "The node is due for repair, but karpenter.sh/do-not-repair vetoes it.",
        "Remove the annotation when the node may be repaired.",
    ),
    Gate.WINDOW: GateInfo(
        "The node is to be disrupted, and a maintenance window does not allow that now.",
        "Wait until the window allows it, or change the MaintenanceWindow: its actions, selector or "
        "schedules.",
    ),
    Gate.OUTAGE: GateInfo(
        "The node is due for repair, but most nodes of its zone, image or instance type are "
        "unhealthy: the cause is probably one that these nodes share.",
        "Look for what they share: network, image, zone. To repair them all the same, set "
        "--repair-domain-breaker=false.",
    ),
    Gate.BREAKER: GateInfo(
        "The node is due for repair, but too many nodes of its NodePool are unhealthy.",
        "Look for what they share: network, image, zone. To go on, raise repair.maxUnhealthy of the "
        "NodePool.",
    ),
    Gate.PAUSE: GateInfo(
        "The node is to be disrupted; a replacement has failed, and the NodePool backs off.",
        NO_ADVICE,
    ),
    Gate.BUDGET: GateInfo(
        "The node is to be disrupted, and a budget of its NodePool allows no more disruptions now.",
        "Raise the budget that is named, or wait until its schedule ends or other disruptions of "
        "the NodePool are over.",
    ),
    Gate.PODS: GateInfo(
        "The node is to be disrupted, and its Node, claim or a pod on it is protected, or a PDB "
        "allows no eviction.",
        "Remove the protection that is named, or let the PDB allow an eviction. Only where no grace "
        "period bounds the drain: set terminationGracePeriod of the NodePool for new claims.",
    ),
    Gate.CLOSING: GateInfo(
        "The node is to be disrupted, and a maintenance window begins to block before its replacement "
        "could be initialized.",
        "Wait until the window allows it again, or make the window longer than the launches of the "
        "NodePool take.",
    ),
    Gate.LIMITS: GateInfo(
        "The node is to be replaced, and its pods fit nowhere else.",
        "Raise the limit that is named, or free capacity.",
    ),
}


def info_of(verdict: Verdict) -> ReasonInfo:
    """Of the gate that blocks it, else of its reason code; with what fits its facts best to advise."""
    info = REASONS[verdict.reason]
    meaning, advice = info.meaning, info.advice
    if verdict.gate:
        gate = EXPLAINED[Gate(verdict.gate)]
        meaning, advice = gate.meaning, gate.advice
    facts = tuple(told(verdict.facts))
    better = next(filter(None, map(_advice, facts)), "")
    if verdict.reason is Reason.DRAIN_NOT_GRACEFUL:
        better = " ".join(dict.fromkeys(filter(None, map(_advice, facts))))
    if not better and verdict.gate == Gate.WINDOW:
        better = _advice_on_windows(facts)
    if not better and verdict.gate == Gate.PODS:
        better = _advice_on_pods(facts)
    if not better and not verdict.gate:
        # Consolidation asks gates before there is a candidate that they could block.
        better = _advice_on_windows(facts) or _advice_on_pods(facts)
        better = better or next(filter(None, map(_advice_of_gate, facts)), "")
    return ReasonInfo(meaning, better or advice, info.event)


def _advice_on_windows(facts: Sequence[Fact]) -> str:
    """Empty: no fact is about one."""
    for fact in facts:
        match fact:
            case NextChance(at=None, windows=names):
                return f"Change {_windows(names)}: actions, selector or schedules."
            case NextChance(at=datetime() as at, windows=names):
                return _wait_or_change(at, names)
    for fact in facts:
        match fact:
            case WindowBlocks(until=at) | OutsideAllowWindows(opens=at) if at != FOR_EVER:
                return _wait_or_change(at, blocking_windows(fact))
            case OutsideAllowWindows(windows=names):
                return f"Give {_windows(names)} schedules or dates that come, or delete {_them(names)}."
    return ""


def _advice_on_pods(facts: Sequence[Fact]) -> str:
    """Empty: what blocks is neither a protection nor a PDB."""
    found = next((fact for fact in facts if isinstance(fact, BlockedByObject)), None)
    if found is None:
        return ""
    if found.kind == POD_DISRUPTION_BUDGETS.kind:
        advice = f"Let {found.kind} {found.name} allow an eviction"
    elif isinstance(found.fact, Protection):
        advice = _advice_on_protection(found, found.fact)
    else:
        return ""
    more = f" (and {found.more} more)" if found.more else ""
    unbounded = any(isinstance(fact, DrainUnbounded) for fact in facts)
    grace = (
        ". Or set terminationGracePeriod of the NodePool, for new NodeClaims" if unbounded else ""
    )
    return f"{advice}{more}{grace}."


def _advice_on_protection(found: BlockedByObject, protection: Protection) -> str:
    about = f"{found.kind} {found.name}"
    if protection.problem is not None:
        return f"Correct {about}"
    if protection.ends_at is None or found.more:  # The others may last longer.
        return f"Remove the protection of {about}"
    return f"Wait until {format_time(protection.ends_at)}, or remove the protection of {about}"


def _wait_or_change(at: datetime, names: Sequence[str]) -> str:
    what = "actions, selector or schedules"
    return f"Wait until {format_time(at)}, or change {_windows(names)}: {what}."


def _windows(names: Sequence[str]) -> str:
    return f"MaintenanceWindow{'s' if len(names) > 1 else ''} {some(names)}"


def _them(names: Sequence[str]) -> str:
    return "them" if len(names) > 1 else "it"


def _advice_of_gate(fact: Fact) -> str:
    match fact:
        case VoluntaryDisruptionOff():
            return "Set --voluntary-disruption=true."
        case DisruptionRulesUnusable():
            return "Correct spec.disruption of the NodePool."
        case BlockedByObject():
            return EXPLAINED[Gate.PODS].advice
        case _:
            return ""


def _advice(fact: Fact) -> str:
    """Empty: none of its own."""
    if own := fact.remedy():
        return own
    match fact:
        case WindowActive(misses=True):
            return (
                "Compare spec.selector of the MaintenanceWindow with kubectl get nodes --show-labels; "
                "tenure lint names values that no Node can have."
            )
        case WindowActive(active=False, changes_at=None, exact=True):
            return "Give the MaintenanceWindow a schedule or dates that come, or delete it."
        case InvalidWindowBlocks(window=name):
            return f"Correct or delete MaintenanceWindow {name}."
        case WindowBlocks(window=name, until=until) if until == FOR_EVER:
            return f"Delete MaintenanceWindow {name}, or give it schedules or dates."
        case BudgetUse(limit=0, schedule="", nodes="0" | "0%"):
            return "Raise the budget that is named: it allows no disruption for as long as it is 0."
        case _:
            return ""
