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

from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import count
from typing import Final

import msgspec

from tenure.core.forecast.allowances import PoolAllowance
from tenure.core.forecast.begun import Back, Begun, Gone, Joins, counted_labels
from tenure.core.forecast.calendar import ForeseenWindow
from tenure.core.forecast.candidates import Blockers, Candidacy, blockers_at
from tenure.core.forecast.facts import OthersComeFirst
from tenure.core.forecast.groups import (
    Candidate,
    CandidateGroup,
    SortKey,
    about_node,
    expires_again,
)
from tenure.core.forecast.launches import usual, usual_launches
from tenure.core.forecast.queues import CandidateQueue
from tenure.core.forecast.result import Peak, Start
from tenure.core.forecast.waiting import Waiting, blocked_longest, closed_now
from tenure.core.gates.fleet import fleet_of
from tenure.core.gates.operations import Operation
from tenure.core.marks.deadline import grace_period
from tenure.core.marks.starts import has_velocity
from tenure.model.api.meta import FOR_EVER, later
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot

#: More starts are not foreseen: nodes that live for minutes would be without end.
STARTS_MAX: Final = 20_000


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a schedule begins with."""

    snapshot: Snapshot
    settings: Settings
    now: datetime
    until: datetime
    windows: tuple[ForeseenWindow, ...]
    candidacies: tuple[Candidacy, ...]
    #: How long the drain of a node takes that nothing blocks.
    drains_for: timedelta


class Schedule:
    def __init__(self, plan: Plan) -> None:
        self._plan, self._snapshot, self._settings = plan, plan.snapshot, plan.settings
        self._events: list[tuple[datetime, int, object]] = []
        self._count = count()
        self._queue = CandidateQueue(self._snapshot, plan.windows)
        self._pools = {
            name: PoolAllowance(pool, fleet_of(name, self._snapshot), plan.now)
            for name, pool in sorted(self._snapshot.pools.items())
        }
        self._usual = usual_launches(self._snapshot)
        self._begun_before = Begun(
            self._snapshot, self._settings, plan.now, self._usual, plan.drains_for
        )
        #: Claims that are disrupted already, with their generation.
        self._begun: set[tuple[str, int]] = set()
        #: One replacement is planned at a time.
        self._planner_free_at = plan.now
        self.starts: list[Start] = []
        self.waiting: list[Waiting] = []
        self.peaks: dict[str, Peak] = {}
        self.peak = Peak()
        self.ends_at = plan.until

    @property
    def endless(self) -> list[str]:
        """Nodes whose drain has no end, by claim."""
        return self._begun_before.endless

    @property
    def coming(self) -> list[str]:
        """Claims that become nodes: of these only that they count is foreseen."""
        return self._begun_before.coming

    # -- the walk ------------------------------------------------------------------------

    def run(self) -> None:
        now, until = self._plan.now, self._plan.until
        for event in (*self._begun_before.joins(), *self._begun_before.ends()):
            self._add(*event)
        for kept in self._begun_before.kept:
            self._pools[kept.pool].keep(kept.labels, kept.node, kept.why)
        self._measure(now)
        for candidacy in self._plan.candidacies:
            self._add(max(candidacy.due_at, now), self._candidate(candidacy))
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
        if isinstance(event, Candidate):
            self._becomes_due(event, now)
        elif isinstance(event, Joins):
            self._pools[event.pool].join(event.labels)
        elif isinstance(event, Gone):
            pool = self._pools[event.pool]
            pool.join(event.labels, -1)
            pool.take(event.labels, -1)
        elif isinstance(event, Back):
            self._pools[event.pool].take(event.labels, -1)

    # -- candidates ----------------------------------------------------------------------

    def _candidate(self, candidacy: Candidacy) -> Candidate:
        pool = self._snapshot.pools[candidacy.claim.pool_name]
        return Candidate(candidacy=candidacy, labels=counted_labels(pool, candidacy.node.labels))

    def _becomes_due(self, one: Candidate, now: datetime) -> None:
        if self._has_begun(one):
            return
        found = blockers_at(one.candidacy, self._snapshot, self._settings, now)
        one = msgspec.structs.replace(one, pods=found.pods)
        if not one.generation and found.until is not None:
            self._blocked_by_pods(one, found, now)
            return
        needs = one.candidacy.traits.needs_replacement and found.reschedulable
        one = msgspec.structs.replace(one, replaced=needs, drains_until=found.drains_until)
        self._queue.add(one)

    def _blocked_by_pods(self, one: Candidate, found: Blockers, now: datetime) -> None:
        assert found.why is not None, "what blocks says so"
        assert found.until is not None, "and until when"
        if found.until <= self._plan.until:
            self._add(found.until, one)
            return
        # A verdict tells of the gate that lasts longest, of equals the first: so does this.
        group, until, why = self._queue.group_of(one), found.until, found.why
        other, other_until = closed_now(group, self._pools[group.pool], self._settings, now)
        if other is not None and other_until >= until:
            why, until = about_node(other, one.candidacy.node.name), other_until
        self.waiting.append(Waiting(one.candidacy, one.generation, why, until == FOR_EVER))

    # -- starts --------------------------------------------------------------------------

    def _start_all(self, now: datetime) -> datetime | None:
        """Starts what may start; when to look again although no event happens."""
        while True:
            wakes: list[datetime | None] = []
            ready: list[tuple[SortKey, CandidateGroup]] = [
                (group.waiting[0][0], group)
                for group in self._queue.groups
                if self._has_waiting(group) and self._may_start(group, now, wakes)
            ]
            if not ready or len(self.starts) >= STARTS_MAX:
                return min((at for at in wakes if at is not None and at > now), default=None)
            _, group = min(ready, key=lambda one: one[0])
            self._start(group.waiting.pop(0)[2], group, now)

    def _has_begun(self, one: Candidate) -> bool:
        """By another method."""
        return (one.candidacy.claim.name, one.generation) in self._begun

    def _has_waiting(self, group: CandidateGroup) -> bool:
        while group.waiting and self._has_begun(group.waiting[0][2]):
            group.waiting.pop(0)
        return bool(group.waiting)

    def _may_start(
        self, group: CandidateGroup, now: datetime, wakes: list[datetime | None]
    ) -> bool:
        """Whether the first of them may start now."""
        is_open = group.is_open(self._settings, now)
        wakes.append(group.opens_at)
        if not is_open:
            return False
        if group.operation is Operation.EXPIRATION:
            return True
        left = self._pools[group.pool].left(group.traits, group.labels, now)
        wakes.append(left.changes_at)
        if left.nodes <= 0:
            group.why = left.why
            return False
        if not group.waiting[0][2].replaced:
            return True
        if self._planner_free_at > now:
            wakes.append(self._planner_free_at)
            return False
        return not group.closes_too_soon(self._settings, now)

    def _start(self, one: Candidate, group: CandidateGroup, now: datetime) -> None:
        candidacy, pool, allowance = one.candidacy, group.pool, self._pools[group.pool]
        self._begun.add((candidacy.claim.name, one.generation))
        always = group.operation is Operation.EXPIRATION
        launch = usual(pool, self._usual) if one.replaced else timedelta()
        ends_at = self._drained_at(one, now if always else later(now, launch))
        if one.generation or candidacy.node.ready:
            allowance.take(one.labels)
        else:  # One that is not Ready uses the budget already.
            allowance.release(one.labels, candidacy.node.name)
        allowance.start(one.labels, now)
        self._measure(now)
        if ends_at is not None:
            self._add(ends_at, Gone(pool, one.labels))
        else:
            allowance.keep(one.labels, candidacy.node.name, "draining")
        if one.replaced:
            self._replace(one, later(now, self._settings.batch_idle) if always else now)
        if one.replaced and not always:
            turns = 3 if has_velocity(self._snapshot.pools[pool]) else 2
            self._planner_free_at = later(now, turns * self._settings.turn_gap)
        start = Start(
            at=now,
            pool=pool,
            reason=candidacy.traits.reason,
            claim=candidacy.claim.name,
            generation=one.generation,
            due_at=candidacy.due_at,
            ends_at=ends_at,
            replaced=one.replaced,
            approximate=one.approximate,
        )
        self.starts.append(start)

    def _replace(self, one: Candidate, created_at: datetime) -> None:
        pool = self._snapshot.pools[one.candidacy.claim.pool_name]
        up_at = later(created_at, usual(pool.name, self._usual))
        self._add(up_at, Joins(pool.name, one.labels))
        if (again := expires_again(one, pool, created_at)) is not None:
            self._add(again.candidacy.due_at, again)

    def _drained_at(self, one: Candidate, terminates: datetime) -> datetime | None:
        ends, until = later(terminates, self._plan.drains_for), one.drains_until
        if one.generation or until is None or until <= ends:
            return ends
        grace = grace_period(one.candidacy.claim)
        bound = later(terminates, grace) if grace is not None else FOR_EVER
        last = min(until, bound)
        return None if last == FOR_EVER else max(ends, last)

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
        # One method may have begun with a node that pods keep from another.
        self.waiting = [
            one
            for one in self.waiting
            if (one.candidacy.claim.name, one.generation) not in self._begun
        ]
        for group in self._queue.groups:
            allowance, until = self._pools[group.pool], self._plan.until
            found, never = blocked_longest(group, allowance, self._settings, until)
            for _, _, one in group.waiting:
                if self._has_begun(one):
                    continue
                why = about_node(found or OthersComeFirst(group.pool), one.candidacy.node.name)
                self.waiting.append(Waiting(one.candidacy, one.generation, why, never))
