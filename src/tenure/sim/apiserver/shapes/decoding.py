"""What an API server's decoder says of an object of a built-in kind, before any rule does.

A field of the wrong type cannot be read at all. A field that does not exist is found too;
what becomes of it is for the caller to say. A null is as absent, and in a list as empty.
Parts that were in the stored object already are not looked at again.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import msgspec

from tenure.errors import SpecError
from tenure.model.api.resource import Resource
from tenure.model.values.quantity import parse_quantity
from tenure.schema.structure.structural import Schema
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.shapes.definitions import definition, definitions, referred

_BITS: Final = {"int32": 31, "int64": 63}
_WORDS: Final = {"description": ""}
_TEXT: Final = {"type": "string", **_WORDS}
_EMPTY: Final[dict[str, Any]] = {
    "object": {},
    "array": [],
    "string": "",
    "integer": 0,
    "boolean": False,
}


class Mistake(msgspec.Struct, frozen=True):
    at: str
    #: What was expected; nothing where the object can be read all the same.
    expected: str = ""
    got: str = ""

    @property
    def unknown(self) -> bool:
        """The field does not exist."""
        return not self.expected and not self.got

    @property
    def fatal(self) -> bool:
        return bool(self.expected)

    def __str__(self) -> str:
        return f"{self.at}: got {self.got}, expected {self.expected}"


def mistakes(resource: Resource, obj: Any, old: Any = None) -> Iterator[Mistake]:
    """Everything in the object that cannot be read, in the order in which it stands there."""
    return _mistakes(obj, definition(resource), "", old)


def metadata_mistakes(metadata: Any, old: Any = None) -> Iterator[Mistake]:
    """The same for the metadata of any object."""
    return _mistakes(metadata, definitions()["ObjectMeta"], "metadata", old)


def as_read(resource: Resource, obj: Obj) -> Obj:
    """The object without the fields that do not exist, and with what every such object has.

    A null in a list is an empty element, a text that is missing an empty one.
    """
    known: Obj = _known(obj, definition(resource))
    return known


def _known(value: Any, schema: Schema) -> Any:
    schema = referred(schema)
    if isinstance(value, list):
        return [_element(item, schema["items"]) for item in value] if "items" in schema else value
    if not isinstance(value, dict) or "x-kubernetes-preserve-unknown-fields" in schema:
        return value
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    known = {
        key: _known(item, child)
        for key, item in value.items()
        if (child := properties.get(key, others)) is not None
    }
    return {**known, **dict.fromkeys(_missing_texts(value, schema), "")}


def _missing_texts(value: Obj, schema: Schema) -> list[str]:
    """The texts that every such object has, if only an empty one."""
    properties = schema.get("properties", {})
    return [
        field
        for field in schema.get("required", ())
        if value.get(field) is None and properties[field] | _WORDS == _TEXT
    ]


def _element(value: Any, schema: Schema) -> Any:
    return _known(_EMPTY[referred(schema)["type"]] if value is None else value, schema)


def _mistakes(value: Any, schema: Schema, at: str, old: Any = None) -> Iterator[Mistake]:
    if value is None or (value is old and isinstance(value, dict | list)):
        return
    schema = referred(schema)
    if "x-kubernetes-preserve-unknown-fields" in schema:
        if not isinstance(value, dict):
            yield Mistake(at, "an object", _named(value))
        return
    kind = schema["type"]
    if kind == "object":
        yield from _in_object(value, schema, at, old)
    elif kind == "array":
        yield from _in_list(value, schema, at)
    elif expected := _unlike(value, schema):
        yield Mistake(at, expected, _named(value))


def _in_object(value: Any, schema: Schema, at: str, old: Any) -> Iterator[Mistake]:
    if not isinstance(value, dict):
        yield Mistake(at, "an object", _named(value))
        return
    if missing := _missing_texts(value, schema):
        yield Mistake(f"{at}.{missing[0]}", got="nothing")
    before = old if isinstance(old, dict) else {}
    properties = schema.get("properties", {})
    for key, item in value.items():
        here = f"{at}.{key}" if at else key
        child = properties.get(key, schema.get("additionalProperties"))
        if child is None:
            yield Mistake(here)
        else:
            yield from _mistakes(item, child, here, before.get(key))


def _in_list(value: Any, schema: Schema, at: str) -> Iterator[Mistake]:
    if not isinstance(value, list):
        yield Mistake(at, "a list", _named(value))
        return
    for index, item in enumerate(value):
        if item is None:
            yield Mistake(f"{at}[{index}]", got="null")
        yield from _mistakes(item, schema["items"], f"{at}[{index}]")


def _unlike(value: Any, schema: Schema) -> str:
    """What was expected instead of a plain value; nothing if it will do."""
    kind, format_ = schema["type"], schema.get("format", "")
    if format_ == "quantity":
        return "" if _is_quantity(value) else 'an amount like "500m" or "2Gi"'
    if format_ == "byte":
        return "" if _is_base64(value) else "a text in base64"
    if format_ == "int-or-string":
        return "" if isinstance(value, str) or _is_whole(value, "int32") else "a number or a text"
    if format_ == "date-time":
        return "" if _is_instant(value) else "an instant like 2026-01-05T08:00:00Z"
    if kind == "integer":
        return "" if _is_whole(value, format_) else "a whole number"
    if kind == "boolean":
        return "" if isinstance(value, bool) else "true or false"
    return "" if isinstance(value, str) else "a text"


def _is_whole(value: Any, format_: str) -> bool:
    if isinstance(value, bool) or not isinstance(value, int):
        return False
    most: int = 2 ** _BITS[format_]
    return -most <= value < most


def _is_base64(value: Any) -> bool:
    try:
        return isinstance(value, str) and b64decode(value, validate=True) is not None
    except ValueError:
        return False


def _is_quantity(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    try:
        parse_quantity(value if isinstance(value, str) else repr(value))
    except SpecError:
        return False
    return True


def _is_instant(value: Any) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def _named(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 40 else f"{text[:40]}…"
