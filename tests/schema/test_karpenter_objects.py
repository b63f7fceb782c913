"""What a cluster run by Karpenter 1.15 holds is valid here, as it stands."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.providers.kwok.nodeclass import KWOKNodeClass
from tenure.sim.apiserver.objects.customkinds import schema_for
from tests.folders import DATA

LINES = (DATA / "karpenter-1.15-custom-kinds.jsonl").read_bytes()
OBJECTS = [
    pytest.param(line, id=f"{obj['kind']} {obj['metadata']['name']}")
    for line in LINES.splitlines()
    if (obj := json.loads(line))
]
MODELS: dict[str, type[Any]] = {
    "NodePool": NodePool,
    "NodeClaim": NodeClaim,
    "KWOKNodeClass": KWOKNodeClass,
}


@pytest.mark.parametrize("line", OBJECTS)
def test_it_is_valid_and_keeps_all_its_fields(line: bytes) -> None:
    obj = json.loads(line)
    schema = schema_for(obj["apiVersion"].split("/")[0], obj["kind"])
    assert schema is not None
    assert schema.unknown_fields(obj) == []
    assert schema.validate(schema.default(obj)) == []


@pytest.mark.parametrize("line", OBJECTS)
def test_what_was_applied_to_create_it_is_valid(line: bytes) -> None:
    obj = json.loads(line)
    applied = (
        obj["metadata"]
        .get("annotations", {})
        .get("kubectl.kubernetes.io/last-applied-configuration")
    )
    manifest = json.loads(applied) if applied else {**obj, "status": {}}
    schema = schema_for(obj["apiVersion"].split("/")[0], obj["kind"])
    assert schema is not None
    assert schema.validate(schema.default(manifest)) == []


@pytest.mark.parametrize("line", OBJECTS)
def test_decoding_and_encoding_loses_nothing_that_we_read(line: bytes) -> None:
    model = MODELS[json.loads(line)["kind"]]
    decoded = msgspec.json.decode(line, type=model)
    assert msgspec.json.decode(msgspec.json.encode(decoded), type=model) == decoded
    assert decoded.name == json.loads(line)["metadata"]["name"]
