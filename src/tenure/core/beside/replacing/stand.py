"""The lever of a replacement, and of the node that it replaces.

A replacement is empty until the pods of the other node come, and Karpenter removes empty nodes within seconds: so
it has the lever until what it replaces is gone. Its claim has it from its creation; once it is registered, Karpenter
has copied it to the Node, and it is taken off the claim. A node that is being replaced has it as well: Karpenter
would launch a second replacement for it if it drifted meanwhile.

When nothing is left to be replaced, our marks are taken off the claim: it is a claim like any other.
"""

from __future__ import annotations

from functools import partial

import msgspec

from tenure.core.beside.replacing.facts import (
    NodeIsReplaced,
    OnNodeAlready,
    ReplacementDone,
    ReplacementReserved,
)
from tenure.core.decision import Concern, Verdict
from tenure.core.facts import Fact
from tenure.core.marks.command import (
    COMMAND_MARKS,
    forget_replaced,
    is_replaced,
    is_replacement,
    no_replacement,
    replaced_uids,
)
from tenure.core.marks.ownership import LEVER_MARKS, is_lever, listed, no_lever
from tenure.core.reasons import Reason
from tenure.core.verdicts import say
from tenure.core.writes import patch
from tenure.model.api import names
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.snapshot.snapshot import Snapshot

_say = partial(say, Concern.LEVER)


class Replacing(msgspec.Struct, frozen=True):
    """Why a Node has the lever."""

    #: As its mark says it.
    because: str
    fact: Fact


class Stand(msgspec.Struct, frozen=True):
    """A replacement that has a Node."""

    claim: NodeClaim
    #: Names of the claims that it replaces, and that are there.
    replaces: tuple[str, ...]


def stand_of(claim: NodeClaim, snapshot: Snapshot) -> Stand | None:
    """None: it replaces nothing, and never did."""
    if not is_replacement(claim) or claim.deleting:
        return None
    there = (name for uid in replaced_uids(claim) for name in snapshot.claims_with_uid(uid))
    return Stand(claim, tuple(sorted(there)))


def replacing_of(claim: NodeClaim, node: Node, stand: Stand | None) -> Replacing | None:
    if stand is not None and stand.replaces:
        replaces = stand.replaces
        because = f"replaces NodeClaim {', '.join(replaces)}"
        return Replacing(because, ReplacementReserved(node.name, replaces))
    if is_replaced(claim):
        by = tuple(listed(claim.annotations[names.REPLACED_BY]))
        because = f"replaced by NodeClaim {', '.join(by)}" if by else "replaced by Tenure"
        return Replacing(because, NodeIsReplaced(node.name, by))
    return None


def stand_verdict(stand: Stand, node: Node) -> Verdict:
    """What of its marks goes now."""
    claim = stand.claim
    if not stand.replaces:
        done = ReplacementDone(claim.name)
        return _say(claim, Reason.LEVER_REMOVED, done, action=forget_replaced(claim))
    copied = claim.registered and (is_lever(node) or names.DO_NOT_DISRUPT not in claim.annotations)
    if copied and any(mark in claim.annotations for mark in LEVER_MARKS):
        on_node = OnNodeAlready(claim.name, node.name)
        action = patch(claim, {"annotations": no_lever(claim)})
        return _say(claim, Reason.LEVER_REMOVED, on_node, action=action)
    return _say(claim, Reason.LEVER_ON, ReplacementReserved(node.name, stand.replaces))


def no_trace(claim: NodeClaim) -> dict[str, None]:
    """All that Tenure has written on a claim to replace it, or to replace another, as annotations to remove.

    Keys under Karpenter's name are ours only where a mark of ours stands beside them. The deadline has marks of
    its own (``core.marks.repaired``).
    """
    there = claim.annotations
    found = dict.fromkeys(key for key in (names.EXPIRED_AT,) if key in there)
    if names.CREATED_BY in there:
        found |= dict.fromkeys(key for key in (names.REPLACES,) if key in there)
    found |= no_replacement(claim)
    if names.DISRUPTED_BY in there:
        marks = (*COMMAND_MARKS, names.REPAIR_REASON, names.REPAIR_PROBE)
        found |= dict.fromkeys(key for key in marks if key in there)
    return found | dict.fromkeys(key for key in (names.REPLACEMENT_FAILED,) if key in there)
