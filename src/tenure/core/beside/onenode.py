"""The lever of one Node: what is concluded from what stands there, and from what covers the Node.

In the order in which the rules bite:

1. a Node that leaves has none: it would have no effect. From one whose NodeClaim is gone it is removed, whatever a
   window says: Karpenter disrupts no such Node;
2. while it is not known which Karpenter is in charge, no lever is set and none is removed;
3. a value that a user wrote over ours, or took our mark from, is the user's: our marks are dropped;
4. a value without our mark is the user's: it is never touched. Where it is not ``"true"``, Karpenter
   ignores it, and that is reported;
5. while NodePoolPolicies cannot be listed, a lever stays: a budget may be why it is there;
6. a Node that a window, a protection or a replacement under way (``cover``) or a budget (``limits``) covers has
   the lever, any other has not.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec

from tenure.core.beside.cover import BUDGET, Causes, Cover, changes_at
from tenure.core.beside.facts.levers import (
    LeverBlocks,
    LeverNoEffect,
    LeverNotNeeded,
    MarkDropped,
    NodeLeaves,
    NodeWithoutClaim,
    PoliciesUnlisted,
    UsersProtection,
    ValueInTheWay,
)
from tenure.core.beside.karpenter import Karpenter
from tenure.core.beside.kinds import DISRUPTION, REPAIR, LeverKind
from tenure.core.beside.mark import ON, Lever, is_marked, is_on, is_torn, says, set_lever, take_back
from tenure.core.beside.replacing.stand import Stand, stand_verdict
from tenure.core.decision import Action, Verdict
from tenure.core.facts import Fact
from tenure.core.reasons import Reason
from tenure.core.verdicts import say
from tenure.model.api.meta import FOR_EVER
from tenure.model.api.node import Node


class LeverView(msgspec.Struct, frozen=True, kw_only=True):
    causes: Causes
    karpenter: Karpenter
    #: The Node or its claim is being deleted.
    leaves: bool = False
    #: Karpenter could disrupt it next.
    next: bool = False
    #: Why policies cannot be listed; empty if they can.
    policies_unlisted: str = ""
    #: It is a replacement.
    stand: Stand | None = None

    @property
    def node(self) -> Node:
        return self.causes.node

    @property
    def kind(self) -> LeverKind:
        return self.causes.kind

    @property
    def value(self) -> str | None:
        return self.node.annotations.get(self.kind.annotation)


def node_verdicts(
    view: LeverView, cover: Cover | None, now: datetime, *, open_by: Fact | None = None
) -> tuple[Verdict, ...]:
    """Of the Node, and of its claim where that is a replacement."""
    found = lever_verdict(view, cover, now, open_by=open_by)
    if view.stand is None or view.leaves or view.karpenter.problem is not None:
        return (found,)
    return (found, stand_verdict(view.stand, view.node))


def lever_verdict(
    view: LeverView, cover: Cover | None, now: datetime, *, open_by: Fact | None = None
) -> Verdict:
    """``open_by``: why it is left open although budgets limit its pool."""
    if view.leaves:
        return _say(view, Reason.LEVER_OFF, NodeLeaves(view.node.name))
    if view.karpenter.problem is not None:
        return _say(view, Reason.LEVER_WAITS, view.karpenter.problem)
    verdict = _decided(view, cover or _kept(view), now)
    if open_by is not None and verdict.reason in (Reason.LEVER_OFF, Reason.LEVER_REMOVED):
        verdict = msgspec.structs.replace(verdict, facts=(*verdict.facts, open_by))
    return msgspec.structs.replace(
        verdict,
        recheck_at=changes_at(view.causes, now),
        urgent=view.next and verdict.action is not None,
    )


def _kept(view: LeverView) -> Cover | None:
    if not view.policies_unlisted or view.kind != DISRUPTION or not is_on(view.node, view.kind):
        return None
    fact = PoliciesUnlisted(view.node.name, view.policies_unlisted)
    because = "NodePoolPolicies cannot be listed"
    return Cover(because=because, facts=(fact,), until=FOR_EVER, causes=(BUDGET,))


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
    unneeded: Fact = LeverNotNeeded(node.name, changes_at(view.causes, now), kind)
    if view.causes.claim is None:
        unneeded = NodeWithoutClaim(node.name, kind)
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
        claim=view.causes.claim.name if view.causes.claim is not None else "",
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
    more = (*_no_effect(view), *cover.untold)
    blocks = LeverBlocks(
        node=node.name,
        because=cover.because,
        until=cover.until,
        beyond=cover.beyond,
        causes=cover.causes,
        kind=kind,
        stands=is_on(node, kind),
        alone=not more,
    )
    facts = (blocks, *more)
    if says(node, lever):
        return _say(view, Reason.LEVER_ON, *facts)
    return _say(view, Reason.LEVER_SET, *facts, action=set_lever(node, lever))


def _no_effect(view: LeverView) -> Iterator[Fact]:
    """The lever is set all the same: it acts as soon as Karpenter is one that knows it."""
    known, kind = view.karpenter, view.kind
    unknown = known.release is not None and known.release < kind.since
    if unknown or (kind == REPAIR and known.legacy_repair):
        yield LeverNoEffect(view.node.name, kind, known.version, legacy=not unknown)
