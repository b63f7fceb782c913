"""What an object keeps and what it gains on its way into the store.

``prune`` drops fields that the schema does not know, ``unknown_fields`` names them for
strict callers, ``default`` fills in what is absent, also inside what it has just filled
in, and drops nulls. None of them changes its argument; what does not change is shared.

``old`` is the stored object that a new one was made from: what the two share, the very
same parts, was clean when it was stored, and is not looked at again.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

import msgspec

from tenure.schema.structure.structural import Schema

#: What metadata may hold; the API server keeps these whatever a CRD says.
METADATA_FIELDS: Final = (
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)
_ANYTHING: Final[Schema] = {}


def with_metadata(schema: Schema) -> Schema:
    """The schema with the fields of metadata spelled out, so that they survive pruning."""
    metadata = {"type": "object", "properties": dict.fromkeys(METADATA_FIELDS, _ANYTHING)}
    return {**schema, "properties": {**schema["properties"], "metadata": metadata}}


def prune(value: Any, schema: Schema, old: Any = None) -> Any:
    if value is old:
        return value
    if isinstance(value, dict) and schema.get("type") == "object":
        before = old if isinstance(old, dict) else {}
        kept = {
            key: prune(item, child, before.get(key))
            for key, item in value.items()
            if (child := child_schema(schema, key)) is not None
        }
        return value if _same(kept, value) else kept
    if isinstance(value, list) and "items" in schema:
        items = [prune(item, schema["items"]) for item in value]
        return value if all(map(_is, items, value)) else items
    return value


class Unknown(msgspec.Struct, frozen=True):
    """A field that the schema does not know, and what it knows in that place."""

    field: str
    value: Any
    known: tuple[str, ...]


def unknown_fields(value: Any, schema: Schema, at: str = "") -> Iterator[Unknown]:
    """The fields that pruning would drop, in the order of the object."""
    if isinstance(value, dict) and schema.get("type") == "object":
        for key, item in value.items():
            path = f"{at}.{key}" if at else key
            child = child_schema(schema, key)
            if child is None:
                yield Unknown(path, item, tuple(schema.get("properties", ())))
            else:
                yield from unknown_fields(item, child, path)
    elif isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from unknown_fields(item, schema["items"], f"{at}[{index}]")


def default(value: Any, schema: Schema, old: Any = None) -> Any:
    if value is old:
        return value
    if isinstance(value, dict):
        return _default_object(value, schema, old if isinstance(old, dict) else {})
    if isinstance(value, list) and "items" in schema:
        items = [default(item, schema["items"]) for item in value]
        return value if all(map(_is, items, value)) else items
    return value


def _default_object(value: dict[str, Any], schema: Schema, old: dict[str, Any]) -> dict[str, Any]:
    filled: dict[str, Any] = {}
    for key, item in value.items():
        child = child_schema(schema, key)
        if item is None and child is not None and child is not _ANYTHING:
            continue
        filled[key] = item if child is None else default(item, child, old.get(key))
    for key, child in schema.get("properties", {}).items():
        if key not in filled and "default" in child:
            filled[key] = default(deepcopy(child["default"]), child)
    return value if _same(filled, value) else filled


def child_schema(schema: Schema, key: str) -> Schema | None:
    """The schema of a property or a map's value; None where the schema knows neither."""
    child: Schema | None = schema.get("properties", {}).get(key)
    return child if child is not None else schema.get("additionalProperties")


def _same(new: dict[str, Any], old: dict[str, Any]) -> bool:
    return len(new) == len(old) and all(new[key] is old.get(key, new) for key in new)


def _is(new: Any, old: Any) -> bool:
    return new is old
