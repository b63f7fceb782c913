"""Remember on a new NodeClaim that its Node has been Ready: beside Karpenter no condition says so.

Without it a Node that is Ready, and then not, before it is initialized would be one that has never been
Ready, and its ``readinessTTL`` would terminate it. Only claims for which a user has written a TTL are
written to, once each; an initialized one says enough by itself. That a Node is lost is remembered by repair.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial

import msgspec

from tenure.core.beside.facts.karpenter import ReadyNoted
from tenure.core.beside.karpenter import karpenter_of
from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.facts import Fact
from tenure.core.health.readiness import initialization_ttl
from tenure.core.marks.ownership import claims_touched
from tenure.core.marks.timeout import note_ready, ready_once, states_readiness
from tenure.core.reasons import Reason
from tenure.core.verdicts import say
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import CRDS, DEPLOYMENTS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import is_unreadable

_say = partial(say, Concern.MEMORY)


class MemoryView(msgspec.Struct, frozen=True, kw_only=True):
    claim: NodeClaim
    #: Its only Node, which is Ready or has been.
    node: Node
    #: Why Tenure only looks; None: it does not.
    problem: Fact | None = None


class MemoryDecider:
    concern = Concern.MEMORY

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.new_claims()

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource in (CRDS, DEPLOYMENTS):
            return snapshot.new_claims()
        return claims_touched(change, snapshot)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> MemoryView | None:
        claim = snapshot.claims.get(key)
        if claim is None or is_unreadable(claim) or claim.deleting:
            return None
        if claim.initialized or not claim.registered or not _is_limited(claim):
            return None
        nodes = snapshot.nodes_with_provider(claim.provider_id)
        shared = len(snapshot.claims_with_provider(claim.provider_id)) > 1
        node = next(iter(nodes.values()), None)
        if node is None or len(nodes) > 1 or shared or is_unreadable(node):
            return None
        if not node.ready and ready_once(claim) is None:
            return None
        problem = karpenter_of(snapshot, self._settings).problem
        return MemoryView(claim=claim, node=node, problem=problem)

    def decide(self, view: MemoryView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        claim, known = view.claim, ready_once(view.claim)
        if known is not None:
            at = known.last_transition_time
            return (_say(claim, Reason.READY_NOTED, ReadyNoted(view.node.name, at)),)
        noted = ReadyNoted(view.node.name)
        if view.problem is not None:
            return (_say(claim, Reason.LEVER_WAITS, noted, view.problem),)
        return (_say(claim, Reason.READY_NOTED, noted, action=note_ready(claim)),)


def _is_limited(claim: NodeClaim) -> bool:
    """Whether a time that a user has written depends on it."""
    return states_readiness(claim) or initialization_ttl(claim) is not None
