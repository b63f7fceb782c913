"""Whether a configuration has the types of its kind: only then can its fields be owned.

Unlike in other writes, a field that the kind does not have is always refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tenure.errors import ApiError
from tenure.model.api.resource import Resource
from tenure.schema.structure.structural import Schema
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.ownership.forms import (
    UNTYPED,
    Form,
    Unmergeable,
    elements,
    form_of,
    resolved,
    under,
)

_KEPT: Final = "x-kubernetes-preserve-unknown-fields"
#: Texts that may also be written as numbers.
_EITHER: Final = ("quantity", "int-or-string")
_TYPES: Final[dict[str, tuple[tuple[type, ...], str]]] = {
    "string": ((str,), "string"),
    "boolean": ((bool,), "boolean"),
    "integer": ((int, float), "numeric (int or float)"),
    "number": ((int, float), "numeric (int or float)"),
}


class Untyped(ApiError):
    """A 500 without a reason, as the real server says it."""

    default_reason = ""


def check_types(resource: Resource, config: Obj, schema: Schema) -> None:
    """Raises 500, which names everything that does not fit."""
    found = sorted(_mistakes(config, schema, ""))
    if not found:
        return
    metadata = config["metadata"]
    where = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    version = f"{resource.group}/{resource.version}, Kind={resource.kind}"
    listed = found[0] if len(found) == 1 else "\n  ".join(["errors:", *found])
    raise Untyped(f"failed to create typed patch object ({where}; {version}): {listed}")


def _mistakes(value: Any, schema: Schema, at: str) -> Iterator[str]:
    schema = resolved(schema)
    wanted = schema.get("type", "")
    if value is None or (not wanted and "properties" not in schema):
        return
    if wanted == "array":
        yield from _in_list(value, schema, at)
    elif wanted in _TYPES:
        yield from _plain(value, schema, at)
    elif not isinstance(value, dict):
        yield f"{at}: expected map, got {value}"
    else:
        yield from _in_map(value, schema, at)


def _plain(value: Any, schema: Schema, at: str) -> Iterator[str]:
    types, name = _TYPES[schema["type"]]
    either = schema.get("format") in _EITHER or "x-kubernetes-int-or-string" in schema
    if either and isinstance(value, str | int | float):
        return
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        got = type(value).__name__.replace("str", "string")
        yield f"{at}: expected {name}, got {got}"


def _in_list(value: Any, schema: Schema, at: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{at}: expected list, got {value}"
        return
    try:
        steps = [step for step, _, _ in elements(value, schema)] if _keyed(value, schema) else []
    except Unmergeable as error:
        yield f"{at}: element 0: {error.message}"
        return
    if len(steps) != len(set(steps)):
        yield f"{at}: duplicate entries for key"
    for index, item in enumerate(value):
        yield from _mistakes(item, schema.get("items", UNTYPED), f"{at}[{index}]")


def _keyed(value: Any, schema: Schema) -> bool:
    return form_of(value, schema) is Form.LIST


def _in_map(value: Obj, schema: Schema, at: str) -> Iterator[str]:
    open_ = "additionalProperties" in schema or _KEPT in schema or "properties" not in schema
    for key, item in value.items():
        below, declared = under(schema, key)
        if declared or open_:
            yield from _mistakes(item, below, f"{at}.{key}")
        else:
            yield f"{at}.{key}: field not declared in schema"
