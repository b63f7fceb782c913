"""How a node would be repaired, and what would block that: as a table, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import msgspec

from tenure.cli.explain.scheduletext import columns
from tenure.cli.view.instants import at_clock
from tenure.core.disrupt.methods import REPAIR
from tenure.core.facts import sentence
from tenure.core.gates.budgets import allowance, fleet_of
from tenure.core.gates.gates import Blocked, Gate, GateFacts, Operation, first_blocked, veto_on
from tenure.core.health.health import unusable
from tenure.core.health.outage import pool_health_of
from tenure.core.health.readiness import Boot, Stage, boot_of
from tenure.core.health.rules import FORCEFUL, Rules, rules_of
from tenure.core.marks.ownership import is_ours
from tenure.core.marks.reboot import rebooted_at
from tenure.core.protect.protection import protection_on
from tenure.core.repair.foresight import blocked_at
from tenure.core.repair.policies import Prospect, what_would_happen
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
            *_leaving(claim, node),
            *_switched_off(claim, pool, rules, settings, now),
            *_first_boot(claim, node),
            *_vetoes(claim, node, now),
            *(_of_pool(pool, node, claim, snapshot, now) if pool is not None else ()),
        ),
        rows=tuple(
            (row, blocked_at(node, snapshot, settings, max(now, row.due_at or now))) for row in rows
        ),
    )


Remarks = Iterator[tuple[str, str]]


def _leaving(claim: NodeClaim, node: Node) -> Remarks:
    if claim.deleting or node.deleting:
        yield (
            "leaving",
            "it is terminating: a repair that falls due only brings its deadline forward",
        )


def _switched_off(
    claim: NodeClaim, pool: NodePool | None, rules: Rules, settings: Settings, now: datetime
) -> Remarks:
    broken, only = unusable(pool), (Gate.OFF, Gate.RULES)
    facts = GateFacts(claim=claim, pool=pool, broken=broken)
    off = first_blocked(Operation.GRACEFUL_REPAIR, facts, settings, now, only=only)
    if off is not None:
        yield "off", sentence(off.facts)
    if pool is not None and not broken:
        watched = {statement.condition_type for statement in rules.statements}
        if left_out := in_words(problems_of_pool(pool, watched).repair):
            yield "left out", f"a policy of the pool cannot be used: {left_out}"


def _first_boot(claim: NodeClaim, node: Node) -> Remarks:
    boot: Boot | None = None if claim.initialized else boot_of(claim, node)
    if boot is None:
        return
    until = format_time(boot.due_at)
    if boot.stage is Stage.INITIALIZATION:
        yield "new", f"it must be initialized by {until} (initializationTTL {boot.ttl})"
    else:
        stands = f"readinessTTL {boot.ttl} overrides every policy for Ready"
        yield "new", f"until its first Ready, {stands}: it is terminated at {until} if not Ready"


def _vetoes(claim: NodeClaim, node: Node, now: datetime) -> Remarks:
    for thing in (node, claim):
        veto = protection_on(thing, DO_NOT_REPAIR)
        if veto is not None and now < veto.until:
            yield "veto", str(veto_on(thing, veto))


def _of_pool(
    pool: NodePool,
    node: Node,
    claim: NodeClaim,
    snapshot: Snapshot,
    now: datetime,
) -> Remarks:
    yield "breaker", _breaker(pool, snapshot, now)
    if claim.initialized:
        fleet = fleet_of(pool.name, snapshot)
        found = allowance(pool, REPAIR.traits, node, fleet, now)
        yield "budget", f"{found.why} (applies to graceful repair)"


def _breaker(pool: NodePool, snapshot: Snapshot, now: datetime) -> str:
    found = pool_health_of(pool.name, snapshot).breaker(now)
    nodes = "Node" if found.total == 1 else "Nodes"
    rounded = ", rounded up" if str(found.limit).endswith("%") else ""
    stops = "; no Node is repaired" if found.tripped else ""
    return (
        f"{found.unhealthy} of {found.total} {nodes} unhealthy, at most {found.allowed} "
        f"(maxUnhealthy {found.limit}{rounded}){stops}"
    )


def repair_lines(outlook: RepairOutlook) -> Iterator[str]:
    yield f"Repair of Node/{outlook.node}"
    yield from (f"  {word:<9} {sentence}" for word, sentence in outlook.remarks)
    if not outlook.rows:
        yield "  rules     none: no condition of the Node is evaluated"
        return
    yield ""
    yield from columns([_HEADINGS, *(_row(row, gate, outlook.at) for row, gate in outlook.rows)])
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
    at = "" if row.due_at is None else f" at {at_clock(row.due_at, now)}"
    if blocked is None:
        return f"{row.then}{at}"
    return f"blocked ({blocked.gate}); otherwise {row.then}{at}"


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
                "policy": str(row.policy),
            }
            for row, blocked in outlook.rows
        ],
    }
