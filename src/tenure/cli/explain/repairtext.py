"""How a node would be repaired, and what would block that: as a table, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

import msgspec

from tenure.cli.view.columns import table
from tenure.cli.view.instants import at_clock
from tenure.core.beside.facts.karpenter import (
    KarpenterNotReady,
    KarpenterRepairs,
    KarpenterRollsOut,
)
from tenure.core.beside.karpenter import repair_left
from tenure.core.disrupt.methods import GRACEFUL_REPAIR
from tenure.core.disrupt.replacements import pauses_of
from tenure.core.facts import sentence
from tenure.core.gates.fleet import fleet_of
from tenure.core.gates.gatefacts import Blocked, GateFacts
from tenure.core.gates.gates import allowance_of, first_blocked, veto_on
from tenure.core.gates.operations import ASKED, LAST, Gate, Operation
from tenure.core.health.health import unusable
from tenure.core.health.outage import pool_health_of
from tenure.core.health.readiness import Boot, Stage, boot_of
from tenure.core.health.rules import FORCEFUL, Rules, rules_of
from tenure.core.marks.command import is_replaced
from tenure.core.marks.ownership import is_ours
from tenure.core.marks.reboot import rebooted_at
from tenure.core.protect.protection import protection_on
from tenure.core.reasons import Reason
from tenure.core.repair.facts import Means, RebootLeft
from tenure.core.repair.foresight import blocked_at, gate_facts
from tenure.core.repair.policies import Prospect, what_would_happen
from tenure.core.terminate.drain import drain_of
from tenure.model.api.meta import format_time
from tenure.model.api.names import DO_NOT_REPAIR
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.values.duration import Duration, compact
from tenure.schema.problems import in_words, problems_of_pool

_HEADINGS: Final = ("CONDITION", "UNHEALTHY IF", "NOW", "TOLERATED", "THEN", "BY")

#: The gates of graceful repair, but those that depend on the policy and its plan: whether pods block
#: it depends on the bound of the drain, and the drain has a section of its own.
_SHOWN: Final = ASKED[Operation.GRACEFUL_REPAIR] - LAST - {Gate.PODS}
#: Where the name of the gate is too long for the column.
_WORDS: Final = {
    Gate.OFF: "off",
    Gate.RULES: "off",
    Gate.WINDOW: "window",
    Gate.OUTAGE: "domain",
    Gate.BREAKER: "breaker",
    Gate.BUDGET: "budget",
}
#: What a gate that blocks means, where the row has no place for its facts: a line above the table has them.
_BECAUSE: Final = {
    Gate.OFF: "node repair is switched off",
    Gate.RULES: "no repair block that can be used applies to it",
    Gate.VETO: "karpenter.sh/do-not-repair vetoes it",
    Gate.WINDOW: "a maintenance window does not allow it",
    Gate.OUTAGE: "most Nodes of its zone, image or instance type are unhealthy",
    Gate.BREAKER: "too many Nodes of the NodePool are unhealthy",
    Gate.PAUSE: "the NodePool backs off after a replacement that failed",
    Gate.BUDGET: "a budget of the NodePool allows no more",
    Gate.PODS: "a PDB or a protection does not allow the drain",
}
#: What waits for budgets and pods, and by which operation's gates.
_PACED: Final = {
    Means.GRACEFUL: Operation.GRACEFUL_REPAIR,
    Means.REBOOT: Operation.REBOOT,
}


class RepairOutlook(msgspec.Struct, frozen=True, kw_only=True):
    node: str
    at: datetime
    #: What is said of the whole node: a word, and a sentence.
    remarks: tuple[tuple[str, str], ...]
    #: Each with the gate that blocks it when it is due, or would now.
    rows: tuple[tuple[Prospect, Blocked | None], ...]


def repair_outlook(
    node: Node, snapshot: Snapshot, settings: Settings, now: datetime
) -> RepairOutlook | None:
    """None for a node that this provider does not repair."""
    claim = snapshot.claim_of(node)
    if claim is None or not is_ours(claim, snapshot):
        return None
    rules = rules_of(claim.pool_name, snapshot)
    if settings.legacy_node_repair:
        rules = msgspec.structs.replace(rules, default_mode=FORCEFUL)
    pool = snapshot.pools.get(claim.pool_name)
    leaving = claim.deleting or node.deleting
    rows = what_would_happen(node, rules, rebooted_at=rebooted_at(claim), leaving=leaving)
    return RepairOutlook(
        node=node.name,
        at=now,
        remarks=(
            *_terminating(claim, node),
            *_left_out(pool, rules),
            *_first_boot(claim, node, rules),
            *_without_policy(node, rows),
            *_gates(claim, node, snapshot, settings, now),
        ),
        rows=tuple((row, _blocked(row, claim, node, snapshot, settings, now)) for row in rows),
    )


def _blocked(
    row: Prospect,
    claim: NodeClaim,
    node: Node,
    snapshot: Snapshot,
    settings: Settings,
    now: datetime,
) -> Blocked | None:
    """What blocks it when it is due. What is due already also waits for budgets and pods, as they
    are now; unless it is under way. Beside Karpenter, what is Karpenter's."""
    if (left := _left(row, claim, snapshot, settings)) is not None:
        return left
    blocked = blocked_at(node, snapshot, settings, max(now, row.due_at or now))
    operation, pool = _PACED.get(row.then.means), snapshot.pools.get(claim.pool_name)
    due = row.due_at is not None and row.due_at <= now
    if blocked is not None or not due or operation is None or pool is None:
        return blocked
    if is_replaced(claim) or claim.rebooting:
        return None
    facts = GateFacts(
        claim=claim,
        node=node,
        pool=pool,
        pauses=tuple(pauses_of(snapshot.claims_of_pool(pool.name))),
        traits=GRACEFUL_REPAIR.traits,
        fleet=fleet_of(pool.name, snapshot),
        drain=drain_of(node, snapshot),
        bound=row.then.bound,
    )
    return first_blocked(operation, facts, settings, now, only=(Gate.PAUSE, Gate.BUDGET, Gate.PODS))


def _left(
    row: Prospect, claim: NodeClaim, snapshot: Snapshot, settings: Settings
) -> Blocked | None:
    why = repair_left(snapshot, settings)
    if why is None and settings.beside_karpenter and row.then.means is Means.REBOOT:
        why = RebootLeft(claim.name)
    return Blocked(gate=Gate.OFF, reason=Reason.REPAIR_LEFT, facts=(why,)) if why else None


Remarks = Iterator[tuple[str, str]]


def _terminating(claim: NodeClaim, node: Node) -> Remarks:
    if claim.deleting or node.deleting:
        yield (
            "deleted",
            "it is terminating: a repair that falls due only brings its deadline forward",
        )


def _left_out(pool: NodePool | None, rules: Rules) -> Remarks:
    if pool is not None and not unusable(pool):
        watched = {statement.condition_type for statement in rules.statements}
        if left_out := in_words(problems_of_pool(pool, watched).repair):
            yield "left out", f"a policy of the pool cannot be used: {left_out}"


def _without_policy(node: Node, rows: Iterable[Prospect]) -> Remarks:
    """Conditions that a user may take for a reason to repair the node."""
    named = {row.condition_type for row in rows}
    found = [
        f"{one.type}={one.status}"
        for one in node.status.conditions
        if one.type not in named and one.type != "Ready" and one.status != "False"
    ]
    if found:
        which, it = (
            ("this condition", "it is") if len(found) == 1 else ("these conditions", "they are")
        )
        yield "no rule", f"{', '.join(found)}: no policy names {which}, so {it} never repaired"


def _first_boot(claim: NodeClaim, node: Node, rules: Rules) -> Remarks:
    if claim.initialized:
        return
    boot: Boot | None = boot_of(claim, node, stated_only=rules.beside)
    if boot is None:
        return
    if not boot.acts:
        yield (
            "new",
            "no readinessTTL is written for it: it has not been Ready, and no TTL of Tenure ends it",
        )
        return
    until = format_time(boot.due_at)
    if boot.stage is Stage.INITIALIZATION:
        yield "new", f"it must be initialized by {until} (initializationTTL {boot.ttl})"
    else:
        stands = f"readinessTTL {boot.ttl} overrides every policy for Ready"
        yield "new", f"until its first Ready, {stands}: it is terminated at {until} if not Ready"


def _gates(
    claim: NodeClaim, node: Node, snapshot: Snapshot, settings: Settings, now: datetime
) -> Remarks:
    """Each gate of repair, in their order: how it stands, or what it blocks."""
    facts = msgspec.structs.replace(
        gate_facts(claim, node, snapshot, settings, now),
        pauses=tuple(pauses_of(snapshot.claims_of_pool(claim.pool_name))),
        traits=GRACEFUL_REPAIR.traits,
        fleet=fleet_of(claim.pool_name, snapshot),
        left=repair_left(snapshot, settings),
    )
    for gate in (one for one in Gate if one in _SHOWN):
        note = "" if gate in ASKED[Operation.FORCEFUL_REPAIR] else " (applies to graceful repair)"
        for said in _state_of_gate(gate, facts, snapshot, settings, now):
            yield _WORDS.get(gate, gate), f"{said}{note}"


def _state_of_gate(
    gate: Gate, facts: GateFacts, snapshot: Snapshot, settings: Settings, now: datetime
) -> Iterator[str]:
    """Breaker and budget are told in numbers also while they block nothing."""
    if gate is Gate.VETO:
        yield from _vetoes(facts, now)
    elif gate is Gate.BREAKER and facts.pool is not None:
        yield _breaker(facts.pool, snapshot, now)
    elif gate is Gate.BUDGET and (found := allowance_of(facts, now)) is not None:
        yield str(found.why)
    else:
        only, operation = (gate,), Operation.GRACEFUL_REPAIR
        blocked = first_blocked(operation, facts, settings, now, only=only)
        yield from [sentence(blocked.facts)] if blocked is not None else ()


def _vetoes(facts: GateFacts, now: datetime) -> Iterator[str]:
    """All of them: to take one off does not help while the other stands."""
    for thing in (facts.node, facts.claim):
        veto = protection_on(thing, DO_NOT_REPAIR) if thing is not None else None
        if thing is not None and veto is not None and now < veto.until:
            yield str(veto_on(thing, veto))


def _breaker(pool: NodePool, snapshot: Snapshot, now: datetime) -> str:
    found = pool_health_of(pool.name, snapshot).breaker(now)
    nodes = "Node" if found.total == 1 else "Nodes"
    rounded = ", rounded up" if str(found.limit).endswith("%") else ""
    stops = "; no Node is repaired" if found.tripped else ""
    return (
        f"{found.unhealthy} of {found.total} {nodes} unhealthy, at most {found.allowed} "
        f"(maxUnhealthy {found.limit}{rounded}){stops}"
    )


def repair_lines(outlook: RepairOutlook, width: int | None = None) -> Iterator[str]:
    yield f"Repair of Node/{outlook.node}"
    yield from (f"  {word:<9} {sentence}" for word, sentence in outlook.remarks)
    if not outlook.rows:
        yield "  rules     none: no condition of the Node is evaluated"
        return
    yield ""
    yield from table(_HEADINGS, [_row(row, gate, outlook.at) for row, gate in outlook.rows], width)
    yield f"  For each condition the first row that matches applies. Times are of {outlook.at:%Y-%m-%d}, in UTC."


def _row(row: Prospect, blocked: Blocked | None, now: datetime) -> tuple[str, ...]:
    reason = f" ({row.reason})" if row.reason else ""
    return (
        row.condition_type,
        f"{' or '.join(row.statuses)}{reason}",
        _state(row, now),
        "for ever" if row.toleration is None else compact(Duration.of(row.toleration)),
        _then(row, blocked, now),
        str(row.policy),
    )


def _then(row: Prospect, blocked: Blocked | None, now: datetime) -> str:
    if row.then.is_idle:
        return str(row.then)
    at = ""
    if row.due_at is not None:
        # Never as if it were to happen at an instant that has passed.
        word = " at" if row.due_at > now else ", due since"
        at = f"{word} {at_clock(row.due_at, now)}"
    if blocked is None:
        return f"{row.then}{at}"
    if blocked.reason is Reason.REPAIR_LEFT:
        return _left_to_karpenter(blocked)
    return f"blocked: {_BECAUSE[blocked.gate]}; otherwise {row.then}{at}"


def _left_to_karpenter(blocked: Blocked) -> str:
    match blocked.facts:
        case (RebootLeft(),):
            return "nothing: Tenure reboots no Node beside Karpenter"
        case (KarpenterRepairs(known=True),):
            return "left to Karpenter, which repairs Nodes"
        case (KarpenterRepairs(),):
            return "left to Karpenter, which may repair Nodes"
        case (KarpenterNotReady(),):
            return "nothing while no replica of Karpenter is ready"
        case (KarpenterRollsOut(),):
            return "nothing while Karpenter is rolled out"
        case _:
            return "nothing: Tenure only looks while the Karpenter in charge is not known"


def _state(row: Prospect, now: datetime) -> str:
    if row.now is None:
        return "-"
    return (
        row.now.status
        if row.since is None
        else f"{row.now.status} since {at_clock(row.since, now)}"
    )


def repair_json(outlook: RepairOutlook) -> dict[str, Any]:
    return {
        "node": outlook.node,
        "remarks": [{"about": word, "message": said} for word, said in outlook.remarks],
        "conditions": [
            {
                "type": row.condition_type,
                "unhealthyIf": list(row.statuses),
                "reason": row.reason,
                "status": None if row.now is None else row.now.status,
                "since": row.since,
                "toleration": None
                if row.toleration is None
                else compact(Duration.of(row.toleration)),
                "dueAt": row.due_at,
                "then": str(row.then),
                "blockedBy": None if blocked is None else blocked.gate,
                "blockedBecause": None if blocked is None else sentence(blocked.facts),
                "policy": str(row.policy),
            }
            for row, blocked in outlook.rows
        ],
    }
