"""The bodies that kubectl sends in protobuf and in nothing else, read into JSON.

``kubectl drain`` sends options of a deletion so, ``kubectl create deployment`` and its like
the object. ``messages.txt`` has the numbers of their fields, the shapes of the built-in kinds
the types. A field that is not there is refused, never dropped.
"""

from __future__ import annotations

import re
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from tenure.model.api.meta import format_time
from tenure.schema.structure.structural import Schema
from tenure.sim.apiserver.shapes.definitions import definitions, name_of
from tenure.sim.serve.proto import Unreadable, Value, as_bytes, as_number, as_text, fields, opened

Json = dict[str, Any]
#: The server writes it; what a client says of it is not looked at.
_STATUS: Final = "status"
#: Where two versions of a kind have different messages: the name of the one that is not called like the kind.
_OTHER_VERSIONS: Final = {
    ("autoscaling/v1", "HorizontalPodAutoscaler"): "HorizontalPodAutoscalerV1"
}
_ROW: Final = re.compile(r"(?P<name>\w+): (?P<fields>.+)")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class UnreadPod(Unreadable):
    """The message is a Pod."""


class _Field(NamedTuple):
    name: str
    schema: Schema
    zero_counts: bool
    #: The field of the message in this one that is meant; 0 for this one.
    inside: int = 0


def read(body: bytes) -> Json:
    """The object in the envelope. Raises ``Unreadable``."""
    version, kind, message = opened(body)
    name = _OTHER_VERSIONS.get((version, kind), kind)
    if kind == "Pod":
        raise UnreadPod("a message of kind 'Pod'")
    if name not in _numbers():
        raise Unreadable(f"a message of kind {kind!r}")
    return {"kind": kind, **_object(message, name)}


@cache
def _numbers() -> dict[str, dict[int, _Field]]:
    """Message → number → field."""
    text = files(__package__).joinpath("messages.txt").read_text(encoding="utf-8")
    rows = re.sub(r"\n +", " ", text).splitlines()
    found = [row for row in map(_ROW.fullmatch, rows) if row]
    return {row["name"]: _row(row["name"], row["fields"].split()) for row in found}


def _row(message: str, words: list[str]) -> dict[int, _Field]:
    row = {}
    for word in words:
        number, name = word.split(":")
        schema = definitions()[message]["properties"][name]
        outer, _, inner = number.removesuffix("*").partition(".")
        row[int(outer)] = _Field(name, schema, number.endswith("*"), int(inner or 0))
    return row


def _object(message: bytes, kind: str) -> Json:
    found: Json = {}
    for number, sent in fields(message):
        field = _numbers()[kind].get(number)
        if field is None:
            raise Unreadable(f"field {number} of {kind}")
        if field.name == _STATUS:
            continue
        value = dict(fields(as_bytes(sent))).get(field.inside, b"") if field.inside else sent
        if "items" in field.schema:
            found.setdefault(field.name, []).append(_plain(value, field.schema["items"]))
        elif "additionalProperties" in field.schema:
            key, item = _entry(as_bytes(value), field.schema["additionalProperties"])
            found.setdefault(field.name, {})[key] = item
        elif (plain := _plain(value, field.schema)) or field.zero_counts:
            found[field.name] = plain
    return found


def _entry(message: bytes, schema: Schema) -> tuple[str, Any]:
    entry = dict(fields(message))
    return as_text(entry.get(1, b"")), _plain(entry.get(2, b""), schema)


def _plain(value: Value, schema: Schema) -> Any:
    """One value; None for an instant that was not given."""
    if name := name_of(schema):
        if name not in _numbers():
            raise Unreadable(f"a message of kind {name!r}")
        return _object(as_bytes(value), name)
    format_ = schema.get("format", "")
    if format_ == "quantity":
        return as_text(dict(fields(as_bytes(value))).get(1, b""))
    if format_ == "byte":
        return b64encode(as_bytes(value)).decode()
    if format_ == "int-or-string":
        return _share(dict(fields(as_bytes(value))))
    if format_ == "date-time":
        return _instant(as_number(dict(fields(as_bytes(value))).get(1, 0)))
    if schema["type"] == "boolean":
        return bool(as_number(value))
    return as_number(value) if schema["type"] == "integer" else as_text(value)


def _instant(seconds: int) -> str | None:
    try:
        return format_time(_EPOCH + timedelta(seconds=seconds)) if seconds else None
    except OverflowError as error:
        raise Unreadable("an instant beyond all calendars") from error


def _share(message: dict[int, Value]) -> int | str:
    if as_number(message.get(1, 0)):
        return as_text(message.get(3, b""))
    return as_number(message.get(2, 0))
