"""Replacements without a command: launched for one that never began, or was rolled back.

The claim that such a replacement was launched for is still there, does not terminate, and does not
name it. Of each of these, the first that applies:

1. kept      pods of a node were planned for in this pass, and may count on it: it is looked at again;
2. new       it was created a moment ago: its command may be about to begin;
3. in use    a pod is there, or pods that wait for capacity fit on it, or a user protects it
             (``karpenter.sh/do-not-disrupt`` on the Node or its claim): it loses its mark, and is a
             node like any other from then on;
4. removed   its claim is deleted. It is nothing that a user has: neither windows nor budgets are asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec

from tenure.core.decision import Concern, Ground, Verdict
from tenure.core.disrupt.emptiness import is_occupied
from tenure.core.disrupt.facts.commands import (
    LeftOverInUse,
    LeftOverKept,
    LeftOverProtected,
    LeftOverRemoved,
)
from tenure.core.disrupt.passes import Pass
from tenure.core.facts import Fact
from tenure.core.marks.command import forget_replaced, names_replacement, replaced_uids
from tenure.core.marks.ownership import is_ours, room_of
from tenure.core.protect.protection import Protection, protection_on
from tenure.core.reasons import Reason
from tenure.core.verdicts import no_later, say
from tenure.core.writes import delete_claim, delete_unless_pods_came
from tenure.model.api.meta import later
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.packing.demand.steps import Steps

_say = partial(say, Concern.DISRUPTION)

#: Its command begins within seconds after its creation.
NEW: Final = timedelta(minutes=1)


class LeftOver(msgspec.Struct, frozen=True):
    claim: NodeClaim
    #: The claim that it was launched for.
    replaced: str
    nodes: tuple[Node, ...]
    #: The name by which packing knows it.
    room: str
    occupied: bool


def left_overs(snapshot: Snapshot) -> Iterator[LeftOver]:
    for _, claim in sorted(snapshot.replacing_claims().items()):
        if claim.deleting or is_unreadable(claim) or not is_ours(claim, snapshot):
            continue
        found = [
            one for uid in replaced_uids(claim) for one in snapshot.claims_with_uid(uid).values()
        ]
        if not found or any(one.deleting or names_replacement(one, claim) for one in found):
            continue
        nodes = tuple(snapshot.nodes_with_provider(claim.provider_id).values())
        occupied = any(is_occupied(node, snapshot) for node in nodes)
        room = room_of(claim, snapshot)
        yield LeftOver(claim, found[0].name, nodes, room, occupied)


def left_over_verdict(one: LeftOver, shared: Pass) -> Steps[Verdict]:
    claim, now = one.claim, shared.now
    new_until = later(claim.created_at, NEW)
    if now < new_until:
        new = LeftOverKept(claim.name, one.replaced, new_until)
        return _say(claim, Reason.REPLACEMENT_LEFT_OVER, new, recheck_at=new_until)
    plan = yield from shared.simulation.plan_empty(
        one.room, shared.settings, now, shared.reservations
    )
    if one.occupied or plan.why is not None:
        return _stays(claim, LeftOverInUse(claim.name, one.replaced), plan.changes_at)
    if (protection := _protection(one, now)) is not None:
        protected = LeftOverProtected(claim.name, one.replaced, protection)
        return no_later(_stays(claim, protected, plan.changes_at), protection.ends_at)
    action = delete_claim(claim, Ground.LEFT_OVER)
    if len(one.nodes) == 1:
        action = delete_unless_pods_came(claim, Ground.LEFT_OVER, one.nodes[0])
    removed = LeftOverRemoved(claim.name, one.replaced)
    return _say(
        claim, Reason.REPLACEMENT_LEFT_OVER, removed, action=action, recheck_at=plan.changes_at
    )


def _stays(claim: NodeClaim, why: Fact, changes_at: datetime | None) -> Verdict:
    action = forget_replaced(claim)
    return _say(claim, Reason.REPLACEMENT_LEFT_OVER, why, action=action, recheck_at=changes_at)


def _protection(one: LeftOver, now: datetime) -> Protection | None:
    things: tuple[Node | NodeClaim, ...] = (*one.nodes, one.claim)
    found = (protection_on(thing) for thing in things)
    return next((it for it in found if it is not None and now < it.until), None)
