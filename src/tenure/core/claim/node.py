"""Report the state of every Node that is not terminating, also of Nodes that are not ours.

One verdict per Node, never an action; the first of these that applies:

1. not ours       no claim of ours has its provider id: Tenure never writes to it;
2. several        more than one claim or Node has the provider id, so its claim is unknown;
3. rebooting      its claim is being rebooted, since when;
4. booting        its claim is not initialized: what is still missing;
5. not Ready      it was initialized, and is not Ready now: since when;
6. in service     initialized and Ready, since when; cordoned or not.

``terminate`` evaluates a terminating Node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from tenure.core.claim.facts import (
    Cordoned,
    Initialized,
    InitializedSoon,
    NodeNotOurs,
    NodeStateUnknown,
    ProviderIdShared,
)
from tenure.core.claim.initialize import why_not_initialized
from tenure.core.claim.view import readiness_of, rebooting
from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.facts import Fact
from tenure.core.marks.ownership import is_ours
from tenure.core.reasons import Reason
from tenure.core.terminate.drain import is_finalizing
from tenure.core.writes import subject_of
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import NODE_CLAIMS, NODES
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import first_unreadable


class NodeView(msgspec.Struct, frozen=True, kw_only=True):
    node: Node
    #: Ours, with the Node's provider id, by name.
    claims: tuple[NodeClaim, ...]
    #: How many Nodes have that provider id.
    twins: int


class NodeDecider:
    concern = Concern.NODE

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.nodes

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource == NODES:
            yield change.key
            for node in change.versions():
                assert isinstance(node, Node)
                yield from snapshot.nodes_with_provider(node.spec.provider_id)
        elif change.resource == NODE_CLAIMS:
            for claim in change.versions():
                assert isinstance(claim, NodeClaim)
                yield from snapshot.nodes_with_provider(claim.provider_id)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> NodeView | None:
        node = snapshot.nodes.get(key)
        if node is None or is_finalizing(node):
            return None
        claims = snapshot.claims_with_provider(node.spec.provider_id)
        return NodeView(
            node=node,
            claims=tuple(c for _, c in sorted(claims.items()) if is_ours(c, snapshot)),
            twins=len(snapshot.nodes_with_provider(node.spec.provider_id)),
        )

    def decide(self, view: NodeView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        reason, *facts = _state(view)
        verdict = Verdict(
            concern=Concern.NODE,
            subject=subject_of(view.node),
            reason=reason,
            facts=tuple(facts),
        )
        return (verdict,)


def _state(view: NodeView) -> tuple[Reason, *tuple[Fact, ...]]:
    node, claims = view.node, view.claims
    if not claims:
        return Reason.NOT_OURS, NodeNotOurs()
    if why := first_unreadable(claims):
        return Reason.BLOCKED_BY_UNREADABLE, NodeStateUnknown(why)
    if len(claims) > 1 or view.twins > 1:
        shared = ProviderIdShared(tuple(claim.name for claim in claims))
        return Reason.MULTIPLE_NODES_FOUND, shared
    (claim,) = claims
    if claim.rebooting:
        return Reason.REBOOTING, rebooting(claim)
    if not claim.initialized:
        missing = why_not_initialized(claim, node)
        return missing or (Reason.INITIALIZING, InitializedSoon(claim.name))
    if not node.ready:
        return Reason.NODE_NOT_READY, readiness_of(node)
    condition = claim.condition("Initialized")
    since = condition.last_transition_time if condition else None
    cordoned = (Cordoned(),) if node.spec.unschedulable else ()
    return Reason.IN_SERVICE, Initialized(since, claim=claim.name), *cordoned
