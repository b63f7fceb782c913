"""Without Karpenter: levers that Tenure has set beside it. They are taken back.

Windows, protections and budgets hold without them, and a lever is no user's wish: as long as its mark stands there,
``karpenter.sh/do-not-disrupt: "true"`` protects nothing. So the marks go, and what a user writes from then on counts. A
value that is not ours stays. On a NodeClaim it is the lever of a replacement.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Final

import msgspec

from tenure.core.beside.kinds import LEVERS
from tenure.core.beside.leftover.facts import LeversLeft
from tenure.core.beside.mark import levers_on, take_back_alone
from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.marks.ownership import LEVER_MARKS, is_lever, is_our_node, is_ours, no_lever
from tenure.core.reasons import Reason
from tenure.core.verdicts import say
from tenure.core.writes import patch
from tenure.model.api.names import DO_NOT_DISRUPT
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import NODE_CLAIMS, NODES
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import is_unreadable

#: Prefix of the key of a Node; no name of a claim can contain a slash.
_NODE: Final = "node/"

_say = partial(say, Concern.LEFT_OVER)


class LeversLeftView(msgspec.Struct, frozen=True):
    thing: Node | NodeClaim


class LeversLeftDecider:
    concern = Concern.LEFT_OVER

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        yield from snapshot.claims
        yield from (_NODE + name for name in snapshot.nodes)

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource == NODES:
            yield _NODE + change.key
        elif change.resource == NODE_CLAIMS:
            yield change.key
            for claim in change.versions():  # By it a Node is ours.
                assert isinstance(claim, NodeClaim)
                nodes = snapshot.nodes_with_provider(claim.provider_id)
                yield from (_NODE + name for name in nodes)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> LeversLeftView | None:
        if key.startswith(_NODE):
            node = snapshot.nodes.get(key.removeprefix(_NODE))
            if node is None or is_unreadable(node) or not levers_on(node):
                return None
            return LeversLeftView(node) if is_our_node(node, snapshot) else None
        claim = snapshot.claims.get(key)
        if claim is None or is_unreadable(claim) or not is_ours(claim, snapshot):
            return None
        marked = any(mark in claim.annotations for mark in LEVER_MARKS)
        return LeversLeftView(claim) if marked else None

    def decide(self, view: LeversLeftView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        thing = view.thing
        if isinstance(thing, Node):
            ours = (kind.annotation for kind in LEVERS if is_lever(thing, kind.annotation))
            left = LeversLeft(NODES.kind, thing.name, tuple(ours))
            action = take_back_alone(thing, *levers_on(thing))
        else:
            own = (DO_NOT_DISRUPT,) if is_lever(thing) else ()
            left = LeversLeft(NODE_CLAIMS.kind, thing.name, own)
            action = patch(thing, {"annotations": no_lever(thing)})
        return (_say(thing, Reason.LEFT_OVER_REMOVED, left, action=action),)
