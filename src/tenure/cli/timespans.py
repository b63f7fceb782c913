"""Durations and instants as people type them at a prompt: ``90s``, ``1h30m``, ``2d``.

Files take Go durations only; at a prompt a day is welcome, as ``2d`` or ``1d12h``.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

from tenure.errors import SpecError
from tenure.model.duration import parse_duration

_DAYS: Final = re.compile(r"([0-9]{1,4})d(.*)")
_ZERO: Final = timedelta(0)


def parse_span(text: str, at: str) -> timedelta:
    """How long; raises ``SpecError``."""
    days, rest = _ZERO, text
    if (match := _DAYS.fullmatch(text)) is not None:
        days, rest = timedelta(days=int(match[1])), match[2] or "0s"
    try:
        span = days + parse_duration(rest, at).timedelta
    except SpecError as error:
        hint = error.hint or "For example 90s, 1h30m or 2d."
        raise SpecError(at, text, "a duration such as 1h30m or 2d", hint) from None
    if span < _ZERO:
        raise SpecError(at, text, "a duration that is not negative", "Leave the sign out.")
    return span


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
