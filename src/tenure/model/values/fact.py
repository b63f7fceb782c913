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

    def gist(self) -> object:
        """What of it has to change before events and log say it again: not each count or name."""
        return self

    def remedy(self) -> str:
        """What an operator can do about it; empty: what the verdict's reason advises."""
        return ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        assert cls.__str__ is not msgspec.Struct.__str__, f"{cls.__name__} has no sentence"


def sentence(facts: Iterable[Fact]) -> str:
    return "; ".join(filter(None, map(str, facts)))


def shortened(facts: Iterable[Fact], most: int) -> str:
    """The sentence, in so many characters: whole facts, and how many more there are."""
    texts = [text for text in map(str, facts) if text]
    said = "; ".join(texts)
    for left_out in range(1, len(texts)):
        if len(said) <= most:
            break
        some = "; ".join(texts[:-left_out])
        said = f"{some}; and {left_out:,} more, which tenure explain tells"
    return said[:most]
