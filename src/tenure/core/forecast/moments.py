"""What else ends or falls due within the horizon: protections, deadlines, boot time-outs, repairs;
and beside Karpenter the nodes that Karpenter expires, whatever windows and budgets say.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from tenure.core.decision import Subject
from tenure.core.disrupt.expiration import expires_by_force
from tenure.core.facts import Fact
from tenure.core.forecast.facts import BootsUntil, RepairFallsDue, TerminatesBy
from tenure.core.forecast.result import Moment, MomentKind
from tenure.core.health.health import examine
from tenure.core.health.readiness import Stage, boot_of
from tenure.core.health.rules import rules_of
from tenure.core.marks.deadline import deadline_of
from tenure.core.marks.ownership import is_our_node, is_ours
from tenure.core.protect.protection import protection_cap, protection_of, protection_on
from tenure.core.writes import subject_of
from tenure.model.api.names import DO_NOT_DISRUPT
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_unreadable


def moments_in(
    snapshot: Snapshot, settings: Settings, now: datetime, until: datetime
) -> tuple[Moment, ...]:
    """In order."""
    found = (
        *_protections(snapshot, settings),
        *_of_claims(snapshot),
        *_repairs(snapshot),
        *(_forced_expiries(snapshot) if settings.beside_karpenter else ()),
    )
    within = (one for one in found if now < one.at <= until)
    return tuple(sorted(within, key=lambda one: (one.at, one.kind, one.subject)))


def _moment(at: datetime, kind: MomentKind, subject: Subject, what: Fact) -> Moment:
    return Moment(at=at, kind=kind, subject=str(subject), what=what)


def _protections(snapshot: Snapshot, settings: Settings) -> Iterator[Moment]:
    for pod in snapshot.pods.values():
        node = snapshot.nodes.get(pod.spec.node_name) if DO_NOT_DISRUPT in pod.annotations else None
        if node is None or not is_our_node(node, snapshot):
            continue
        cap, clock = protection_cap(node, snapshot), settings.protection_clock
        found = protection_of(pod, cap=cap, clock=clock)
        if found is not None and found.ends_at is not None:
            yield _moment(found.ends_at, MomentKind.PROTECTION, Subject.of(PODS.kind, pod), found)
    things: list[Node | NodeClaim] = []
    things += [one for one in snapshot.claims.values() if is_ours(one, snapshot)]
    things += [one for one in snapshot.nodes.values() if is_our_node(one, snapshot)]
    for thing in things:
        found = protection_on(thing) if DO_NOT_DISRUPT in thing.annotations else None
        if found is not None and found.ends_at is not None:
            yield _moment(found.ends_at, MomentKind.PROTECTION, subject_of(thing), found)


def _of_claims(snapshot: Snapshot) -> Iterator[Moment]:
    for name, claim in snapshot.claims.items():
        if is_unreadable(claim) or not is_ours(claim, snapshot):
            continue
        subject = Subject.of(NODE_CLAIMS.kind, claim)
        if claim.deleting:
            if (deadline := deadline_of(claim)) is not None:
                what = TerminatesBy(name, deadline.at, deadline.why)
                yield _moment(deadline.at, MomentKind.DEADLINE, subject, what)
            continue
        nodes = list(snapshot.nodes_with_provider(claim.provider_id).values())
        boot = boot_of(claim, nodes[0] if len(nodes) == 1 else None)
        if boot is not None:
            ready = boot.stage is not Stage.INITIALIZATION
            state, field = (
                ("Ready", "readinessTTL") if ready else ("initialized", "initializationTTL")
            )
            boots = BootsUntil(name, state, f"{field} {boot.ttl}", boot.due_at)
            yield _moment(boot.due_at, MomentKind.BOOT, subject, boots)


def _repairs(snapshot: Snapshot) -> Iterator[Moment]:
    for node in snapshot.suspect_nodes().values():
        claim = snapshot.claim_of(node)
        if claim is None or claim.deleting or is_unreadable(node) or is_unreadable(claim):
            continue
        for one in examine(claim, node, rules_of(claim.pool_name, snapshot)).unhealthy:
            if one.counts and one.due_at is not None:
                said = f"{one.condition.type} {one.condition.status}"
                what = RepairFallsDue(node.name, said, one.due_at)
                yield _moment(one.due_at, MomentKind.REPAIR, Subject.of(NODES.kind, node), what)


def _forced_expiries(snapshot: Snapshot) -> Iterator[Moment]:
    for claim in snapshot.claims.values():
        if is_unreadable(claim) or claim.deleting:
            continue
        if (forced := expires_by_force(claim)) is not None:
            subject = Subject.of(NODE_CLAIMS.kind, claim)
            yield _moment(forced.at, MomentKind.FORCED_EXPIRY, subject, forced)
