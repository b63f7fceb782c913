"""Durations, crons and time zones of a spec, read for real: what patterns cannot say."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from zoneinfo import ZoneInfo

from tenure.errors import SpecError
from tenure.model.values.cron import Cron
from tenure.model.values.duration import parse_duration, parse_duration_or_never


def span_problems(
    text: str | None, at: str, *, never: bool = False, positive: bool = False
) -> Iterator[SpecError]:
    """What is wrong with a duration; an absent one is fine."""
    if text is None:
        return
    try:
        span = parse_duration_or_never(text, at) if never else parse_duration(text, at)
    except SpecError as error:
        yield error
        return
    if span is None:
        return
    if span.nanoseconds < 0:
        yield SpecError(at, text, "a duration that is not negative", "Leave the sign out.")
    elif positive and span.nanoseconds == 0:
        yield SpecError(at, text, "a duration above zero", "Use for example 15m.")


def cron_problems(text: str | None, at: str) -> Iterator[SpecError]:
    if text is None:
        return
    try:
        Cron.parse(text, at)
    except SpecError as error:
        yield error


def zone_problems(name: str | None, at: str) -> Iterator[SpecError]:
    if name is not None and not is_time_zone(name):
        yield SpecError(at, name, "an IANA time zone", "Use for example Europe/Berlin or UTC.")


@cache
def is_time_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        # Unknown, malformed, or the name of a folder of zones: all the same to the writer.
        return False
    return True
