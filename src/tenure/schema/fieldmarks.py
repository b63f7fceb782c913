"""What becomes of each field that the API accepts: it acts, is ignored, or acts otherwise than in Karpenter.

One table, by type, because kinds share types. The API reference shows it, lint and an event on the object speak from it, and
tests hold it to the types (a field without a mark is red) and to the code (what is ignored is not read, what acts
is). Fields that Karpenter does not have act, or they would not be here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec

from tenure.errors import SpecError
from tenure.model.api.meta import Wire
from tenure.model.api.names import (
    DO_NOT_CONSOLIDATE,
    DO_NOT_DISRUPT,
    DO_NOT_EVICT,
    DO_NOT_REPAIR,
    POD_DELETION_COST,
    POD_DISRUPTION_COST,
)
from tenure.model.api.node import Taint
from tenure.model.api.nodeclaim import (
    NodeClaimSpec,
    NodeClaimTemplateSpec,
    NodeClassRef,
    Requirement,
    ResourceRequests,
)
from tenure.model.api.nodepool import (
    Budget,
    Disruption,
    NodeClaimTemplate,
    NodePoolSpec,
    Repair,
    RepairPolicy,
    TemplateMetadata,
)
from tenure.model.api.policy import NodePoolPolicySpec, NodePoolSelector
from tenure.model.api.window import (
    DateRange,
    LabelExpression,
    MaintenanceWindowSpec,
    NodeLabelSelector,
    Schedule,
)
from tenure.model.values.duration import NEVER, parse_duration

Spec = Mapping[str, Any]


class Mark(StrEnum):
    ACTS = "acts"
    IGNORED = "ignored"
    DIFFERS = "differs"


def _always(value: Any, spec: Spec) -> bool:  # noqa: ARG001
    return True


class FieldMark(msgspec.Struct, frozen=True):
    mark: Mark
    #: One sentence: what Tenure does, and what Karpenter does.
    how: str = ""
    #: Whether a value in this spec is one that it matters for.
    matters: Callable[[Any, Spec], bool] = _always
    #: Its entry in docs/limits.md, where it is to act one day.
    limit: str = ""


ACTS: Final = FieldMark(Mark.ACTS)
Marks = Mapping[type[Wire], Mapping[str, FieldMark]]


def _is_zero(value: Any) -> bool:
    try:
        return not parse_duration(str(value))
    except SpecError:
        return False


def _expires(value: Any, spec: Spec) -> bool:
    """Where the policy is written, its author has chosen. Zero means never."""
    block = spec.get("disruption")
    chosen = isinstance(block, Mapping) and block.get("expirationPolicy") is not None
    return not (value == NEVER or chosen or _is_zero(value))


def _moves_pods(value: Any, spec: Spec) -> bool:  # noqa: ARG001
    return str(value) != "WhenEmpty"


def _all_act(*names: str) -> dict[str, FieldMark]:
    return dict.fromkeys(names, ACTS)


_TEMPLATE: Final = {
    **_all_act(
        "taints",
        "startupTaints",
        "requirements",
        "nodeClassRef",
        "terminationGracePeriod",
        "readinessTTL",
        "initializationTTL",
    ),
    "expireAfter": FieldMark(
        Mark.DIFFERS,
        "An expired node waits for windows, budgets and its replacement; Karpenter deletes it at once, as "
        "expirationPolicy Always does here. A NodeClaim without a NodePool does not expire.",
        _expires,
    ),
}

MARKS: Final[Marks] = {
    NodePoolSpec: {
        **_all_act("template", "disruption", "repair", "limits", "weight"),
        "replicas": FieldMark(
            Mark.IGNORED,
            "Such a pool launches nothing, and its nodes are candidates of nothing; Karpenter keeps so many nodes.",
            limit="Static capacity",
        ),
    },
    NodeClaimTemplate: _all_act("metadata", "spec"),
    TemplateMetadata: _all_act("labels", "annotations"),
    NodeClaimTemplateSpec: _TEMPLATE,
    NodeClaimSpec: {**_TEMPLATE, **_all_act("resources")},
    ResourceRequests: _all_act("requests"),
    Taint: {
        **_all_act("key", "value", "effect"),
        "timeAdded": FieldMark(
            Mark.IGNORED, "Nothing reads the instant of a taint; a change of it still drifts nodes."
        ),
    },
    Requirement: _all_act("key", "operator", "values", "minValues"),
    NodeClassRef: _all_act("group", "kind", "name"),
    Disruption: {
        **_all_act("consolidateAfter", "budgets", "expirationPolicy", "maxPodProtection"),
        "consolidationPolicy": FieldMark(
            Mark.DIFFERS,
            "A move that launches a node must save at least 5 % of the price, more where spot is involved; in "
            "Karpenter any saving is enough.",
            _moves_pods,
        ),
    },
    Budget: _all_act(
        "nodes", "reasons", "schedule", "duration", "timeZone", "per", "within", "selector"
    ),
    NodeLabelSelector: {
        **_all_act("matchExpressions"),
        "matchLabels": FieldMark(Mark.IGNORED, "The API server refuses an object that has it."),
    },
    LabelExpression: _all_act("key", "operator", "values"),
    Repair: _all_act("policies", "defaultTolerationDuration", "maxUnhealthy", "terminationMode"),
    RepairPolicy: _all_act(
        "conditionType",
        "status",
        "reason",
        "toleration",
        "terminationMode",
        "terminationGracePeriod",
        "action",
    ),
    MaintenanceWindowSpec: _all_act("schedules", "dates", "actions", "selector", "type"),
    Schedule: _all_act("cron", "duration", "timeZone"),
    DateRange: _all_act("from", "until"),
    NodePoolPolicySpec: _all_act(
        "nodePools",
        "readinessTTL",
        "initializationTTL",
        "expireAfter",
        "repair",
        "maxPodProtection",
        "budgets",
    ),
    NodePoolSelector: _all_act("names", "matchLabels", "matchExpressions"),
}


class AnnotationMark(msgspec.Struct, frozen=True):
    """An annotation that users write."""

    name: str
    #: The kinds of objects that it is read from.
    on: str
    mark: FieldMark


_NODES: Final = "Nodes and NodeClaims"
_OLD: Final = FieldMark(
    Mark.IGNORED, "Older releases of Karpenter read it; write karpenter.sh/do-not-disrupt."
)

#: On pods. That a value cannot be read is told as a mistake.
POD_DURATION: Final = FieldMark(
    Mark.DIFFERS,
    "A duration counts from the pod's creation, in Karpenter from its start, as --protection-clock=start "
    "does here; a value that cannot be read protects for ever.",
)

#: On Nodes and NodeClaims.
DURATION: Final = FieldMark(
    Mark.DIFFERS, 'A duration counts from when Tenure first sees it; Karpenter reads "true" alone.'
)

ANNOTATIONS: Final = (
    AnnotationMark(DO_NOT_DISRUPT, "pods", POD_DURATION),
    AnnotationMark(
        DO_NOT_DISRUPT,
        _NODES,
        DURATION,
    ),
    AnnotationMark(
        DO_NOT_REPAIR,
        _NODES,
        DURATION,
    ),
    AnnotationMark(POD_DISRUPTION_COST, "pods", ACTS),
    AnnotationMark(POD_DELETION_COST, "pods", ACTS),
    AnnotationMark(DO_NOT_EVICT, "pods", _OLD),
    AnnotationMark(DO_NOT_CONSOLIDATE, "Nodes", _OLD),
)
