"""Decide about nodes that do not come up and unhealthy nodes: one decision for all of them.

Keyed on the claim, arbitrated over its pool. Of each claim, the first of these that applies:

0. unreadable    it, its pool, its Node or a pod there cannot be read: nothing;
1. lost          the Node is gone while its claim remains: as long as the TTL, from when we noticed;
2. timed out     never launched, registered, Ready or (where it has a limit) initialized;
3. unhealthy     a condition says so (see ``rules``): tolerated until when, and by which policy;
4. booting       its TTL runs (see ``readiness``): until when. It overrides ``Ready`` alone.

What is due may be blocked (``core/gates``). The probe of a domain in outage is written on the
pool first.

Forceful: see ``force``. A stamp on a claim that stays and is not due is taken off.

Graceful, and every reboot: a candidate of ``disrupt/pipeline``, which finds the time and the replacement.

A claim that terminates already has its deadline brought forward by what falls due: Forceful and
time-outs to *now*, Graceful to *now* plus the bound; without a bound, and for a reboot, not at all.
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
from tenure.core.gates.operations import OF_REPAIR, Gate, Operation
from tenure.core.health.domains import Probe
from tenure.core.health.health import Health, HealthView, Member, examine
from tenure.core.health.readiness import TIMEOUTS, Boot, Stage
from tenure.core.health.rules import FORCEFUL, Rules, UnhealthyCondition
from tenure.core.marks.command import is_commanded, is_replaced, is_replacement
from tenure.core.marks.deadline import deadline_of, hurried_until, hurry, stamp_of
from tenure.core.marks.interruption import is_interrupted
from tenure.core.marks.memory import lost, note_found, note_lost
from tenure.core.marks.reboot import MOST, changes_at, is_spared, recent
from tenure.core.marks.repaired import is_stamped_by_us, repair_mark
from tenure.core.marks.stamp import stale_stamp, stamp_claim, take_off_stamp
from tenure.core.marks.timeout import readiness_ttl, states_readiness
from tenure.core.reasons import Reason
from tenure.core.repair.breakers import Breakers
from tenure.core.repair.cause import Cause, merged, symptom, urgency_of
from tenure.core.repair.facts import (
    DeadlineNotOurs,
    LostUntil,
    MustBeUpBy,
    NeverRepaired,
    NodeFound,
    NodeLost,
    NotTouched,
    NotUp,
    NotUpInTime,
    ProbeChosen,
    RebootedTooOften,
    RebootFailedBefore,
    RebootLeft,
    RepairedAsProbe,
    RepairPlanned,
    TerminatingAlready,
    ToleratedUntil,
)
from tenure.core.repair.force import (
    committed,
    force,
    is_stamped_by_others,
    note_probe,
    probe_mark,
)
from tenure.core.verdicts import also_of, no_later, say
from tenure.core.writes import as_evaluated
from tenure.errors import shown
from tenure.model.api.meta import later
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.cloud.repairs import RepairAction
from tenure.model.settings import Settings

#: Of the claim alone: the Node is gone, or other verdicts say the same of it.
_OF_CLAIMS: Final = frozenset({Reason.NODE_LOST, Reason.BOOTING, Reason.STALE_DEADLINE})

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


class Diagnosis(msgspec.Struct, frozen=True):
    verdicts: tuple[Verdict, ...]
    #: What the pipeline repairs.
    candidates: tuple[GracefulRepair, ...]


def diagnose(view: HealthView, settings: Settings, now: datetime) -> Diagnosis:
    """One pool, at one instant."""
    return _Evaluation(view, settings, now).diagnosis()


class _Evaluation:
    def __init__(self, view: HealthView, settings: Settings, now: datetime) -> None:
        self._view = view
        self._settings = settings
        self._now = now
        self._rules = view.rules
        if settings.legacy_node_repair:
            self._rules = msgspec.structs.replace(view.rules, default_mode=FORCEFUL)
        self._found = [(m, examine(m.claim, m.node, self._rules)) for m in view.members]
        self._breakers = Breakers(view, self._found, settings, now)
        #: What the breakers have blocked so far.
        self._blocked: list[Blocked] = []
        #: Those of the pipeline, among the claims that have been evaluated.
        self._candidates: list[GracefulRepair] = []

    def diagnosis(self) -> Diagnosis:
        verdicts = tuple(self._verdicts())  # All of them: the candidates are found on the way.
        return Diagnosis(verdicts, tuple(self._candidates))

    def _verdicts(self) -> Iterator[Verdict]:
        for member, health in self._found:
            yield from self._of(member, health)
        if self._view.pool is not None:
            yield from self._of_pool(self._view.pool)

    def _of_pool(self, pool: NodePool) -> Iterator[Verdict]:
        probe, changes = self._breakers.next_probe(pool.name), self._breakers.changes_at
        if probe is not None:
            chosen = ProbeChosen(probe.claim, probe.domains)
            action = note_probe(pool, probe, beside=self._rules.beside)
            yield _say(pool, Reason.REPAIR_PROBE, chosen, action=action, recheck_at=changes)
        elif self._blocked:
            # An outage says more than the breaker that it trips as well.
            outages = (one for one in self._blocked if one.gate is Gate.OUTAGE)
            blocked = next(outages, self._blocked[0])
            facts, gate = blocked.facts, blocked.gate
            yield _say(pool, Reason.REPAIR_BLOCKED, *facts, recheck_at=changes, gate=gate)

    # -- one claim ---------------------------------------------------------------------

    def _of(self, member: Member, health: Health) -> Iterator[Verdict]:
        claim = member.claim
        if why := self._view.unreadable.get(claim.name):
            yield _say(claim, Reason.BLOCKED_BY_UNREADABLE, NotTouched(why))
            return
        verdict = self._lost(member) or self._coming_up(member, health)
        verdict = self._initializing(member, health, verdict)
        if _has_stale_stamp(claim, self._rules):
            stale = _stale(claim)
            if verdict is None:
                verdict = stale
            elif verdict.action is None and not is_replaced(claim):
                # By a user, or before a gate blocked it: it stays. Of one that is being replaced
                # ``disrupt`` takes it off: the stamp that it terminates with is written there.
                verdict = msgspec.structs.replace(verdict, action=stale.action)
        if verdict is None:
            return
        yield verdict
        node = member.node if not member.shared else None
        if node is not None and verdict.reason not in _OF_CLAIMS:
            yield also_of(node, verdict)

    def _lost(self, member: Member) -> Verdict | None:
        """The Node is gone, and its claim is not: noted on the claim, from where the TTL counts."""
        claim, known, beside = member.claim, lost(member.claim), self._rules.beside
        if claim.deleting or not claim.registered:
            return None
        if member.nodes:
            if known is None:
                return None
            found = NodeFound(member.nodes[0].name)
            return _say(claim, Reason.NODE_LOST, found, action=note_found(claim, beside=beside))
        if beside and not states_readiness(claim):
            return None  # It is Karpenter's.
        since = known.last_transition_time if known is not None else None
        gone = NodeLost(claim.node_name, since)
        if since is None:
            said = note_lost(claim, str(gone), beside=beside)
            return _say(claim, Reason.NODE_LOST, gone, action=said)
        due_at = later(since, readiness_ttl(claim))
        if self._now < due_at:
            return _say(claim, Reason.NODE_LOST, gone, LostUntil(due_at), recheck_at=due_at)
        return self._forceful(member, Reason.NODE_LOST, (gone,), Operation.BOOT_TIMEOUT)

    def _coming_up(self, member: Member, health: Health) -> Verdict | None:
        booting = self._timed_out(member, health)
        if booting is not None and booting.reason is not Reason.BOOTING:
            return booting
        unhealthy = self._unhealthy(member, health)
        if health.booting_at(self._now) and booting is None:
            return self._boots_without_limit(member, health, unhealthy)
        if booting is None or unhealthy is None or unhealthy.reason is Reason.REPAIR_OFF:
            return booting or unhealthy
        return no_later(unhealthy, booting.recheck_at)

    def _boots_without_limit(
        self, member: Member, health: Health, unhealthy: Verdict | None
    ) -> Verdict | None:
        """Beside Karpenter, where no TTL acts: it is new, and what is tolerated of it is no news."""
        if unhealthy is None or unhealthy.reason is not Reason.UNHEALTHY or health.boot is None:
            return unhealthy
        boots = _say(member.claim, Reason.BOOTING, _not_up(member.claim, health.boot))
        return no_later(boots, unhealthy.recheck_at, health.boot.due_at)

    def _timed_out(self, member: Member, health: Health) -> Verdict | None:
        claim, boot = member.claim, health.boot
        if boot is None or not boot.acts or (claim.deleting and not _has_pods(member)):
            return None
        if self._now < boot.due_at:
            if boot.stage is Stage.INITIALIZATION:
                return None  # It takes pods already, so it may be unhealthy.
            return _booting(claim, boot)
        facts = (_not_up(claim, boot), NotUpInTime(boot.stage, boot.ttl, boot.due_at))
        if boot.stage is Stage.INITIALIZATION and not self._is_forceful():
            # Pods may run there, so it goes the pool's own way.
            cause = Cause(facts=facts, urgency=urgency_of(boot.due_at))
            return self._graceful(member, cause, Operation.GRACEFUL_TIMEOUT)
        # No pod runs on a replacement that was never Ready, and a command waits for it.
        early = boot.stage is Stage.READINESS and is_replacement(claim)
        counted = boot.stage in (Stage.READINESS, Stage.INITIALIZATION) and not early
        operation = Operation.FORCEFUL_TIMEOUT if counted else Operation.BOOT_TIMEOUT
        return self._forceful(member, TIMEOUTS[boot.stage], facts, operation)

    def _initializing(
        self, member: Member, health: Health, verdict: Verdict | None
    ) -> Verdict | None:
        """What is said of it, until its initializationTTL is over."""
        boot, claim = health.boot, member.claim
        if boot is None or boot.stage is not Stage.INITIALIZATION or boot.due_at <= self._now:
            return verdict
        if claim.deleting and not _has_pods(member):
            return verdict
        if verdict is not None:
            return no_later(verdict, boot.due_at)
        return _booting(claim, boot)

    def _is_forceful(self) -> bool:
        repair = self._rules.repair
        mode = repair.termination_mode if repair is not None else self._rules.default_mode
        # Nothing replaces a claim without a pool.
        return self._view.pool is None or mode == FORCEFUL

    def _unhealthy(self, member: Member, health: Health) -> Verdict | None:
        claim = member.claim
        if not health.unhealthy or claim.rebooting:
            return None
        dated = [unhealthy for unhealthy in health.unhealthy if unhealthy.counts]
        if not dated:
            one = health.unhealthy[0]
            never = NeverRepaired(one.policy, reported=one.due_at is not None)
            return _say(claim, Reason.REPAIR_OFF, symptom(one), never)
        due = [i for i in dated if i.due_at is not None and i.due_at <= self._now]
        if not due:
            return self._tolerated(member, min(dated, key=_order))
        coming = [one for one in dated if one not in due]
        if claim.deleting and is_commanded(claim) and not self._hurries(claim, due):
            # Its own repair, or another command, drains it: there is nothing to block or to begin.
            return self._tolerated(member, min(coming, key=_order)) if coming else None
        next_due = min((one.due_at for one in coming if one.due_at is not None), default=None)
        if claim.deleting:
            return no_later(self._terminating(member, due), next_due)
        return no_later(self._repair(member, self._cause(claim, due)), next_due)

    def _hurries(self, claim: NodeClaim, due: list[UnhealthyCondition]) -> bool:
        """Whether what is due brings the deadline of a terminating claim forward."""
        replacing = [one for one in due if one.action is RepairAction.REPLACE]
        if any(one.mode == FORCEFUL for one in replacing):
            return True
        bounds = (one.bound for one in replacing if one.bound is not None)
        return hurry(claim, min(bounds, default=None), self._now) is not None

    def _tolerated(self, member: Member, first: UnhealthyCondition) -> Verdict:
        assert first.due_at is not None, "it counts"
        ahead = first.since if first.since > self._now else None
        blocked = self._blocked_by_users(member)
        facts = (
            symptom(first, ahead=ahead is not None),
            ToleratedUntil(first.policy, first.due_at),
            *(blocked.facts if blocked is not None else ()),
        )
        verdict = _say(member.claim, Reason.UNHEALTHY, *facts, recheck_at=first.due_at)
        return no_later(verdict, ahead, blocked.recheck_at if blocked is not None else None)

    def _terminating(self, member: Member, due: list[UnhealthyCondition]) -> Verdict:
        """By what would replace it: the bound of a reboot is none for its termination."""
        priorities = [one.priority for one in self._rules.statements]
        replacing = [one for one in due if one.action is RepairAction.REPLACE]
        if replacing:
            return self._repair(member, merged(replacing, priorities))
        instead = TerminatingAlready(member.claim.name, no_reboot=True)
        return _say(member.claim, Reason.REPAIR_DUE, *merged(due, priorities).facts, instead)

    def _blocked_by_users(self, member: Member) -> Blocked | None:
        """What would block it if it were due now, unless a user changes it."""
        facts, only = self._breakers.facts(member), (Gate.OFF, Gate.RULES, Gate.VETO)
        operation = Operation.FORCEFUL_REPAIR
        return first_blocked(operation, facts, self._settings, self._now, only=only)

    def _cause(self, claim: NodeClaim, due: list[UnhealthyCondition]) -> Cause:
        cause = merged(due, (one.priority for one in self._rules.statements))
        if cause.action is not RepairAction.REBOOT:
            return cause
        why: Fact
        if is_spared(claim):
            why = RebootFailedBefore()
        elif len(recent(claim, self._now)) >= MOST:
            why = RebootedTooOften(MOST)
        else:
            return cause
        facts = (*cause.facts, why)
        return msgspec.structs.replace(cause, action=RepairAction.REPLACE, facts=facts)

    # -- what is due -------------------------------------------------------------------

    def _repair(self, member: Member, cause: Cause) -> Verdict:
        """For an unhealthy condition, as opposed to a time-out."""
        claim, operation = member.claim, _operation(cause)
        if cause.action is RepairAction.REBOOT and self._rules.beside:
            return _say(claim, Reason.REPAIR_LEFT, *cause.facts, RebootLeft(claim.name))
        if operation is Operation.FORCEFUL_REPAIR:
            verdict = self._forceful(member, Reason.REPAIRING, cause.facts, operation)
            verdict = committed(verdict, cause.condition)
        else:
            verdict = self._graceful(member, cause, operation)
        return no_later(verdict, changes_at(claim, self._now))

    def _graceful(self, member: Member, cause: Cause, operation: Operation) -> Verdict:
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
        self._candidates.append(GracefulRepair(claim, node, cause, operation, facts, marks))
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

    def _forceful(
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
            self._blocked.append(blocked)
        told = (*why, *blocked.facts)
        at, gate = blocked.recheck_at, blocked.gate
        return _say(facts.claim, blocked.reason, *told, recheck_at=at, gate=gate)


def _operation(cause: Cause) -> Operation:
    if cause.action is RepairAction.REBOOT:
        return Operation.FORCEFUL_REBOOT if cause.forceful else Operation.REBOOT
    return Operation.FORCEFUL_REPAIR if cause.forceful else Operation.GRACEFUL_REPAIR


def _has_pods(member: Member) -> bool:
    """Whether there may be pods that a deadline would end the wait for."""
    return member.claim.registered and member.node is not None


def _has_stale_stamp(claim: NodeClaim, rules: Rules) -> bool:
    """That of an interruption is written before the claim is deleted. Beside Karpenter one without our
    mark is not ours."""
    stamped = claim.termination_stamp is not None
    if rules.beside:
        stamped = is_stamped_by_us(claim)
    return stamped and not claim.deleting and not is_interrupted(claim)


def _stale(claim: NodeClaim) -> Verdict:
    action = take_off_stamp(claim)
    return _say(claim, Reason.STALE_DEADLINE, stale_stamp(claim), action=action)


def _not_ours(claim: NodeClaim, rules: Rules) -> Iterator[Fact]:
    if rules.beside and is_stamped_by_others(claim):
        yield DeadlineNotOurs(claim.name, shown(claim.termination_stamp or ""))


def _as_probe(probe: Probe | None) -> Iterator[Fact]:
    if probe is not None:
        yield RepairedAsProbe(probe.domains)


def _booting(claim: NodeClaim, boot: Boot) -> Verdict:
    due = MustBeUpBy(boot.stage, boot.ttl, boot.due_at)
    return _say(claim, Reason.BOOTING, _not_up(claim, boot), due, recheck_at=boot.due_at)


def _not_up(claim: NodeClaim, boot: Boot) -> NotUp:
    return NotUp(boot.stage, boot.since, claim.node_name)


def _order(unhealthy: UnhealthyCondition) -> tuple[datetime, str]:
    assert unhealthy.due_at is not None
    return unhealthy.due_at, unhealthy.condition.type
