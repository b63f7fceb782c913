"""What several deciders need to know about a claim: whose it is, its root conditions."""

from __future__ import annotations

from typing import Any, Final

from tenure.core.conditions import Wanted, awaiting, merge, status_patch
from tenure.core.decision import Patch
from tenure.model.meta import Condition, find_condition
from tenure.model.nodeclaim import NodeClaim
from tenure.model.resource import NODE_CLAIMS
from tenure.model.snapshot import Snapshot

#: The claim's Ready is True when all of these are.
STAGES: Final = ("Launched", "Registered", "Initialized")


def is_ours(claim: NodeClaim, snapshot: Snapshot) -> bool:
    ref = claim.spec.node_class_ref
    return (ref.group, ref.kind) in snapshot.ours


def claim_status(
    claim: NodeClaim, *wanted: Wanted, status: dict[str, Any] | None = None
) -> Patch | None:
    """The patch that makes the claim say this; None when it already does."""
    generation = claim.metadata.generation
    current = claim.status.conditions
    missing = tuple(awaiting(stage) for stage in STAGES if find_condition(current, stage) is None)
    conditions = merge(merge(current, missing, generation), wanted, generation)
    conditions = merge(conditions, (_root(conditions),), generation)
    if conditions == current and not status:
        return None
    return status_patch(
        NODE_CLAIMS,
        claim.name,
        uid=claim.uid,
        resource_version=claim.metadata.resource_version,
        status=status or {},
        conditions=conditions,
    )


def _root(conditions: tuple[Condition, ...]) -> Wanted:
    """Ready, from the stages: True when all are, else what the first other one says."""
    for stage in STAGES:
        condition = find_condition(conditions, stage)
        if condition is None:
            return awaiting("Ready")
        if condition.status != "True":
            return Wanted(
                "Ready", condition.status, condition.reason, f"{stage}: {condition.message}"
            )
    return Wanted("Ready", "True", "Ready")
