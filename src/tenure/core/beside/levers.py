"""Decide for every Node with a NodeClaim whether Karpenter may disrupt it voluntarily, or repair it.

A lever is an annotation that Karpenter honours (``kinds``, ``mark``); one decider for each. In the order in which the rules bite:

1. a Node that leaves has none: it would have no effect;
2. while it is not known which Karpenter is in charge, no lever is set and none is removed;
3. a value that a user wrote over ours, or took our mark from, is the user's: our marks are dropped;
4. a value without our mark is the user's: it is never touched. Where it is not ``"true"``, Karpenter
   ignores it, and that is reported;
5. a Node that a window or a protection covers (``cover``) has the lever, any other has not.

Nodes that Karpenter could disrupt next are first: their claim is Drifted or Consolidatable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import msgspec

from tenure.core.beside.cover import Causes, Cover, changes_at, cover_of
from tenure.core.beside.facts import (
    LeverBlocks,
    LeverNoEffect,
    LeverNotNeeded,
    MarkDropped,
    NodeLeaves,
    UsersProtection,
    ValueInTheWay,
)
from tenure.core.beside.karpenter import Karpenter, karpenter_of
from tenure.core.beside.kinds import DISRUPTION, REPAIR, LeverKind
from tenure.core.beside.mark import ON, Lever, is_marked, is_torn, says, set_lever, take_back
from tenure.core.decision import Action, Subject, Verdict
from tenure.core.facts import Fact
from tenure.core.protect.protection import protection_on
from tenure.core.reasons import Reason
from tenure.core.verdicts import say
from tenure.core.windows.windows import windows_for_commands
from tenure.model.api.meta import ApiObject
from tenure.model.api.names import CONSOLIDATABLE_CONDITION, DRIFTED_CONDITION
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import DEPLOYMENTS, MAINTENANCE_WINDOWS, NODE_CLAIMS, NODES
from tenure.model.api.window import MaintenanceWindow
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import is_unreadable


class LeverView(msgspec.Struct, frozen=True, kw_only=True):
    causes: Causes
    karpenter: Karpenter
    #: The Node or its claim is being deleted.
    leaves: bool = False
    #: Karpenter could disrupt it next.
    next: bool = False

    @property
    def node(self) -> Node:
        return self.causes.node

    @property
    def kind(self) -> LeverKind:
        return self.causes.kind

    @property
    def value(self) -> str | None:
        return self.node.annotations.get(self.kind.annotation)


class LeverDecider:
    def __init__(self, settings: Settings, kind: LeverKind = DISRUPTION) -> None:
        self._settings = settings
        self._kind = kind
        self.concern = kind.concern

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.nodes

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource == NODES:
            yield change.key
        elif change.resource == NODE_CLAIMS:
            for claim in change.versions():
                assert isinstance(claim, NodeClaim)
                yield from snapshot.nodes_with_provider(claim.provider_id)
        elif change.resource == DEPLOYMENTS or _alters_windows(change):
            yield from snapshot.nodes

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> LeverView | None:
        node = snapshot.nodes.get(key)
        claim = snapshot.claim_of(node) if node is not None else None
        if node is None or claim is None or is_unreadable(node):
            return None
        return LeverView(
            causes=Causes(
                kind=self._kind,
                node=node,
                claim=claim,
                windows=windows_for_commands(self._kind.actions, snapshot),
                protection=protection_on(claim, self._kind.annotation),
            ),
            karpenter=karpenter_of(snapshot, self._settings),
            leaves=node.deleting or claim.deleting,
            next=_is_next(claim),
        )

    def decide(self, view: LeverView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        if view.leaves:
            return (_say(view, Reason.LEVER_OFF, NodeLeaves(view.node.name)),)
        if view.karpenter.problem is not None:
            return (_say(view, Reason.LEVER_WAITS, view.karpenter.problem),)
        verdict = _decided(view, cover_of(view.causes, now), now)
        recheck_at = changes_at(view.causes, now)
        urgent = view.next and verdict.action is not None
        return (msgspec.structs.replace(verdict, recheck_at=recheck_at, urgent=urgent),)


def _say(view: LeverView, reason: Reason, *facts: Fact, action: Action | None = None) -> Verdict:
    return say(view.kind.concern, view.node, reason, *facts, action=action)


def _decided(view: LeverView, cover: Cover | None, now: datetime) -> Verdict:
    node, kind, value = view.node, view.kind, view.value
    if is_torn(node, kind) or (is_marked(node, kind) and value not in (None, ON)):
        dropped = MarkDropped(node.name, value or "", kind)
        return _say(view, Reason.LEVER_LEFT_TO_USER, dropped, action=take_back(node, kind))
    if value is not None and not is_marked(node, kind):
        return _users_own(view, cover, value)
    if cover is not None:
        return _covered(view, cover)
    unneeded = LeverNotNeeded(node.name, changes_at(view.causes, now), kind)
    if is_marked(node, kind):
        return _say(view, Reason.LEVER_REMOVED, unneeded, action=take_back(node, kind))
    return _say(view, Reason.LEVER_OFF, unneeded)


def _users_own(view: LeverView, cover: Cover | None, value: str) -> Verdict:
    node, kind = view.node, view.kind
    if value == ON:
        return _say(view, Reason.LEVER_NOT_OURS, UsersProtection(node.name, kind))
    in_the_way = ValueInTheWay(
        node=node.name,
        value=value,
        claim=view.causes.claim.name,
        because=cover.because if cover is not None else "",
        kind=kind,
    )
    if value == "false" and cover is None:
        return _say(view, Reason.LEVER_OFF, LeverNotNeeded(node.name, kind=kind))
    facts = cover.facts if cover is not None else ()
    return _say(view, Reason.LEVER_IMPOSSIBLE, in_the_way, *facts)


def _covered(view: LeverView, cover: Cover) -> Verdict:
    node, kind = view.node, view.kind
    lever = Lever(kind, cover.because, cover.until)
    blocks = LeverBlocks(
        node=node.name,
        because=cover.because,
        until=cover.until,
        beyond=cover.beyond,
        causes=cover.causes,
        kind=kind,
    )
    facts = (blocks, *_no_effect(view), *cover.facts)
    if says(node, lever):
        return _say(view, Reason.LEVER_ON, *facts)
    return _say(view, Reason.LEVER_SET, *facts, action=set_lever(node, lever))


def _no_effect(view: LeverView) -> Iterator[Fact]:
    """The lever is set all the same: it acts as soon as Karpenter is one that knows it."""
    known, kind = view.karpenter, view.kind
    unknown = known.release is not None and known.release < kind.since
    if unknown or (kind == REPAIR and known.legacy_repair):
        yield LeverNoEffect(view.node.name, kind, known.version, legacy=not unknown)


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
