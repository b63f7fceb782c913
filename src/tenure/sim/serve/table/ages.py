"""Ages as kubectl shows them: the older, the coarser."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

UNKNOWN: Final = "<unknown>"
_YEAR: Final = 365


def age(stamp: Any, now: datetime) -> str:
    """How long ago that was: ``14s``, ``3m20s``, ``2d5h``."""
    if not isinstance(stamp, str) or not stamp:
        return UNKNOWN
    try:
        return span(now - datetime.fromisoformat(stamp))
    except (ValueError, TypeError):  # No instant, or one without a zone.
        return UNKNOWN


def span(length: timedelta) -> str:
    seconds = int(length / timedelta(seconds=1))
    if seconds < -1:
        return "<invalid>"
    if seconds < 120:
        return f"{max(seconds, 0)}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 2 * _YEAR:
        return f"{days}d"
    years = days // _YEAR
    return _two(years, "y", days % _YEAR, "d") if years < 8 else f"{years}y"


def _two(large: int, unit: str, small: int, smaller: str) -> str:
    return f"{large}{unit}{small}{smaller}" if small else f"{large}{unit}"
