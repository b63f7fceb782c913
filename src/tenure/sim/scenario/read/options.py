"""Typed options from kebab-case fields: ``boot-for: 30s`` sets ``boot_for``.

The types of the option structs say what each field takes; there is no second list of
them here, so that a new option can be written in a scenario at once.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, TypeVar

import msgspec

from tenure.errors import SpecError
from tenure.model.cloud.offering import OfferingKey
from tenure.sim.scenario.read.fields import Reader, join
from tenure.sim.virtual.faults import ANY, Offset

S = TypeVar("S", bound=msgspec.Struct)

Read = Callable[[Reader, Any, str], Any]


def read_options(reader: Reader, value: Any, at: str, into: type[S]) -> S:
    """A struct of that type; what is not said keeps its default."""
    known = {_kebab(field.name): field for field in msgspec.structs.fields(into)}
    fields = reader.fields({} if value is None else value, at, tuple(known))
    given = {
        field.name: _read(reader, fields.raw(name), fields.path(name), field.type)
        for name, field in known.items()
        if name in fields
    }
    try:
        return into(**given)
    except SpecError as error:
        name = _kebab(error.at.rpartition(".")[2])
        reader.problem(join(at, name), error.got, error.expected, error.hint)
        return into()


def _kebab(name: str) -> str:
    return name.replace("_", "-")


def _read(reader: Reader, value: Any, at: str, type_: Any) -> Any:
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        return read_options(reader, value, at, type_)
    if type_ == timedelta | None:
        return None if value is None else reader.span(value, at)
    return _READERS[type_](reader, value, at)


def _offerings(reader: Reader, value: Any, at: str) -> tuple[OfferingKey, ...]:
    """``[{zone: zone-a, capacity-type: spot}]``: what is not said means any."""
    keys = []
    for place, item in reader.items(value, at):
        fields = reader.fields(item, place, ("instance-type", "zone", "capacity-type"))
        keys.append(
            (
                fields.text("instance-type", ANY),
                fields.text("zone", ANY),
                fields.text("capacity-type", ANY),
            )
        )
    return tuple(keys)


def _texts(reader: Reader, value: Any, at: str) -> tuple[str, ...]:
    return tuple(reader.text(item, place) for place, item in reader.items(value, at))


def _text_or_texts(reader: Reader, value: Any, at: str) -> str | tuple[str, ...]:
    return _texts(reader, value, at) if isinstance(value, list) else reader.text(value, at)


def _offset(reader: Reader, value: Any, at: str) -> timedelta:
    """``1h``, or ``-1h``."""
    if isinstance(value, str) and value.startswith("-"):
        return -reader.span(value[1:], at)
    return reader.span(value, at)


_READERS: Final[dict[Any, Read]] = {
    timedelta: Reader.span,
    Offset: _offset,
    int: Reader.whole,
    float: Reader.number,
    str: Reader.text,
    bool: Reader.flag,
    tuple[str, ...]: _texts,
    str | tuple[str, ...]: _text_or_texts,
    tuple[OfferingKey, ...]: _offerings,
}
