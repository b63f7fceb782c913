"""Report on each claim whose instance the cloud recommends to leave: condition ``RebalanceRecommended``.

The condition only makes its node a candidate (``disrupt/methods/rebalance``). It stays for as long as the claim:
no cloud takes a recommendation back, and a restart must not forget it. To keep the node, protect it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.facts import Fact, Quoted
from tenure.core.marks.candidacy import says_recommended
from tenure.core.marks.ownership import claim_status, is_ours
from tenure.core.notice.facts import RebalanceAnnounced
from tenure.core.reasons import Reason
from tenure.core.verdicts import say
from tenure.model.api.names import REBALANCE_CONDITION
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import NODE_CLAIMS
from tenure.model.settings import Settings
from tenure.model.snapshot.observations import Announcement
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import is_unreadable


class RecommendationView(msgspec.Struct, frozen=True):
    claim: NodeClaim
    #: What the cloud announced to this process; None: only the claim's condition says so.
    announced: Announcement | None


class RecommendationDecider:
    concern = Concern.REBALANCE

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.claims

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        return (change.key,) if change.resource == NODE_CLAIMS else ()

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return (subject.name,) if subject.kind == NODE_CLAIMS.kind else ()

    def view(self, snapshot: Snapshot, key: str) -> RecommendationView | None:
        claim = snapshot.claims.get(key)
        if claim is None or claim.deleting or is_unreadable(claim) or not is_ours(claim, snapshot):
            return None
        announced = snapshot.observations.recommendations.get(claim.uid)
        if announced is None and not claim.is_true(REBALANCE_CONDITION):
            return None
        return RecommendationView(claim, announced)

    def decide(
        self, view: RecommendationView, settings: Settings, now: datetime
    ) -> Sequence[Verdict]:
        claim, fact = view.claim, _fact(view)
        action = None
        if not claim.is_true(REBALANCE_CONDITION):
            action = claim_status(claim, says_recommended(str(fact)))
        reason = Reason.REBALANCE_RECOMMENDED
        return (say(Concern.REBALANCE, claim, reason, fact, action=action),)


def _fact(view: RecommendationView) -> Fact:
    claim, announced = view.claim, view.announced
    if announced is not None:
        return RebalanceAnnounced(announced.by, announced.at, claim.provider_id)
    condition = claim.condition(REBALANCE_CONDITION)
    assert condition is not None, "else there is no view"
    return Quoted(condition.message)
