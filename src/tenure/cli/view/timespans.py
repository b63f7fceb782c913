"""Instants as users type them at a prompt: after a span such as ``90s`` or ``2d``, or absolute."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from tenure.errors import SpecError
from tenure.sim.scenario.read.timespans import parse_span

#: Played further than a scenario says: beyond, a typing error costs minutes.
LONGEST: Final = timedelta(days=366)


def parse_moment(text: str, start: datetime, at: str, until: timedelta = LONGEST) -> timedelta:
    """How long after the start: a duration, or an RFC 3339 instant. ``until``: of the scenario."""
    away = _away(text, start, at)
    if away > (longest := max(until, LONGEST)):
        expected = f"at most {longest.days}d after the start"
        raise SpecError(at, text, expected, "For example 1h30m or 2d.")
    return away


def _away(text: str, start: datetime, at: str) -> timedelta:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return parse_span(text, at)
    if instant.tzinfo is None:
        raise SpecError(at, text, "an instant with its zone", f"For example {text}Z.")
    if instant < start:
        raise SpecError(at, text, f"an instant from {start.isoformat()} on", "For example 5m.")
    return instant - start
