"""When each pod of a drain is evicted, force deleted, and stopped at the latest.

The verdicts on the pods come from ``pods``; this module only takes instants from them, and works
out the times of pods in later tiers. For each pod that the Node waits for:

- asked       the earliest instant at which it can be evicted; none when the deadline comes first,
              or something blocks the eviction without a known end;
- forced      the deadline minus its grace period, and not before the deadline is set; none without
              a deadline, or when it stops before;
- stopped by  when it has stopped at the latest, if it uses its full grace period; none when that
              is unknown, because a PDB or a protection without an end blocks it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from tenure.core.decision import DeletePod, Evict, Verdict
from tenure.core.facts import Fact, Quoted
from tenure.core.marks.deadline import (
    SHORTEST_GRACE,
    ComingDeadline,
    force_at,
    grace_of,
    requested_at,
    shortened,
    stops_at,
)
from tenure.core.protect.protection import Protection, protection_of
from tenure.core.reasons import Reason
from tenure.core.terminate.facts.pods import PdbNeverAllows, SeveralPdbs
from tenure.core.terminate.pdb import Allowances, blocks, refusal_of
from tenure.core.terminate.pods import (
    REFUSED,
    STUCK_AFTER,
    TIERS,
    DrainView,
    PodView,
    blocks_drain,
    evaluate_pods,
    tier_of,
)
from tenure.model.api.meta import later, seconds_of
from tenure.model.api.pod import Pod
from tenure.model.settings import Settings


class EvictionBlocker(msgspec.Struct, frozen=True):
    """Something that blocks an eviction."""

    fact: Fact
    #: When it ends; None when that is unknown.
    until: datetime | None = None
    #: It ends once the pods of earlier tiers have stopped.
    tier: bool = False
    #: The API server decides it at the eviction, and not before.
    pdb: bool = False

    @property
    def message(self) -> str:
        return str(self.fact)


def never_ends(fact: Fact) -> bool:
    """Whether what blocks an eviction stays until a user changes the pod or its PDBs.

    A PDB that allows nothing at the moment does not: it only paces the drain.
    """
    if isinstance(fact, Protection):
        return fact.ends_at is None
    return isinstance(fact, PdbNeverAllows | SeveralPdbs)


class PodTimes(msgspec.Struct, frozen=True, kw_only=True):
    """When a pod that the Node waits for is evicted, force deleted and stopped."""

    pod: str
    tier: str
    blocked_by: tuple[EvictionBlocker, ...] = ()
    asked_at: datetime | None = None
    forced_at: datetime | None = None
    stopped_by: datetime | None = None
    #: It is terminating already.
    terminating: bool = False


def pod_times(
    drain: DrainView, settings: Settings, now: datetime, coming: Sequence[ComingDeadline] = ()
) -> tuple[list[PodTimes], datetime | None]:
    """The pods that the Node waits for, in the order of eviction, and by when all have stopped.

    ``coming``: earlier deadlines that are set later.
    """
    return _Rows(drain, settings, now, coming).rows()


class _Rows:
    """Makes the rows of one drain at one instant."""

    def __init__(
        self,
        drain: DrainView,
        settings: Settings,
        now: datetime,
        coming: Sequence[ComingDeadline],
    ) -> None:
        self._drain = drain
        self._deadline = drain.deadline
        self._coming = coming
        self._settings = settings
        self._now = now
        self._allowances = Allowances()
        #: Between which instants the tiers before the present one are empty; None: for ever.
        self._opens: datetime | None = now
        self._opens_by: datetime | None = now
        #: By PDBs: when the eviction of one pod is tried for all pods that they block.
        self._tried: dict[tuple[str, ...], datetime] = {}

    def rows(self) -> tuple[list[PodTimes], datetime | None]:
        evaluated = zip(
            self._drain.pods, evaluate_pods(self._drain, self._settings, self._now), strict=True
        )
        waited = [one for one in evaluated if blocks_drain(one[0].pod, self._now)]
        waited.sort(key=lambda one: (tier_of(one[0].pod), one[0].pod.key))
        rows: list[PodTimes] = []
        for _, tier in itertools.groupby(waited, key=lambda one: tier_of(one[0].pod)):
            made = [self._row(item, verdict) for item, verdict in tier]
            self._opens = latest([self._opens, *map(self._stops_at_earliest, made)])
            stopped = (_plus(row.stopped_by, STUCK_AFTER) for row in made)
            self._opens_by = latest([self._opens_by, *stopped])
            rows += made
        return rows, self._opens_by

    def _stops_at_earliest(self, row: PodTimes) -> datetime | None:
        """When it can have stopped at the earliest."""
        if row.terminating:
            return self._now
        return row.asked_at or (max(self._now, row.forced_at) if row.forced_at else None)

    def _row(self, item: PodView, verdict: Verdict) -> PodTimes:
        pod, deadline = item.pod, self._deadline
        if pod.deleting:
            return self._terminating(pod)
        blockers = tuple(self._blockers(item, verdict))
        grace = max(grace_of(pod), SHORTEST_GRACE)
        if isinstance(verdict.action, DeletePod):
            assert deadline is not None, "only a deadline forces a deletion"
            seconds = verdict.action.grace_at(self._now)
            stopped = self._cut(self._now, later(self._now, seconds_of(seconds)))
            return self._times(pod, blockers, None, force_at(pod, deadline), stopped)
        asked = self._asked_at(item, verdict, blockers)
        asked_by = latest([self._now, *(self._ends_by(blocker) for blocker in blockers)])
        forced = self._forced_at(pod)
        if forced is None:
            return self._times(pod, blockers, asked, None, _plus(asked_by, grace))
        asked_by = min(asked_by or forced, forced)
        stopped_by = self._cut(asked_by, later(asked_by, grace))
        asked = asked if asked is not None and asked < forced else None
        return self._times(pod, blockers, asked, forced, stopped_by)

    def _forced_at(self, pod: Pod) -> datetime | None:
        """When it is deleted despite PDBs and protection, by the first deadline that needs it."""
        known = [force_at(pod, self._deadline)] if self._deadline is not None else []
        return min([*known, *(one.forces_at(pod) for one in self._coming)], default=None)

    def _cut(self, asked_at: datetime, stops: datetime) -> datetime:
        """When it stops, if deadlines that come cut its grace period."""
        return min([stops, *(one.stop_by(asked_at) for one in self._coming)])

    def _times(
        self,
        pod: Pod,
        blockers: tuple[EvictionBlocker, ...],
        asked: datetime | None,
        forced: datetime | None,
        stopped: datetime | None,
    ) -> PodTimes:
        return PodTimes(
            pod=pod.key,
            tier=TIERS[tier_of(pod)],
            blocked_by=blockers,
            asked_at=asked,
            forced_at=forced,
            stopped_by=stopped,
        )

    def _terminating(self, pod: Pod) -> PodTimes:
        stops, cut = stops_at(pod), None
        seconds = shortened(pod, self._deadline) if self._deadline is not None else None
        if stops is not None and seconds is not None:
            cut = self._now
            stops = later(requested_at(pod), seconds_of(seconds))
        for coming in self._coming:
            by = coming.stop_by(requested_at(pod))
            if stops is not None and by < stops:
                cut, stops = cut or coming.since, by
        return PodTimes(
            pod=pod.key,
            tier=TIERS[tier_of(pod)],
            forced_at=cut,
            stopped_by=stops,
            terminating=True,
        )

    def _asked_at(
        self, item: PodView, verdict: Verdict, blockers: Iterable[EvictionBlocker]
    ) -> datetime | None:
        if verdict.reason in REFUSED:
            return self._retried_at(item, verdict)
        if isinstance(verdict.action, Evict):
            return self._now
        # Whether a PDB blocks the eviction is known only when it is tried.
        ends = [
            self._opens if blocker.tier else blocker.until
            for blocker in blockers
            if not blocker.pdb
        ]
        return latest([self._now, *ends])

    def _retried_at(self, item: PodView, verdict: Verdict) -> datetime | None:
        """A pod that is not tried itself may be evicted when the pod that is tried for it is."""
        pdbs = tuple(one.uid for one in item.pdbs)
        forced = force_at(item.pod, self._deadline) if self._deadline is not None else None
        if isinstance(verdict.action, Evict):
            self._tried[pdbs] = self._now
            return self._now
        if verdict.recheck_at is None or verdict.recheck_at == forced:
            return self._tried.get(pdbs)
        self._tried.setdefault(pdbs, verdict.recheck_at)
        return verdict.recheck_at

    def _ends_by(self, blocker: EvictionBlocker) -> datetime | None:
        return self._opens_by if blocker.tier else blocker.until

    def _blockers(self, item: PodView, verdict: Verdict) -> Iterable[EvictionBlocker]:
        pod = item.pod
        if verdict.reason is Reason.TIER_WAITS:
            yield EvictionBlocker(verdict.facts[0], tier=True)
        clock = self._settings.protection_clock
        protection = protection_of(pod, cap=self._drain.cap, clock=clock)
        if protection is not None and self._now < protection.until:
            yield EvictionBlocker(protection, protection.ends_at)
        granted = self._allowances.grants(pod, item.pdbs)
        if not granted or (verdict.reason in REFUSED and item.answer is not None):
            yield EvictionBlocker(self._refusal(item, granted), pdb=True)

    def _refusal(self, item: PodView, granted: bool) -> Fact:
        if granted and item.answer is not None:
            return Quoted(item.answer.message)
        return refusal_of([blocks(b, first=self._allowances.taken_by(b)) for b in item.pdbs])


def latest(instants: Iterable[datetime | None]) -> datetime | None:
    """None if one of them is None, which means never."""
    found = None
    for instant in instants:
        if instant is None:
            return None
        found = instant if found is None else max(found, instant)
    return found


def _plus(instant: datetime | None, span: timedelta) -> datetime | None:
    return later(instant, span) if instant is not None else None
