"""Say of each node what the plan of consolidation makes of it. Nothing is done here.

Of each claim the first of these that applies:

1. approved   it is being consolidated: what that saves and disturbs;
2. candidate  a move of the last plan takes its node away;
3. off        its pool consolidates no nodes, or none with pods;
4. later      its pods have changed within ``consolidateAfter``;
5. stays      why the plan neither deletes its node nor replaces it by something cheaper.

Of an empty node the last two say nothing: ``disrupt/emptiness`` does, by a clock of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial

import msgspec

from tenure.core.decision import Blocker, Concern, Subject, Verdict
from tenure.core.disrupt.consolidation.eligible import switched_off
from tenure.core.disrupt.consolidation.subject import PLANNED_NODE
from tenure.core.disrupt.facts.consolidation import NodeUnderutilized, PodsChangedLately
from tenure.core.facts import Fact, instants_of
from tenure.core.gates.reasons import Disruption
from tenure.core.marks.candidacy import is_open, said_since
from tenure.core.marks.command import is_replaced, reason_of
from tenure.core.marks.ownership import claims_touched, is_ours, listed
from tenure.core.provision.facts import TypesAwaited
from tenure.core.reasons import Reason
from tenure.core.verdicts import also_of, say
from tenure.model.api.meta import FOR_EVER
from tenure.model.api.names import EMPTY_CONDITION, REPLACED_BY
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.resource import NODE_POOLS
from tenure.model.settings import Settings
from tenure.model.snapshot.consolidation import BlockedNode, PlannedMove
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import is_unreadable

_say = partial(say, Concern.CONSOLIDATION)


class ConsolidationView(msgspec.Struct, frozen=True, kw_only=True):
    claim: NodeClaim
    node: Node
    #: The move that takes it away; None: there is none.
    move: PlannedMove | None = None
    #: Why there is none.
    why: tuple[Fact, ...] = ()
    #: The gates that block it.
    blocked: BlockedNode | None = None


class ConsolidationDecider:
    concern = Concern.CONSOLIDATION

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.claims

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        yield from claims_touched(change, snapshot)
        if change.resource == NODE_POOLS and not _is_same_rule(change):
            yield from snapshot.claims_of_pool(change.key)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.claims_of_node(subject.name) if subject.kind == PLANNED_NODE else ()

    def view(self, snapshot: Snapshot, key: str) -> ConsolidationView | None:
        claim, plan = snapshot.claims.get(key), snapshot.observations.consolidation
        if claim is None or is_unreadable(claim):
            return None
        if claim.deleting or claim.rebooting:
            return None
        node = snapshot.nodes.get(claim.node_name)
        if node is None or is_unreadable(node) or not is_ours(claim, snapshot):
            return None
        move = plan.by_claim.get(key) if plan is not None else None
        if move is not None and node.name in move.nodes:
            return ConsolidationView(claim=claim, node=node, move=move)
        why, blocked = ((), None) if is_replaced(claim) else _why(claim, node, snapshot)
        return ConsolidationView(claim=claim, node=node, why=why, blocked=blocked) if why else None

    def decide(
        self, view: ConsolidationView, settings: Settings, now: datetime
    ) -> Sequence[Verdict]:
        claim, node, move = view.claim, view.node, view.move
        if move is None:
            late = isinstance(view.why[0], PodsChangedLately | TypesAwaited)
            reason = Reason.CONSOLIDATES_LATER if late else Reason.UNCONSOLIDATABLE
            blocked = view.blocked
            verdict = _say(
                claim,
                reason,
                *view.why,
                blockers=_blockers_of(blocked) if blocked is not None else (),
                recheck_at=_changes_at(view.why, now),
                gate=blocked.gate if blocked is not None else "",
            )
            return verdict, also_of(node, verdict)
        approved = is_replaced(claim) and reason_of(claim) == Disruption.UNDERUTILIZED
        if is_replaced(claim) and not approved:
            return ()
        if approved and bool(listed(claim.annotations[REPLACED_BY])) != bool(move.launches):
            return ()  # Another move was made than was planned; that of its command says which.
        reason = Reason.CONSOLIDATION_APPROVED if approved else Reason.CONSOLIDATION_CANDIDATE
        verdict = _say(claim, reason, NodeUnderutilized.of(node.name, move))
        return verdict, also_of(node, verdict)


def _why(
    claim: NodeClaim, node: Node, snapshot: Snapshot
) -> tuple[tuple[Fact, ...], BlockedNode | None]:
    """Why its node stays, and the gates that block it; empty: nothing is known of it, or the node is empty."""
    pool, plan = snapshot.pools.get(claim.pool_name), snapshot.observations.consolidation
    off = switched_off(pool, claim) if is_open(pool) and claim.initialized else None
    if off is not None:
        return (off,), None
    empty = said_since(claim, EMPTY_CONDITION) is not None
    if plan is None or empty:
        return (), None
    return plan.why.get(node.name, ()), plan.blocked.get(node.name)


def _blockers_of(node: BlockedNode) -> tuple[Blocker, ...]:
    return tuple(
        Blocker(
            subject=Subject(one.kind, one.name, one.namespace, one.uid),
            fact=one.fact,
            until=one.until,
            lasting=one.lasting,
        )
        for one in node.objects
    )


def _changes_at(why: Iterable[Fact], now: datetime) -> datetime | None:
    """The first instant to come that the facts name: there is another plan then."""
    instants = (at for at in instants_of(why) if now < at < FOR_EVER)
    return min(instants, default=None)


def _is_same_rule(change: Change) -> bool:
    """The status of a pool changes with each of its nodes."""
    old, new = change.old, change.new
    if not isinstance(old, NodePool) or not isinstance(new, NodePool):
        return False
    same = is_open(old) == is_open(new)
    return same and old.spec.disruption == new.spec.disruption
