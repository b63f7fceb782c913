"""The candidates that wait: in the order of the pipeline, and in groups for which the gates answer the same."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Sequence
from datetime import datetime
from itertools import count

from tenure.core.disrupt.launchtimes import launch_times
from tenure.core.disrupt.planning.quota import FIRST, PlanningQuota
from tenure.core.disrupt.replacements import pauses_of
from tenure.core.forecast.calendar import ForeseenWindow
from tenure.core.forecast.candidates import Candidacy
from tenure.core.forecast.groups import Candidate, CandidateGroup, Queued, SortKey
from tenure.core.gates.fleet import PoolFleet
from tenure.core.gates.gatefacts import GateFacts, LaunchTime
from tenure.model.snapshot.snapshot import Snapshot


class CandidateQueue:
    def __init__(self, snapshot: Snapshot, windows: Sequence[ForeseenWindow]) -> None:
        self._snapshot, self._windows = snapshot, windows
        self._keys = sorted({one.key for window in windows for one in window.requirements})
        self._launches = launch_times(snapshot)
        self._groups: dict[object, CandidateGroup] = {}
        #: Those that pods block are candidates all the same; sorted.
        self._blocked: list[SortKey] = []
        self._arrivals = count()

    @property
    def groups(self) -> Collection[CandidateGroup]:
        return self._groups.values()

    def add(self, one: Candidate) -> None:
        if one.was_blocked:
            del self._blocked[bisect_left(self._blocked, one.sort_key)]
        insort(self._group(one).waiting, (one.sort_key, next(self._arrivals), one))

    def block(self, one: Candidate) -> None:
        """It counts among the candidates, and does not start before it is added."""
        if not one.was_blocked:
            insort(self._blocked, one.sort_key)

    # -- turns ---------------------------------------------------------------------------

    def planned(
        self, group: CandidateGroup, now: datetime, wakes: list[datetime | None]
    ) -> int | None:
        """Whose replacement is planned now: with many candidates, a few have their turn each minute."""
        total = len(self._blocked) + sum(len(one.waiting) for one in self.groups)
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

    def _index(self, queued: Queued) -> int:
        """In the order of all candidates."""
        key = queued[0]
        before = bisect_left(self._blocked, key)
        return before + sum(bisect_left(one.waiting, (key,)) for one in self.groups)

    # -- groups --------------------------------------------------------------------------

    def _group(self, one: Candidate) -> CandidateGroup:
        candidacy = one.candidacy
        seen = tuple((key, candidacy.node.labels.get(key)) for key in self._keys)
        counted = tuple(sorted(one.labels.items()))
        key = (
            candidacy.claim.pool_name,
            candidacy.order,
            candidacy.operation,
            seen,
            counted,
            one.replaced,
        )
        if key not in self._groups:
            self._groups[key] = CandidateGroup(one, self._facts(one))
        return self._groups[key]

    def _facts(self, one: Candidate) -> GateFacts:
        candidacy, pool = one.candidacy, self._snapshot.pools[one.candidacy.claim.pool_name]
        takes, launches = self._launches.get(pool.name), tuple[LaunchTime, ...]()
        if one.replaced and takes is not None:
            launches = (LaunchTime(pool.name, takes),)
        return GateFacts(
            claim=candidacy.claim,
            node=candidacy.node,
            pool=pool,
            windows=self._windows_of(candidacy),
            pauses=tuple(pauses_of(self._snapshot.claims_of_pool(pool.name))),
            traits=candidacy.traits,
            fleet=PoolFleet(),
            launches=launches,
        )

    def _windows_of(self, candidacy: Candidacy) -> tuple[ForeseenWindow, ...]:
        """Those that concern it; the gates would leave out the others each time."""
        actions, labels = candidacy.traits.window_actions, candidacy.node.labels
        found = (one for one in self._windows if one.actions & actions)
        return tuple(one for one in found if one.covers(labels))
