"""What a text costs does not grow with its length, and no sentence repeats all of it.

Counted in calls, not in seconds: the same on every computer. A C function that walks the text is
one call however long the text is, so the texts here are of the kind that is read part by part.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

import pytest

from tenure.core.health.breaker import Breaker
from tenure.core.protect.protection import protection_of
from tenure.core.terminate.workloads import invalid_protection
from tenure.errors import SpecError
from tenure.model.api.meta import read_instant
from tenure.model.api.names import DO_NOT_DISRUPT
from tenure.model.values.cron import Cron
from tenure.model.values.duration import parse_duration, parse_duration_or_never, read_loosely
from tenure.model.values.quantity import parse_quantity
from tests.core.build import a_pod

#: As long as an annotation may be.
LONGEST = 250_000
PARTS = {
    "duration": "1h",
    "loose duration": "1d",
    "digits": "9",
    "cron": "1,",
    "fields": "* ",
    "blanks": " ",
    "brackets": "[",
}

READERS: dict[str, Callable[[str], Any]] = {
    "duration": parse_duration,
    "duration or Never": parse_duration_or_never,
    "loose duration": read_loosely,
    "quantity": parse_quantity,
    "cron": Cron.parse,
    "instant": read_instant,
    "maxUnhealthy": lambda text: Breaker(1, 10, text).allowed,
    "do-not-disrupt": lambda text: str(protection_of(a_pod(annotations={DO_NOT_DISRUPT: text}))),
    "advice": lambda text: invalid_protection(text, "metadata"),
}


def calls(read: Callable[[str], Any], text: str) -> int:
    """How many functions are called, Python's own included."""
    count = 0

    def note(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        with suppress(SpecError):
            read(text)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_text_costs_no_more_when_it_is_250_times_as_long(
    read: Callable[[str], Any], part: str
) -> None:
    def text(length: int) -> str:
        return (part * length)[: length - 4] + "[[[["

    # Both are longer than anything that is parsed; the first ones pay for imports and caches.
    calls(read, text(998))
    assert calls(read, text(LONGEST)) <= calls(read, text(1_000)) + 5


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_no_sentence_repeats_a_long_text(read: Callable[[str], Any]) -> None:
    text = "1d" * (LONGEST // 2)
    try:
        said = str(read(text))
    except SpecError as error:
        said = str(error)
    assert len(said) < 1_000


@pytest.mark.parametrize("text", ["1d1d1d[[", "4 hours and a half", "12 parsecs"])
def test_what_cannot_be_read_is_not_read_again_at_every_look(text: str) -> None:
    def read() -> None:
        with suppress(SpecError):
            parse_duration(text)

    read()
    assert calls(lambda _: read(), "") < 20
