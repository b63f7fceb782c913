"""Instants as users type them at a prompt: after a span such as ``90s`` or ``2d``, or absolute."""

from __future__ import annotations

from datetime import datetime, timedelta

from tenure.errors import SpecError
from tenure.sim.scenario.read.timespans import parse_span


def parse_moment(text: str, start: datetime, at: str) -> timedelta:
    """How long after the start: a duration, or an RFC 3339 instant."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return parse_span(text, at)
    if instant.tzinfo is None:
        raise SpecError(at, text, "an instant with its zone", f"For example {text}Z.")
    if instant < start:
        raise SpecError(at, text, f"an instant from {start.isoformat()} on", "For example 5m.")
    return instant - start
