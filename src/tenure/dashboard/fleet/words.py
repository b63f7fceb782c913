"""Values in a few characters: lengths of time, clocks, money, counts. Board, demo and lists say them the same way."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from tenure.model.cloud.offering import MICRO_DOLLARS

_SECOND: Final = timedelta(seconds=1)


def span(length: timedelta) -> str:
    """The two largest units: ``47s``, ``3m05s``, ``2h14m``, ``6d03h``."""
    seconds = max(length // _SECOND, 0)
    if seconds < 60:
        return f"{seconds}s"
    for unit, size, below, part in (("m", 60, "s", 1), ("h", 3600, "m", 60)):
        if seconds < size * (60 if unit == "m" else 24):
            return f"{seconds // size}{unit}{seconds % size // part:02d}{below}"
    days, rest = divmod(seconds, 86_400)
    return f"{days}d{rest // 3600:02d}h" if days < 100 else f"{days}d"


def away(instant: datetime, now: datetime) -> str:
    """``in 3m05s``, ``5m00s ago``, ``now``."""
    length = instant - now
    if abs(length) < _SECOND:
        return "now"
    return f"in {span(length)}" if length > timedelta() else f"{span(-length)} ago"


def clock(instant: datetime, now: datetime | None = None) -> str:
    """In UTC, with the date where it is another one than ``now`` has."""
    there = instant.astimezone(UTC)
    same = now is None or there.date() == now.astimezone(UTC).date()
    return f"{there:%H:%M:%S}" if same else f"{there:%Y-%m-%d %H:%M:%S}"


def narrow_clock(instant: datetime, now: datetime) -> str:
    """The same in at most 11 characters."""
    there, here = instant.astimezone(UTC), now.astimezone(UTC)
    return f"{there:%H:%M:%S}" if there.date() == here.date() else f"{there:%m-%d %H:%M}"


def money(micro_dollars: int) -> str:
    """At least two digits that say something: ``$1.24``, ``$0.0124``."""
    dollars = micro_dollars / MICRO_DOLLARS
    return f"${dollars:,.2f}" if dollars >= 0.1 or not dollars else f"${dollars:.4f}"


def hourly(price: int, unpriced: int) -> str:
    """``$1.24/h``, ``at least $1.24/h``; where nothing is known, that."""
    if not unpriced:
        return f"{money(price)}/h"
    return f"at least {money(price)}/h" if price else "price unknown"


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
