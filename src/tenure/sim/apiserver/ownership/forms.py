"""What a schema says about merging: which values are one leaf, and how a list's elements are told apart.

A part that no schema describes is merged by its look: objects field by field, lists as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any, Final

import msgspec

from tenure.errors import ApiError
from tenure.schema.structure.structural import Schema
from tenure.sim.apiserver.shapes.definitions import referred

UNTYPED: Final[Schema] = {}


class Form(Enum):
    LEAF = "leaf"
    MAP = "map"
    #: A list whose elements are told apart.
    LIST = "list"


class Unmergeable(ApiError):
    """An element of a list without the keys by which it would be found."""

    default_reason = ""


def form_of(value: Any, schema: Schema) -> Form:
    schema = resolved(schema)
    if isinstance(value, dict):
        return Form.LEAF if schema.get("x-kubernetes-map-type") == "atomic" else Form.MAP
    if isinstance(value, list) and schema.get("x-kubernetes-list-type") in ("map", "set"):
        return Form.LIST
    return Form.LEAF


def resolved(schema: Schema) -> Schema:
    """The schema that a reference stands for, with what is said at the place of the reference."""
    found = referred(schema)
    if "x-kubernetes-map-type" in schema and found is not schema:
        return {**found, "x-kubernetes-map-type": schema["x-kubernetes-map-type"]}
    return found


def under(schema: Schema, key: str) -> tuple[Schema, bool]:
    """The schema of a field, and whether the field is declared: keys of a map are not."""
    schema = resolved(schema)
    declared: Schema | None = schema.get("properties", {}).get(key)
    if declared is not None:
        return declared, True
    others = schema.get("additionalProperties")
    return (others if isinstance(others, dict) else UNTYPED), False


def elements(items: list[Any], schema: Schema) -> Iterator[tuple[str, Any, Schema]]:
    """(step, element, its schema) of a list whose elements are told apart."""
    schema = resolved(schema)
    for item in items:
        yield _step(item, schema), item, schema.get("items", UNTYPED)


def _step(item: Any, schema: Schema) -> str:
    if schema["x-kubernetes-list-type"] == "set":
        return f"v:{_json(item)}"
    names: list[str] = schema["x-kubernetes-list-map-keys"]
    element = resolved(schema.get("items", UNTYPED))
    below, always = element.get("properties", {}), element.get("required", ())
    keys = {}
    for name in sorted(names):
        # A text that every element has is an empty one where it is missing.
        default = below.get(name, UNTYPED).get("default", "" if name in always else None)
        value = item.get(name, default) if isinstance(item, dict) else None
        if value is not None:
            keys[name] = value
    if not keys:
        listed = " ".join(f'"{name}"' for name in names)
        raise Unmergeable(
            f"associative list with keys has an element that omits all key fields [{listed}] "
            "(and doesn't have default values for any key fields)"
        )
    return f"k:{_json(keys)}"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
