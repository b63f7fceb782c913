"""Decide for every Node with a NodeClaim whether Karpenter may disrupt it voluntarily.

The lever is an annotation that Karpenter honours (``mark``). In the order in which the rules bite:

1. a Node that leaves has none: it would have no effect;
2. while it is not known which Karpenter is in charge, no lever is set and none is removed;
3. a value that a user wrote over ours, or took our mark from, is the user's: our marks are dropped;
4. a value without our mark is the user's: it is never touched. Where it is not ``"true"``, Karpenter
   ignores it, and that is reported;
5. a Node that a window, a protection or a replacement under way covers (``cover``) has the lever, any other
   has not. The claim of a replacement gets rid of its marks, too (``replacing``).

Nodes that Karpenter could disrupt next are first: their claim is Drifted or Consolidatable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial

import msgspec

from tenure.core.beside.cover import ACTIONS, Causes, Cover, changes_at, cover_of
from tenure.core.beside.facts import (
    LeverBlocks,
    LeverNotNeeded,
    MarkDropped,
    NodeLeaves,
    UsersProtection,
    ValueInTheWay,
)
from tenure.core.beside.karpenter import Karpenter, karpenter_of
from tenure.core.beside.mark import ON, Lever, is_marked, is_torn, says, set_lever, take_back
from tenure.core.beside.replacing import Stand, replacing_of, stand_of, stand_verdict
from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.marks.command import replacements_by_uid
from tenure.core.protect.protection import protection_on
from tenure.core.reasons import Reason
from tenure.core.verdicts import say
from tenure.core.windows.windows import windows_for_commands
from tenure.model.api.meta import ApiObject
from tenure.model.api.names import CONSOLIDATABLE_CONDITION, DO_NOT_DISRUPT, DRIFTED_CONDITION
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import DEPLOYMENTS, MAINTENANCE_WINDOWS, NODE_CLAIMS, NODES
from tenure.model.api.window import MaintenanceWindow
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import is_unreadable

_say = partial(say, Concern.LEVER)


class LeverView(msgspec.Struct, frozen=True, kw_only=True):
    causes: Causes
    karpenter: Karpenter
    #: The Node or its claim is being deleted.
    leaves: bool = False
    #: Karpenter could disrupt it next.
    next: bool = False
    #: It is a replacement.
    stand: Stand | None = None

    @property
    def node(self) -> Node:
        return self.causes.node


class LeverDecider:
    concern = Concern.LEVER

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.nodes

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource == NODES:
            yield change.key
        elif change.resource == NODE_CLAIMS:
            for claim in change.versions():
                assert isinstance(claim, NodeClaim)
                replacements = snapshot.once(replacements_by_uid).get(claim.uid, ())
                for one in (claim, *replacements):
                    yield from snapshot.nodes_with_provider(one.provider_id)
        elif change.resource == DEPLOYMENTS or _alters_windows(change):
            yield from snapshot.nodes

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> LeverView | None:
        node = snapshot.nodes.get(key)
        claim = snapshot.claim_of(node) if node is not None else None
        if node is None or claim is None or is_unreadable(node):
            return None
        stand = stand_of(claim, snapshot)
        return LeverView(
            causes=Causes(
                node=node,
                claim=claim.name,
                windows=windows_for_commands(ACTIONS, snapshot),
                protection=protection_on(claim),
                replacing=replacing_of(claim, node, stand),
            ),
            karpenter=karpenter_of(snapshot, self._settings),
            leaves=node.deleting or claim.deleting,
            next=_is_next(claim),
            stand=stand,
        )

    def decide(self, view: LeverView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        if view.leaves:
            return (_say(view.node, Reason.LEVER_OFF, NodeLeaves(view.node.name)),)
        if view.karpenter.problem is not None:
            return (_say(view.node, Reason.LEVER_WAITS, view.karpenter.problem),)
        verdict = _decided(view, cover_of(view.causes, now), now)
        recheck_at = changes_at(view.causes, now)
        urgent = view.next and verdict.action is not None
        verdict = msgspec.structs.replace(verdict, recheck_at=recheck_at, urgent=urgent)
        more = (stand_verdict(view.stand, view.node),) if view.stand is not None else ()
        return (verdict, *more)


def _decided(view: LeverView, cover: Cover | None, now: datetime) -> Verdict:
    node, value = view.node, view.node.annotations.get(DO_NOT_DISRUPT)
    if is_torn(node) or (is_marked(node) and value not in (None, ON)):
        dropped = MarkDropped(node.name, value or "")
        return _say(node, Reason.LEVER_LEFT_TO_USER, dropped, action=take_back(node))
    if value is not None and not is_marked(node):
        return _users_own(view, cover, value)
    if cover is not None:
        return _covered(node, cover)
    unneeded = LeverNotNeeded(node.name, changes_at(view.causes, now))
    if is_marked(node):
        return _say(node, Reason.LEVER_REMOVED, unneeded, action=take_back(node))
    return _say(node, Reason.LEVER_OFF, unneeded)


def _users_own(view: LeverView, cover: Cover | None, value: str) -> Verdict:
    node = view.node
    if value == ON:
        return _say(node, Reason.LEVER_NOT_OURS, UsersProtection(node.name))
    because = cover.because if cover is not None else ""
    in_the_way = ValueInTheWay(
        node=node.name, value=value, claim=view.causes.claim, because=because
    )
    if value == "false" and cover is None:
        return _say(node, Reason.LEVER_OFF, LeverNotNeeded(node.name))
    facts = cover.facts if cover is not None else ()
    return _say(node, Reason.LEVER_IMPOSSIBLE, in_the_way, *facts)


def _covered(node: Node, cover: Cover) -> Verdict:
    lever = Lever(cover.because, cover.until)
    blocks = LeverBlocks(
        node=node.name,
        because=cover.because,
        until=cover.until,
        beyond=cover.beyond,
        causes=cover.causes,
    )
    if says(node, lever):
        return _say(node, Reason.LEVER_ON, blocks, *cover.facts)
    return _say(node, Reason.LEVER_SET, blocks, *cover.facts, action=set_lever(node, lever))


def _is_next(claim: NodeClaim) -> bool:
    for type_ in (DRIFTED_CONDITION, CONSOLIDATABLE_CONDITION):
        condition = claim.condition(type_)
        if condition is not None and condition.status == "True":
            return True
    return False


def _alters_windows(change: Change) -> bool:
    """Whether windows may forbid something else: our own writes of their status do not."""
    if change.resource != MAINTENANCE_WINDOWS:
        return False
    return _meaning(change.old) != _meaning(change.new) or change.new is None


def _meaning(window: ApiObject | None) -> object:
    if not isinstance(window, MaintenanceWindow) or is_unreadable(window):
        return window  # A stand-in is compared as a whole.
    return window.spec
