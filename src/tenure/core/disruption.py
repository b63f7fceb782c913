"""Decide who may be disrupted with care now, and what has to be there first.

One way for every reason: candidates → what is in their way → budgets → where their pods would
go → replacements. ``replacing`` carries it through from there. So far the one reason is
``Unhealthy``. Candidates in the order of their urgency; of each, the first of these that applies:

1. pause       a replacement of the pool has failed lately: not before the pause is over;
2. budget      the pool's budgets allow no more (a node that is not initialized needs none);
3. obstacles   pods that must not be moved, and nothing that would bound the wait for them;
4. reboot      where that is the cure: committed on the claim, and ``rebooting`` carries it out;
5. turn        one replacement is planned at a time, so that no room is counted on twice;
6. no place    a pod of the node fits nowhere: why not, pool by pool;
7. launch      its pods need new nodes: their claims are created, each marked with whom it
               replaces;
8. commit      everything its pods need exists: the claim is marked with its replacements.

The plan is made again until it is committed, and counts what exists: so a crash between any two
of these writes loses nothing and doubles nothing. Every pool with a sick node has one verdict,
too, that says when to look again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.budgets import allowance
from tenure.core.deadline import grace_period
from tenure.core.decision import Action, Blocker, Commitment, Concern, Patch, Subject, Verdict
from tenure.core.demand import is_reschedulable
from tenure.core.drain import drain_until
from tenure.core.fleet import PoolFleet, fleet_of
from tenure.core.leavingpods import DrainView
from tenure.core.obstacles import Disruption, obstacles
from tenure.core.protection import CREATION
from tenure.core.readiness import initialization_ttl, was_ready
from tenure.core.reasons import Reason
from tenure.core.reboots import commit
from tenure.core.repair import health_of
from tenure.core.repairround import Candidate, HealthView, Member, Round
from tenure.core.replacement import Exchange, Market, Plan, market_of
from tenure.core.replacing import failures_of, is_replaced
from tenure.core.rooms import Rooms
from tenure.core.sickness import FORCEFUL, Illness, Rules, illnesses
from tenure.core.writes import patch, subject_of
from tenure.model import names
from tenure.model.meta import format_time, later
from tenure.model.node import Node
from tenure.model.nodeclaim import NodeClaim
from tenure.model.nodepool import NodePool
from tenure.model.repairs import RepairAction
from tenure.model.resource import (
    DAEMON_SETS,
    NODE_CLAIMS,
    NODE_POOLS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
)
from tenure.model.settings import Settings
from tenure.model.snapshot import Change, Snapshot

#: Whom to disturb is one question about the whole cluster: all count on the same room.
CLUSTER: Final = "cluster"

#: After a failed replacement the pool pauses so long, twice as long after the next, and so on.
PAUSE_MIN: Final = timedelta(minutes=1)
PAUSE_MAX: Final = timedelta(minutes=30)


class Patient(msgspec.Struct, frozen=True):
    """A sick node, and what its disruption would depend on beside its pool."""

    drain: DrainView
    #: Claims that were launched in its stead.
    replacements: tuple[str, ...] = ()


class Ward(msgspec.Struct, frozen=True, kw_only=True):
    """A pool with sick nodes."""

    pool: NodePool
    health: HealthView
    fleet: PoolFleet
    #: By claim name.
    patients: Mapping[str, Patient]
    #: Until when nothing is replaced, and because of which claim.
    pauses: tuple[tuple[datetime, str], ...] = ()


class DisruptionView(msgspec.Struct, frozen=True, kw_only=True):
    wards: tuple[Ward, ...]
    market: Market


class DisruptionDecider:
    concern = Concern.DISRUPTION

    def __init__(self, protection_clock: str = CREATION) -> None:
        self._rooms = Rooms()
        self._protection_clock = protection_clock

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return (CLUSTER,)

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource in _WATCHED or (
            (change.resource.group, change.resource.kind) in snapshot.ours
        ):
            yield CLUSTER

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return (CLUSTER,) if subject.kind in ("NodeClass", NODE_CLAIMS.kind) else ()

    def view(self, snapshot: Snapshot, key: str) -> DisruptionView | None:
        wards = tuple(_wards(snapshot))
        if not wards:
            return None  # The usual case, and it must stay cheap.
        market = market_of(snapshot, self._rooms, self._protection_clock)
        return DisruptionView(wards=wards, market=market)

    def decide(self, view: DisruptionView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        found = list(_Pass(view, settings, now).verdicts())
        return sorted(found, key=lambda verdict: verdict.subject)


_WATCHED: Final = frozenset(
    {PODS, NODES, NODE_CLAIMS, NODE_POOLS, DAEMON_SETS, POD_DISRUPTION_BUDGETS}
)


# -- what there is to judge ----------------------------------------------------------------


def _wards(snapshot: Snapshot) -> Iterator[Ward]:
    pools = {node.labels.get(names.NODEPOOL, "") for node in snapshot.unwell_nodes().values()}
    bounded = (c for c in snapshot.new_claims().values() if initialization_ttl(c) is not None)
    pools |= {claim.pool_name for claim in bounded}  # Ready, and all the same not at work in time.
    for name in sorted(pools & snapshot.pools.keys()):
        health = health_of(name, snapshot)
        patients = [m for m in health.members if _is_patient(m, health.rules)] if health else []
        if health is None or not patients:
            continue
        standing_in = _standing_in(snapshot)
        yield Ward(
            pool=snapshot.pools[name],
            health=health,
            fleet=fleet_of(name, snapshot),
            patients={
                member.claim.name: Patient(
                    drain_until(member.nodes[0], None, snapshot),
                    standing_in.get(member.claim.uid, ()),
                )
                for member in patients
            },
            pauses=tuple(_pauses(snapshot.claims_of_pool(name))),
        )


def _is_patient(member: Member, rules: Rules) -> bool:
    """Whether it may become a candidate, if it is not one already, as long as nothing changes."""
    claim, node = member.claim, member.node
    if node is None or not claim.registered or claim.deleting or is_replaced(claim):
        return False
    if not was_ready(claim, node):
        # Until then its TTL stands for every policy on Ready, and that ends by force.
        return any(_needs_care(i) for i in illnesses(node, rules) if i.condition.type != "Ready")
    with_care = rules.repair is None or rules.repair.termination_mode != FORCEFUL
    late = not claim.initialized and initialization_ttl(claim) is not None and with_care
    return late or any(map(_needs_care, illnesses(node, rules)))


def _needs_care(illness: Illness) -> bool:
    by_force = illness.mode == FORCEFUL and illness.action is not RepairAction.REBOOT
    return illness.counts and not by_force


def _standing_in(snapshot: Snapshot) -> dict[str, tuple[str, ...]]:
    """By the UID of the claim that goes: who came for it."""
    found: dict[str, tuple[str, ...]] = {}
    for name, claim in sorted(snapshot.claims.items()):
        if names.REPLACES in claim.annotations and not claim.deleting:
            for uid in claim.annotations[names.REPLACES].split(","):
                found[uid] = (*found.get(uid, ()), name)
    return found


def _pauses(claims: Mapping[str, NodeClaim]) -> Iterator[tuple[datetime, str]]:
    for name, claim in sorted(claims.items()):
        failures = failures_of(claim)
        if failures.at is not None and not claim.deleting:
            pause = min(PAUSE_MIN * 2 ** min(max(failures.times - 1, 0), 10), PAUSE_MAX)
            yield later(failures.at, pause), name


# -- one look ------------------------------------------------------------------------------


class _Pass:
    def __init__(self, view: DisruptionView, settings: Settings, now: datetime) -> None:
        self._view, self._settings, self._now = view, settings, now
        #: By pool: how many have been let go in this look.
        self._started: dict[str, int] = {}
        #: Whose replacement is being planned.
        self._planned = ""

    def verdicts(self) -> Iterator[Verdict]:
        found: list[tuple[Ward, Candidate]] = []
        for ward in self._view.wards:
            found += [(ward, one) for one in self._candidates(ward) if self._is_here(ward, one)]
            yield self._of_pool(ward)
        for ward, candidate in sorted(found, key=lambda pair: _order(*pair)):
            yield from self._of(ward, candidate)

    def _candidates(self, ward: Ward) -> list[Candidate]:
        return Round(ward.health, self._settings, self._now).candidates()

    def _is_here(self, ward: Ward, candidate: Candidate) -> bool:
        return candidate.member.claim.name in ward.patients

    def _of_pool(self, ward: Ward) -> Verdict:
        """When any of its nodes may become a candidate, or cease to be one."""
        judged = Round(ward.health, self._settings, self._now).verdicts()
        recheck_at = min((v.recheck_at for v in judged if v.recheck_at), default=None)
        sick = ", ".join(sorted(ward.patients))
        return _say(
            ward.pool,
            Reason.DISRUPTION_WATCHED,
            f"looked at for repair with care: {sick}",
            recheck_at=recheck_at,
        )

    def _of(self, ward: Ward, candidate: Candidate) -> Iterator[Verdict]:
        claim = candidate.member.claim
        patient = ward.patients[claim.name]
        verdict = self._pause(ward, candidate)
        if not candidate.cause.forceful:
            verdict = verdict or self._budget(ward, candidate)
            verdict = verdict or self._obstacles(patient, candidate)
        if verdict is None and candidate.cause.action is RepairAction.REBOOT:
            verdict = self._reboot(candidate)
        if verdict is None and self._planned:
            message = f"{candidate.cause.message}; {self._planned} comes first"
            verdict = _say(claim, Reason.DISRUPTION_WAITS, message)
        if verdict is not None:
            yield from _both(verdict, candidate.node)
            return
        yield from self._exchange(patient, candidate)

    # -- what holds it -----------------------------------------------------------------

    def _pause(self, ward: Ward, candidate: Candidate) -> Verdict | None:
        until, name = max(ward.pauses, default=(self._now, ""))
        if until <= self._now:
            return None
        what = f"the replacement of {name} has failed, and the pool pauses until"
        return _say(
            candidate.member.claim,
            Reason.DISRUPTION_WAITS,
            f"{candidate.cause.message}; {what} {format_time(until)}",
            recheck_at=until,
        )

    def _budget(self, ward: Ward, candidate: Candidate) -> Verdict | None:
        if not candidate.member.claim.initialized:
            return None  # It neither needs nor uses one.
        pool = ward.pool.name
        found = allowance(ward.pool, Disruption.UNHEALTHY, candidate.node, ward.fleet, self._now)
        if found.allowed > self._started.get(pool, 0):
            return None
        why = found.why if found.allowed == 0 else f"{found.why}; others go first"
        return self._blocked(candidate, why, recheck_at=found.changes_at)

    def _obstacles(self, patient: Patient, candidate: Candidate) -> Verdict | None:
        claim, cause = candidate.member.claim, candidate.cause
        found = obstacles(
            Disruption.UNHEALTHY, claim, patient.drain, self._settings, self._now, bound=cause.bound
        )
        if not found:
            return None
        first = f"{found[0].subject}: {found[0].message}"
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        why = f"pods are in its way, and no grace period bounds its drain: {first}{more}"
        until = min((one.until for one in found if one.until is not None), default=None)
        return self._blocked(candidate, why, blockers=tuple(found), recheck_at=until)

    def _blocked(
        self,
        candidate: Candidate,
        why: str,
        *,
        blockers: tuple[Blocker, ...] = (),
        recheck_at: datetime | None = None,
    ) -> Verdict:
        return _say(
            candidate.member.claim,
            Reason.DISRUPTION_BLOCKED,
            f"{candidate.cause.message}; {why}",
            blockers=blockers,
            recheck_at=recheck_at,
        )

    # -- what is done ------------------------------------------------------------------

    def _count(self, claim: NodeClaim) -> None:
        if claim.initialized:
            self._started[claim.pool_name] = self._started.get(claim.pool_name, 0) + 1

    def _reboot(self, candidate: Candidate) -> Verdict:
        claim, cause = candidate.member.claim, candidate.cause
        self._count(claim)
        bounds = [span for span in (cause.bound, grace_period(claim)) if span is not None]
        bound = timedelta() if cause.forceful else min(bounds, default=None)
        action = commit(claim, bound, cause.message, self._now)
        verdict = _say(claim, Reason.REBOOT_DUE, f"{cause.message}; it is rebooted", action=action)
        if not isinstance(action, Patch) or not action.subresource:
            return verdict
        commits = Commitment(reason="unhealthy", condition=cause.condition, bound=bound)
        return msgspec.structs.replace(verdict, commits=commits)

    def _exchange(self, patient: Patient, candidate: Candidate) -> Iterator[Verdict]:
        claim = candidate.member.claim
        moving = [item.pod for item in patient.drain.pods if is_reschedulable(item.pod)]
        exchange = Exchange(claim, candidate.node, tuple(moving))
        plan = self._view.market.plan(exchange, self._settings, self._now)
        if plan.why:
            reason = Reason.DISRUPTION_WAITS if plan.passing else Reason.DISRUPTION_BLOCKED
            message = f"{candidate.cause.message}; {plan.why}"
            verdict = _say(claim, reason, message, recheck_at=plan.changes_at)
            yield from _both(verdict, candidate.node)
            return
        self._planned = claim.name
        self._count(claim)
        yield from self._replaced(patient, candidate, plan)

    def _replaced(self, patient: Patient, candidate: Candidate, plan: Plan) -> Iterator[Verdict]:
        claim, why = candidate.member.claim, candidate.cause.message
        yield from (
            Verdict(
                concern=Concern.DISRUPTION,
                subject=Subject(NODE_CLAIMS.kind, new.name),
                reason=Reason.NEEDED_AS_REPLACEMENT,
                message=f"stands in for {claim.name}; cheapest fit: {new.described}",
                action=new.create,
                recheck_at=plan.changes_at,
            )
            for new in plan.claims
        )
        if plan.claims:
            awaited = ", ".join(new.name for new in plan.claims)
            message = f"{why}; its pods need {awaited}, which is being created"
            verdict = _say(claim, Reason.REPLACING, message, recheck_at=plan.changes_at)
        else:
            mark = {
                names.REPLACED_BY: ",".join(patient.replacements),
                names.DISRUPTION_REASON: str(Disruption.UNHEALTHY),
                **candidate.marks,
            }
            there = ", ".join(patient.replacements)
            what = f"it is replaced by {there}" if there else "its pods fit elsewhere, so it goes"
            action = patch(claim, {"annotations": mark})
            message = f"{why}; {what}"
            verdict = _say(
                claim, Reason.REPLACING, message, action=action, recheck_at=plan.changes_at
            )
        yield from _both(verdict, candidate.node)


def _order(ward: Ward, candidate: Candidate) -> tuple[float, int, str]:
    pods = ward.patients[candidate.member.claim.name].drain.pods
    return -candidate.cause.urgency, len(pods), candidate.node.name


def _both(verdict: Verdict, node: Node) -> Iterator[Verdict]:
    """Said of the claim, and of its Node."""
    yield verdict
    yield msgspec.structs.replace(verdict, subject=subject_of(node), action=None)


def _say(
    about: NodeClaim | NodePool,
    reason: Reason,
    message: str,
    *,
    action: Action | None = None,
    blockers: tuple[Blocker, ...] = (),
    recheck_at: datetime | None = None,
) -> Verdict:
    return Verdict(
        concern=Concern.DISRUPTION,
        subject=subject_of(about),
        reason=reason,
        message=message,
        blockers=blockers,
        action=action,
        recheck_at=recheck_at,
    )
