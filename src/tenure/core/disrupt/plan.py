"""Plan the disruption of one candidate: from its gates to the mark on its claim.

Of each candidate, the first of these that applies:

1. gates       the first that blocks it, with what blocks and until when. A node that several methods
               want is disrupted by the first of them that no gate blocks;
2. reboot      where that is what it needs: committed on the claim, and ``reboot`` carries it out;
   expiration  with ``expirationPolicy: Always``: the claim is deleted;
3. turn        one replacement is planned at a time, so that no capacity is counted on twice; nodes
               without reschedulable pods need none, and do not wait;
4. capacity    a pod of the node fits nowhere: why not, pool by pool. One of the last gates; the other
               is a window that closes before its replacements can be initialized;
5. launch      its pods need new nodes: their claims are created, each marked as a replacement;
6. record      a budget of the pool counts starts: the start is recorded there before it happens;
7. commit      everything its pods need exists: the claim is marked with its replacements.

The plan is made again until it is committed, and counts what exists: so a crash between any two
of these writes loses nothing and doubles nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec

from tenure.core.decision import CommandCount, Concern, Decision, Ground, Patch, Verdict
from tenure.core.disrupt.candidates import NodeFacts, PoolCandidates
from tenure.core.disrupt.facts import (
    CommandTakenOver,
    NoReschedulablePods,
    PlannedFirst,
    PlannedLater,
    PodsFitElsewhere,
    RebootCommitted,
    ReplacedBy,
    ReplacementsCreated,
    StartRecorded,
    StartRefused,
    TerminatingWithin,
)
from tenure.core.disrupt.method import Candidate, Method
from tenure.core.disrupt.passes import Pass, launched, with_plan
from tenure.core.disrupt.replacements import comes_up
from tenure.core.disrupt.simulate import LeavingNode, Plan, leaving_node
from tenure.core.facts import Fact, RetriedAt, sentence
from tenure.core.gates.facts import StartsUnreadable
from tenure.core.gates.gates import (
    ASKED,
    COUNTS_STARTED,
    LAST,
    Blocked,
    Gate,
    GateFacts,
    Operation,
    changes_at,
    first_blocked,
)
from tenure.core.gates.velocity import fresh_until
from tenure.core.marks.command import begin, reason_of, take_over
from tenure.core.marks.deadline import grace_period
from tenure.core.marks.reboot import commit
from tenure.core.marks.starts import has_velocity, new_start, recorded_at, room_for
from tenure.core.provision.demand import is_reschedulable
from tenure.core.reasons import Reason
from tenure.core.verdicts import also_of, no_later, say
from tenure.core.writes import as_evaluated, delete_claim, subject_of
from tenure.model.api.meta import later
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import DisruptionStart

#: What takes over a command that was begun for another reason.
_TAKE_OVER: Final = frozenset(
    {Operation.EXPIRATION, Operation.GRACEFUL_REPAIR, Operation.GRACEFUL_TIMEOUT}
)
_REBOOTS: Final = frozenset({Operation.REBOOT, Operation.FORCEFUL_REBOOT})

#: Asked of every candidate, so that its verdict says what blocks it.
_BEFORE_PLAN: Final = frozenset(Gate) - LAST

#: So many of the most urgent are planned in each pass, and as many of the others.
FIRST: Final = 8

_say = partial(say, Concern.DISRUPTION)


class PlanningQuota:
    """Which candidates are planned in this minute: a plan reads every node, and the loop must not stop.

    The first few always, of the others a few at a time, minute by minute.
    """

    def __init__(self, count: int, now: datetime) -> None:
        minute = now.replace(second=0, microsecond=0)
        groups = max(1, -(-(count - FIRST) // FIRST))
        group = int(minute.timestamp()) // 60 % groups
        #: The first of those that have their turn in this minute.
        self.turn: Final = FIRST * (1 + group)
        self.next_at: Final = later(minute, timedelta(minutes=1))

    def has(self, index: int) -> bool:
        return index < FIRST or self.turn <= index < self.turn + FIRST


def places_in_quota(pools: Iterable[str]) -> list[int]:
    """Of candidates of these pools: the first of each pool come before the second of any.

    Else a pool whose plans come to nothing, for want of capacity, would delay all others.
    """
    before: Counter[str] = Counter()
    ranked: list[tuple[int, int]] = []
    for index, pool in enumerate(pools):
        ranked.append((before[pool], index))
        before[pool] += 1
    places = [0] * len(ranked)
    for place, (_, index) in enumerate(sorted(ranked)):
        places[index] = place
    return places


class Wanted(msgspec.Struct, frozen=True):
    """A candidate, and what its disruption depends on."""

    method: Method
    candidate: Candidate
    pool: PoolCandidates
    #: The index of the method in the list.
    order: int
    #: The same node, as later methods want it.
    others: tuple[Wanted, ...] = ()

    @property
    def claim(self) -> NodeClaim:
        return self.candidate.claim

    @property
    def facts(self) -> NodeFacts:
        return self.pool.nodes[self.claim.name]

    @property
    def sort_key(self) -> tuple[bool, int, float, int, str]:
        """A node whose replacements exist comes first: they were launched before a crash."""
        facts, node = self.facts, self.candidate.node
        pods, launched_ = facts.drain.pods, bool(facts.replacements)
        return not launched_, self.order, -self.candidate.rank, len(pods), node.name


class Planner:
    """All candidates of one pass, one after the other."""

    def __init__(self, shared: Pass) -> None:
        self._shared = shared
        self._settings, self._now = shared.settings, shared.now
        #: By pool: how many disruptions have been started in this pass.
        self._started: Counter[str] = Counter()
        #: Those of them whose start is recorded.
        self._started_recorded: Counter[str] = Counter()
        #: The claim whose replacement is being planned.
        self._planned = ""
        #: By pool: starts that have to be recorded before they are committed.
        self.starts: dict[str, list[DisruptionStart]] = {}
        #: By pool: when a command under way may be taken over that may not now.
        self.look_again: dict[str, datetime] = {}
        #: By claim: when the first of the gates that block it may let it pass.
        self._opens_at: dict[str, datetime] = {}

    def verdicts(self, wanted: Iterable[Wanted]) -> Iterator[tuple[Wanted, Sequence[Verdict]]]:
        """On each candidate, the most urgent first.

        Those that a gate blocks take no share of the quota: a pool that is blocked must not delay
        another. A gate that blocks before anything is started still does so afterwards.
        """
        free: list[tuple[Wanted, Wanted, Sequence[Verdict]]] = []
        for one in sorted(wanted, key=lambda one: one.sort_key):
            way, blocked = self._first_way(one)
            if way is None:
                yield one, tuple(self._all_blocked(one, blocked))
            else:
                free.append((one, way, blocked))
        quota, before = PlanningQuota(len(free), self._now), self._started.copy()
        places = places_in_quota(one.pool.pool.name for one, _, _ in free)
        for place, (one, way, blocked) in zip(places, free, strict=True):
            found: tuple[Wanted | None, Sequence[Verdict]] = way, blocked
            if self._started[one.pool.pool.name] != before[one.pool.pool.name]:
                found = self._first_way(one, passed=way)
            yield one, tuple(self._of_free(one, *found, quota, place))

    def _first_way(
        self, one: Wanted, passed: Wanted | None = None
    ) -> tuple[Wanted | None, Sequence[Verdict]]:
        """The first method that no gate blocks, and what blocks those before it.

        ``passed``: no gate blocked it before something was started in its pool.
        """
        blocked: list[Verdict] = []
        for way in (one, *one.others):
            verdict = self._gated(
                way, _BEFORE_PLAN & COUNTS_STARTED if way is passed else _BEFORE_PLAN
            )
            if verdict is None:
                return way, blocked
            blocked.append(verdict)
        return None, blocked

    def _all_blocked(self, one: Wanted, blocked: Sequence[Verdict]) -> Iterator[Verdict]:
        verdict = no_later(blocked[0], *(other.recheck_at for other in blocked))
        yield from (verdict, also_of(one.candidate.node, verdict))

    def _of_free(
        self,
        one: Wanted,
        way: Wanted | None,
        blocked: Sequence[Verdict],
        quota: PlanningQuota,
        index: int,
    ) -> Iterator[Verdict]:
        if way is None:
            yield from self._all_blocked(one, blocked)
            return
        instants = [other.recheck_at for other in blocked]
        for said in self._unblocked(way, quota, index):
            yield no_later(said, *instants)

    def _unblocked(self, one: Wanted, quota: PlanningQuota, index: int) -> Iterator[Verdict]:
        candidate, verdict = one.candidate, self._refused(one) or self._record_full(one)
        if verdict is not None:
            pass  # Its plan would keep others waiting, and come to nothing.
        elif candidate.operation in _REBOOTS:
            verdict = self._reboot(one)
        elif candidate.operation is Operation.EXPIRATION:
            verdict = self._expire(one)
        elif self._planned and self._has_to_move_pods(one):
            facts = (*candidate.why, PlannedFirst(self._planned))
            verdict = _say(one.claim, Reason.DISRUPTION_WAITS, *facts)
        elif not quota.has(index) and self._has_to_move_pods(one):
            at = quota.next_at
            later_ = (*candidate.why, PlannedLater(at))
            verdict = _say(one.claim, Reason.DISRUPTION_WAITS, *later_, recheck_at=at)
        if verdict is not None:
            yield from (verdict, also_of(candidate.node, verdict))
            return
        yield from self._command(one, *self._leaving(one))

    def _has_to_move_pods(self, one: Wanted) -> bool:
        return any(is_reschedulable(item.pod) for item in one.facts.drain.pods)

    def _leaving(self, one: Wanted) -> tuple[LeavingNode, list[NodeClaim]]:
        """With its replacements that exist, and come up."""
        came = [(new, room) for new, room in one.facts.replacements if comes_up(new, self._now)]
        pods = (item.pod for item in one.facts.drain.pods)
        node = one.candidate.node
        leaving = leaving_node(one.claim, node, pods, (room for _, room in came))
        return leaving, [new for new, _ in came]

    @property
    def has_planned(self) -> bool:
        """Whether pods of a node were planned for in this pass: they may count on any capacity."""
        return bool(self._planned)

    # -- commands under way that go on for another reason -------------------------------

    def taken_over(self, begun: Iterable[Wanted]) -> dict[str, Sequence[Verdict]]:
        """By claim, whose commands wait for what other reasons do not: repair, and expiration that
        waits for nothing."""
        found: dict[str, Sequence[Verdict]] = {}
        for one in sorted(begun, key=lambda one: one.sort_key):
            for way in (one, *one.others):
                if (verdict := self._taken_over(way)) is not None:
                    found[one.claim.name] = verdict, also_of(way.candidate.node, verdict)
                    break
        return found

    def _taken_over(self, one: Wanted) -> Verdict | None:
        claim, candidate, reason = one.claim, one.candidate, one.method.traits.reason
        if candidate.operation not in _TAKE_OVER:
            return None
        facts = self._facts(one)
        fleet = one.pool.fleet.before_terminating(candidate.node.name)
        facts = msgspec.structs.replace(facts, fleet=fleet)
        operation = candidate.operation
        blocked = first_blocked(operation, facts, self._settings, self._now, only=_BEFORE_PLAN)
        if blocked is not None:
            self._look_again(one, blocked.recheck_at)
            return None
        if operation is Operation.EXPIRATION:
            return self._expire(one)
        why = (*candidate.why, CommandTakenOver(reason_of(claim)))
        action = take_over(claim, reason, candidate.marks)
        at = changes_at(operation, facts, self._now)
        return _say(claim, Reason.REPLACING, *why, action=action, recheck_at=at)

    def _look_again(self, one: Wanted, at: datetime | None) -> None:
        """Something else is said of its claim: so its pool is evaluated again then."""
        if at is not None:
            name = one.pool.pool.name
            self.look_again[name] = min(at, self.look_again.get(name, at))

    # -- the gates, for the first time -------------------------------------------------

    def _gated(self, one: Wanted, only: frozenset[Gate]) -> Verdict | None:
        return self._first_blocked(one, self._facts(one), only)

    def _first_blocked(
        self, one: Wanted, facts: GateFacts, only: frozenset[Gate]
    ) -> Verdict | None:
        operation = one.candidate.operation
        blocked = first_blocked(operation, facts, self._settings, self._now, only=only)
        return self._blocked(one, blocked) if blocked is not None else None

    def _facts(self, one: Wanted) -> GateFacts:
        candidate, pool = one.candidate, one.pool
        known = candidate.gates or GateFacts(claim=one.claim, node=candidate.node)
        return msgspec.structs.replace(
            known,
            pool=pool.pool,
            windows=pool.windows,
            pauses=pool.pauses,
            traits=one.method.traits,
            fleet=pool.fleet,
            started=self._started[pool.pool.name],
            recorded=self._started_recorded[pool.pool.name],
            drain=one.facts.drain,
            bound=candidate.bound,
        )

    def next_chance(self, verdict: Verdict) -> datetime | None:
        """When what a candidate waits for may be over although nothing changes."""
        return self._opens_at.get(verdict.subject.name) if verdict.gate else verdict.recheck_at

    def _blocked(self, one: Wanted, blocked: Blocked) -> Verdict:
        name, until = one.claim.name, blocked.until
        if until is not None:
            self._opens_at[name] = min(until, self._opens_at.get(name, until))
        return _say(
            one.claim,
            blocked.reason,
            *one.candidate.why,
            *blocked.facts,
            blockers=blocked.blockers,
            recheck_at=blocked.recheck_at,
            gate=blocked.gate,
        )

    # -- what is done ------------------------------------------------------------------

    def _count(self, one: Wanted) -> None:
        claim, pool = one.claim, one.pool.pool
        if claim.initialized:
            self._started[pool.name] += 1
            self._started_recorded[pool.name] += recorded_at(pool, claim, self._now) is not None

    def _refused(self, one: Wanted) -> Verdict | None:
        """Waits after a refused write: a mark of its own, or the record of its start."""
        claim, node, pool = one.claim, one.candidate.node, one.pool.pool
        for written in (claim, node, pool) if self._needs_record(one) else (claim, node):
            refusal = one.pool.refused.get(written.uid)
            if refusal is not None and self._now < refusal.retry_at:
                subject = subject_of(written)
                why = StartRefused(subject.kind, subject.name, refusal.message)
                facts = (*one.candidate.why, why, RetriedAt(refusal.retry_at))
                at = refusal.retry_at
                return _say(claim, Reason.DISRUPTION_WAITS, *facts, recheck_at=at)
        return None

    def _record_full(self, one: Wanted) -> Verdict | None:
        pool = one.pool.pool
        recorded = len(self.starts.get(pool.name, ()))
        if not self._needs_record(one) or recorded < room_for(pool):
            return None
        at = changes_at(one.candidate.operation, self._facts(one), self._now)
        blocked = Blocked(
            gate=Gate.BUDGET,
            reason=Reason.DISRUPTION_BLOCKED,
            facts=(StartsUnreadable(pool.name),),
            until=at,
            recheck_at=at,
        )
        return self._blocked(one, blocked)

    def _needs_record(self, one: Wanted) -> bool:
        claim, pool = one.claim, one.pool.pool
        paced = Gate.BUDGET in ASKED[one.candidate.operation] and claim.initialized
        return paced and has_velocity(pool) and recorded_at(pool, claim, self._now) is None

    def _recorded(self, one: Wanted) -> Verdict | None:
        """Waits for the record of its start, if a budget needs one and it is not there."""
        claim, pool, candidate = one.claim, one.pool.pool, one.candidate
        if not self._needs_record(one):
            return None
        reason = one.method.traits.reason
        start = new_start(pool, claim, reason, candidate.node.labels)
        self.starts.setdefault(pool.name, []).append(start)
        facts = (*candidate.why, StartRecorded(pool.name))
        return _say(claim, Reason.REPLACING, *facts)

    def _reboot(self, one: Wanted) -> Verdict:
        claim, candidate = one.claim, one.candidate
        self._count(one)
        if (verdict := self._recorded(one)) is not None:
            return msgspec.structs.replace(verdict, reason=Reason.REBOOT_DUE)
        bounds = [span for span in (candidate.bound, grace_period(claim)) if span is not None]
        forceful = candidate.operation is Operation.FORCEFUL_REBOOT
        bound = timedelta() if forceful else min(bounds, default=None)
        why = sentence(candidate.why)
        action = commit(claim, bound, one.method.traits.reason, why, self._now)
        if isinstance(action, Patch):
            action = msgspec.structs.replace(action, begins=True)
        facts = (*candidate.why, RebootCommitted(candidate.node.name))
        fresh = fresh_until(one.pool.pool, claim, self._now)
        verdict = _say(claim, Reason.REBOOT_DUE, *facts, action=action, recheck_at=fresh)
        if not isinstance(action, Patch) or not action.subresource or candidate.commits is None:
            return verdict
        commits = msgspec.structs.replace(candidate.commits, bound=bound)
        command = CommandCount(reason=one.method.traits.reason, decision=Decision.REBOOT)
        return msgspec.structs.replace(verdict, commits=commits, command=command)

    def _expire(self, one: Wanted) -> Verdict:
        claim, candidate = one.claim, one.candidate
        self._count(one)
        action = delete_claim(claim, Ground.EXPIRED)
        action = msgspec.structs.replace(action, precondition=as_evaluated(candidate.node))
        facts = (*candidate.why, TerminatingWithin(grace_period(claim)))
        verdict = _say(claim, Reason.EXPIRATION_FORCED, *facts, action=action)
        verdict = msgspec.structs.replace(verdict, commits=candidate.commits)
        return no_later(verdict, changes_at(candidate.operation, self._facts(one), self._now))

    def _command(
        self, one: Wanted, leaving: LeavingNode, came: Sequence[NodeClaim]
    ) -> Iterator[Verdict]:
        claim, candidate = one.claim, one.candidate
        if one.method.traits.voluntary and not leaving.pods:
            came = ()  # It waits for no replacement that was launched before its pods left.
        plan = self._plan(one, leaving)
        launches = self._shared.simulation.launches(plan, came)
        facts = with_plan(self._facts(one), plan, launches)
        verdict = self._first_blocked(one, facts, LAST)
        if verdict is not None:
            yield from (verdict, also_of(candidate.node, verdict))
            return
        if leaving.pods:
            self._planned = claim.name
            self._shared.reservations.counted_on |= plan.counts_on
        else:
            self._shared.reservations.given_up.add(leaving.node.name)
        self._count(one)
        recheck_at = changes_at(candidate.operation, facts, self._now)
        for new in launched(plan, claim.name, one.method.traits.reason):
            yield no_later(new, recheck_at)
        if plan.claims:
            created = ReplacementsCreated(tuple(new.name for new in plan.claims))
            why = (*candidate.why, created)
            verdict = _say(claim, Reason.REPLACING, *why, recheck_at=plan.changes_at)
        else:
            verdict = self._recorded(one)
            if verdict is None:
                verdict = self._marked(one, [new.name for new in came], leaving)
            fresh = fresh_until(one.pool.pool, claim, self._now)
            verdict = no_later(verdict, plan.changes_at, fresh)
        verdict = no_later(verdict, recheck_at)
        yield from (verdict, also_of(candidate.node, verdict))

    def _plan(self, one: Wanted, leaving: LeavingNode) -> Plan:
        traits = one.method.traits
        if traits.voluntary and not leaving.pods:
            return self._shared.simulation.plan_empty(
                leaving.node.name, self._settings, self._now, self._shared.reservations
            )
        if not traits.needs_replacement:
            return Plan()
        return self._shared.simulation.plan(
            leaving, self._settings, self._now, reservations=self._shared.reservations
        )

    def _marked(self, one: Wanted, came: Sequence[str], leaving: LeavingNode) -> Verdict:
        candidate = one.candidate
        what: tuple[Fact, ...] = (ReplacedBy(tuple(came)),)
        if one.method.traits.only_empty:
            what = ()  # It says already that there are no pods.
        elif not came:
            what = (PodsFitElsewhere() if leaving.pods else NoReschedulablePods(),)
        reason = one.method.traits.reason
        verdict = _say(
            candidate.claim,
            Reason.REPLACING,
            *candidate.why,
            *what,
            action=begin(candidate.claim, came, reason, candidate.marks),
        )
        decision = Decision.REPLACE if came else Decision.DELETE
        return msgspec.structs.replace(
            verdict, command=CommandCount(reason=reason, decision=decision)
        )
