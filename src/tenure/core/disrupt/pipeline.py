"""Decide which nodes are disrupted now, and what has to be there first.

One way for every method (``methods``): candidates → gates → plan → launch replacements → mark. From
there ``orchestrate`` waits until the replacements are initialized, and ``execute`` terminates.
Of two methods that want the same node, the first that no gate blocks has it. Candidates are planned
in the order of the methods, then of their rank (``planning``). Replacements without a command are removed
(``leftover``). Every pool with nodes that a method watches has one verdict, too, that says when to
evaluate it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial

import msgspec

from tenure.core.decider import Progress
from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.disrupt.candidates import PoolCandidates, Unfinished, Wanted, candidates_in
from tenure.core.disrupt.consolidation.destinations import still_going
from tenure.core.disrupt.consolidation.eligible import settling_until
from tenure.core.disrupt.consolidation.subject import PLAN
from tenure.core.disrupt.consolidation.totals import balanced_totals
from tenure.core.disrupt.execute import Execution
from tenure.core.disrupt.facts.groups import CommittedInPart, NotReplacedTogether
from tenure.core.disrupt.facts.planning import CandidatesWait, NodesWatched
from tenure.core.disrupt.leftover import LeftOver, left_over_verdict, left_overs
from tenure.core.disrupt.method import Candidate, Due, Methods, Watch
from tenure.core.disrupt.methods import METHODS
from tenure.core.disrupt.passes import Pass
from tenure.core.disrupt.planning.gating import Gating
from tenure.core.disrupt.planning.plan import Planner
from tenure.core.disrupt.planning.recording import Recording
from tenure.core.disrupt.planning.takeover import taken_over
from tenure.core.disrupt.planning.unfinished import UnfinishedGroup, unfinished_groups
from tenure.core.disrupt.ready import Ready, ReadyPool, pools_of, ready_commands
from tenure.core.disrupt.simulate import Reservations, Simulation
from tenure.core.disrupt.surroundings import IN_CHARGE, Surroundings
from tenure.core.facts import Fact
from tenure.core.gates.gates import PAUSE_MAX
from tenure.core.marks.command import is_replaced
from tenure.core.marks.starts import record
from tenure.core.protect.protection import CREATION
from tenure.core.provision.placement import CLUSTER, affects_capacity, observes_capacity
from tenure.core.reasons import Reason
from tenure.core.verdicts import no_later, say
from tenure.model.api.meta import earlier, later
from tenure.model.api.resource import (
    CRDS,
    DEPLOYMENTS,
    MAINTENANCE_WINDOWS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
)
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import CANDIDATE_CONDITIONS, Change, Snapshot

_say = partial(say, Concern.DISRUPTION)


class DisruptionView(msgspec.Struct, frozen=True, kw_only=True):
    pools: tuple[PoolCandidates, ...]
    #: Each with those of its group.
    ready: tuple[tuple[Ready, ...], ...]
    #: The pools of those, by name.
    ready_pools: Mapping[str, ReadyPool]
    simulation: Simulation
    #: Replacements without a command.
    left_over: tuple[LeftOver, ...] = ()
    #: Commands that are committed on some claims of their group.
    unfinished: tuple[UnfinishedGroup, ...] = ()


class DisruptionDecider:
    concern = Concern.DISRUPTION

    def __init__(
        self,
        protection_clock: str = CREATION,
        methods: Methods = METHODS,
        surroundings: Surroundings = IN_CHARGE,
    ) -> None:
        self._methods, self._surroundings = methods, surroundings
        self._protection_clock = protection_clock

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return (CLUSTER,)

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        gates = change.resource in (POD_DISRUPTION_BUDGETS, MAINTENANCE_WINDOWS, DEPLOYMENTS, CRDS)
        return (CLUSTER,) if gates or affects_capacity(change, snapshot) else ()

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return (CLUSTER,) if subject == PLAN or observes_capacity(subject) else ()

    def preparing(self, snapshot: Snapshot, key: str) -> Iterator[None]:
        """Where there may be candidates or commands: then all nodes count."""
        if (
            snapshot.suspect_nodes()
            or any(map(snapshot.claims_that_say, CANDIDATE_CONDITIONS))
            or snapshot.replaced_claims()
            or snapshot.replacing_claims()
        ):
            yield from self._surroundings.preparing(snapshot)

    def view(self, snapshot: Snapshot, key: str) -> DisruptionView | None:
        created = self._surroundings.has_created
        left_over = tuple(one for one in left_overs(snapshot) if created(one.claim))
        without = {one.claim.name for one in left_over}
        unfinished = tuple(unfinished_groups(self._methods, snapshot))
        missing = [one for group in unfinished for one in group.missing]
        pools = tuple(candidates_in(self._methods, snapshot, without=without, unfinished=missing))
        ready = tuple(ready_commands(self._methods, snapshot))
        if self._surroundings.stands_still(snapshot) is not None:
            left_over, unfinished, ready = (), (), ()
        if not pools and not ready and not left_over and not unfinished:
            return None  # The usual case, and it must stay cheap.
        simulation = self._surroundings.simulation(snapshot, self._protection_clock)
        named = self._methods.named
        consolidated = {
            one.pool.name
            for one in pools
            if any(named(reason).traits.consolidates for reason, _ in one.watches)
        }
        if unfinished or consolidated:
            plan = snapshot.observations.consolidation
            simulation = msgspec.structs.replace(
                simulation,
                settling=settling_until(snapshot),
                going_empty=still_going(plan.going, snapshot) if plan is not None else frozenset(),
                balanced=balanced_totals(consolidated, snapshot),
            )
        return DisruptionView(
            pools=tuple(self._counted(one, snapshot) for one in pools),
            ready=ready,
            ready_pools=pools_of(ready, self._methods, snapshot),
            simulation=simulation,
            left_over=left_over,
            unfinished=unfinished,
        )

    def _counted(self, one: PoolCandidates, snapshot: Snapshot) -> PoolCandidates:
        pool = self._surroundings.counted(one.pool, snapshot)
        return one if pool is one.pool else msgspec.structs.replace(one, pool=pool)

    def decide(self, view: DisruptionView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        *_, found = self.deciding(view, settings, now, Progress())
        assert found is not None, "the last step gives all"
        return found

    def deciding(
        self, view: DisruptionView, settings: Settings, now: datetime, progress: Progress
    ) -> Iterator[Sequence[Verdict] | None]:
        """With very many candidates a pass takes long: a step is the gates of one of them, or a part of a plan."""
        for verdict in _Pass(view, self._methods, settings, now, progress).verdicts():
            if verdict is not None:
                progress.said.append(verdict)
            yield None
        yield sorted(progress.said, key=lambda verdict: verdict.subject)


def may_wait(change: Change) -> bool:
    """Pods and Nodes change by the hundred; a claim is what commands are written on."""
    return change.resource in (PODS, NODES)


def _waits(verdicts: Iterable[Verdict]) -> bool:
    """Whether nothing is done about a candidate now."""
    return all(one.action is None and one.reason is not Reason.REPLACING for one in verdicts)


#: The verdict on a candidate that nothing is done about now, and when it has its next chance.
_Waiting = tuple[Verdict, datetime | None]


class _Pass:
    def __init__(
        self,
        view: DisruptionView,
        methods: Methods,
        settings: Settings,
        now: datetime,
        progress: Progress,
    ) -> None:
        self._view, self._methods = view, methods
        self._settings, self._now = settings, now
        self._shared = Pass(
            methods=methods,
            simulation=view.simulation,
            settings=settings,
            now=now,
            reservations=Reservations(),
            started={},
            progress=progress,
        )

    def verdicts(self) -> Iterator[Verdict | None]:
        """None: nothing is said yet, and it may be suspended."""
        due = [
            {reason: self._due(reason, pool) for reason, _ in pool.watches}
            for pool in self._view.pools
        ]
        pairs = list(zip(self._view.pools, due, strict=True))
        wanted = [one for pool, found in pairs for one in self._wanted(pool, found)]
        gating = Gating(self._shared)
        begun = taken_over((one for one in wanted if is_replaced(one.claim)), gating, self._shared)
        yield from (verdict for said in begun.values() for verdict in said)
        yield from self._carried_out(begun.keys())
        recording = Recording(gating.blocked, gating.changes_at, self._settings, self._now)
        unwanted = {name: why for pool in self._view.pools for name, why in self._unwanted(pool)}
        planner = Planner(self._shared, gating, recording, self._view.unfinished, unwanted)
        wanted = [one for one in wanted if not is_replaced(one.claim)]
        waiting: dict[str, list[_Waiting]] = {}
        for one, said in planner.verdicts(wanted):
            if not said:
                yield None
                continue
            yield from said
            if one.method.traits.voluntary and _waits(said):
                waits = (said[0], gating.next_chance(said[0]))
                waiting.setdefault(one.pool.pool.name, []).append(waits)
        yield from planner.rolled_back()
        for pool, found in pairs:
            verdict = self._watched(pool, found, waiting.get(pool.pool.name, ()))
            verdict = no_later(verdict, gating.recheck_at.get(pool.pool.name))
            starts = recording.starts.get(pool.pool.name, ())
            action = record(pool.pool, starts, self._settings) if starts else None
            yield msgspec.structs.replace(verdict, action=action)
        for left in self._view.left_over if not planner.has_planned else ():
            yield (yield from left_over_verdict(left, self._shared))

    def _due(self, reason: str, pool: PoolCandidates) -> Due:
        watch = next(watch for of, watch in pool.watches if of == reason)
        return self._methods.named(reason).candidates(watch, self._settings, self._now)

    def _wanted(self, pool: PoolCandidates, found: Mapping[str, Due]) -> Iterator[Wanted]:
        wanted: dict[str, list[Wanted]] = {}
        for one in pool.unfinished:
            if (way := self._unfinished(one, pool)) is not None:
                wanted[one.claim.name] = [way]
        for order, method in enumerate(self._methods):
            due = found.get(method.traits.reason, Due())
            for candidate in due.candidates:
                name = candidate.claim.name
                # One with a command under way is still due, and not watched any more.
                if name in pool.nodes:
                    wanted.setdefault(name, []).append(Wanted(method, candidate, pool, order))
        for first, *others in wanted.values():
            yield msgspec.structs.replace(first, others=tuple(others))

    def _unwanted(self, pool: PoolCandidates) -> Iterator[tuple[str, Fact]]:
        for one in pool.unfinished:
            if one.under_way is not None:
                found = self._methods.validate(one.under_way, self._settings, self._now)
                if found.unwanted:
                    yield one.claim.name, NotReplacedTogether(one.claim.name, found.unwanted)

    def _unfinished(self, one: Unfinished, pool: PoolCandidates) -> Wanted | None:
        """None: its command is not wanted as it is."""
        if one.under_way is None or (node := one.under_way.command.node) is None:
            return None
        command, method = one.under_way.command, self._methods.of(one.under_way.command)
        found = self._methods.validate(one.under_way, self._settings, self._now)
        if method is None or found.unwanted or found.due_at is not None:
            return None
        candidate = Candidate(
            claim=one.claim,
            node=node,
            why=(CommittedInPart(tuple(other.name for other in command.others)),),
            bound=found.bound,
            operation=found.operation,
            commits=found.commits,
            group=command.group,
        )
        return Wanted(method, candidate, pool, -1)

    def _watched(
        self, pool: PoolCandidates, found: Mapping[str, Due], waiting: Sequence[_Waiting]
    ) -> Verdict:
        """When any of its nodes may become a candidate, or cease to be one; ``waiting``: on those
        that are candidates of choice, and may not go now."""
        instants = [due.recheck_at for due in found.values()]
        opens = (at for _, at in waiting if at is not None and at > self._now)
        until = min(opens, default=None)
        instants.append(until)
        late = later(self._now, PAUSE_MAX)
        instants += [earlier(until, PAUSE_MAX) for until, _ in pool.pauses if until > late]
        watched = [self._nodes_watched(*one, found[one[0]]) for one in pool.watches]
        if pool.unfinished:
            names = tuple(sorted(one.claim.name for one in pool.unfinished))
            watched.append(NodesWatched("to be replaced together with others", names))
            for one in pool.unfinished:
                if one.under_way is not None:
                    validation = self._methods.validate(one.under_way, self._settings, self._now)
                    changes = (validation.gates_change_at, *self._methods.instants(one.under_way))
                    instants += [at for at in changes if at is not None and at > self._now]
        return _say(
            pool.pool,
            Reason.CANDIDATES_WAIT if waiting else Reason.DISRUPTION_WATCHED,
            *((self._candidates_wait(pool, found, waiting, until),) if waiting else ()),
            *watched,
            recheck_at=min((at for at in instants if at is not None), default=None),
        )

    def _candidates_wait(
        self,
        pool: PoolCandidates,
        found: Mapping[str, Due],
        waiting: Sequence[_Waiting],
        until: datetime | None,
    ) -> CandidatesWait:
        """A node that several methods want counts for the first."""
        reasons = Counter(
            one.method.traits.reason
            for one in self._wanted(pool, found)
            if one.method.traits.voluntary and not is_replaced(one.claim)
        )
        gates = Counter(verdict.gate for verdict, _ in waiting)
        return CandidatesWait(
            len(waiting),
            reasons.total(),
            until,
            tuple(reasons.items()),
            tuple(gates.most_common()),
            len(pool.fleet.all.leaving),
        )

    def _nodes_watched(self, reason: str, watch: Watch, due: Due) -> NodesWatched:
        claims = {claim.name for claim, _ in watch.nodes}
        candidates = sum(one.claim.name in claims for one in due.candidates)
        what = self._methods.named(reason).watched_as
        return NodesWatched(what, tuple(sorted(claims)), reason, candidates)

    def _carried_out(self, taken_over: Container[str]) -> Iterator[Verdict | None]:
        for group in self._view.ready:
            if not any(one.under_way.command.claim.name in taken_over for one in group):
                yield from Execution(group, self._view.ready_pools, self._shared).verdicts()
