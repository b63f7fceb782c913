"""Decide about nodes that do not come up and nodes that fall ill: one decision for all of them.

Keyed on the claim, arbitrated over its pool. Of each claim, the first of these that applies:

1. booting       its TTL runs (see ``readiness``): until when;
2. lost          the Node is gone while its claim remains: as long as the TTL, from when we noticed;
3. timed out     never launched, registered, Ready or (where it has a limit) initialized;
4. ill           a condition means sick (see ``sickness``): tolerated until when, and by whose word.

What is due is held back by, in this order: a repair that is switched off or cannot be understood,
a veto (``karpenter.sh/do-not-repair``), the breaker of a zone, image or type (``domains``), the
pool's breaker. A claim that never registered has no node to count, and no breaker. Who is tried
where a domain is held is written on the pool first.

Forceful: the claim is stamped with the deadline *now*, then deleted on the version that carries
the stamp. A stamp on a claim that stays and is not due is taken off.

Graceful, and every reboot: a candidate of ``disruption``, which finds the time and the replacement.
On a claim that is leaving already it brings the deadline forward to *now* plus the bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.breaker import Breaker
from tenure.core.cause import Cause, merged, symptom, urgency_of
from tenure.core.claims import claim_status
from tenure.core.conditions import Wanted
from tenure.core.deadline import deadline_of, hurried_until, hurry, stamp_of
from tenure.core.decision import Action, Commitment, Concern, Delete, Verdict, Witness
from tenure.core.domains import NOTHING, Domains, Patient, Permit
from tenure.core.outbreaks import DEFAULT_LIMIT, domains_of
from tenure.core.protection import Protection, protection_on
from tenure.core.readiness import Boot, Stage, boot_of, readiness_ttl
from tenure.core.reasons import Reason
from tenure.core.reboots import MOST, changes_at, rebooted_at, recent
from tenure.core.sickness import FORCEFUL, Illness, Rules, illnesses
from tenure.core.writes import delete_claim, patch, stamp_claim, subject_of
from tenure.model import names
from tenure.model.duration import Duration
from tenure.model.meta import format_time
from tenure.model.names import DO_NOT_REPAIR, REPLACED_BY, REPLACES, TERMINATION_TIMESTAMP
from tenure.model.node import Node
from tenure.model.nodeclaim import NodeClaim
from tenure.model.nodepool import NodePool
from tenure.model.repairs import RepairAction
from tenure.model.resource import NODES
from tenure.model.settings import Settings

#: The condition of a claim whose Node is gone.
LOST: Final = "NodeLost"

_TIMEOUTS: Final = {
    Stage.LAUNCH: Reason.LAUNCH_TIMEOUT,
    Stage.REGISTRATION: Reason.REGISTRATION_TIMEOUT,
    Stage.READINESS: Reason.READINESS_TIMEOUT,
    Stage.INITIALIZATION: Reason.INITIALIZATION_TIMEOUT,
}


class Member(msgspec.Struct, frozen=True):
    """A claim of the pool and its Nodes: one, when all is well."""

    claim: NodeClaim
    nodes: tuple[Node, ...] = ()

    @property
    def node(self) -> Node | None:
        return self.nodes[0] if len(self.nodes) == 1 else None


class HealthView(msgspec.Struct, frozen=True, kw_only=True):
    #: None for a claim that a person made without one.
    pool: NodePool | None
    rules: Rules
    #: Why the pool's repair block is not used; empty when it is.
    broken: str = ""
    #: All Nodes with the pool's label; of a claim without one, all of ours.
    total: int = 0
    #: Who else counts beside a claim without a pool.
    others: tuple[Patient, ...] = ()
    #: Those of which there may be something to say.
    members: tuple[Member, ...] = ()
    #: Where nodes of several pools are sick at once.
    domains: Domains = NOTHING


class Candidate(msgspec.Struct, frozen=True):
    """A node to be repaired with care: nothing but time, place and its pods can hold it now."""

    member: Member
    node: Node
    cause: Cause
    #: Annotations of the claim, where it is tried for others of its domain.
    marks: Mapping[str, str] = {}


class _Finding(msgspec.Struct, frozen=True):
    """How one member is at one instant."""

    member: Member
    boot: Boot | None
    #: Its TTL has neither been spent nor run out.
    booting: bool
    ill: tuple[Illness, ...]

    @property
    def sick(self) -> bool:
        """Whether the breaker counts it."""
        if not self.member.claim.registered or self.member.node is None or self.booting:
            return False
        never_ready = self.boot is not None and self.boot.stage is not Stage.INITIALIZATION
        return never_ready or any(illness.counts for illness in self.ill)


class Round:
    """One look at a pool."""

    def __init__(self, view: HealthView, settings: Settings, now: datetime) -> None:
        self._view = view
        self._settings = settings
        self._now = now
        self._rules = view.rules
        if settings.legacy_node_repair:
            self._rules = msgspec.structs.replace(view.rules, default_mode=FORCEFUL)
        self._candidates: list[Candidate] = []
        self._found = [self._find(member) for member in view.members]
        repair = view.pool.spec.repair if view.pool is not None else None
        limit = repair.max_unhealthy if repair is not None else DEFAULT_LIMIT
        sick = [*(one.sick for one in self._found), *(one.sick_at(now) for one in view.others)]
        self._breaker = Breaker(sum(sick), view.total, limit)
        self._domains = view.domains.at(settings, now)
        #: What holds the claims that a domain holds.
        self._outage = ""
        #: When another node stops booting and counts, or a domain looks different.
        counts = [f.boot.due_at for f in self._found if f.booting and f.boot]
        counts += [one.since for one in view.others if one.booting and one.since > now]
        changes = self._domains.changes_at
        self._counts_at = min([*counts, *([changes] if changes else [])], default=None)

    def _find(self, member: Member) -> _Finding:
        claim, node = member.claim, member.node
        boot = None if claim.initialized else boot_of(claim, node)
        before_ready = boot is not None and boot.stage is not Stage.INITIALIZATION
        booting = boot is not None and before_ready and self._now < boot.due_at
        ill: tuple[Illness, ...] = ()
        if node is not None and claim.registered:
            ill = illnesses(node, self._rules, rebooted_at=rebooted_at(claim))
        if before_ready:  # Until its first Ready the TTL overrides every policy for it.
            ill = tuple(illness for illness in ill if illness.condition.type != "Ready")
        return _Finding(member, boot, booting, ill)

    def candidates(self) -> list[Candidate]:
        """Who is to be repaired with care now."""
        for finding in self._found:
            list(self._of(finding))
        return self._candidates

    def verdicts(self) -> Iterator[Verdict]:
        blocked = False
        for finding in self._found:
            for verdict in self._of(finding):
                blocked = blocked or verdict.reason is Reason.REPAIR_BLOCKED
                yield verdict
        if self._view.pool is None:
            return
        permit = self._domains.to_permit(self._view.pool.name)
        if permit is not None:
            yield self._permitted(self._view.pool, permit)
        elif blocked:
            message = self._outage or str(self._breaker)
            yield _say(self._view.pool, Reason.REPAIR_BLOCKED, message, recheck_at=self._counts_at)

    def _permitted(self, pool: NodePool, permit: Permit) -> Verdict:
        """Before anything is done to it, so that after a crash the same one is tried."""
        where = ", ".join(permit.domains)
        message = f"most nodes with {where} are sick; {permit.claim} is repaired to try it"
        noted = {names.REPAIR_PROBE: f"{','.join(permit.domains)} {permit.claim}"}
        action = patch(pool, {"annotations": noted})
        action = msgspec.structs.replace(action, dated=names.REPAIR_PROBE)
        verdict = _say(pool, Reason.REPAIR_PROBE, message, action=action)
        return _no_later(verdict, self._counts_at)

    # -- one claim ---------------------------------------------------------------------

    def _of(self, finding: _Finding) -> Iterator[Verdict]:
        claim = finding.member.claim
        verdict = self._lost(finding) or self._timed_out(finding) or self._ill(finding)
        verdict = self._initializing(finding, verdict)
        if not claim.deleting and claim.termination_stamp is not None:
            stale = self._stale(claim)
            if verdict is None:
                verdict = stale
            elif verdict.action is None and REPLACED_BY not in claim.annotations:
                # By a person, or before something held it: it stays.
                verdict = msgspec.structs.replace(verdict, action=stale.action)
        if verdict is None:
            return
        yield verdict
        node = finding.member.node
        if node is not None and verdict.reason in _SAID_OF_NODES:
            yield msgspec.structs.replace(verdict, subject=subject_of(node), action=None)

    def _lost(self, finding: _Finding) -> Verdict | None:
        """The Node is gone, and its claim is not: noted on the claim, from where the TTL counts."""
        claim = finding.member.claim
        condition = claim.condition(LOST)
        if claim.deleting or not claim.registered:
            return None
        if finding.member.nodes:
            if condition is None or condition.status != "True":
                return None
            said = claim_status(claim, Wanted(LOST, "False", "NodeFound"))
            return _say(claim, Reason.NODE_LOST, "its Node is back; this is noted", action=said)
        what = f"Node {claim.node_name} is gone while its instance runs"
        if condition is None or condition.status != "True" or not condition.last_transition_time:
            said = claim_status(claim, Wanted(LOST, "True", "NodeNotFound", what))
            return _say(claim, Reason.NODE_LOST, f"{what}; this is noted", action=said)
        since = condition.last_transition_time
        due_at = since + readiness_ttl(claim)
        noticed = f"{what}, noticed at {format_time(since)}"
        if self._now < due_at:
            message = f"{noticed}; given up at {format_time(due_at)}"
            return _say(claim, Reason.NODE_LOST, message, recheck_at=due_at)
        return self._due(finding, Reason.NODE_LOST, noticed, counted=False)

    def _timed_out(self, finding: _Finding) -> Verdict | None:
        claim, boot = finding.member.claim, finding.boot
        if boot is None or claim.deleting:
            return None
        missing = _missing(boot, finding.member)
        since = f"{missing}, since {format_time(boot.since)}"
        if self._now < boot.due_at:
            if boot.stage is Stage.INITIALIZATION:
                return None  # At work already, so it may be ill.
            message = f"{since}; given up at {format_time(boot.due_at)} (readinessTTL {boot.ttl})"
            return _say(claim, Reason.BOOTING, message, recheck_at=boot.due_at)
        limit = "initializationTTL" if boot.stage is Stage.INITIALIZATION else "readinessTTL"
        message = f"{since}; {limit} {boot.ttl} was over at {format_time(boot.due_at)}"
        if boot.stage is Stage.INITIALIZATION and not self._by_force():
            # Pods may run there, so it goes the pool's own way.
            return self._with_care(finding, Cause(message=message, urgency=urgency_of(boot.due_at)))
        # Nobody runs on a replacement that never came up, and who waits for it should know.
        stands_in = boot.stage is Stage.READINESS and REPLACES in claim.annotations
        counted = boot.stage in (Stage.READINESS, Stage.INITIALIZATION) and not stands_in
        return self._due(finding, _TIMEOUTS[boot.stage], message, counted=counted)

    def _initializing(self, finding: _Finding, verdict: Verdict | None) -> Verdict | None:
        """What is said of it, until its initializationTTL is over."""
        boot, claim = finding.boot, finding.member.claim
        if boot is None or boot.stage is not Stage.INITIALIZATION or claim.deleting:
            return verdict
        if boot.due_at <= self._now:
            return verdict
        if verdict is not None:
            return _no_later(verdict, boot.due_at)
        until = f"given up at {format_time(boot.due_at)} (initializationTTL {boot.ttl})"
        message = f"{_missing(boot, finding.member)}, since {format_time(boot.since)}; {until}"
        return _say(claim, Reason.BOOTING, message, recheck_at=boot.due_at)

    def _by_force(self) -> bool:
        repair = self._rules.repair
        mode = repair.termination_mode if repair is not None else self._rules.default_mode
        # A claim without a pool has nobody to replace it.
        return self._view.pool is None or mode == FORCEFUL

    def _ill(self, finding: _Finding) -> Verdict | None:
        claim = finding.member.claim
        if not finding.ill or claim.rebooting:
            return None
        dated = [
            i for i in finding.ill if i.due_at is not None and i.action is not RepairAction.NONE
        ]
        if not dated:
            message = f"{symptom(finding.ill[0])}; {finding.ill[0].policy}"
            return _say(claim, Reason.REPAIR_OFF, f"{message}: nothing is done about it")
        due = [i for i in dated if i.due_at is not None and i.due_at <= self._now]
        if not due:
            first = min(dated, key=_order)
            ahead = first.since if first.since > self._now else None
            dated_ahead = " (its clock is ahead of ours)" if ahead is not None else ""
            until = f"repaired at {format_time(first.due_at)}"
            message = f"{symptom(first)}{dated_ahead}; {first.policy}: {until}"
            verdict = _say(claim, Reason.UNHEALTHY, message, recheck_at=first.due_at)
            return _no_later(verdict, ahead)
        later = min((i.due_at for i in dated if i.due_at and i.due_at > self._now), default=None)
        return _no_later(self._repair(finding, self._cause(claim, due)), later)

    def _cause(self, claim: NodeClaim, due: list[Illness]) -> Cause:
        cause = merged(due, (one.priority for one in self._rules.statements))
        if cause.action is RepairAction.REBOOT and len(recent(claim, self._now)) >= MOST:
            message = f"{cause.message}; rebooted {MOST} times within a day, so it is replaced"
            return msgspec.structs.replace(cause, action=RepairAction.REPLACE, message=message)
        return cause

    # -- what is due -------------------------------------------------------------------

    def _repair(self, finding: _Finding, cause: Cause) -> Verdict:
        """A sick condition, as opposed to a time-out, may be switched off or need more care."""
        claim = finding.member.claim
        off = self._off()
        if off:
            return _say(claim, Reason.REPAIR_OFF, f"{cause.message}; {off}")
        if cause.forceful and cause.action is RepairAction.REPLACE:
            verdict = self._due(finding, Reason.REPAIRING, cause.message, counted=True)
            verdict = _committed(verdict, cause.condition)
        else:
            verdict = self._with_care(finding, cause)
        return _no_later(verdict, changes_at(claim, self._now))

    def _off(self) -> str:
        if not self._settings.node_repair:
            return "node repair is switched off (--node-repair=false)"
        if self._view.pool is None and not self._settings.legacy_node_repair:
            return "it has no pool, and only nodes of pools are repaired"
        if self._view.broken:
            return f"the pool's repair block cannot be used: {self._view.broken}"
        return ""

    def _with_care(self, finding: _Finding, cause: Cause) -> Verdict:
        """Its own verdict says why; what becomes of it is the pipeline's to say."""
        claim, node = finding.member.claim, finding.member.node
        held = self._held(finding, cause.message, counted=True)
        if held is not None:
            return held
        if claim.deleting:
            return self._hurried(claim, cause)
        assert node is not None, "whoever is ill has a Node"
        permit = self._probe(finding)
        marks = _mark(permit) if permit is not None else {}
        self._candidates.append(Candidate(finding.member, node, cause, marks))
        what = "rebooted" if cause.action is RepairAction.REBOOT else "replaced with care"
        message = f"{cause.message}{_tried(permit)}; to be {what}"
        return _no_later(_say(claim, Reason.REPAIR_DUE, message), self._counts_at)

    def _hurried(self, claim: NodeClaim, cause: Cause) -> Verdict:
        """It is leaving anyway: by the bound, if there is one, at the latest."""
        message = f"{cause.message}; it is leaving already"
        span = hurry(claim, cause.bound, self._now)
        if span is None:
            return _say(claim, Reason.REPAIR_DUE, message)
        message = f"{message}, and has to be gone within {Duration.of(span)}"
        verdict = _say(claim, Reason.REPAIR_DUE, message, action=stamp_claim(claim, span))
        return _no_later(verdict, hurried_until(claim, span))

    def _due(self, finding: _Finding, reason: Reason, message: str, *, counted: bool) -> Verdict:
        """Whatever may hold a forceful end back, and else that end."""
        held = self._held(finding, message, counted=counted)
        if held is not None:
            return held
        claim = finding.member.claim
        permit = self._probe(finding) if counted else None
        action = _force(finding.member, self._now, permit)
        verdict = _say(claim, reason, message + _tried(permit), action=action)
        stamp = stamp_of(claim)
        ahead = stamp if stamp is not None and stamp > self._now else None
        return _no_later(verdict, self._counts_at if counted else None, ahead)

    def _held(self, finding: _Finding, message: str, *, counted: bool) -> Verdict | None:
        """By a person's veto, or because too many are sick at once."""
        claim, node = finding.member.claim, finding.member.node
        for thing in (node, claim):
            veto = protection_on(thing, DO_NOT_REPAIR) if thing is not None else None
            if veto is not None and self._now < veto.until:
                return _say(
                    claim,
                    Reason.REPAIR_VETOED,
                    f"{message}; {_vetoed(veto)}",
                    recheck_at=veto.ends_at,
                )
        if not counted:
            return None
        outage = self._holding(finding) if self._probe(finding) is None else ""
        if outage:
            self._outage = self._outage or outage
        elif not self._breaker.tripped:
            return None
        why = outage or str(self._breaker)
        return _say(claim, Reason.REPAIR_BLOCKED, f"{message}; {why}", recheck_at=self._counts_at)

    def _holding(self, finding: _Finding) -> str:
        claim, node = finding.member.claim, finding.member.node
        return self._domains.holding(domains_of(claim, node)) if node is not None else ""

    def _probe(self, finding: _Finding) -> Permit | None:
        """What lets it be repaired although a domain holds it."""
        permit = self._domains.permit(finding.member.claim.name)
        return permit if permit is not None and self._holding(finding) else None

    def _stale(self, claim: NodeClaim) -> Verdict:
        written = claim.termination_stamp
        message = f"{TERMINATION_TIMESTAMP}: {written} is taken off: the claim is not being deleted"
        action = patch(claim, {"annotations": {TERMINATION_TIMESTAMP: None}})
        return _say(claim, Reason.STALE_DEADLINE, message, action=action)


_SAID_OF_NODES: Final = frozenset(
    {
        Reason.UNHEALTHY,
        Reason.REPAIRING,
        Reason.REPAIR_DUE,
        Reason.REPAIR_BLOCKED,
        Reason.REPAIR_VETOED,
        Reason.READINESS_TIMEOUT,
        Reason.INITIALIZATION_TIMEOUT,
    }
)


def _force(member: Member, now: datetime, probe: Permit | None = None) -> Action | None:
    """The next of two writes: the deadline, then the deletion on the version that carries it.

    Each on the word of the Node as it is right before the call: it may have recovered.
    """
    claim, witness = member.claim, _witness(member)
    deadline, stamp = deadline_of(claim), stamp_of(claim)
    if claim.deleting and deadline is not None and deadline.at <= now:
        return None
    if not claim.deleting and stamp is not None and stamp <= now:
        return msgspec.structs.replace(delete_claim(claim), witness=witness)
    stamped = stamp_claim(claim, beside=_mark(probe) if probe is not None else None)
    return msgspec.structs.replace(stamped, witness=witness)


def _tried(probe: Permit | None) -> str:
    if probe is None:
        return ""
    return f"; most nodes with {', '.join(probe.domains)} are sick, and it is tried first"


def _mark(probe: Permit) -> dict[str, str]:
    """For people who look at the claim; who is tried stands on the pool."""
    assert probe.at is not None, "it was read from there"
    return {names.REPAIR_PROBE: f"{','.join(probe.domains)} {format_time(probe.at)}"}


def _committed(verdict: Verdict, condition: str) -> Verdict:
    """A stamp can be taken off again; a deletion is a repair."""
    if not isinstance(verdict.action, Delete):
        return verdict
    commits = Commitment(reason="unhealthy", condition=condition, bound=timedelta(0))
    return msgspec.structs.replace(verdict, commits=commits)


def _witness(member: Member) -> Witness | None:
    name = member.node.name if member.node is not None else member.claim.node_name
    if not name:
        return None  # It never had a Node.
    if member.node is None:
        return Witness(resource=NODES, name=name)
    meta = member.node.metadata
    return Witness(resource=NODES, name=name, uid=meta.uid, resource_version=meta.resource_version)


def _missing(boot: Boot, member: Member) -> str:
    match boot.stage:
        case Stage.LAUNCH:
            return "it has no instance"
        case Stage.REGISTRATION:
            return "its Node has not registered"
        case Stage.READINESS:
            return f"Node {member.claim.node_name} has not been Ready"
        case Stage.INITIALIZATION:
            return f"Node {member.claim.node_name} is Ready, but not initialized"


def _vetoed(veto: Protection) -> str:
    end = f" until {format_time(veto.until)}" if veto.ends_at is not None else ""
    return f'{DO_NOT_REPAIR}: "{veto.value}" vetoes it{end}'


def _order(illness: Illness) -> tuple[datetime, str]:
    assert illness.due_at is not None
    return illness.due_at, illness.condition.type


def _no_later(verdict: Verdict, *instants: datetime | None) -> Verdict:
    given = [at for at in (verdict.recheck_at, *instants) if at is not None]
    return msgspec.structs.replace(verdict, recheck_at=min(given, default=None))


def _say(
    about: NodeClaim | NodePool,
    reason: Reason,
    message: str,
    *,
    action: Action | None = None,
    recheck_at: datetime | None = None,
) -> Verdict:
    return Verdict(
        concern=Concern.REPAIR,
        subject=subject_of(about),
        reason=reason,
        message=message,
        action=action,
        recheck_at=recheck_at,
    )
