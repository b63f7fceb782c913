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

Beside Karpenter neither taint nor condition is written: Nodes and status are Karpenter's. There the claim says
by which program and since when it is disrupted (``tenure.dev/disrupted-by``, ``-since``), and a replacement which
program has created it, and that Karpenter must not disrupt it (``core.beside.replacing.newclaim``).

Claims that are replaced together are a **group**: each of their replacements names all of them. A
claim belongs to it until it terminates, is gone, or gets a command of its own.
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
from tenure.core.marks.interruption import is_interrupted
from tenure.core.marks.ownership import claim_status, is_ours, listed, no_lever
from tenure.core.marks.stamp import no_stamp
from tenure.core.marks.taints import is_closed, is_disrupted, taint_disrupted, untaint_disrupted
from tenure.core.writes import patch
from tenure.model.api import names
from tenure.model.api.meta import read_instant
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.snapshot.snapshot import Snapshot

#: The type of the condition; a reboot sets it as well.
REASON_CONDITION: Final = "DisruptionReason"
#: On the claim that is replaced.
COMMAND_MARKS: Final = (
    names.REPLACED_BY,
    names.DISRUPTION_REASON,
    names.DISRUPTED_BY,
    names.DISRUPTED_SINCE,
)


class Command(msgspec.Struct, frozen=True, kw_only=True):
    claim: NodeClaim
    nodes: tuple[Node, ...] = ()
    #: By the names in the claim's mark; None: there is no such claim any more.
    replacements: tuple[tuple[str, NodeClaim | None], ...] = ()
    #: The other claims of its group, by name.
    others: tuple[NodeClaim, ...] = ()

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
    def group(self) -> tuple[str, ...]:
        """The names of the claims that are replaced together with it, its own included."""
        return tuple(sorted((self.claim.name, *(one.name for one in self.others))))

    @property
    def uncommitted(self) -> tuple[str, ...]:
        """Those of them that do not have the command yet, or no longer."""
        return tuple(one.name for one in self.others if not is_replaced(one))

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


def is_command_beside(claim: NodeClaim) -> bool:
    """Whether Tenure beside Karpenter has begun to replace it."""
    return claim.annotations.get(names.DISRUPTED_BY) == names.SET_BY_TENURE


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
        return read_instant(claim.annotations.get(names.DISRUPTED_SINCE, ""))
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
    replacements = tuple((name, _replacement(name, claim, snapshot)) for name in named)
    return Command(
        claim=claim,
        nodes=tuple(nodes[name] for name in sorted(nodes)),
        replacements=replacements,
        others=_others(claim, (one for _, one in replacements if one is not None), snapshot),
    )


def _others(
    claim: NodeClaim, replacements: Iterable[NodeClaim], snapshot: Snapshot
) -> tuple[NodeClaim, ...]:
    found: dict[str, NodeClaim] = {}
    for new in replacements:
        for one in still_replaced(new, snapshot):
            # One that was taken over for another reason waits for no other.
            same = names_replacement(one, new) and reason_of(one) == reason_of(claim)
            if one.uid != claim.uid and (same or not is_replaced(one)):
                found[one.name] = one
    return tuple(found[name] for name in sorted(found))


def still_replaced(replacement: NodeClaim, snapshot: Snapshot) -> tuple[NodeClaim, ...]:
    """The claims that it replaces, of those that are there and do not terminate."""
    return tuple(
        one
        for uid in replaced_uids(replacement)
        for one in snapshot.claims_with_uid(uid).values()
        if not (one.deleting or is_interrupted(one))
    )


def group_names(uids: Iterable[str], snapshot: Snapshot) -> set[str]:
    """Names of the claims that are replaced together with any of these, or may be."""
    found: set[str] = set()
    for uid in uids:
        for new in snapshot.once(_replacing_by_uid).get(uid, ()):
            for other in replaced_uids(new):
                found.update(snapshot.claims_with_uid(other))
    return found


def commands_under_way(snapshot: Snapshot) -> tuple[Command, ...]:
    """Of all our claims, terminating ones included: pods that are drained still need capacity."""
    marked = snapshot.replaced_claims()
    ours = (marked[name] for name in sorted(marked) if is_ours(marked[name], snapshot))
    return tuple(command_of(claim, snapshot) for claim in ours)


def replacements_by_uid(snapshot: Snapshot) -> dict[str, tuple[NodeClaim, ...]]:
    """By the UID of the disrupted claim: its replacements, named in its mark or not yet."""
    found = snapshot.once(_replacing_by_uid)
    return {uid: tuple(one for one in new if not one.deleting) for uid, new in found.items()}


def _replacing_by_uid(snapshot: Snapshot) -> dict[str, tuple[NodeClaim, ...]]:
    """Those that terminate included."""
    found: dict[str, tuple[NodeClaim, ...]] = {}
    for _, claim in sorted(snapshot.replacing_claims().items()):
        for uid in replaced_uids(claim):
            found[uid] = (*found.get(uid, ()), claim)
    return found


def _replacement(name: str, claim: NodeClaim, snapshot: Snapshot) -> NodeClaim | None:
    """The replacement of that name; another claim that got its name later is none."""
    found = snapshot.claims.get(name)
    return found if found is not None and claim.uid in replaced_uids(found) else None


# -- write ---------------------------------------------------------------------------------


def replacement_marks(claims: Iterable[NodeClaim], *, by_marks: bool = False) -> dict[str, str]:
    """Annotations of a new claim that is launched to replace these.

    ``by_marks``: Karpenter is in charge, so the claim has to say which program has created it.
    """
    made = {names.CREATED_BY: names.SET_BY_TENURE} if by_marks else {}
    return {names.REPLACES: ",".join(sorted(claim.uid for claim in claims)), **made}


def forget_replaced(replacement: NodeClaim) -> Patch:
    """Takes its marks off a replacement, which is a claim like any other from then on."""
    return patch(
        replacement, {"annotations": {names.REPLACES: None, **no_replacement(replacement)}}
    )


def no_replacement(replacement: NodeClaim) -> dict[str, None]:
    """What else a replacement has beside Karpenter, as annotations to remove."""
    made = {names.CREATED_BY: None} if names.CREATED_BY in replacement.annotations else {}
    return {**made, **no_lever(replacement)}


def begin(
    claim: NodeClaim,
    replacements: Sequence[str],
    reason: str,
    beside: Mapping[str, str],
    *,
    by_marks: bool = False,
) -> Patch:
    """Commits the command; ``beside``: annotations that are written with it.

    ``by_marks``: Karpenter is in charge, so the claim has to say in its annotations by which program and
    since when.
    """
    own = {names.DISRUPTED_BY: names.SET_BY_TENURE, names.DISRUPTED_SINCE: ""} if by_marks else {}
    action = patch(
        claim,
        {
            "annotations": {
                names.REPLACED_BY: ",".join(replacements),
                names.DISRUPTION_REASON: reason,
                **own,
                **beside,
            }
        },
    )
    dated = names.DISRUPTED_SINCE if by_marks else ""
    return msgspec.structs.replace(action, begins=True, dated=dated)


def take_over(claim: NodeClaim, reason: str, beside: Mapping[str, str]) -> Patch:
    """Its command goes on for another reason, with the replacements that it has."""
    action = patch(claim, {"annotations": {names.DISRUPTION_REASON: reason, **beside}})
    return msgspec.structs.replace(action, begins=True)


def as_committed(claim: NodeClaim, replacements: Iterable[str], reason: str) -> NodeClaim:
    """The claim as it is once its command is committed."""
    marks = {names.REPLACED_BY: ",".join(replacements), names.DISRUPTION_REASON: reason}
    annotations = {**claim.annotations, **marks}
    metadata = msgspec.structs.replace(claim.metadata, annotations=annotations)
    return msgspec.structs.replace(claim, metadata=metadata)


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
    """Takes the marks off the claim; ``left_over`` takes off the others, one by one.

    Tenure in charge owns every deadline of a claim that is not being deleted. Beside Karpenter only one
    with our mark is ours.
    """
    gone = {mark: None for mark in COMMAND_MARKS if mark in claim.annotations}
    gone |= no_stamp(claim, beside=is_command_beside(claim))
    return patch(claim, {"annotations": {**gone, **(beside or {})}})


def left_over(claim: NodeClaim, node: Node | None) -> tuple[Fact, Action] | None:
    """The next mark without a command, and the write that takes it off."""
    if node is not None and not node.deleting and is_disrupted(node):
        return TaintLeftOver(node.name), untaint_disrupted(node)
    said = claim_status(claim, drop=(REASON_CONDITION,))
    if said is None:
        return None
    return ReasonLeftOver(claim.name), said
