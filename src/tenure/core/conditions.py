"""Status conditions as values: what an object should report, and the patch that writes it.

A condition keeps its transition time while its status stays. A condition whose status
changes is written *without* one: the executor sets the instant of the write, so
that a verdict does not depend on when it was made.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tenure.core.decision import Patch
from tenure.model.api.meta import Condition, find_condition
from tenure.model.api.resource import Resource

AWAITING: Final = "AwaitingReconciliation"

#: The maximum length of a condition's message; Karpenter cuts there, too.
MESSAGE_MAX: Final = 1024


class Wanted(msgspec.Struct, frozen=True):
    """The wanted content of a condition."""

    type: str
    status: str
    reason: str
    message: str = ""


def awaiting(type_: str) -> Wanted:
    """The condition has not been evaluated yet."""
    return Wanted(type_, "Unknown", AWAITING, "object is awaiting reconciliation")


def root(conditions: tuple[Condition, ...], dependents: tuple[str, ...]) -> Wanted:
    """``Ready``, from the conditions it depends on: Karpenter's reasons; the message names the
    conditions that are not True, each with its own message."""
    found = [find_condition(conditions, type_) or Condition(type=type_) for type_ in dependents]
    bad = [condition for condition in found if condition.status != "True"]
    if not bad:
        return Wanted("Ready", "True", "Ready")
    message = ", ".join(map(_in_short, bad))
    if any(condition.status == "False" for condition in bad):
        return Wanted("Ready", "False", "UnhealthyDependents", message)
    return Wanted("Ready", "Unknown", "ReconcilingDependents", message)


def _in_short(condition: Condition) -> str:
    said = f"{condition.type}={condition.status}"
    explained = condition.message and condition.reason != AWAITING
    return f"{said} ({condition.message})" if explained else said


def merge(
    current: tuple[Condition, ...], wanted: tuple[Wanted, ...], generation: int
) -> tuple[Condition, ...]:
    """``current`` with ``wanted`` written over it; foreign conditions stay as they are."""
    merged = {condition.type: condition for condition in current}
    for want in wanted:
        old = find_condition(current, want.type)
        keeps = old is not None and old.status == want.status
        merged[want.type] = Condition(
            type=want.type,
            status=want.status,
            reason=want.reason,
            message=want.message[:MESSAGE_MAX],
            observed_generation=generation,
            last_transition_time=old.last_transition_time if old and keeps else None,
        )
    return tuple(merged.values())


def status_patch(
    resource: Resource,
    name: str,
    *,
    uid: str,
    resource_version: str,
    status: dict[str, Any],
    conditions: tuple[Condition, ...],
) -> Patch:
    """Write status fields and the whole list of conditions, on the version that was evaluated."""
    body = {
        "metadata": {"resourceVersion": resource_version, "uid": uid},
        "status": {**status, "conditions": [to_wire(condition) for condition in conditions]},
    }
    return Patch(
        resource=resource,
        name=name,
        uid=uid,
        resource_version=resource_version,
        body=body,
        subresource="status",
    )


def to_wire(condition: Condition) -> dict[str, Any]:
    """As JSON, with the fields that the API requires even when they are empty."""
    wire: dict[str, Any] = {"message": "", "reason": "", **msgspec.to_builtins(condition)}
    wire["status"] = condition.status  # The default would be left out.
    return wire
