"""Initialization: a registered Node can run the pods it was launched for.

Checked in this order, and ``Initialized`` reports the first that fails: the Node exists, it is
Ready, its startup taints are removed, the taints that every node starts with are removed, it has
each requested resource. Then the Node is labelled, and ``Initialized`` is written.
"""

from __future__ import annotations

from typing import Final

from tenure.core.claim.facts import (
    NodeComplete,
    NodeGone,
    NodeNotReady,
    ResourceMissing,
    TaintRemains,
)
from tenure.core.claim.view import ClaimView, readiness_of, say, several
from tenure.core.conditions import Wanted
from tenure.core.decision import Verdict
from tenure.core.facts import Fact
from tenure.core.marks.ownership import READY_ONCE, claim_status
from tenure.core.reasons import Reason
from tenure.core.writes import patch
from tenure.errors import SpecError
from tenure.model.api import names
from tenure.model.api.node import Node, Taint
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.values.quantity import parse_resources
from tenure.packing.refusals.texts import taint_text

#: Keys and effects of the taints that every node starts with and that other controllers remove.
_EPHEMERAL: Final = frozenset(
    {
        (names.NOT_READY_TAINT, "NoSchedule"),
        (names.NOT_READY_TAINT, "NoExecute"),
        (names.UNREACHABLE_TAINT, "NoSchedule"),
        (names.CLOUD_UNINITIALIZED_TAINT, "NoSchedule"),
    }
)


def initialize(view: ClaimView) -> Verdict:
    claim = view.claim
    waiting = _why_not(view)
    if waiting is not None:
        reason, fact = waiting
        wanted = Wanted("Initialized", "Unknown", reason, str(fact))
        return say(claim, reason, fact, action=claim_status(claim, wanted, *_once(view)))
    (node,) = view.nodes
    complete = NodeComplete(node.name)
    if node.labels.get(names.INITIALIZED) != "true":
        label = patch(node, {"labels": {names.INITIALIZED: "true"}})
        return say(claim, Reason.INITIALIZING, complete, action=label)
    said = claim_status(claim, Wanted("Initialized", "True", "Initialized"), *_once(view))
    return say(claim, Reason.INITIALIZING, complete, action=said)


def _once(view: ClaimView) -> tuple[Wanted, ...]:
    """Records that the node has been Ready, for ever: its readinessTTL no longer applies."""
    if view.claim.ready_once:
        return ()  # Its reason may contain more, and is kept.
    ready = len(view.nodes) == 1 and view.nodes[0].ready
    return (Wanted(READY_ONCE, "True", "NodeReady"),) if ready else ()


def _why_not(view: ClaimView) -> tuple[Reason, Fact] | None:
    claim = view.claim
    if not view.nodes:
        return Reason.NODE_NOT_FOUND, NodeGone(claim.node_name)
    if len(view.nodes) > 1:
        return Reason.MULTIPLE_NODES_FOUND, several(view.nodes)
    return why_not_initialized(claim, view.nodes[0])


def why_not_initialized(claim: NodeClaim, node: Node) -> tuple[Reason, Fact] | None:
    """What the node still lacks; None when it is complete."""
    if not node.ready:
        return Reason.NODE_NOT_READY, NodeNotReady(node.name, readiness_of(node))
    for taint in node.spec.taints:
        if is_startup(taint, claim):
            return Reason.STARTUP_TAINTS_EXIST, TaintRemains(taint_text(taint), startup=True)
    for taint in node.spec.taints:
        if is_ephemeral(taint):
            return Reason.EPHEMERAL_TAINTS_EXIST, TaintRemains(taint_text(taint), startup=False)
    for resource, amount in sorted(claim.spec.resources.requests.items()):
        if _is_some(amount) and not _is_some(node.status.allocatable.get(resource, "0")):
            return Reason.RESOURCE_NOT_REGISTERED, ResourceMissing(node.name, resource)
    return None


def is_startup(taint: Taint, claim: NodeClaim) -> bool:
    return any((t.key, t.effect) == (taint.key, taint.effect) for t in claim.spec.startup_taints)


def is_ephemeral(taint: Taint) -> bool:
    """A taint that every node starts with and that a controller removes."""
    return (
        (taint.key, taint.effect) in _EPHEMERAL
        or taint.key == names.UNREGISTERED_TAINT
        or taint.key.startswith(names.READINESS_TAINT_PREFIX)
    )


def _is_some(amount: str | int | float) -> bool:
    """Whether the amount is above zero; an invalid amount is not."""
    try:
        return parse_resources({"amount": amount})["amount"] > 0
    except SpecError:
        return False
