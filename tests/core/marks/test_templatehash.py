"""The template hash is Karpenter's, bit for bit: a fleet taken over must not drift."""

from __future__ import annotations

import json

import msgspec
import pytest

from tenure.core.marks.templatehash import (
    FIELDS,
    field_hashes,
    hash_annotations,
    recorded_hashes,
    template_hash,
)
from tenure.model.api.names import NODEPOOL_HASH, NODEPOOL_HASH_FIELDS
from tenure.model.api.nodepool import NodeClaimTemplate
from tests.folders import DATA

GOLDEN = [
    json.loads(line) for line in (DATA / "nodepool-hash-golden.jsonl").read_text().splitlines()
]


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden["hash"])
def test_the_hash_equals_what_karpenter_1_15_writes(golden: dict[str, object]) -> None:
    template = msgspec.json.decode(json.dumps(golden["template"]), type=NodeClaimTemplate)
    assert template_hash(template) == golden["hash"]


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden["hash"])
def test_the_record_of_the_fields_belongs_to_the_hash(golden: dict[str, object]) -> None:
    template = msgspec.json.decode(json.dumps(golden["template"]), type=NodeClaimTemplate)
    written = hash_annotations(field_hashes(template))
    assert recorded_hashes(written) == field_hashes(template)
    assert len(written[NODEPOOL_HASH_FIELDS]) < 400
    assert recorded_hashes(written | {NODEPOOL_HASH: "1"}) is None


def test_every_field_is_in_some_golden_value() -> None:
    """Else its place in the fold would not be proven."""
    seen = {
        path
        for golden in GOLDEN
        for path, value in field_hashes(
            msgspec.json.decode(json.dumps(golden["template"]), type=NodeClaimTemplate)
        ).items()
        if value is not None
    }
    assert seen == {field.path for field in FIELDS}


def test_our_own_fields_and_the_requirements_change_nothing() -> None:
    plain: dict[str, object] = {
        "spec": {"nodeClassRef": {"group": "g", "kind": "K", "name": "n"}, "requirements": []}
    }
    ours = {
        "spec": {
            **plain["spec"],  # type: ignore[dict-item]  # a nested dict
            "readinessTTL": "45m",
            "initializationTTL": "1h",
            "requirements": [{"key": "a", "operator": "Exists"}],
        }
    }
    first, second = (
        template_hash(msgspec.convert(template, NodeClaimTemplate)) for template in (plain, ours)
    )
    assert first == second
