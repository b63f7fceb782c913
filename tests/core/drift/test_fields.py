"""The API reference marks the fields that drift, from the table of the hash; both tell the truth."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

from docs.api_page import drifts, fields
from tenure.core.marks.templatehash import template_hash
from tenure.model.api.nodepool import NodeClaimTemplate
from tenure.schema.structure.crd import CUSTOM_KINDS, schema_of

TAINT = {"key": "a", "value": "b", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}
#: Every field of a template is set.
WHOLE: dict[str, Any] = {
    "metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}},
    "spec": {
        "taints": [TAINT],
        "startupTaints": [TAINT],
        "requirements": [{"key": "a", "operator": "In", "values": ["b", "c"], "minValues": 1}],
        "nodeClassRef": {"group": "a", "kind": "B", "name": "c"},
        "terminationGracePeriod": "1h",
        "expireAfter": "1h",
        "readinessTTL": "1h",
        "initializationTTL": "1h",
    },
}
POOL = next(kind for kind in CUSTOM_KINDS if kind.resource.kind == "NodePool")
LEAVES = [
    path
    for path, schema, _ in fields(schema_of(POOL))
    if path.startswith("spec.template.")
    and "properties" not in schema
    and "properties" not in schema.get("items", {})
]


def changed(path: str) -> NodeClaimTemplate:
    """The same template with another value there."""
    whole = copy.deepcopy(WHOLE)
    *parts, last = path.removeprefix("spec.template.").split(".")
    place: Any = whole
    for part in parts:
        place = place[part.removesuffix("[]")]
        place = place[0] if part.endswith("[]") else place
    old = place[last]
    place[last] = {"a": "z"} if isinstance(old, dict) else ["z"] if isinstance(old, list) else "2h"
    if last == "timeAdded":
        place[last] = "2026-01-02T00:00:00Z"
    if isinstance(old, int):
        place[last] = old + 1
    return msgspec.convert(whole, NodeClaimTemplate)


def test_every_field_of_a_template_is_tried() -> None:
    assert len(LEAVES) == 21
    assert len(set(LEAVES)) == len(LEAVES)


@pytest.mark.parametrize("path", LEAVES)
def test_a_field_is_marked_as_drifting_if_it_changes_the_hash(path: str) -> None:
    before = template_hash(msgspec.convert(WHOLE, NodeClaimTemplate))
    assert (template_hash(changed(path)) != before) == (drifts(path) == "**yes**")


@pytest.mark.parametrize(
    ("path", "drift"),
    [
        ("spec.template.spec.requirements[].values", "by value"),
        ("spec.weight", "no"),
        ("spec.limits", "no"),
        ("spec.disruption.budgets", "no"),
        ("spec.template.spec", "see below"),
    ],
)
def test_the_others_are(path: str, drift: str) -> None:
    assert drifts(path) == drift
