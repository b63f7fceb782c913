"""Decide which nodes are disrupted now, and what has to be there first.

One way for every method (``methods``): candidates → gates → plan → launch replacements → mark. From
there ``orchestrate`` waits until the replacements are initialized, and ``execute`` terminates.
Candidates in the order of the methods, then of their rank; of each, the first of these that applies:

1. gates       the first that blocks it, with what blocks and until when;
2. reboot      where that is what it needs: committed on the claim, and ``reboot`` carries it out;
3. turn        one replacement is planned at a time, so that no capacity is counted on twice;
4. capacity    a pod of the node fits nowhere: why not, pool by pool. The last of the gates;
5. launch      its pods need new nodes: their claims are created, each marked as a replacement;
6. commit      everything its pods need exists: the claim is marked with its replacements.

The plan is made again until it is committed, and counts what exists: so a crash between any two
of these writes loses nothing and doubles nothing. Every pool with nodes that a method watches has
one verdict, too, that says when to evaluate it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec

from tenure.core.decision import Concern, Patch, Subject, Verdict
from tenure.core.disrupt.candidates import NodeFacts, PoolCandidates, candidates_in
from tenure.core.disrupt.command import begin
from tenure.core.disrupt.execute import (
    Pass,
    Ready,
    ReadyPool,
    Release,
    launched,
    pools_of,
    ready_commands,
)
from tenure.core.disrupt.gates import (
    PAUSE_MAX,
    Blocked,
    GateFacts,
    Operation,
    first_blocked,
    without_capacity,
)
from tenure.core.disrupt.method import Candidate, Due, Method, Methods, Watch
from tenure.core.disrupt.methods import METHODS
from tenure.core.disrupt.replacements import comes_up
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

_REBOOTS: Final = frozenset({Operation.REBOOT, Operation.FORCEFUL_REBOOT})

#: So many of the most urgent are planned in each pass, and as many of the others.
FIRST: Final = 8

_say = partial(say, Concern.DISRUPTION)


class DisruptionView(msgspec.Struct, frozen=True, kw_only=True):
    pools: tuple[PoolCandidates, ...]
    ready: tuple[Ready, ...]
    #: The pools of those, by name.
    ready_pools: Mapping[str, ReadyPool]
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
        return DisruptionView(
            pools=pools,
            ready=ready,
            ready_pools=pools_of(ready, self._methods, snapshot),
            simulation=simulation,
        )

    def decide(self, view: DisruptionView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        found = list(_Pass(view, self._methods, settings, now).verdicts())
        return sorted(found, key=lambda verdict: verdict.subject)


def may_wait(change: Change) -> bool:
    """Pods and Nodes change by the hundred; a claim is what commands are written on."""
    return change.resource in (PODS, NODES)


class Turns:
    """Which candidates are planned in this minute: a plan reads every node, and the loop must not stop.

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
    #: The index of the method in the list.
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
        shared = Pass(
            methods=self._methods,
            simulation=self._view.simulation,
            settings=self._settings,
            now=self._now,
            reservations=self._reservations,
            started={},
        )
        for place, ready in enumerate(self._view.ready):
            release = Release(ready, self._view.ready_pools, shared)
            yield from release.verdicts() if turns.has(place) else release.waits(turns.next_at)

    def _of(self, one: _Wanted, place: int) -> Iterator[Verdict]:
        candidate, verdict = one.candidate, self._gated(one)
        if verdict is None and candidate.operation in _REBOOTS:
            verdict = self._reboot(one)
        if verdict is None and self._planned:
            message = f"{candidate.why}; {self._planned} comes first"
            verdict = _say(one.claim, Reason.DISRUPTION_WAITS, message)
        if verdict is None and not self._turns.has(place):
            at = self._turns.next_at
            message = f"{candidate.why}; others are planned now, and more of them from "
            message += format_time(at)
            verdict = _say(one.claim, Reason.DISRUPTION_WAITS, message, recheck_at=at)
        if verdict is not None:
            yield from (verdict, also_of(candidate.node, verdict))
            return
        yield from self._command(one)

    # -- the gates, for the first time -------------------------------------------------

    def _gated(self, one: _Wanted) -> Verdict | None:
        operation, facts = one.candidate.operation, self._facts(one)
        blocked = first_blocked(operation, facts, self._settings, self._now)
        return self._blocked(one, blocked) if blocked is not None else None

    def _facts(self, one: _Wanted, plan: Plan | None = None) -> GateFacts:
        candidate, pool = one.candidate, one.pool
        known = candidate.gates or GateFacts(claim=one.claim, node=candidate.node)
        return msgspec.structs.replace(
            known,
            pool=pool.pool,
            pauses=pool.pauses,
            traits=one.method.traits,
            fleet=pool.fleet,
            started=self._started.get(pool.pool.name, 0),
            drain=one.facts.drain,
            bound=candidate.bound,
            unplaced=plan.why if plan is not None else "",
            passing=plan is not None and plan.passing,
            replan_at=plan.changes_at if plan is not None else None,
        )

    def _blocked(self, one: _Wanted, blocked: Blocked) -> Verdict:
        return _say(
            one.claim,
            blocked.reason,
            f"{one.candidate.why}; {blocked.why}",
            blockers=blocked.blockers,
            recheck_at=blocked.until,
        )

    # -- what is done ------------------------------------------------------------------

    def _count(self, claim: NodeClaim) -> None:
        if claim.initialized:
            self._started[claim.pool_name] = self._started.get(claim.pool_name, 0) + 1

    def _reboot(self, one: _Wanted) -> Verdict:
        claim, candidate = one.claim, one.candidate
        self._count(claim)
        bounds = [span for span in (candidate.bound, grace_period(claim)) if span is not None]
        forceful = candidate.operation is Operation.FORCEFUL_REBOOT
        bound = timedelta() if forceful else min(bounds, default=None)
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
        facts_with_plan = self._facts(one, plan)
        blocked = without_capacity(facts_with_plan, self._settings, self._now)
        if blocked is not None:
            verdict = self._blocked(one, blocked)
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
            what = "its pods fit on other Nodes" if leaving.pods else "no reschedulable pods"
        return _say(
            candidate.claim,
            Reason.REPLACING,
            f"{candidate.why}; {what}",
            action=begin(candidate.claim, came, one.method.traits.reason, candidate.marks),
            recheck_at=plan.changes_at,
        )
