"""Interruptions: the cloud takes an instance back, and its claim goes at once.

Nothing blocks this, neither windows nor budgets nor protection: the instance goes anyway, and what can
be done is to drain it before. Of each claim whose interruption was announced, the first that applies:

1. late       the instant that was announced has passed, and nothing was done: nothing is done;
2. marked     the deadline is stamped on the claim, with who announced it (``marks/interruption``);
              a deadline that it has already is never put off;
3. said       its condition ``DisruptionReason`` says ``Interrupted``, and until when;
4. deleted    the drain begins, and provisioning launches the capacity that its pods need.

From 2 on the cluster remembers it: a new leader goes on with 3. What comes again changes nothing,
unless it brings the deadline forward.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec

from tenure.core.decision import Action, Commitment, Concern, Delete, Ground, Subject, Verdict
from tenure.core.marks.command import says_reason
from tenure.core.marks.deadline import deadline_of, stamp_of
from tenure.core.marks.interruption import INTERRUPTED, interruption_mark, interruption_of
from tenure.core.marks.ownership import claim_status, claims_touched, is_ours
from tenure.core.marks.stamp import stamp_claim, stamp_for
from tenure.core.notice.facts import InstanceTakenBack, InterruptionLate
from tenure.core.reasons import Reason
from tenure.core.verdicts import also_of, say
from tenure.core.writes import delete_claim, patch
from tenure.model.api.meta import earlier, later
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import NODE_CLAIMS
from tenure.model.settings import Settings
from tenure.model.snapshot.observations import Announcement
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import is_unreadable

#: What public clouds give, where a notice does not say when.
USUAL_GRACE: Final = timedelta(minutes=2)
#: How metrics count it.
COUNTED_AS: Final = "interrupted"

_say = partial(say, Concern.INTERRUPTION)


class InterruptionView(msgspec.Struct, frozen=True):
    claim: NodeClaim
    nodes: tuple[Node, ...]
    #: What the cloud announced to this process; None: only the claim's mark says so.
    announced: Announcement | None


class InterruptionDecider:
    concern = Concern.INTERRUPTION

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.claims

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        return claims_touched(change, snapshot)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return (subject.name,) if subject.kind == NODE_CLAIMS.kind else ()

    def view(self, snapshot: Snapshot, key: str) -> InterruptionView | None:
        claim = snapshot.claims.get(key)
        if claim is None or is_unreadable(claim) or not is_ours(claim, snapshot):
            return None
        announced = snapshot.observations.interruptions.get(claim.uid)
        if announced is None and interruption_of(claim) is None:
            return None
        nodes = snapshot.nodes_with_provider(claim.provider_id)
        if len(snapshot.claims_with_provider(claim.provider_id)) > 1:
            nodes = {}  # To which claim they belong cannot be known.
        return InterruptionView(claim, tuple(nodes[name] for name in sorted(nodes)), announced)

    def decide(
        self, view: InterruptionView, settings: Settings, now: datetime
    ) -> Sequence[Verdict]:
        verdict = _Steps(view, now).verdict()
        return (verdict, *(also_of(node, verdict) for node in view.nodes))


class _Steps:
    """Of one claim, at one instant."""

    def __init__(self, view: InterruptionView, now: datetime) -> None:
        self._claim, self._announced, self._now = view.claim, view.announced, now
        self._mark = interruption_of(view.claim)
        self._until = view.announced.deadline if view.announced is not None else None
        self._known = self._known_deadline()

    def _known_deadline(self) -> datetime | None:
        """Of a claim that is not being deleted, only a stamp counts that came with the mark."""
        if not self._claim.deleting:
            return stamp_of(self._claim) if self._mark is not None else None
        deadline = deadline_of(self._claim)
        return deadline.at if deadline is not None else None

    def verdict(self) -> Verdict:
        claim, said = self._claim, self._mark or self._announced
        assert said is not None, "else there is no view"
        if self._mark is None and self._until is not None and self._until <= self._now:
            late = InterruptionLate(said.by, said.at, claim.provider_id, self._until)
            return _say(claim, Reason.INTERRUPTION_LATE, late)
        until = min((at for at in (self._until, self._known) if at is not None), default=None)
        fact = InstanceTakenBack(said.by, said.at, claim.provider_id, until)
        action = self._next_write(str(fact))
        verdict = _say(
            claim, Reason.INTERRUPTED, fact, action=action, recheck_at=self._recheck_at()
        )
        if not isinstance(action, Delete):
            return verdict
        # It has a deadline; the exact span would differ from instant to instant.
        commits = Commitment(reason=COUNTED_AS, bound=USUAL_GRACE)
        return msgspec.structs.replace(verdict, commits=commits)

    def _next_write(self, message: str) -> Action | None:
        claim = self._claim
        if self._brings_forward():
            return self._stamped()
        if self._mark is None:
            return patch(claim, {"annotations": self._marks()})
        if claim.deleting:
            return None
        if self._known is None:
            return self._stamped()  # The stamp was taken off, or cannot be read.
        said = claim_status(claim, says_reason(INTERRUPTED, message))
        return said if said is not None else delete_claim(claim, Ground.INTERRUPTED)

    def _brings_forward(self) -> bool:
        """Whether what was announced is earlier than the deadline it has."""
        if self._announced is None:
            return False
        if self._until is not None:
            return self._known is None or self._until < self._known
        usual = later(self._now, USUAL_GRACE)
        return self._mark is None and (self._known is None or usual < self._known)

    def _stamped(self) -> Action:
        marks, ground = self._marks(), Ground.INTERRUPTED
        if self._until is not None:
            return stamp_for(self._claim, self._until, ground, marks)
        return stamp_claim(self._claim, ground, USUAL_GRACE, marks)

    def _marks(self) -> dict[str, str]:
        """The first announcement is remembered."""
        if self._mark is not None or self._announced is None:
            return {}
        return interruption_mark(self._announced.by, self._announced.at)

    def _recheck_at(self) -> datetime | None:
        """When it is late, or its deadline is early enough without a stamp."""
        if self._mark is not None:
            return None
        if self._until is not None:
            return self._until
        if self._known is None or not self._brings_forward():
            return None
        return earlier(self._known, USUAL_GRACE)
