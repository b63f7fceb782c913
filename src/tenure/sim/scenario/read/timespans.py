"""Spans as users write them in a scenario or at the prompt: ``90s``, ``1h30m``, ``2d`` or ``1d12h``.

Manifests are Kubernetes' own: a duration there is a Go duration, which has no days.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from tenure.errors import SpecError
from tenure.model.values.duration import UNITS_HINT, parse_duration

#: What is expected, in words.
SPAN: Final = "a duration such as 1h30m or 2d"
_UNITS: Final = "The units are d, h, m, s, ms, us and ns; for example 90s, 1h30m or 2d."
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
        hint = _UNITS if error.hint in ("", UNITS_HINT) else error.hint
        raise SpecError(at, text, SPAN, hint) from None
    if span < _ZERO:
        raise SpecError(at, text, "a duration that is not negative", "Leave the sign out.")
    return span
