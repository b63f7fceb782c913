"""The template hash is Karpenter's, bit for bit: a fleet taken over must not drift."""

from __future__ import annotations

import json

import msgspec
import pytest

from tenure.core.marks.templatehash import template_hash
from tenure.model.api.nodepool import NodeClaimTemplate
from tests.folders import DATA

GOLDEN = [
    json.loads(line) for line in (DATA / "nodepool-hash-golden.jsonl").read_text().splitlines()
]


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden["hash"])
def test_the_hash_equals_what_karpenter_1_15_writes(golden: dict[str, object]) -> None:
    template = msgspec.json.decode(json.dumps(golden["template"]), type=NodeClaimTemplate)
    assert template_hash(template) == golden["hash"]


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
