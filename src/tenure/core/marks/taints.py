"""The three taints that Tenure puts on a Node to keep new pods away: their only owner.

``karpenter.sh/disrupted``   the Node is being replaced, or terminates;
``karpenter.sh/rebooting``   the Node is drained before a reboot, and reboots;
``tenure.dev/reserved``      the Node is new, and the pods that it was launched for are not named yet. It is
                             a startup taint of the claim, so the Node has it from the beginning.

Every write replaces the whole list of taints, on the version that was evaluated: taints of other
writers stay as they are. Another effect of the same key is replaced, as Karpenter does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from tenure.core.decision import Patch
from tenure.core.writes import patch
from tenure.model.api.names import (
    DISRUPTED_TAINT,
    EXCLUDE_BALANCERS,
    REBOOTING_TAINT,
    RESERVED_TAINT,
)
from tenure.model.api.node import Node, Taint
from tenure.model.api.nodeclaim import NodeClaim

# -- disrupted -----------------------------------------------------------------------------


def is_disrupted(node: Node) -> bool:
    """Whether the taint is there, with whatever effect."""
    return node.has_taint(DISRUPTED_TAINT)


def is_closed(node: Node) -> bool:
    """Whether the taint keeps new pods away."""
    return node.has_taint(DISRUPTED_TAINT, "NoSchedule")


def taint_disrupted(node: Node) -> Patch:
    return _taints(node, DISRUPTED_TAINT, [_ours(DISRUPTED_TAINT)], {})


def untaint_disrupted(node: Node) -> Patch:
    return _taints(node, DISRUPTED_TAINT, [], {})


def close_terminating(node: Node) -> Patch | None:
    """Taints a terminating Node and removes it from load balancers; None when that is done."""
    if is_closed(node) and EXCLUDE_BALANCERS in node.labels:
        return None
    ours = [taint for taint in node.spec.taints if _is_ours(taint, DISRUPTED_TAINT)]
    return _taints(
        node,
        DISRUPTED_TAINT,
        ours or [_ours(DISRUPTED_TAINT)],
        {"labels": {EXCLUDE_BALANCERS: "karpenter"}},
    )


# -- rebooting -----------------------------------------------------------------------------


def is_tainted_rebooting(node: Node) -> bool:
    """Whether the taint is there, with whatever effect."""
    return node.has_taint(REBOOTING_TAINT)


def is_closed_for_reboot(node: Node) -> bool:
    """Whether the taint keeps new pods away."""
    return node.has_taint(REBOOTING_TAINT, "NoSchedule")


def taint_rebooting(node: Node) -> Patch:
    return _taints(node, REBOOTING_TAINT, [_ours(REBOOTING_TAINT)], {})


def untaint_rebooting(node: Node, metadata: Mapping[str, Any] | None = None) -> Patch:
    """``metadata``: what else is written to the Node in the same patch."""
    return _taints(node, REBOOTING_TAINT, [], metadata or {})


# -- reserved ------------------------------------------------------------------------------

#: A startup taint of a claim whose pods cannot change places with others that wait.
RESERVED: Final = Taint(key=RESERVED_TAINT, effect="NoSchedule")


def is_reserved(node: Node, claim: NodeClaim) -> bool:
    """Whether the taint is there since the launch. One that a user has added is the user's."""
    new = is_launched_reserved(claim) and not claim.initialized
    return new and node.has_taint(RESERVED_TAINT)


def is_launched_reserved(claim: NodeClaim) -> bool:
    """Whether its Node has the taint from the beginning."""
    return any(taint.key == RESERVED_TAINT for taint in claim.spec.startup_taints)


def without_reserved(node: Node) -> Node:
    """The Node as it is once the taint is removed."""
    others = tuple(taint for taint in node.spec.taints if taint.key != RESERVED_TAINT)
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, taints=others))


def untaint_reserved(node: Node) -> Patch:
    return _taints(node, RESERVED_TAINT, [], {})


# -- all -----------------------------------------------------------------------------------


def _ours(key: str) -> Taint:
    return Taint(key=key, effect="NoSchedule")


def _is_ours(taint: Taint, key: str) -> bool:
    return (taint.key, taint.effect) == (key, "NoSchedule")


def _taints(node: Node, key: str, ours: list[Taint], metadata: Mapping[str, Any]) -> Patch:
    others = [taint for taint in node.spec.taints if taint.key != key]
    written = [msgspec.to_builtins(taint) for taint in (*others, *ours)]
    return patch(node, metadata, {"taints": written})
