"""Decide which nodes are disrupted now, and what has to be there first.

One way for every method (``methods``): candidates → gates → plan → launch replacements → mark. From
there ``orchestrate`` waits until the replacements are initialized, and ``execute`` terminates.
Candidates in the order of the methods, then of their rank; of each, the first of these that applies:

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
of these writes loses nothing and doubles nothing. Once all that was launched for it is there, the
same look says whether its pods still have their places, and lets it go (``releasing``). Every pool
with a sick node has one verdict, too, that says when to look again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec

from tenure.core.decision import Blocker, Concern, Patch, Subject, Verdict
from tenure.core.disrupt.blockers import in_the_way, obstacles
from tenure.core.disrupt.budgets import allowance
from tenure.core.disrupt.candidates import NodeFacts, PoolCandidates, candidates_in
from tenure.core.disrupt.command import begin
from tenure.core.disrupt.execute import Ready, Release, launched, ready_commands
from tenure.core.disrupt.method import Candidate, Due, Method, Methods, Watch
from tenure.core.disrupt.methods import METHODS
from tenure.core.disrupt.replacements import PAUSE_MAX, comes_up
from tenure.core.disrupt.simulate import (
    LeavingNode,
    Plan,
    Reservations,
    Simulation,
    leaving_node,
    simulation_in,
)
from tenure.core.protect.protection import CREATION
from tenure.core.provision.nodecache import Rooms
from tenure.core.provision.placement import CLUSTER, moves_places, tells_of_places
from tenure.core.reasons import Reason
from tenure.core.reboot.history import commit
from tenure.core.terminate.deadline import grace_period
from tenure.core.verdicts import also_of, say
from tenure.model.api.meta import earlier, format_time, later
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import (
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
)
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot

#: So many of the most urgent are planned for at each look, and as many of the others.
FIRST: Final = 8

_say = partial(say, Concern.DISRUPTION)


class DisruptionView(msgspec.Struct, frozen=True, kw_only=True):
    pools: tuple[PoolCandidates, ...]
    ready: tuple[Ready, ...]
    simulation: Simulation


class DisruptionDecider:
    concern = Concern.DISRUPTION

    def __init__(self, protection_clock: str = CREATION, methods: Methods = METHODS) -> None:
        self._methods = methods
        self._rooms = Rooms()
        self._protection_clock = protection_clock

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return (CLUSTER,)

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        budgets = change.resource == POD_DISRUPTION_BUDGETS
        return (CLUSTER,) if budgets or moves_places(change, snapshot) else ()

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return (CLUSTER,) if tells_of_places(subject) else ()

    def view(self, snapshot: Snapshot, key: str) -> DisruptionView | None:
        pools = tuple(candidates_in(self._methods, snapshot))
        ready = tuple(ready_commands(self._methods, snapshot))
        if not pools and not ready:
            return None  # The usual case, and it must stay cheap.
        simulation = simulation_in(snapshot, self._rooms, self._protection_clock)
        return DisruptionView(pools=pools, ready=ready, simulation=simulation)

    def decide(self, view: DisruptionView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        found = list(_Pass(view, self._methods, settings, now).verdicts())
        return sorted(found, key=lambda verdict: verdict.subject)


def may_wait(change: Change) -> bool:
    """Pods and nodes come and go by the hundred; a claim is what we write to."""
    return change.resource in (PODS, NODES)


class Turns:
    """Who is planned for in this minute: a plan looks at every node, and the loop must not stop.

    The first few always, of the others a few at a time, minute by minute.
    """

    def __init__(self, count: int, now: datetime) -> None:
        minute = now.replace(second=0, microsecond=0)
        self._groups = max(1, -(-(count - FIRST) // FIRST))
        self._group = int(minute.timestamp()) // 60 % self._groups
        self.next_at: Final = later(minute, timedelta(minutes=1))

    def has(self, place: int) -> bool:
        return place < FIRST or (place - FIRST) // FIRST == self._group


class _Wanted(msgspec.Struct, frozen=True):
    """A candidate, and what its disruption depends on."""

    method: Method
    candidate: Candidate
    pool: PoolCandidates
    #: The place of the method in the list.
    order: int

    @property
    def claim(self) -> NodeClaim:
        return self.candidate.claim

    @property
    def facts(self) -> NodeFacts:
        return self.pool.nodes[self.claim.name]

    @property
    def sort_key(self) -> tuple[int, float, int, str]:
        pods, node = self.facts.drain.pods, self.candidate.node
        return self.order, -self.candidate.rank, len(pods), node.name


class _Pass:
    def __init__(
        self, view: DisruptionView, methods: Methods, settings: Settings, now: datetime
    ) -> None:
        self._view, self._methods = view, methods
        self._settings, self._now = settings, now
        #: By pool: how many disruptions have been started in this pass.
        self._started: dict[str, int] = {}
        #: The claim whose replacement is being planned.
        self._planned = ""
        self._reservations = Reservations()

    def verdicts(self) -> Iterator[Verdict]:
        wanted: list[_Wanted] = []
        for pool in self._view.pools:
            found = {reason: self._due(reason, pool) for reason, _ in pool.watches}
            wanted += self._wanted(pool, found)
            yield self._watched(pool, found)
        yield from self._carried_out()
        self._turns = Turns(len(wanted), self._now)
        for place, one in enumerate(sorted(wanted, key=lambda one: one.sort_key)):
            yield from self._of(one, place)

    def _due(self, reason: str, pool: PoolCandidates) -> Due:
        watch = next(watch for of, watch in pool.watches if of == reason)
        return self._methods.named(reason).candidates(watch, self._settings, self._now)

    def _wanted(self, pool: PoolCandidates, found: Mapping[str, Due]) -> Iterator[_Wanted]:
        taken: set[str] = set()
        for order, method in enumerate(self._methods):
            due = found.get(method.traits.reason, Due())
            for candidate in due.candidates:
                name = candidate.claim.name
                # One with a command under way is still due, and not watched any more.
                if name in pool.nodes and name not in taken:
                    taken.add(name)
                    yield _Wanted(method, candidate, pool, order)

    def _watched(self, pool: PoolCandidates, found: Mapping[str, Due]) -> Verdict:
        """When any of its nodes may become a candidate, or cease to be one."""
        instants = [due.recheck_at for due in found.values()]
        late = later(self._now, PAUSE_MAX)
        instants += [earlier(until, PAUSE_MAX) for until, _ in pool.pauses if until > late]
        return _say(
            pool.pool,
            Reason.DISRUPTION_WATCHED,
            "; ".join(self._watched_words(reason, watch) for reason, watch in pool.watches),
            recheck_at=min((at for at in instants if at is not None), default=None),
        )

    def _watched_words(self, reason: str, watch: Watch) -> str:
        named = ", ".join(sorted(claim.name for claim, _ in watch.nodes))
        count = "1 NodeClaim" if len(watch.nodes) == 1 else f"{len(watch.nodes)} NodeClaims"
        return f"{count} {self._methods.named(reason).watched_as}: {named}"

    def _carried_out(self) -> Iterator[Verdict]:
        turns = Turns(len(self._view.ready), self._now)
        for place, ready in enumerate(self._view.ready):
            release = Release(
                ready,
                self._methods,
                self._view.simulation,
                self._settings,
                self._now,
                self._reservations,
            )
            yield from release.verdicts() if turns.has(place) else release.waits(turns.next_at)

    def _of(self, one: _Wanted, place: int) -> Iterator[Verdict]:
        candidate = one.candidate
        verdict = self._pause(one)
        if not candidate.forceful:
            verdict = verdict or self._budget(one)
            verdict = verdict or self._obstacles(one)
        if verdict is None and candidate.reboot:
            verdict = self._reboot(one)
        if verdict is None and self._planned:
            message = f"{candidate.why}; {self._planned} comes first"
            verdict = _say(one.claim, Reason.DISRUPTION_WAITS, message)
        if verdict is None and not self._turns.has(place):
            at = self._turns.next_at
            message = f"{candidate.why}; others are tried now, and more of them from "
            message += format_time(at)
            verdict = _say(one.claim, Reason.DISRUPTION_WAITS, message, recheck_at=at)
        if verdict is not None:
            yield from (verdict, also_of(candidate.node, verdict))
            return
        yield from self._command(one)

    # -- what holds it -----------------------------------------------------------------

    def _pause(self, one: _Wanted) -> Verdict | None:
        # One that ends later than any pause lasts was not written by Tenure.
        near = [(until, name) for until, name in one.pool.pauses if until - self._now <= PAUSE_MAX]
        until, name = max(near, default=(self._now, ""))
        if until <= self._now:
            return None
        what = f"the replacement of {name} has failed, and the pool pauses until"
        return _say(
            one.claim,
            Reason.DISRUPTION_WAITS,
            f"{one.candidate.why}; {what} {format_time(until)}",
            recheck_at=until,
        )

    def _budget(self, one: _Wanted) -> Verdict | None:
        if not one.claim.initialized:
            return None  # It neither needs nor uses one.
        pool, node = one.pool, one.candidate.node
        found = allowance(pool.pool, one.method.traits, node, pool.fleet, self._now)
        if found.allowed > self._started.get(pool.pool.name, 0):
            return None
        why = found.why if found.allowed == 0 else f"{found.why}; others go first"
        return self._blocked(one, why, recheck_at=found.changes_at)

    def _obstacles(self, one: _Wanted) -> Verdict | None:
        found = obstacles(
            one.method.traits,
            one.claim,
            one.facts.drain,
            self._settings,
            self._now,
            bound=one.candidate.bound,
        )
        if not found:
            return None
        until = min((blocker.until for blocker in found if blocker.until is not None), default=None)
        return self._blocked(one, in_the_way(found), blockers=tuple(found), recheck_at=until)

    def _blocked(
        self,
        one: _Wanted,
        why: str,
        *,
        blockers: tuple[Blocker, ...] = (),
        recheck_at: datetime | None = None,
    ) -> Verdict:
        return _say(
            one.claim,
            Reason.DISRUPTION_BLOCKED,
            f"{one.candidate.why}; {why}",
            blockers=blockers,
            recheck_at=recheck_at,
        )

    # -- what is done ------------------------------------------------------------------

    def _count(self, claim: NodeClaim) -> None:
        if claim.initialized:
            self._started[claim.pool_name] = self._started.get(claim.pool_name, 0) + 1

    def _reboot(self, one: _Wanted) -> Verdict:
        claim, candidate = one.claim, one.candidate
        self._count(claim)
        bounds = [span for span in (candidate.bound, grace_period(claim)) if span is not None]
        bound = timedelta() if candidate.forceful else min(bounds, default=None)
        action = commit(claim, bound, one.method.traits.reason, candidate.why, self._now)
        message = f"{candidate.why}; it is rebooted"
        verdict = _say(claim, Reason.REBOOT_DUE, message, action=action)
        if not isinstance(action, Patch) or not action.subresource or candidate.commits is None:
            return verdict
        commits = msgspec.structs.replace(candidate.commits, bound=bound)
        return msgspec.structs.replace(verdict, commits=commits)

    def _command(self, one: _Wanted) -> Iterator[Verdict]:
        claim, candidate, facts = one.claim, one.candidate, one.facts
        came = [(new, room) for new, room in facts.replacements if comes_up(new, self._now)]
        pods = (item.pod for item in facts.drain.pods)
        leaving = leaving_node(claim, candidate.node, pods, (room for _, room in came))
        plan = self._plan(one, leaving)
        if plan.why:
            reason = Reason.DISRUPTION_WAITS if plan.passing else Reason.DISRUPTION_BLOCKED
            message = f"{candidate.why}; {plan.why}"
            verdict = _say(claim, reason, message, recheck_at=plan.changes_at)
            yield from (verdict, also_of(candidate.node, verdict))
            return
        self._planned = claim.name
        self._count(claim)
        yield from launched(plan, claim.name)
        if plan.claims:
            awaited = ", ".join(new.name for new in plan.claims)
            message = f"{candidate.why}; its pods need {awaited}, which is being created"
            verdict = _say(claim, Reason.REPLACING, message, recheck_at=plan.changes_at)
        else:
            verdict = self._marked(one, [new.name for new, _ in came], leaving, plan)
        yield from (verdict, also_of(candidate.node, verdict))

    def _plan(self, one: _Wanted, leaving: LeavingNode) -> Plan:
        if not one.method.traits.needs_replacement:
            return Plan()
        return self._view.simulation.plan(
            leaving, self._settings, self._now, reservations=self._reservations
        )

    def _marked(
        self, one: _Wanted, came: Sequence[str], leaving: LeavingNode, plan: Plan
    ) -> Verdict:
        candidate = one.candidate
        what = f"it is replaced by {', '.join(came)}"
        if not came:
            what = "its pods fit on other nodes" if leaving.pods else "no reschedulable pods"
        return _say(
            candidate.claim,
            Reason.REPLACING,
            f"{candidate.why}; {what}",
            action=begin(candidate.claim, came, one.method.traits.reason, candidate.marks),
            recheck_at=plan.changes_at,
        )
