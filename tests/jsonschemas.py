"""Checks a value against a JSON schema of draft 4, as far as the schemas in ``tests/data`` need it.

A keyword that is not known here is an error, so that nothing of a schema is left out in silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

_SILENT: Final = {"$schema", "id", "title", "description", "default", "definitions", "format"}
_TYPES: Final[dict[str, Any]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}


def problems(value: Any, schema: Any, root: Any, at: str = "$") -> Iterator[str]:
    if "$ref" in schema:
        part = root
        for step in schema["$ref"].removeprefix("#/").split("/"):
            part = part[step]
        yield from problems(value, part, root, at)
        return
    for keyword, wanted in schema.items():
        if keyword in _SILENT:
            continue
        if not _holds(keyword, wanted, value, schema, root):
            yield f"{at}: {value!r} breaks {keyword} {wanted!r}"
    yield from _inside(value, schema, root, at)


def _holds(keyword: str, wanted: Any, value: Any, schema: Any, root: Any) -> bool:
    match keyword:
        case "type":
            of = [wanted] if isinstance(wanted, str) else wanted
            return any(_is(value, one) for one in of)
        case "enum":
            return any(value == one for one in wanted)
        case "required":
            return not isinstance(value, dict) or set(wanted) <= set(value)
        case "additionalProperties":
            known = schema.get("properties", {})
            return wanted is not False or not isinstance(value, dict) or set(value) <= set(known)
        case "minItems":
            return not isinstance(value, list) or len(value) >= int(wanted)
        case "uniqueItems":
            return not isinstance(value, list) or len(set(map(repr, value))) == len(value)
        case "minimum" | "maximum":
            if not isinstance(value, int | float):
                return True
            return bool(value >= wanted if keyword == "minimum" else value <= wanted)
        case "pattern":
            return not isinstance(value, str) or re.search(wanted, value) is not None
        case "anyOf":
            return any(not list(problems(value, one, root)) for one in wanted)
        case "oneOf":
            return sum(not list(problems(value, one, root)) for one in wanted) == 1
        case "properties" | "items":
            return True  # Checked inside.
        case _:
            raise AssertionError(f"the keyword {keyword} is not known here")


def _is(value: Any, type_: str) -> bool:
    if isinstance(value, bool):
        return type_ == "boolean"
    return isinstance(value, _TYPES[type_])


def _inside(value: Any, schema: Any, root: Any, at: str) -> Iterator[str]:
    if isinstance(value, dict):
        known, other = schema.get("properties", {}), schema.get("additionalProperties")
        for name, part in value.items():
            inner = known.get(name, other)
            if isinstance(inner, dict):
                yield from problems(part, inner, root, f"{at}.{name}")
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, part in enumerate(value):
            yield from problems(part, schema["items"], root, f"{at}[{index}]")
