"""Bodies in protobuf, read into JSON: typed clients of client-go send every built-in kind so unless they are told otherwise.

``messages.txt`` has the fields of every kind by their numbers. What stands in JSON always, or was given, is read; a field
that is not in the table is refused, never dropped. Answers are JSON, which those clients accept.
"""

from __future__ import annotations

import re
import struct
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from tenure.errors import SpecError
from tenure.model.api.meta import format_time
from tenure.parse import jsontext
from tenure.sim.serve.proto import Unreadable, Value, as_bytes, as_number, as_text, fields, opened

Json = dict[str, Any]
_ROW: Final = re.compile(r"(?P<name>\S+): ?(?P<fields>.*)")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: Every group has them.
_META: Final = "meta/v1"
#: Messages that are one of their fields in JSON: a schema where there is one, else the other.
_CHOICES: Final = re.compile(r"apiextensions/v1\.JSONSchemaPropsOr\w+")
#: As deep as a schema in a definition may go; our own stack is no limit for others.
_DEEPEST: Final = 100


class _Field(NamedTuple):
    name: str
    type: str
    zero_counts: bool


def read(body: bytes) -> Json:
    """The object in the envelope. Raises ``Unreadable``."""
    version, kind, message = opened(body)
    group, _, number = version.rpartition("/")
    name = f"{group.partition('.')[0] or 'core'}/{number}.{kind}"
    if name not in _table():
        name = f"{_META}.{kind}"
    if name not in _table():
        raise Unreadable(f"a message of kind {kind!r} in version {version!r}")
    return {"apiVersion": version, "kind": kind, **_object(message, name, 0)}


@cache
def _table() -> Mapping[str, Mapping[int, _Field]]:
    """Message → number → field."""
    text = files(__package__).joinpath("messages.txt").read_text(encoding="utf-8")
    rows = [_ROW.fullmatch(line) for line in text.splitlines() if not line.startswith("#")]
    return {row["name"]: dict(map(_field, row["fields"].split())) for row in rows if row}


def _field(word: str) -> tuple[int, _Field]:
    number, name, type_ = word.split(":")
    return int(number), _Field(name, type_.removesuffix("*"), type_.endswith("*"))


def _object(message: bytes, name: str, depth: int) -> Any:
    if depth > _DEEPEST:
        raise Unreadable(f"messages in more than {_DEEPEST} others")
    found: Json = {}
    for number, value in fields(message):
        field = _table()[name].get(number)
        if field is None:
            raise Unreadable(f"field {number} of {name}")
        if field.type.startswith("["):
            found.setdefault(field.name, []).append(_value(value, field.type[1:-1], depth))
        elif field.type.startswith("{"):
            entry = dict(fields(as_bytes(value)))
            key, item = as_text(entry.get(1, b"")), entry.get(2, b"")
            found.setdefault(field.name, {})[key] = _value(item, field.type[1:-1], depth)
        elif field.type.startswith("^"):
            found |= _value(value, field.type[1:], depth)
        else:
            plain = _value(value, field.type, depth)
            if plain is not None and (plain or field.zero_counts):
                found[field.name] = plain
    if _CHOICES.fullmatch(name):
        return found.get("schema", next(iter(found.values()), None))
    return found


def _value(value: Value, type_: str, depth: int) -> Any:
    """One value; None for an instant that was not given."""
    if (plain := _PLAIN.get(type_)) is not None:
        return plain(value)
    return _object(as_bytes(value), type_, depth + 1)


def _inner(value: Value) -> dict[int, Value]:
    return dict(fields(as_bytes(value)))


def _quantity(value: Value) -> str:
    return as_text(_inner(value).get(1, b""))


def _fraction(value: Value) -> float:
    number = float(struct.unpack("<d", as_bytes(value))[0])
    if number - number != 0:
        raise Unreadable("a number without end")
    return int(number) if number.is_integer() else number


def _share(value: Value) -> int | str:
    message = _inner(value)
    if as_number(message.get(1, 0)):
        return as_text(message.get(3, b""))
    return as_number(message.get(2, 0))


def _any(value: Value) -> Any:
    """JSON in bytes."""
    raw = as_bytes(_inner(value).get(1, b""))
    try:
        return jsontext.body(raw) if raw else None
    except SpecError as error:
        raise Unreadable("JSON that is none") from error


def _list(value: Value) -> list[str]:
    return [as_text(item) for _, item in fields(as_bytes(value))]


def _instant(value: Value) -> str | None:
    seconds = as_number(_inner(value).get(1, 0))
    return format_time(_at(seconds, 0)) if seconds else None


def _exact_instant(value: Value) -> str | None:
    message = _inner(value)
    seconds, nanos = as_number(message.get(1, 0)), as_number(message.get(2, 0))
    if not seconds:
        return None
    return _at(seconds, nanos).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _at(seconds: int, nanos: int) -> datetime:
    try:
        return _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    except OverflowError as error:
        raise Unreadable("an instant beyond all calendars") from error


_PLAIN: Final[Mapping[str, Callable[[Value], Any]]] = {
    "s": as_text,
    "i": as_number,
    "n": _fraction,
    "b": lambda value: bool(as_number(value)),
    "B": lambda value: b64encode(as_bytes(value)).decode(),
    "q": _quantity,
    "t": _instant,
    "m": _exact_instant,
    "x": _share,
    "r": _any,
    "e": _list,
}
