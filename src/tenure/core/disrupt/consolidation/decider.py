"""Say of each node what the plan of consolidation makes of it. Nothing is done here.

Of each claim that the last plan knows of, the first of these that applies:

1. approved   it is being consolidated: what that saves and disturbs;
2. candidate  a move of the plan takes its node away;
3. later      its pods have changed within ``consolidateAfter``;
4. stays      why it is neither deleted nor replaced by something cheaper.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial

import msgspec

from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.disrupt.consolidation.subject import PLAN
from tenure.core.disrupt.facts.consolidation import NodeUnderutilized, PodsChangedLately
from tenure.core.facts import Fact
from tenure.core.gates.reasons import Disruption
from tenure.core.marks.command import is_replaced, reason_of
from tenure.core.marks.ownership import claims_touched, is_ours
from tenure.core.provision.facts import TypesAwaited
from tenure.core.reasons import Reason
from tenure.core.verdicts import also_of, say
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.settings import Settings
from tenure.model.snapshot.consolidation import PlannedMove
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import is_unreadable

_say = partial(say, Concern.CONSOLIDATION)


class ConsolidationView(msgspec.Struct, frozen=True, kw_only=True):
    claim: NodeClaim
    node: Node
    #: The move that takes it away; None: there is none.
    move: PlannedMove | None = None
    #: Why there is none.
    why: tuple[Fact, ...] = ()


class ConsolidationDecider:
    concern = Concern.CONSOLIDATION

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.claims

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        return claims_touched(change, snapshot)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.claims if subject == PLAN else ()

    def view(self, snapshot: Snapshot, key: str) -> ConsolidationView | None:
        claim, plan = snapshot.claims.get(key), snapshot.observations.consolidation
        if claim is None or plan is None or is_unreadable(claim):
            return None
        if claim.deleting or claim.rebooting:
            return None
        node = snapshot.nodes.get(claim.node_name)
        if node is None or is_unreadable(node) or not is_ours(claim, snapshot):
            return None
        move = plan.by_claim.get(key)
        if move is not None and node.name in move.nodes:
            return ConsolidationView(claim=claim, node=node, move=move)
        why = plan.why.get(node.name, ())
        if not why or is_replaced(claim):
            return None
        return ConsolidationView(claim=claim, node=node, why=why)

    def decide(
        self, view: ConsolidationView, settings: Settings, now: datetime
    ) -> Sequence[Verdict]:
        claim, node, move = view.claim, view.node, view.move
        if move is None:
            late = isinstance(view.why[0], PodsChangedLately | TypesAwaited)
            reason = Reason.CONSOLIDATES_LATER if late else Reason.UNCONSOLIDATABLE
            verdict = _say(claim, reason, *view.why)
            return verdict, also_of(node, verdict)
        approved = is_replaced(claim) and reason_of(claim) == Disruption.UNDERUTILIZED
        if is_replaced(claim) and not approved:
            return ()
        reason = Reason.CONSOLIDATION_APPROVED if approved else Reason.CONSOLIDATION_CANDIDATE
        verdict = _say(claim, reason, NodeUnderutilized.of(node.name, move))
        return verdict, also_of(node, verdict)
