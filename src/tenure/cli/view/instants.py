"""How instants are shown to users: absolute, and relative to the instant of the answer.

Verdicts carry absolute instants only, so that they do not change while time passes. What is
printed for users goes through here once, line by line: ``2026-01-05T08:12:30Z, in 3m``. JSON does
not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from tenure.core.facts import Fact, instants_of, sentence
from tenure.model.api.meta import format_time

#: With whether the sentence goes on.
_INSTANT: Final = re.compile(r"\b(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)(?=( \w)?)")
_SECOND: Final = timedelta(seconds=1)
#: The days until the year 9999 tell a reader nothing.
_FAR: Final = timedelta(days=3650)


def with_relative(lines: Iterable[str], now: datetime) -> Iterator[str]:
    """The lines, each instant in them followed by how far away it is."""
    whole = now.replace(microsecond=0)  # Instants are printed without their fractions.

    def shown(found: re.Match[str]) -> str:
        try:
            instant = datetime.fromisoformat(found[0])
        except ValueError:
            return found[0]  # Looks like an instant, and is none: 2026-13-01.
        away = relative(instant, now if instant.microsecond else whole)
        return f"{found[1]}, {away}{',' if found[2] else ''}" if away else found[0]

    return (_INSTANT.sub(shown, line) for line in lines)


def in_zone(lines: Iterable[str], zone: tzinfo) -> Iterator[str]:
    """The lines, each instant in them as clocks of that zone show it: ``2026-01-05T09:12:30+01:00``."""
    if str(zone) == str(UTC):
        return iter(lines)

    def shown(found: re.Match[str]) -> str:
        try:
            return datetime.fromisoformat(found[1]).astimezone(zone).isoformat()
        except (ValueError, OverflowError):
            return found[1]  # None at all, or at the end of all years.

    return (_INSTANT.sub(shown, line) for line in lines)


def dated(facts: Iterable[Fact], word: str, instant: datetime | None) -> str:
    """The sentence of the facts, with the instant unless they have it already."""
    facts = tuple(facts)
    if instant is None or format_time(instant) in map(format_time, instants_of(facts)):
        return sentence(facts)
    return f"{sentence(facts)}; {word} {format_time(instant)}"


def relative(instant: datetime, now: datetime) -> str:
    """``in 3m``, ``5m ago``; empty for this very second, and for what is far beyond."""
    away = (abs(instant - now) + _SECOND / 2) // _SECOND * _SECOND
    if not away or away > _FAR:
        return ""
    return f"in {span(away)}" if instant > now else f"{span(away)} ago"


def at_clock(instant: datetime, now: datetime) -> str:
    """For a cell of a table: ``08:12:30, in 3m``; with the date where it is another one."""
    same = instant.astimezone(UTC).date() == now.astimezone(UTC).date()
    shown = f"{instant:%H:%M:%S}" if same else f"{instant:%Y-%m-%d %H:%M:%S}"
    away = relative(instant, now)
    return f"{shown}, {away}" if away else shown


def span(length: timedelta) -> str:
    """The two largest units: ``47s``, ``3m5s``, ``2h14m``, ``6d``."""
    seconds = length // _SECOND
    parts = []
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        count, seconds = divmod(seconds, size)
        parts.append((count, unit))
    while len(parts) > 1 and not parts[0][0]:
        parts.pop(0)
    return "".join(f"{count}{unit}" for count, unit in parts[:2] if count) or "0s"
