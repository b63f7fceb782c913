"""Check a value against a structural schema; all errors, in the API server's words.

With an old value, what has not changed is not checked again: an object that an older
schema let in can still be updated elsewhere. Lists are compared as a whole unless they
are keyed, because only a key says which element was which.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, Final

import re2

from tenure.schema.structure import fielderror
from tenure.schema.structure.fielderror import FieldError
from tenure.schema.structure.shape import child_schema
from tenure.schema.structure.structural import Schema

#: Stands for "there was nothing before"; None would be a value.
ABSENT: Final = object()

_INSTANT: Final = r"^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$"


def structural_errors(
    value: Any, schema: Schema, at: str = "", old: Any = ABSENT
) -> Iterator[FieldError]:
    if old is not ABSENT and value == old:
        return
    wrong = _type_error(value, schema, at)
    if wrong is not None:
        yield wrong
        return
    if isinstance(value, str):
        yield from _string_errors(value, schema, at)
    elif isinstance(value, dict):
        yield from _object_errors(value, schema, at, old)
    elif isinstance(value, list):
        yield from _list_errors(value, schema, at, old)
    elif isinstance(value, int | float):
        yield from _number_errors(value, schema, at)
    if "enum" in schema and value not in schema["enum"]:
        yield fielderror.not_supported(at, value, schema["enum"])


def json_type(value: Any) -> str:
    """The JSON name of a value's type; a whole float is an integer, as in JSON schema."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    names = {str: "string", int: "integer", dict: "object", list: "array", type(None): "null"}
    return names[type(value)]


def _type_error(value: Any, schema: Schema, at: str) -> FieldError | None:
    got = json_type(value)
    if schema.get("x-kubernetes-int-or-string"):
        if got in ("integer", "string"):
            return None
        return fielderror.wrong_type(at, value, "integer,string", got)
    wanted = schema.get("type", got)
    if wanted == got or (wanted == "number" and got == "integer"):
        return None
    if got == "number" and wanted == "integer" and "format" in schema:
        return fielderror.wrong_type(at, value, schema["format"], "float64")
    return fielderror.wrong_type(at, value, wanted, got)


def _string_errors(value: str, schema: Schema, at: str) -> Iterator[FieldError]:
    """The first of length and pattern that fails, as at the API server; then the format."""
    if "maxLength" in schema and len(value) > schema["maxLength"]:
        yield fielderror.too_long(at, value, schema["maxLength"])
    elif len(value) < schema.get("minLength", 0):
        least = schema["minLength"]
        detail = f"should be at least {least} chars long"
        yield fielderror.invalid(at, value, detail, f"at least {least} characters")
    elif "pattern" in schema and not matches(schema["pattern"], value):
        yield fielderror.mismatch(at, value, schema["pattern"])
    if schema.get("format") == "date-time" and not is_date_time(value):
        yield fielderror.wrong_type(at, value, "date-time", value)


def _number_errors(value: float, schema: Schema, at: str) -> Iterator[FieldError]:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and value < least:
        detail = f"should be greater than or equal to {least}"
        yield fielderror.invalid(at, value, detail, f"{least} or more")
    if most is not None and value > most:
        detail = f"should be less than or equal to {most}"
        yield fielderror.invalid(at, value, detail, f"{most} or less")


def _object_errors(
    value: dict[str, Any], schema: Schema, at: str, old: Any
) -> Iterator[FieldError]:
    before = old if isinstance(old, dict) else {}
    for key in schema.get("required", ()):
        if key not in value:
            meaning = schema.get("properties", {}).get(key, {}).get("description", "")
            yield fielderror.required(f"{at}.{key}" if at else key, meaning)
    if "maxProperties" in schema and len(value) > schema["maxProperties"]:
        yield fielderror.too_many(at, value, schema["maxProperties"])
    for key, item in value.items():
        child = child_schema(schema, key)
        if child is not None:
            path = f"{at}.{key}" if at else key
            yield from structural_errors(item, child, path, before.get(key, ABSENT))


def _list_errors(value: list[Any], schema: Schema, at: str, old: Any) -> Iterator[FieldError]:
    if "maxItems" in schema and len(value) > schema["maxItems"]:
        yield fielderror.too_many(at, value, schema["maxItems"])
    if len(value) < schema.get("minItems", 0):
        least = schema["minItems"]
        detail = f"should have at least {least} items"
        yield fielderror.invalid(at, len(value), detail, f"at least {least} elements")
    before = correlated(old, schema)
    items = schema.get("items", {})
    for index, item in enumerate(value):
        was = before.get(list_key(item, schema), ABSENT)
        yield from structural_errors(item, items, f"{at}[{index}]", was)
    yield from _duplicates(value, schema, at)


def _duplicates(value: list[Any], schema: Schema, at: str) -> Iterator[FieldError]:
    if schema.get("x-kubernetes-list-type") not in ("set", "map"):
        return
    seen = set()
    for index, item in enumerate(value):
        key = list_key(item, schema)
        if key is not None and key in seen:
            keys = schema.get("x-kubernetes-list-map-keys")
            shown = {name: item.get(name) for name in keys} if keys else item
            yield fielderror.duplicate(f"{at}[{index}]", shown)
        seen.add(key)


def list_key(item: Any, schema: Schema) -> object:
    """What identifies an element of a set or a keyed list; None in any other list."""
    kind = schema.get("x-kubernetes-list-type")
    if kind == "set":
        return item if isinstance(item, str) else repr(item)
    if kind == "map" and isinstance(item, dict):
        return tuple(str(item.get(key)) for key in schema["x-kubernetes-list-map-keys"])
    return None


def correlated(old: Any, schema: Schema) -> dict[object, Any]:
    """Elements of the old list by their key; empty where elements have none."""
    if not isinstance(old, list) or schema.get("x-kubernetes-list-type") != "map":
        return {}
    return {list_key(item, schema): item for item in old}


@lru_cache(maxsize=8192)
def matches(pattern: str, text: str) -> bool:
    """Whether the text matches, in RE2, the API server's engine: ``$`` is the very end there.

    Remembered, because a cluster writes the same few hundred texts over and over.
    """
    return _compiled(pattern).search(text) is not None


@cache
def _compiled(pattern: str) -> Any:
    return re2.compile(pattern)


def is_date_time(text: str) -> bool:
    """RFC 3339 with a date, a time and a zone."""
    if not matches(_INSTANT, text):
        return False
    try:
        datetime.fromisoformat(text.upper())
    except ValueError:
        return False
    return True
