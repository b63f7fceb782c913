"""Texts that others write: how long they may be before we look at them, and how they are shown.

An annotation may have 256 KB. A value is measured before it is parsed, so that what it costs does
not grow with it, and a sentence shows its beginning only.
"""

from __future__ import annotations

from typing import Final

#: Longer than any duration or schedule that somebody means; nothing longer is parsed.
PARSED_MAX: Final = 512
#: A sentence shows so much of a value.
SHOWN_MAX: Final = 80


def shown(text: str) -> str:
    """The text, or its beginning and how long it is."""
    if len(text) <= SHOWN_MAX:
        return text
    return f"{text[:SHOWN_MAX]}… ({len(text)} characters)"
