"""Numbers in the text of a request."""

from __future__ import annotations

from typing import Final

_DIGITS_MAX: Final = 18


def is_number(text: str) -> bool:
    """Whether it is a whole number of 64 bits, in digits that a server knows."""
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX
