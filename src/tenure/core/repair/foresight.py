"""What repair will do, if nothing changes until then.

``foresee``: what becomes of the deadline of a terminating node. The same evaluation as ever is
asked at each instant at which its verdict may change (``recheck_at`` is honest), with the deadlines
written that it sets on the way. So vetoes that end, breakers, time-outs and policies that fall due
one after the other need no rules of their own here.

``blocked_at``: which gate would block a repair that falls due at an instant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

import msgspec

from tenure.core.decision import Patch, Verdict
from tenure.core.facts import Fact
from tenure.core.gates.gatefacts import Blocked, GateFacts
from tenure.core.gates.gates import first_blocked
from tenure.core.gates.operations import Operation
from tenure.core.health.health import HealthView, Member
from tenure.core.marks.deadline import ComingDeadline, Deadline
from tenure.core.marks.reboot import as_if_not_rebooted
from tenure.core.marks.stamp import with_stamp
from tenure.core.reasons import Reason
from tenure.core.repair.breakers import pool_breakers
from tenure.core.repair.decider import view_of_claim
from tenure.core.repair.evaluate import diagnose
from tenure.core.repair.facts import ConditionUnhealthy, RepairDueSince
from tenure.core.terminate.schedule import as_if_deleted
from tenure.core.writes import subject_of
from tenure.model.api.meta import later
from tenure.model.api.names import TERMINATION_TIMESTAMP
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot

#: More instants than conditions, vetoes and breakers of one node have.
_STEPS_MAX: Final = 20
#: Nothing is due yet.
_WAITING: Final = frozenset({Reason.UNHEALTHY, Reason.BOOTING, Reason.NODE_LOST})
#: A gate keeps what is due from being done.
_BLOCKED: Final = frozenset(
    {
        Reason.REPAIR_OFF,
        Reason.REPAIR_VETOED,
        Reason.REPAIR_BLOCKED,
        Reason.DISRUPTION_BLOCKED,
        Reason.BLOCKED_BY_UNREADABLE,
    }
)


class Foresight(msgspec.Struct, frozen=True):
    #: Each earlier than the one before it.
    deadlines: tuple[ComingDeadline, ...] = ()
    #: Why what is due, or falls due, sets no deadline; empty if it does, or if nothing is wrong.
    unset: tuple[Fact, ...] = ()
    #: When it falls due; None: it is due.
    unset_at: datetime | None = None
    #: A gate is the reason; of deadlines, why they are not set before.
    blocked: bool = False
    #: The node is rebooting. To delete it ends that, and tolerations count from then on.
    ends_reboot: bool = False


def foresee(node: Node, snapshot: Snapshot, settings: Settings, now: datetime) -> Foresight:
    """Of a node that terminates, or as if it were deleted now."""
    claim = snapshot.claim_of(node)
    view = view_of_claim(claim, snapshot) if claim is not None else None
    if claim is None or view is None:
        return Foresight()
    ends_reboot = claim.rebooting
    claim, at = as_if_not_rebooted(as_if_deleted(claim, now), now), now
    deadlines: list[ComingDeadline] = []
    unset: Verdict | None = None
    unset_at: datetime | None = None
    for _ in range(_STEPS_MAX):
        verdict = _verdict_on(claim, view, settings, at)
        if verdict is None:
            break
        if isinstance(verdict.action, Patch) and verdict.action.dated == TERMINATION_TIMESTAMP:
            deadline = Deadline(later(at, verdict.action.ahead), verdict.message)
            deadlines.append(ComingDeadline(at, deadline))
            claim = with_stamp(claim, deadline.at)
            continue
        if verdict.reason not in _WAITING and unset is None:
            unset, unset_at = verdict, at if at > now else None
        if verdict.recheck_at is None or verdict.recheck_at <= at:
            break
        at = verdict.recheck_at
        if deadlines and at >= deadlines[-1].deadline.at:
            break
    blocked = unset is not None and unset.reason in _BLOCKED
    if deadlines or unset is None:
        return Foresight(tuple(deadlines), blocked=blocked, ends_reboot=ends_reboot)
    facts = unset.facts if unset_at is None else tuple(_then(unset.facts))
    return Foresight((), facts, unset_at, blocked, ends_reboot)


def _then(facts: Iterable[Fact]) -> Iterator[Fact]:
    """Of a later instant: what is the case now, and what will be; not since when it will be due."""
    for fact in facts:
        if isinstance(fact, ConditionUnhealthy):
            yield msgspec.structs.replace(fact, counted_from=None)
        elif not isinstance(fact, RepairDueSince):
            yield fact


def blocked_at(node: Node, snapshot: Snapshot, settings: Settings, at: datetime) -> Blocked | None:
    """By the gates that every repair asks; budgets and pods are those of that moment."""
    claim = snapshot.claim_of(node)
    if claim is None:
        return None
    facts = gate_facts(claim, node, snapshot, settings, at)
    return first_blocked(Operation.FORCEFUL_REPAIR, facts, settings, at)


def gate_facts(
    claim: NodeClaim, node: Node, snapshot: Snapshot, settings: Settings, at: datetime
) -> GateFacts:
    """What the gates of repair have to know, at an instant."""
    view = view_of_claim(claim, snapshot)
    return pool_breakers(claim.pool_name, view, snapshot).facts(claim, node, settings, at)


def _verdict_on(
    claim: NodeClaim, view: HealthView, settings: Settings, at: datetime
) -> Verdict | None:
    members = tuple(
        _as(claim, one) if one.claim.name == claim.name else one for one in view.members
    )
    evaluated = diagnose(msgspec.structs.replace(view, members=members), settings, at).verdicts
    return next((one for one in evaluated if one.subject == subject_of(claim)), None)


def _as(claim: NodeClaim, member: Member) -> Member:
    return msgspec.structs.replace(member, claim=claim)
