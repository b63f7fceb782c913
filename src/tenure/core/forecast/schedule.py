"""When disruptions start and end: a walk from one change to the next, without playing the cluster.

At each instant something may change: a node becomes a candidate, a window or a budget opens, a
disruption ends, a new node is initialized. Then, in the order of the pipeline, every candidate starts
that no gate blocks. The gates are those of the pipeline, asked for one node of each group of nodes for
which they answer the same; budgets are counted on (``allowances``).

What is assumed:

* a node with pods that have to be placed is replaced by one new node of its pool, which takes as long as
  the launches of the pool usually do. Whether its pods would fit on other nodes is not asked;
* a drain takes ``drains_for``, or as long as protected pods block it and the grace period lets them;
* every replacement comes up, and its pods are as they are now. It expires in its turn.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import count
from typing import Final

import msgspec

from tenure.core.disrupt.expiration import ALWAYS, SPREAD, SPREAD_MAX
from tenure.core.disrupt.launchtimes import launch_times
from tenure.core.disrupt.plan import FIRST, PlanningQuota
from tenure.core.disrupt.replacements import pauses_of
from tenure.core.facts import Fact
from tenure.core.forecast.allowances import PoolAllowance
from tenure.core.forecast.calendar import ForeseenWindow
from tenure.core.forecast.candidates import VOLUNTARY, Blockers, Wish, blockers_at
from tenure.core.forecast.facts import NotDueLongEnough
from tenure.core.forecast.launches import usual, usual_launches
from tenure.core.forecast.result import Peak, Start
from tenure.core.gates.fleet import FleetNode, PoolFleet, fleet_of
from tenure.core.gates.gates import (
    Gate,
    GateFacts,
    LaunchTime,
    Operation,
    changes_at,
    first_blocked,
)
from tenure.core.gates.reasons import Disruption
from tenure.core.marks.command import commands_under_way
from tenure.core.marks.deadline import grace_period
from tenure.core.marks.ownership import is_ours
from tenure.core.marks.starts import has_velocity, label_keys
from tenure.core.marks.timeout import span_of
from tenure.core.terminate.schedule import timetable
from tenure.model.api.meta import FOR_EVER, later
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot

#: More starts are not foreseen: nodes that live for minutes would be without end.
STARTS_MAX: Final = 20_000
#: The gates that are the same for every node of a group. Budgets are counted on, and what of pods and
#: protections blocks a node is known by its instant.
_OF_GROUP: Final = frozenset({Gate.OFF, Gate.RULES, Gate.WINDOW, Gate.PAUSE})
_EXPIRED: Final = next(one for one in VOLUNTARY if one[1].traits.reason == Disruption.EXPIRED)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a schedule begins with."""

    snapshot: Snapshot
    settings: Settings
    now: datetime
    until: datetime
    windows: tuple[ForeseenWindow, ...]
    wishes: tuple[Wish, ...]
    #: How long the drain of a node takes that nothing blocks.
    drains_for: timedelta


class Waiting(msgspec.Struct, frozen=True):
    """A candidate that does not start before the horizon."""

    wish: Wish
    generation: int
    why: Fact
    #: Whether nothing ends what blocks it.
    never: bool


_Key = tuple[bool, int, bool, datetime, int, str]


class _Candidate(msgspec.Struct, frozen=True, kw_only=True):
    wish: Wish
    labels: Mapping[str, str]
    generation: int = 0
    approximate: bool = False
    pods: int = 0
    #: Pods or protections blocked it when it became a candidate.
    was_blocked: bool = False
    #: Whether a new node has to come first.
    replaced: bool = True
    drains_until: datetime | None = None

    @property
    def sort_key(self) -> _Key:
        wish = self.wish
        rank = wish.order, not wish.first, wish.due_at
        return not wish.launched, *rank, self.pods, wish.node.name


#: The order of the pipeline, then that of arrival.
_Queued = tuple[_Key, int, _Candidate]


class _Group:
    """Candidates for which the gates answer the same, the first one first."""

    def __init__(self, one: _Candidate, facts: GateFacts) -> None:
        self.operation, self.traits = one.wish.operation, one.wish.traits
        self.pool, self.labels, self.facts = one.wish.claim.pool_name, one.labels, facts
        #: Sorted.
        self.waiting: list[_Queued] = []
        self.why: Fact | None = None
        self._is_open = False
        self._asked: datetime | None = None
        self.opens_at: datetime | None = None

    def is_open(self, settings: Settings, now: datetime) -> bool:
        """By the gates that depend on time alone; ``opens_at``: when to ask again."""
        if self._asked is not None and now < (self.opens_at or FOR_EVER) and now >= self._asked:
            return self._is_open
        blocked = first_blocked(self.operation, self.facts, settings, now, only=_OF_GROUP)
        self._asked, self._is_open = now, blocked is None
        if blocked is not None:
            self.why = blocked.facts[0]
            self.opens_at = blocked.until
        else:
            only_windows = msgspec.structs.replace(self.facts, fleet=msgspec.UNSET)
            self.opens_at = changes_at(self.operation, only_windows, now)
        return self._is_open

    def closes_too_soon(self, settings: Settings, now: datetime) -> bool:
        """Whether a window closes before a new node is initialized."""
        found = first_blocked(self.operation, self.facts, settings, now, only={Gate.CLOSING})
        if found is not None:
            self.why = found.facts[0]
        return found is not None


class Schedule:
    def __init__(self, plan: Plan) -> None:
        self._plan, self._snapshot, self._settings = plan, plan.snapshot, plan.settings
        self._events: list[tuple[datetime, int, object]] = []
        self._count = count()
        self._groups: dict[object, _Group] = {}
        self._pools: dict[str, PoolAllowance] = {}
        self._keys = {key for window in plan.windows for key in _label_keys(window)}
        self._usual = usual_launches(self._snapshot)
        self._at_most = launch_times(self._snapshot)
        #: Claims that are disrupted already, with their generation.
        self._begun: set[tuple[str, int]] = set()
        #: One replacement is planned at a time, of the first few candidates and a few of the others.
        self._planner_free_at = plan.now
        #: Those that pods block are candidates all the same; sorted.
        self._blocked: list[_Key] = []
        self.starts: list[Start] = []
        self.waiting: list[Waiting] = []
        self.peaks: dict[str, Peak] = {}
        self.peak = Peak()
        self.ends_at = plan.until
        #: Nodes whose drain has no end, by claim.
        self.endless: list[str] = []

    # -- the walk ------------------------------------------------------------------------

    def run(self) -> None:
        now, until = self._plan.now, self._plan.until
        for name in sorted(self._snapshot.pools):
            self._open_pool(self._snapshot.pools[name])
        self._under_way()
        self._measure(now)
        for wish in self._plan.wishes:
            self._add(max(wish.due_at, now), self._candidate(wish))
        while True:
            while self._events and self._events[0][0] <= now:
                self._happen(heappop(self._events)[2], now)
            wake = self._start_all(now)
            following = self._events[0][0] if self._events else FOR_EVER
            now = min(following, wake or FOR_EVER)
            if now > until:
                break
            if len(self.starts) >= STARTS_MAX:
                self.ends_at = now
                break
        self._leave_waiting()

    def _add(self, at: datetime, event: object) -> None:
        heappush(self._events, (at, next(self._count), event))

    def _happen(self, event: object, now: datetime) -> None:
        if isinstance(event, _Candidate):
            self._becomes_due(event, now)
        elif isinstance(event, _Joins):
            self._pools[event.pool].join(event.labels)
        elif isinstance(event, _Gone):
            pool = self._pools[event.pool]
            pool.join(event.labels, -1)
            pool.take(event.labels, -1)

    # -- what is there at the beginning --------------------------------------------------

    def _open_pool(self, pool: NodePool) -> None:
        fleet = fleet_of(pool.name, self._snapshot)
        self._pools[pool.name] = PoolAllowance(pool, fleet, self._plan.now)
        launch = usual(pool.name, self._usual)
        for _, claim in sorted(self._snapshot.new_claims().items()):
            if claim.pool_name == pool.name and _comes_up(claim, self._snapshot):
                at = max(later(claim.created_at, launch), self._plan.now)
                labels = self._labels(pool, claim.labels)
                self._add(at, _Joins(pool.name, labels))

    def _labels(self, pool: NodePool, labels: Mapping[str, str]) -> Mapping[str, str]:
        return {key: labels[key] for key in label_keys(pool) if key in labels}

    def _under_way(self) -> None:
        """When the disruptions end that have begun."""
        ends: dict[str, datetime] = {}
        for command in commands_under_way(self._snapshot):
            launch = usual(command.claim.pool_name, self._usual)
            news = [one for _, one in command.replacements if one and not one.initialized]
            up = [max(later(one.created_at, launch), self._plan.now) for one in news]
            ready = max(up, default=self._plan.now)
            ends[command.claim.name] = later(ready, self._plan.drains_for)
        for name in sorted(self._pools):
            for claim, node in self._leaving(name):
                if claim.deleting:
                    self._terminates(claim, node, name)
                elif claim.name in ends:
                    self._add(ends[claim.name], _Gone(name, node.labels))

    def _leaving(self, pool: str) -> Iterator[tuple[NodeClaim, FleetNode]]:
        by_name = {node.name: node for node in fleet_of(pool, self._snapshot).nodes}
        for _, claim in sorted(self._snapshot.claims_of_pool(pool).items()):
            node = by_name.get(claim.status.node_name)
            if node is not None and node.leaving:
                yield claim, node

    def _terminates(self, claim: NodeClaim, node: FleetNode, pool: str) -> None:
        found = self._snapshot.nodes.get(node.name)
        if found is None:
            return
        now, began = self._plan.now, claim.metadata.deletion_timestamp
        by = timetable(found, self._snapshot, self._settings, now).ends_by
        at = later(began or now, self._plan.drains_for)
        if by is None:
            self.endless.append(claim.name)
            return
        self._add(at if at > now else max(by, now), _Gone(pool, node.labels))

    # -- candidates ----------------------------------------------------------------------

    def _candidate(self, wish: Wish) -> _Candidate:
        pool = self._snapshot.pools[wish.claim.pool_name]
        return _Candidate(wish=wish, labels=self._labels(pool, wish.node.labels))

    def _becomes_due(self, one: _Candidate, now: datetime) -> None:
        if self._has_begun(one):
            return
        found = blockers_at(one.wish, self._snapshot, self._settings, now)
        one = msgspec.structs.replace(one, pods=found.pods)
        if not one.generation and found.until is not None:
            self._blocked_by_pods(one, found)
            return
        if one.was_blocked:
            del self._blocked[bisect_left(self._blocked, one.sort_key)]
        needs = one.wish.traits.needs_replacement and found.reschedulable
        one = msgspec.structs.replace(one, replaced=needs, drains_until=found.drains_until)
        insort(self._group(one).waiting, (one.sort_key, next(self._count), one))

    def _blocked_by_pods(self, one: _Candidate, found: Blockers) -> None:
        assert found.why is not None, "what blocks says so"
        assert found.until is not None, "and until when"
        if not one.was_blocked:
            insort(self._blocked, one.sort_key)
        if found.until > self._plan.until:
            never = found.until == FOR_EVER
            self.waiting.append(Waiting(one.wish, one.generation, found.why, never))
        else:
            self._add(found.until, msgspec.structs.replace(one, was_blocked=True))

    def _group(self, one: _Candidate) -> _Group:
        wish = one.wish
        seen = tuple((key, wish.node.labels.get(key)) for key in sorted(self._keys))
        counted = tuple(sorted(one.labels.items()))
        key = (wish.claim.pool_name, wish.order, wish.operation, seen, counted, one.replaced)
        if key not in self._groups:
            self._groups[key] = _Group(one, self._facts(one))
        return self._groups[key]

    def _facts(self, one: _Candidate) -> GateFacts:
        pool = self._snapshot.pools[one.wish.claim.pool_name]
        takes, launches = self._at_most.get(pool.name), tuple[LaunchTime, ...]()
        if one.replaced and takes is not None:
            launches = (LaunchTime(pool.name, takes),)
        return GateFacts(
            claim=one.wish.claim,
            node=one.wish.node,
            pool=pool,
            windows=self._windows(one.wish),
            pauses=tuple(pauses_of(self._snapshot.claims_of_pool(pool.name))),
            traits=one.wish.traits,
            fleet=PoolFleet(),
            launches=launches,
        )

    def _windows(self, wish: Wish) -> tuple[ForeseenWindow, ...]:
        """Those that concern it; the gates would leave out the others each time."""
        actions, labels = wish.traits.window_actions, wish.node.labels
        found = (one for one in self._plan.windows if one.actions & actions)
        return tuple(one for one in found if one.covers(labels))

    # -- starts --------------------------------------------------------------------------

    def _start_all(self, now: datetime) -> datetime | None:
        """Starts what may start; when to look again although no event happens."""
        while True:
            wakes: list[datetime | None] = []
            ready: list[tuple[_Key, _Group, int]] = []
            for group in self._groups.values():
                at = self._may_start(group, now, wakes) if self._has_waiting(group) else None
                if at is not None:
                    ready.append((group.waiting[at][0], group, at))
            if not ready or len(self.starts) >= STARTS_MAX:
                return min((at for at in wakes if at is not None and at > now), default=None)
            _, group, at = min(ready, key=lambda one: one[0])
            one = group.waiting.pop(at)[2]
            if not self._has_begun(one):
                self._start(one, group, now)

    def _has_begun(self, one: _Candidate) -> bool:
        """By another method."""
        return (one.wish.claim.name, one.generation) in self._begun

    def _has_waiting(self, group: _Group) -> bool:
        while group.waiting and self._has_begun(group.waiting[0][2]):
            group.waiting.pop(0)
        return bool(group.waiting)

    def _may_start(self, group: _Group, now: datetime, wakes: list[datetime | None]) -> int | None:
        """The position of the first that may start; None: none may."""
        is_open = group.is_open(self._settings, now)
        wakes.append(group.opens_at)
        if not is_open:
            return None
        if group.operation is Operation.EXPIRATION:
            return 0
        left = self._pools[group.pool].left(group.traits, group.labels, now)
        wakes.append(left.changes_at)
        if left.nodes <= 0:
            group.why = left.why
            return None
        if not group.waiting[0][2].replaced:
            return 0
        if self._planner_free_at > now:
            wakes.append(self._planner_free_at)
            return None
        at = self._planned(group, now, wakes)
        return None if at is None or group.closes_too_soon(self._settings, now) else at

    def _planned(self, group: _Group, now: datetime, wakes: list[datetime | None]) -> int | None:
        """Whose replacement is planned now: with many candidates, a few have their turn each minute."""
        total = len(self._blocked) + sum(len(one.waiting) for one in self._groups.values())
        if total <= FIRST:
            return 0
        quota = PlanningQuota(total, now)
        if quota.has(self._index(group.waiting[0])):
            return 0
        at = bisect_left(group.waiting, quota.turn, key=self._index)
        if at < len(group.waiting) and quota.has(self._index(group.waiting[at])):
            return at
        wakes.append(quota.next_at)
        return None

    def _index(self, queued: _Queued) -> int:
        """In the order of all candidates."""
        key = queued[0]
        before = bisect_left(self._blocked, key)
        return before + sum(bisect_left(one.waiting, (key,)) for one in self._groups.values())

    def _start(self, one: _Candidate, group: _Group, now: datetime) -> None:
        wish, pool, allowance = one.wish, group.pool, self._pools[group.pool]
        self._begun.add((wish.claim.name, one.generation))
        launch = usual(pool, self._usual) if one.replaced else timedelta()
        always = group.operation is Operation.EXPIRATION
        terminates = later(now, timedelta() if always else launch)
        ends = self._drained_at(one, terminates)
        if one.replaced and not always:
            turns = 3 if has_velocity(self._snapshot.pools[pool]) else 2
            self._planner_free_at = later(now, turns * self._settings.turn_gap)
        taken = not one.generation and not wish.node.ready
        if not taken:
            allowance.take(one.labels)
        allowance.start(one.labels, now)
        self._measure(now)
        if ends is not None:
            self._add(ends, _Gone(pool, one.labels))
        if one.replaced:
            # Its pods are pending once they are evicted, and provisioning waits for more of them.
            created = later(now, self._settings.batch_idle) if always else now
            self._add(later(created, launch), _Joins(pool, one.labels))
            self._expires_again(one, created)
        self.starts.append(
            Start(
                at=now,
                pool=pool,
                reason=wish.traits.reason,
                claim=wish.claim.name,
                generation=one.generation,
                due_at=wish.due_at,
                ends_at=ends,
                replaced=one.replaced,
                approximate=one.approximate,
            )
        )

    def _drained_at(self, one: _Candidate, terminates: datetime) -> datetime | None:
        ends, until = later(terminates, self._plan.drains_for), one.drains_until
        if one.generation or until is None or until <= ends:
            return ends
        grace = grace_period(one.wish.claim)
        bound = later(terminates, grace) if grace is not None else FOR_EVER
        last = min(until, bound)
        return None if last == FOR_EVER else max(ends, last)

    def _expires_again(self, one: _Candidate, created: datetime) -> None:
        """The replacement expires in its turn. How much earlier its UID lets it is not known yet: by
        half of what is possible."""
        pool = self._snapshot.pools[one.wish.claim.pool_name]
        age = span_of(pool.spec.template.spec.expire_after)
        if age is None or age <= timedelta():
            return
        always = pool.spec.disruption.expiration_policy == ALWAYS
        spread = timedelta() if always else min(age / SPREAD, SPREAD_MAX) / 2
        at = later(created, age - spread).replace(microsecond=0)
        if at > self._plan.until:
            return
        order, method = _EXPIRED
        operation = Operation.EXPIRATION if always else Operation.VOLUNTARY
        wish = msgspec.structs.replace(
            one.wish,
            method=method,
            order=order,
            operation=operation,
            due_at=at,
            first=False,
            launched=False,
        )
        again = msgspec.structs.replace(
            one,
            wish=wish,
            generation=one.generation + 1,
            approximate=one.approximate or not always,
            was_blocked=False,
            drains_until=None,
        )
        self._add(at, again)

    def _measure(self, now: datetime) -> None:
        total = 0
        for name, pool in self._pools.items():
            total += pool.disrupted
            if pool.disrupted > self.peaks.get(name, Peak()).nodes:
                self.peaks[name] = Peak(pool.disrupted, now)
        if total > self.peak.nodes:
            self.peak = Peak(total, now)

    # -- the end -------------------------------------------------------------------------

    def _leave_waiting(self) -> None:
        for group in self._groups.values():
            for _, _, one in group.waiting:
                if self._has_begun(one):
                    continue
                why = group.why or NotDueLongEnough(group.pool)
                self.waiting.append(Waiting(one.wish, one.generation, why, self._never(group)))

    def _never(self, group: _Group) -> bool:
        """Whether what blocks the group has no end."""
        if not group.is_open(self._settings, self._plan.until):
            return group.opens_at is None or group.opens_at == FOR_EVER
        left = self._pools[group.pool].left(group.traits, group.labels, self._plan.until)
        limited = getattr(left.why, "limit", 0) == 0
        return left.nodes <= 0 and limited and left.changes_at is None


class _Joins(msgspec.Struct, frozen=True):
    """A new node of the pool is initialized."""

    pool: str
    labels: Mapping[str, str]


class _Gone(msgspec.Struct, frozen=True):
    """The instance of a disrupted node terminates."""

    pool: str
    labels: Mapping[str, str]


def _comes_up(claim: NodeClaim, snapshot: Snapshot) -> bool:
    return not claim.deleting and not claim.rebooting and is_ours(claim, snapshot)


def _label_keys(window: ForeseenWindow) -> Iterable[str]:
    return (one.key for one in window.requirements)
