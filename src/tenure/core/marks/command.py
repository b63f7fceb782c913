"""A command: which node is disrupted, for which reason, and which claims replace it.

The cluster is its only memory. This module reads a command from there, and is the only owner of
every mark of it:

========================================  =======================  ================================
mark                                      on                       says
========================================  =======================  ================================
``karpenter.sh/replaces``                 each replacement         UIDs of the claims it replaces
``karpenter.sh/replaced-by``              the disrupted claim      its replacements, which all exist
``karpenter.sh/disruption-reason``        the disrupted claim      the reason (see ``methods``)
condition ``DisruptionReason``            the disrupted claim      the same, for users
taint ``karpenter.sh/disrupted``          its Node                 no new pods (``taints``)
``…/nodeclaim-termination-timestamp``     the disrupted claim      by when (``stamp``)
========================================  =======================  ================================

The first two make the command; rolling it back takes all marks off the claim and its Node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from tenure.core.conditions import Wanted
from tenure.core.decision import Action, Patch
from tenure.core.facts import Fact
from tenure.core.marks.facts import ReasonLeftOver, TaintLeftOver
from tenure.core.marks.ownership import claim_status, is_ours, listed
from tenure.core.marks.repaired import no_repair_mark
from tenure.core.marks.stamp import no_stamp
from tenure.core.marks.taints import is_closed, is_disrupted, taint_disrupted, untaint_disrupted
from tenure.core.writes import patch
from tenure.model.api import names
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.snapshot.snapshot import Snapshot

#: The type of the condition; a reboot sets it as well.
REASON_CONDITION: Final = "DisruptionReason"


class Command(msgspec.Struct, frozen=True, kw_only=True):
    claim: NodeClaim
    nodes: tuple[Node, ...] = ()
    #: By the names in the claim's mark; None: there is no such claim any more.
    replacements: tuple[tuple[str, NodeClaim | None], ...] = ()

    @property
    def node(self) -> Node | None:
        return self.nodes[0] if len(self.nodes) == 1 else None

    @property
    def reason(self) -> str:
        return reason_of(self.claim)

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.replacements]

    @property
    def complete(self) -> bool:
        """Whether every replacement is initialized."""
        return all(one is not None and one.initialized for _, one in self.replacements)


# -- read ----------------------------------------------------------------------------------


def reason_of(claim: NodeClaim) -> str:
    """For which reason a command disrupts it; empty: none does."""
    return claim.annotations.get(names.DISRUPTION_REASON, "")


def is_replaced(claim: NodeClaim) -> bool:
    """Whether a command is under way for it: it stays until its replacements are initialized."""
    return names.REPLACED_BY in claim.annotations


def is_commanded(claim: NodeClaim) -> bool:
    """Whether a command disrupts it: also while it terminates by that, and while it waits."""
    return names.DISRUPTION_REASON in claim.annotations


def is_replacement(claim: NodeClaim) -> bool:
    return names.REPLACES in claim.annotations


def replaced_uids(claim: NodeClaim) -> list[str]:
    """The UIDs of the claims that it replaces."""
    return listed(claim.annotations.get(names.REPLACES, ""))


def names_replacement(claim: NodeClaim, replacement: NodeClaim) -> bool:
    """Whether the command of the claim counts on the replacement."""
    return replacement.name in listed(claim.annotations.get(names.REPLACED_BY, ""))


def disrupted_since(claim: NodeClaim) -> datetime | None:
    """Since when the claim says that it is disrupted; None: it does not say so."""
    condition = claim.condition(REASON_CONDITION)
    if condition is None or condition.status != "True":
        return None
    return condition.last_transition_time


def has_reason(claim: NodeClaim) -> bool:
    """Whether it says why it is disrupted, as annotation or condition."""
    return claim.is_true(REASON_CONDITION) or names.DISRUPTION_REASON in claim.annotations


def is_marked(claim: NodeClaim, nodes: Iterable[Node]) -> bool:
    """Whether there is any mark of a command, or left of one."""
    if is_replaced(claim) or claim.is_true(REASON_CONDITION):
        return True
    return any(not node.deleting and is_disrupted(node) for node in nodes)


def command_of(claim: NodeClaim, snapshot: Snapshot) -> Command:
    nodes = snapshot.nodes_with_provider(claim.provider_id)
    if len(snapshot.claims_with_provider(claim.provider_id)) > 1:
        nodes = {}  # To which claim they belong cannot be known.
    named = listed(claim.annotations.get(names.REPLACED_BY, ""))
    return Command(
        claim=claim,
        nodes=tuple(nodes[name] for name in sorted(nodes)),
        replacements=tuple((name, _replacement(name, claim, snapshot)) for name in named),
    )


def commands_under_way(snapshot: Snapshot) -> tuple[Command, ...]:
    """Of all our claims, terminating ones included: pods that are drained still need capacity."""
    marked = snapshot.replaced_claims()
    ours = (marked[name] for name in sorted(marked) if is_ours(marked[name], snapshot))
    return tuple(command_of(claim, snapshot) for claim in ours)


def replacements_by_uid(snapshot: Snapshot) -> dict[str, tuple[NodeClaim, ...]]:
    """By the UID of the disrupted claim: its replacements, named in its mark or not yet."""
    found: dict[str, tuple[NodeClaim, ...]] = {}
    for _, claim in sorted(snapshot.replacing_claims().items()):
        if not claim.deleting:
            for uid in replaced_uids(claim):
                found[uid] = (*found.get(uid, ()), claim)
    return found


def _replacement(name: str, claim: NodeClaim, snapshot: Snapshot) -> NodeClaim | None:
    """The replacement of that name; another claim that got its name later is none."""
    found = snapshot.claims.get(name)
    return found if found is not None and claim.uid in replaced_uids(found) else None


# -- write ---------------------------------------------------------------------------------


def replacement_marks(claims: Iterable[NodeClaim]) -> dict[str, str]:
    """Annotations of a new claim that is launched to replace these."""
    return {names.REPLACES: ",".join(sorted(claim.uid for claim in claims))}


def forget_replaced(replacement: NodeClaim) -> Patch:
    """Takes its mark off a replacement, which is a claim like any other from then on."""
    return patch(replacement, {"annotations": {names.REPLACES: None}})


def begin(
    claim: NodeClaim, replacements: Sequence[str], reason: str, beside: Mapping[str, str]
) -> Patch:
    """Commits the command; ``beside``: annotations that are written with it."""
    action = patch(
        claim,
        {
            "annotations": {
                names.REPLACED_BY: ",".join(replacements),
                names.DISRUPTION_REASON: reason,
                **beside,
            }
        },
    )
    return msgspec.structs.replace(action, begins=True)


def take_over(claim: NodeClaim, reason: str, beside: Mapping[str, str]) -> Patch:
    """Its command goes on for another reason, with the replacements that it has."""
    action = patch(claim, {"annotations": {names.DISRUPTION_REASON: reason, **beside}})
    return msgspec.structs.replace(action, begins=True)


def add_replacements(command: Command, more: Iterable[str]) -> Patch:
    mark = {names.REPLACED_BY: ",".join([*command.names, *more])}
    return patch(command.claim, {"annotations": mark})


def mark_next(command: Command) -> Patch | None:
    """The next mark that is missing: the taint, then the condition; None: all are there."""
    assert command.node is not None, "a command without a Node is rolled back"
    mark: Patch | None = taint_disrupted(command.node)
    if is_closed(command.node):
        mark = claim_status(command.claim, says_reason(command.reason))
    return msgspec.structs.replace(mark, begins=True) if mark is not None else None


def says_reason(reason: str, message: str = "") -> Wanted:
    """What the claim says of itself while it is disrupted or rebooted."""
    return Wanted(REASON_CONDITION, "True", reason, message)


def roll_back(claim: NodeClaim, beside: Mapping[str, Any] | None = None) -> Patch:
    """Takes the marks off the claim; ``left_over`` takes off the others, one by one."""
    marks = {names.REPLACED_BY: None, names.DISRUPTION_REASON: None}
    marks |= {**no_stamp(), **no_repair_mark()}
    gone = {mark: None for mark in marks if mark in claim.annotations}
    return patch(claim, {"annotations": {**gone, **(beside or {})}})


def left_over(claim: NodeClaim, node: Node | None) -> tuple[Fact, Action] | None:
    """The next mark without a command, and the write that takes it off."""
    if node is not None and not node.deleting and is_disrupted(node):
        return TaintLeftOver(node.name), untaint_disrupted(node)
    said = claim_status(claim, drop=(REASON_CONDITION,))
    if said is None:
        return None
    return ReasonLeftOver(claim.name), said
