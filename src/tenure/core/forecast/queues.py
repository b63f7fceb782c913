"""The candidates that wait: in the order of the pipeline, and in groups for which the gates answer the same."""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Sequence
from itertools import count

from tenure.core.disrupt.launchtimes import launch_times
from tenure.core.disrupt.replacements import pauses_of
from tenure.core.forecast.calendar import ForeseenWindow
from tenure.core.forecast.candidates import Candidacy
from tenure.core.forecast.groups import Candidate, CandidateGroup
from tenure.core.gates.fleet import PoolFleet
from tenure.core.gates.gatefacts import GateFacts, LaunchTime
from tenure.model.snapshot.snapshot import Snapshot


class CandidateQueue:
    def __init__(self, snapshot: Snapshot, windows: Sequence[ForeseenWindow]) -> None:
        self._snapshot, self._windows = snapshot, windows
        self._keys = sorted({one.key for window in windows for one in window.requirements})
        self._launches = launch_times(snapshot)
        self._groups: dict[object, CandidateGroup] = {}
        self._arrivals = count()

    @property
    def groups(self) -> Collection[CandidateGroup]:
        return self._groups.values()

    def add(self, one: Candidate) -> None:
        insort(self.group_of(one).waiting, (one.sort_key, next(self._arrivals), one))

    # -- groups --------------------------------------------------------------------------

    def group_of(self, one: Candidate) -> CandidateGroup:
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
