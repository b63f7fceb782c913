"""The base of all facts. ``core/facts.py`` says what they are for.

It is here because packing has facts, too: why a pod fits nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import msgspec


class Fact(msgspec.Struct, frozen=True, tag=True):
    """``str`` is its sentence."""

    #: Whether a change of it alone makes a new event. A new time of the next retry does not.
    news: ClassVar[bool] = True

    def __str__(self) -> str:
        raise NotImplementedError(type(self))


def sentence(facts: Iterable[Fact]) -> str:
    return "; ".join(filter(None, map(str, facts)))
