"""Colour on a terminal, and none elsewhere; none at all where ``NO_COLOR`` is set (no-color.org)."""

from __future__ import annotations

import os
import sys
from typing import Final, TextIO

_CODES: Final = {"green": "32", "red": "31", "yellow": "33"}


def coloured(text: str, colour: str, stream: TextIO | None = None) -> str:
    stream = stream or sys.stdout
    if not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m"
