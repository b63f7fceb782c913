"""Typed options from kebab-case fields: ``boot-for: 30s`` sets ``boot_for``.

The types of the option structs say what each field takes, the words of the language what it means:
a field without a word, or a word without a field, is refused when the program starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final, Generic, TypeVar

import msgspec

from tenure.errors import SpecError
from tenure.model.api.names import CAPACITY_TYPE
from tenure.model.cloud.offering import OfferingKey
from tenure.schema.labeladvice import KNOWN_VALUES
from tenure.sim.scenario.read.fields import Reader, join
from tenure.sim.scenario.words.word import Word
from tenure.sim.virtual.faults import ANY, Offset

S = TypeVar("S", bound=msgspec.Struct)

Read = Callable[[Reader, Any, str], Any]


class Options(Generic[S]):
    """A struct and the words for its fields. Without words, another page has them."""

    def __init__(self, into: type[S], words: Sequence[Word] = (), *nested: Options[Any]) -> None:
        self.into = into
        self.fields = {_kebab(field.name): field for field in msgspec.structs.fields(into)}
        self.words = {word.name: word for word in words}
        self._nested: dict[Any, Options[Any]] = {one.into: one for one in nested}
        if words and self.words.keys() != self.fields.keys():
            differs = ", ".join(sorted(self.words.keys() ^ self.fields.keys()))
            raise ValueError(f"words and fields of {into.__name__} differ: {differs}")

    def read(self, reader: Reader, value: Any, at: str) -> S:
        """A struct of that type; what is not said keeps its default."""
        fields = reader.fields({} if value is None else value, at, tuple(self.fields))
        given = {}
        for name, field in self.fields.items():
            if name in fields:
                with reader.example(self.words[name].hint if name in self.words else ""):
                    given[field.name] = self._read(
                        reader, fields.raw(name), fields.path(name), field.type
                    )
        try:
            return self.into(**given)
        except SpecError as error:
            name = _kebab(error.at.rpartition(".")[2])
            reader.problem(join(at, name), error.got, error.expected, error.hint)
            return self.into()

    def _read(self, reader: Reader, value: Any, at: str, type_: Any) -> Any:
        if type_ in self._nested:
            return self._nested[type_].read(reader, value, at)
        if type_ == timedelta | None:
            return None if value is None else reader.span(value, at)
        return _READERS[type_](reader, value, at)


def _kebab(name: str) -> str:
    return name.replace("_", "-")


def _offerings(reader: Reader, value: Any, at: str) -> tuple[OfferingKey, ...]:
    """``[{zone: zone-a, capacity-type: spot}]``: what is not said means any."""
    keys = []
    for place, item in reader.items(value, at):
        fields = reader.fields(item, place, ("instance-type", "zone", "capacity-type"))
        keys.append(
            (
                fields.text("instance-type", ANY),
                fields.text("zone", ANY),
                fields.choice("capacity-type", KNOWN_VALUES[CAPACITY_TYPE], ANY),
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
