"""Shares, as bars."""

from __future__ import annotations

from typing import Final

from tenure.dashboard.fleet.values import Share

_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"


def percent(share: Share) -> int:
    """Of what the node has; 0 where it has nothing."""
    return round(100 * share.requested / share.allocatable) if share.allocatable > 0 else 0


def bar(share: Share | None, width: int) -> str:
    """``██▌  63%``, so many cells wide."""
    if share is None:
        return "–".rjust(width)
    part = percent(share)
    cells = max(width - 5, 1)
    eighths = min(max(part, 0), 100) * cells * 8 // 100
    full, rest = divmod(eighths, 8)
    drawn = "█" * full + (_EIGHTHS[rest] if rest else "")
    number = f"{part}%" if part < 1000 else "999%"
    return f"{drawn:·<{cells}}{number:>5}"[:width]
