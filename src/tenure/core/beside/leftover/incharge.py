"""Beside Karpenter: what a Tenure that was in charge has left on NodeClaims and Nodes.

Karpenter is in charge of both from then on, and does not know these marks. Of each claim that is not being deleted:

1. marks of a command with replacements: ``core.disrupt`` rolls that back, whatever its reason;
2. marks of a repair by force, of an interruption or of what is left of a command: removed, with the deadline that
   was written for it. That would cut short the drain of a later deletion;
3. the taint ``tenure.dev/reserved``: removed. It is a startup taint, and no pod is nominated any more.

Taints and conditions under Karpenter's name are Karpenter's to remove, and it does: ``karpenter.sh/disrupted``,
``karpenter.sh/rebooting``, ``DisruptionReason``. What Tenure in charge only remembers is left: nothing acts on it, and
``tenure release`` removes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Final

import msgspec

from tenure.core.beside.karpenter import karpenter_of
from tenure.core.beside.leftover.facts import MarksOfTenureInCharge, ReservedTaintLeft
from tenure.core.decision import Action, Concern, Subject, Verdict
from tenure.core.facts import Fact
from tenure.core.marks.command import COMMAND_MARKS, is_command_beside, is_replaced
from tenure.core.marks.interruption import is_interrupted
from tenure.core.marks.ownership import claims_touched
from tenure.core.marks.repaired import is_stamped_by_us
from tenure.core.marks.taints import is_reserved, untaint_reserved
from tenure.core.reasons import Reason
from tenure.core.verdicts import say
from tenure.core.writes import patch
from tenure.model.api import names
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.resource import CRDS, DEPLOYMENTS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import is_unreadable

#: With one of these the deadline of a claim that is not being deleted is that of Tenure in charge.
STAMPED_FOR: Final = (
    names.REPLACED_BY,
    names.DISRUPTION_REASON,
    names.REPAIR_REASON,
    names.INTERRUPTION,
)
#: What says that something is under way; beside Karpenter a command has a mark of its own.
_UNDER_WAY: Final = tuple(dict.fromkeys((*COMMAND_MARKS, *STAMPED_FOR, names.REPAIR_PROBE)))

#: Karpenter goes on with a reboot by these.
_KARPENTERS: Final = frozenset(
    {names.TERMINATION_TIMESTAMP, names.REBOOT_GRACE_PERIOD, names.REBOOT_PRE_BOOT_ID}
)
#: All that Tenure in charge remembers on claims and pools.
_REMEMBERED: Final = (names.MARKS - _KARPENTERS) | {names.NODEPOOL_HASH_FIELDS}

_say = partial(say, Concern.LEFT_OVER)


class InChargeView(msgspec.Struct, frozen=True, kw_only=True):
    claim: NodeClaim
    marks: tuple[str, ...] = ()
    #: With the taint.
    node: Node | None = None
    #: Why Tenure only looks; None: it does not.
    problem: Fact | None = None


class InChargeDecider:
    concern = Concern.LEFT_OVER

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.claims

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource in (CRDS, DEPLOYMENTS):
            return snapshot.claims
        return claims_touched(change, snapshot)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> InChargeView | None:
        claim = snapshot.claims.get(key)
        if claim is None or claim.deleting or is_unreadable(claim):
            return None
        marks = marks_in_charge(claim) if not is_rolled_back(claim) else ()
        node = _reserved(claim, snapshot)
        if not marks and node is None:
            return None
        problem = karpenter_of(snapshot, self._settings).problem
        return InChargeView(claim=claim, marks=marks, node=node, problem=problem)

    def decide(self, view: InChargeView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        claim, node, found = view.claim, view.node, list[Verdict]()
        if view.marks:
            left = MarksOfTenureInCharge(claim.name, view.marks)
            action = patch(claim, {"annotations": dict.fromkeys(view.marks)})
            found.append(_removed(claim, left, action, view.problem))
        if node is not None:
            taint = ReservedTaintLeft(node.name)
            found.append(_removed(node, taint, untaint_reserved(node), view.problem))
        return found


def _removed(thing: NodeClaim | Node, fact: Fact, action: Action, problem: Fact | None) -> Verdict:
    if problem is not None:
        return _say(thing, Reason.LEVER_WAITS, fact, problem)
    return _say(thing, Reason.LEFT_OVER_REMOVED, fact, action=action)


def is_rolled_back(claim: NodeClaim) -> bool:
    """Whether ``core.disrupt`` does that: it leaves an interrupted claim alone."""
    return is_replaced(claim) and not is_interrupted(claim)


def marks_in_charge(claim: NodeClaim) -> tuple[str, ...]:
    """Those of Tenure in charge by which something is under way, as annotations to remove; the deadline is
    the last of them."""
    there = claim.annotations
    if is_command_beside(claim):
        return ()
    found = [key for key in _UNDER_WAY if key in there]
    stamped = claim.termination_stamp is not None and not is_stamped_by_us(claim)
    if stamped and any(key in there for key in STAMPED_FOR):
        found.append(names.TERMINATION_TIMESTAMP)
    return tuple(found)


def traces_in_charge(thing: NodeClaim | NodePool) -> tuple[str, ...]:
    """All of its annotations, for an operator who wants none of them there. A claim that is being deleted keeps
    its deadline, which is never put off."""
    found = sorted(_REMEMBERED & thing.annotations.keys())
    marks = marks_in_charge(thing) if isinstance(thing, NodeClaim) and not thing.deleting else ()
    return tuple(dict.fromkeys((*found, *marks)))


def _reserved(claim: NodeClaim, snapshot: Snapshot) -> Node | None:
    nodes = snapshot.nodes_with_provider(claim.provider_id)
    if len(nodes) != 1 or len(snapshot.claims_with_provider(claim.provider_id)) > 1:
        return None
    (node,) = nodes.values()
    if node.deleting or is_unreadable(node) or not is_reserved(node, claim):
        return None
    return node
