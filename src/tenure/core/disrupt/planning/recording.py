"""Record a start on its pool before it happens, where a budget counts starts.

So a crash after the start cannot make a budget forget it. A candidate waits while the record is full,
and after the API server has refused a write for its start.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial

from tenure.core.decision import Concern, Verdict
from tenure.core.disrupt.candidates import Wanted
from tenure.core.disrupt.facts.planning import StartRecorded, StartRefused
from tenure.core.facts import RetriedAt
from tenure.core.gates.facts import StartsUnreadable
from tenure.core.gates.gatefacts import Blocked
from tenure.core.gates.operations import ASKED, Gate
from tenure.core.marks.starts import (
    has_velocity,
    is_recorded,
    new_start,
    recorded_at,
    room_for,
)
from tenure.core.reasons import Reason
from tenure.core.verdicts import say
from tenure.core.writes import subject_of
from tenure.model.api.nodepool import DisruptionStart
from tenure.model.settings import Settings

_say = partial(say, Concern.DISRUPTION)


class Recording:
    """Of the starts of one pass."""

    def __init__(
        self,
        blocked: Callable[[Wanted, Blocked], Verdict],
        changes_at: Callable[[Wanted], datetime | None],
        settings: Settings,
        now: datetime,
    ) -> None:
        """``blocked``: says that a gate blocks it; ``changes_at``: when gates may change (``Gating``)."""
        self._blocked, self._changes_at = blocked, changes_at
        self._settings, self._now = settings, now
        #: By pool: starts that have to be recorded before they are committed.
        self.starts: dict[str, list[DisruptionStart]] = {}

    def waits(self, one: Wanted, beside: int = 0) -> Verdict | None:
        """Why its start cannot be recorded or written now; None: it can, or need not.

        ``beside``: starts of its pool that have to be recorded with it.
        """
        return self._refused(one) or self._full(one, beside)

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

    def _full(self, one: Wanted, beside: int) -> Verdict | None:
        pool = one.pool.pool
        recorded = len(self.starts.get(pool.name, ())) + beside
        if not self._needs_record(one) or recorded < room_for(pool):
            return None
        at = self._changes_at(one)
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
        if not is_recorded(self._settings):
            return False
        paced = Gate.BUDGET in ASKED[one.candidate.operation] and claim.initialized
        return paced and has_velocity(pool) and recorded_at(pool, claim, self._now) is None

    def record(self, one: Wanted) -> Verdict | None:
        """Waits for the record of its start, if a budget needs one and it is not there."""
        claim, pool, candidate = one.claim, one.pool.pool, one.candidate
        if not self._needs_record(one):
            return None
        reason = one.method.traits.reason
        start = new_start(pool, claim, reason, candidate.node.labels)
        self.starts.setdefault(pool.name, []).append(start)
        facts = (*candidate.why, StartRecorded(pool.name))
        return _say(claim, Reason.REPLACING, *facts)
