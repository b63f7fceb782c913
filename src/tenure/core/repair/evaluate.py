"""Decide about nodes that do not come up and unhealthy nodes: one decision for all of them.

Keyed on the claim, arbitrated over its pool. Of each claim, the first of these that applies:

0. unreadable    it, its pool, its Node or a pod there cannot be read: nothing;
1. lost          the Node is gone while its claim remains: as long as the TTL, from when we noticed;
2. timed out     never launched, registered, Ready or (where it has a limit) initialized;
3. unhealthy     a condition says so (see ``rules``): tolerated until when, and by which policy;
4. booting       its TTL runs (see ``readiness``): until when. It overrides ``Ready`` alone.

What is due (``due``) may be blocked (``core/gates``). The probe of a domain in outage is written on the
pool first. A stamp on a claim that stays and is not due is taken off (``staledeadline``).

A claim that terminates already has its deadline brought forward by what falls due: Forceful and
time-outs to *now*, Graceful to *now* plus the bound; without a bound, and for a reboot, not at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import Final

import msgspec

from tenure.core.decision import Concern, Verdict
from tenure.core.facts import Fact
from tenure.core.gates.gatefacts import Blocked
from tenure.core.gates.gates import first_blocked
from tenure.core.gates.operations import Gate, Operation
from tenure.core.health.health import Health, HealthView, Member, examine
from tenure.core.health.readiness import TIMEOUTS, Boot, Stage
from tenure.core.health.rules import FORCEFUL, UnhealthyCondition
from tenure.core.marks.command import is_commanded, is_replaced, is_replacement
from tenure.core.marks.deadline import hurry
from tenure.core.marks.reboot import MOST, is_spared, recent
from tenure.core.marks.timeout import lost, note_found, note_lost, readiness_ttl, states_readiness
from tenure.core.reasons import Reason
from tenure.core.repair.breakers import Breakers
from tenure.core.repair.cause import Cause, merged, symptom, urgency_of
from tenure.core.repair.due import DueRepairs, GracefulRepair
from tenure.core.repair.facts import (
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
    TerminatingAlready,
    ToleratedUntil,
)
from tenure.core.repair.force import note_probe
from tenure.core.repair.staledeadline import has_stale_stamp, stale
from tenure.core.verdicts import also_of, no_later, say
from tenure.model.api.meta import later
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.cloud.repairs import RepairAction
from tenure.model.settings import Settings

#: Of the claim alone: the Node is gone, or other verdicts say the same of it.
_OF_CLAIMS: Final = frozenset({Reason.NODE_LOST, Reason.BOOTING, Reason.STALE_DEADLINE})

_say = partial(say, Concern.REPAIR)


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
        self._due = DueRepairs(self._rules, self._breakers, settings, now)

    def diagnosis(self) -> Diagnosis:
        verdicts = tuple(self._verdicts())  # All of them: the candidates are found on the way.
        return Diagnosis(verdicts, tuple(self._due.candidates))

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
        elif self._due.blocked:
            # An outage says more than the breaker that it trips as well.
            outages = (one for one in self._due.blocked if one.gate is Gate.OUTAGE)
            blocked = next(outages, self._due.blocked[0])
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
        if has_stale_stamp(claim, self._rules):
            left = stale(claim, self._rules)
            if verdict is None:
                verdict = left
            elif verdict.action is None and not is_replaced(claim):
                # By a user, or before a gate blocked it: it stays. Of one that is being replaced
                # ``disrupt`` takes it off: the stamp that it terminates with is written there.
                verdict = msgspec.structs.replace(verdict, action=left.action)
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
        return self._due.forceful(member, Reason.NODE_LOST, (gone,), Operation.BOOT_TIMEOUT)

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
            return self._due.graceful(member, cause, Operation.GRACEFUL_TIMEOUT)
        # No pod runs on a replacement that was never Ready, and a command waits for it.
        early = boot.stage is Stage.READINESS and is_replacement(claim)
        counted = boot.stage in (Stage.READINESS, Stage.INITIALIZATION) and not early
        operation = Operation.FORCEFUL_TIMEOUT if counted else Operation.BOOT_TIMEOUT
        return self._due.forceful(member, TIMEOUTS[boot.stage], facts, operation)

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
        return no_later(self._due.repair(member, self._cause(claim, due)), next_due)

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
            return self._due.repair(member, merged(replacing, priorities))
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


def _has_pods(member: Member) -> bool:
    """Whether there may be pods that a deadline would end the wait for."""
    return member.claim.registered and member.node is not None


def _booting(claim: NodeClaim, boot: Boot) -> Verdict:
    due = MustBeUpBy(boot.stage, boot.ttl, boot.due_at)
    return _say(claim, Reason.BOOTING, _not_up(claim, boot), due, recheck_at=boot.due_at)


def _not_up(claim: NodeClaim, boot: Boot) -> NotUp:
    return NotUp(boot.stage, boot.since, claim.node_name)


def _order(unhealthy: UnhealthyCondition) -> tuple[datetime, str]:
    assert unhealthy.due_at is not None
    return unhealthy.due_at, unhealthy.condition.type
