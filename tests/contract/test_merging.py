"""How lists and maps are merged: ``shapes/merging.txt`` says what a real API server publishes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tenure.sim.apiserver.objects.kinds import ALL, KINDS
from tenure.sim.apiserver.shapes.definitions import definitions, name_of
from testbed.controlplane import ControlPlane
from testbed.kubectl import kubectl
from tests import bed

Json = dict[str, Any]
WORDS = ("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type")


@pytest.mark.real
@pytest.mark.skipif(bool(bed.missing()), reason="the real API server is not built")
def test_every_list_and_map_is_merged_as_the_real_server_says(plane: ControlPlane) -> None:
    published = _published(plane)
    known = {name: shape for name, shape in definitions().items() if name in published}
    assert len(known) > 80
    ours = {name: dict(_merging(shape)) for name, shape in known.items()}
    theirs = {name: dict(_merging(published[name], known[name])) for name in known}
    assert ours == theirs


def _published(plane: ControlPlane) -> dict[str, Json]:
    prefixes = {resource.prefix for resource in ALL if not KINDS[resource].custom}
    documents = [json.loads(kubectl(plane, "get", "--raw", f"/openapi/v3{p}")) for p in prefixes]
    return {
        name.rpartition(".")[2]: shape
        for document in documents
        for name, shape in document["components"]["schemas"].items()
    }


def _merging(shape: Json, also: Json | None = None) -> Iterator[tuple[str, Json]]:
    """Field → what is said of its merging; "" is the shape itself. ``also``: the fields to look at."""
    yield "", _said(shape)
    for field, schema in shape.get("properties", {}).items():
        if field in (also or shape).get("properties", {}) and (said := _said(schema)):
            yield field, said


def _said(schema: Json) -> Json:
    said = {word: schema[word] for word in WORDS if word in schema}
    if said.get("x-kubernetes-list-type") == "atomic":
        return {}  # As every list that nothing is said of.
    return said


def test_the_keys_of_a_merged_list_are_fields_of_its_elements() -> None:
    for name, shape in definitions().items():
        for field, schema in shape.get("properties", {}).items():
            if keys := schema.get("x-kubernetes-list-map-keys"):
                element = definitions().get(name_of(schema["items"]))
                # Elements that are kept as they are have no fields to name.
                assert element is None or set(keys) <= element["properties"].keys(), (name, field)
