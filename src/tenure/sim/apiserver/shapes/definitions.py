"""Reads ``builtin.txt`` and ``merging.txt``: the shapes as OpenAPI schemas that refer to each other by name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any, Final

from tenure.model.api.resource import Resource
from tenure.schema.structure.structural import Schema
from tenure.sim.apiserver.objects.kinds import ALL, KINDS

REFERENCE: Final = "#/components/schemas/"
_FIELD: Final = re.compile(r"  (?P<name>\w+)(?P<required>!?) (?P<type>\S+)(?:  (?P<words>.+))?")
_SHAPE: Final = re.compile(r"(?P<name>\w+): (?P<words>.+)")
_MERGING: Final = re.compile(r"(?P<shape>\w+)(?:\.(?P<field>\w+))?: (?P<how>.+)")
_PLAIN: Final[dict[str, Schema]] = {
    "string": {"type": "string"},
    "int": {"type": "integer", "format": "int32"},
    "long": {"type": "integer", "format": "int64"},
    "bool": {"type": "boolean"},
    "time": {"type": "string", "format": "date-time"},
    "bytes": {"type": "string", "format": "byte"},
    "quantity": {"type": "string", "format": "quantity"},
    "share": {"type": "string", "format": "int-or-string"},
    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
_TOP: Final[dict[str, Schema]] = {
    "apiVersion": {"type": "string", "description": "Group and version of this object."},
    "kind": {"type": "string", "description": "What this object is."},
}


@cache
def definitions() -> dict[str, Schema]:
    """Name → schema, of the kinds and of everything they are made of."""
    text = files(__package__).joinpath("builtin.txt").read_text(encoding="utf-8")
    found = dict(_shapes(text.splitlines()))
    merging = files(__package__).joinpath("merging.txt").read_text(encoding="utf-8")
    for row in filter(None, map(_MERGING.fullmatch, merging.splitlines())):
        _merge(found, **row.groupdict())
    for name in (_shape_of(r) for r in ALL if not KINDS[r].custom):
        found[name] = with_type_and_metadata(found[name])
    return found


def with_type_and_metadata(schema: Schema) -> Schema:
    """The schema with what every object has."""
    metadata = _of_type("ObjectMeta") | {"description": "Its name, labels and the like."}
    return {**schema, "properties": {**schema["properties"], **_TOP, "metadata": metadata}}


def definition(resource: Resource) -> Schema:
    return definitions()[_shape_of(resource)]


def _shape_of(resource: Resource) -> str:
    return KINDS[resource].shape or resource.kind


def referred(schema: Schema) -> Schema:
    """The schema that a reference stands for; any other as it is."""
    name = name_of(schema)
    return definitions()[name] if name else schema


def name_of(schema: Schema) -> str:
    """The name of the shape that this refers to; nothing if it is no reference."""
    if "allOf" in schema:  # A reference cannot have words of its own beside it.
        schema = schema["allOf"][0]
    text: str = schema.get("$ref", "")
    return text.removeprefix(REFERENCE)


def _shapes(lines: list[str]) -> Iterator[tuple[str, Schema]]:
    schema: Schema = {}
    for line in lines:
        if not line or line.startswith("#"):
            continue
        if shape := _SHAPE.fullmatch(line):
            schema = {"type": "object", "description": shape["words"], "properties": {}}
            yield shape["name"], schema
            continue
        field = _FIELD.fullmatch(line)
        assert field is not None, f"builtin.txt: not a shape and not a field: {line!r}"
        words = {"description": field["words"]} if field["words"] else {}
        schema["properties"][field["name"]] = _of_type(field["type"]) | words
        if field["required"]:
            schema.setdefault("required", []).append(field["name"])


def _merge(found: dict[str, Schema], shape: str, field: str | None, how: str) -> None:
    """Note in the schemas how a list or a map is merged."""
    place: Schema = found[shape] if field is None else found[shape]["properties"][field]
    word, *keys = how.split()
    if word in ("whole", "parts"):
        place["x-kubernetes-map-type"] = "atomic" if word == "whole" else "granular"
    elif word == "set":
        place["x-kubernetes-list-type"] = "set"
    else:
        names = [key.partition("=")[0] for key in keys]
        place |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": names}
        element = found.get(name_of(place["items"]), {}).get("properties", {})
        for name, default in (key.split("=") for key in keys if "=" in key):
            element[name]["default"] = default


def _of_type(word: str) -> dict[str, Any]:
    if word.startswith("["):
        return {"type": "array", "items": _of_type(word[1:-1])}
    if word.startswith("{"):
        return {"type": "object", "additionalProperties": _of_type(word[1:-1])}
    if word in _PLAIN:
        return dict(_PLAIN[word])
    return {"allOf": [{"$ref": f"{REFERENCE}{word}"}]}
