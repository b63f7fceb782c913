"""What becomes of a claim whose repair or time-out is due: gates first, then by force or as a candidate.

Forceful: see ``force``. Graceful, and every reboot: a candidate of ``disrupt/pipeline``, which finds the time and the
replacement. A claim that terminates already has its deadline brought forward.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Final

import msgspec

from tenure.core.decision import Concern, Ground, Verdict
from tenure.core.facts import Fact
from tenure.core.gates.gatefacts import Blocked, GateFacts
from tenure.core.gates.gates import first_blocked
from tenure.core.gates.operations import OF_REPAIR, Operation
from tenure.core.health.domains import Probe
from tenure.core.health.health import Member
from tenure.core.health.rules import Rules
from tenure.core.marks.deadline import deadline_of, hurried_until, hurry, stamp_of
from tenure.core.marks.reboot import changes_at
from tenure.core.marks.repaired import is_stamped_by_others, repair_mark
from tenure.core.marks.stamp import stamp_claim
from tenure.core.reasons import Reason
from tenure.core.repair.breakers import Breakers
from tenure.core.repair.cause import Cause
from tenure.core.repair.facts import (
    DeadlineNotOurs,
    RebootLeft,
    RepairedAsProbe,
    RepairPlanned,
    TerminatingAlready,
)
from tenure.core.repair.force import committed, force, probe_mark
from tenure.core.verdicts import no_later, say
from tenure.core.writes import as_evaluated
from tenure.errors import shown
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.cloud.repairs import RepairAction
from tenure.model.settings import Settings

#: What a forceful end is for; all else that ends by force is a time-out.
_GROUNDS: Final = {
    Reason.NODE_LOST: Ground.NODE_LOST,
    Reason.REPAIRING: Ground.REPAIR_FORCED,
}

_say = partial(say, Concern.REPAIR)


class GracefulRepair(msgspec.Struct, frozen=True):
    """A graceful repair or a reboot that is due, and that no gate of repair blocks."""

    claim: NodeClaim
    node: Node
    cause: Cause
    operation: Operation
    gates: GateFacts
    #: Annotations of the claim: why, and of which failure domain it is the probe.
    marks: Mapping[str, str] = {}


class DueRepairs:
    """Of one pool, at one instant."""

    def __init__(self, rules: Rules, breakers: Breakers, settings: Settings, now: datetime) -> None:
        self._rules, self._breakers = rules, breakers
        self._settings, self._now = settings, now
        #: What the breakers have blocked so far.
        self.blocked: list[Blocked] = []
        #: Those of the pipeline, among the claims that have been evaluated.
        self.candidates: list[GracefulRepair] = []

    def repair(self, member: Member, cause: Cause) -> Verdict:
        """For an unhealthy condition, as opposed to a time-out."""
        claim, operation = member.claim, _operation(cause)
        if cause.action is RepairAction.REBOOT and self._rules.beside:
            left = self._breakers.facts(member).left
            return _say(claim, Reason.REPAIR_LEFT, *cause.facts, left or RebootLeft(claim.name))
        if operation is Operation.FORCEFUL_REPAIR:
            verdict = self.forceful(member, Reason.REPAIRING, cause.facts, operation)
            verdict = committed(verdict, cause.condition)
        else:
            verdict = self.graceful(member, cause, operation)
        return no_later(verdict, changes_at(claim, self._now))

    def graceful(self, member: Member, cause: Cause, operation: Operation) -> Verdict:
        """Its own verdict says why; what becomes of it is the pipeline's to say."""
        claim, node, facts = member.claim, member.node, self._breakers.facts(member)
        if (blocked := self._gated(operation, facts, cause.facts)) is not None:
            return blocked
        assert node is not None, "an unhealthy condition is of a Node"
        if claim.deleting:
            return self._brought_forward(claim, node, cause)
        probe = self._breakers.probe(member)
        marks = repair_mark(Reason.REPAIR_DUE.value) | (
            probe_mark(probe) if probe is not None else {}
        )
        self.candidates.append(GracefulRepair(claim, node, cause, operation, facts, marks))
        told = (*cause.facts, *_as_probe(probe), RepairPlanned(cause.action))
        return _say(claim, Reason.REPAIR_DUE, *told, recheck_at=self._breakers.changes_at)

    def _brought_forward(self, claim: NodeClaim, node: Node, cause: Cause) -> Verdict:
        """It terminates anyway: by the bound, if there is one, at the latest."""
        span = hurry(claim, cause.bound, self._now)
        facts = (*cause.facts, TerminatingAlready(claim.name, within=span))
        if span is None:
            return _say(claim, Reason.REPAIR_DUE, *facts)
        near_enough = hurried_until(claim, span)
        # It may have recovered by the time of the call.
        due = Reason.REPAIR_DUE.value
        marks = repair_mark(due, beside=True) if self._rules.beside else {}
        stamp = stamp_claim(claim, Ground.REPAIR, span, beside=marks)
        action = msgspec.structs.replace(stamp, precondition=as_evaluated(node))
        return _say(claim, Reason.REPAIR_DUE, *facts, action=action, recheck_at=near_enough)

    def forceful(
        self, member: Member, reason: Reason, why: tuple[Fact, ...], operation: Operation
    ) -> Verdict:
        """The gates are asked before each of its writes: the stamp, and the deletion. Once it
        terminates and its deadline is over, there is no write left."""
        facts, deadline = self._breakers.facts(member), deadline_of(member.claim)
        over = deadline is not None and deadline.at <= self._now
        if not over and (blocked := self._gated(operation, facts, why)) is not None:
            return no_later(blocked, deadline.at if deadline is not None else None)
        counted = operation is not Operation.BOOT_TIMEOUT
        probe = self._breakers.probe(member) if counted else None
        ground = _GROUNDS.get(reason, Ground.TIME_OUT)
        beside = self._rules.beside
        action = force(member, self._now, ground, reason.value, probe, beside=beside)
        told = (*why, *_as_probe(probe), *_not_ours(member.claim, self._rules))
        verdict = _say(member.claim, reason, *told, action=action)
        known = (stamp_of(member.claim), deadline.at if deadline is not None else None)
        ahead = [at for at in known if at is not None and at > self._now]
        return no_later(verdict, self._breakers.changes_at if counted else None, *ahead)

    def _gated(
        self, operation: Operation, facts: GateFacts, why: tuple[Fact, ...]
    ) -> Verdict | None:
        blocked = first_blocked(operation, facts, self._settings, self._now, only=OF_REPAIR)
        if blocked is None:
            return None
        if blocked.reason is Reason.REPAIR_BLOCKED:
            self.blocked.append(blocked)
        told = (*why, *blocked.facts)
        at, gate = blocked.recheck_at, blocked.gate
        return _say(facts.claim, blocked.reason, *told, recheck_at=at, gate=gate)


def _operation(cause: Cause) -> Operation:
    if cause.action is RepairAction.REBOOT:
        return Operation.FORCEFUL_REBOOT if cause.forceful else Operation.REBOOT
    return Operation.FORCEFUL_REPAIR if cause.forceful else Operation.GRACEFUL_REPAIR


def _not_ours(claim: NodeClaim, rules: Rules) -> Iterator[Fact]:
    if rules.beside and is_stamped_by_others(claim):
        yield DeadlineNotOurs(claim.name, shown(claim.termination_stamp or ""))


def _as_probe(probe: Probe | None) -> Iterator[Fact]:
    if probe is not None:
        yield RepairedAsProbe(probe.domains)
