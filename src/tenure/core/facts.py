"""What a verdict is made of: facts, each a small typed value with a sentence of its own.

Deciders put facts together; nothing reads a sentence. Each room has a module ``facts`` with its
own, so that everything the room says stands in one place; ``docs/messages.md`` shows every one of
them with example values.

A sentence begins in the lower case, has no full stop, and stands by itself: what is the case; why,
with numbers and names of objects; until when, or what to do. Facts of one verdict are joined by
semicolons.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import ClassVar, Final

import msgspec

from tenure.model.api.meta import BEGINNING, format_time


class Fact(msgspec.Struct, frozen=True, tag=True):
    """``str`` is its sentence."""

    #: Whether it is news when nothing else about the subject has changed. The instant of the next
    #: try is not.
    news: ClassVar[bool] = True

    def __str__(self) -> str:
        raise NotImplementedError(type(self))


class Quoted(Fact, frozen=True):
    """What another program answered, in its own words."""

    text: str

    def __str__(self) -> str:
        return self.text


class RetriedAt(Fact, frozen=True):
    at: datetime

    news: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"retrying at {format_time(self.at)}"


def sentence(facts: Iterable[Fact]) -> str:
    return "; ".join(filter(None, map(str, facts)))


def as_fact(said: Fact | str) -> Fact:
    return Quoted(said) if isinstance(said, str) else said


EXAMPLES: Final[tuple[Fact, ...]] = (
    Quoted("Cannot evict pod as it would violate the pod's disruption budget"),
    RetriedAt(BEGINNING),
)
