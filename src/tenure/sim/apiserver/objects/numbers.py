"""Numbers as clients and users write them: in the text of a request, and as a share of something."""

from __future__ import annotations

from typing import Final

_DIGITS_MAX: Final = 18


def is_number(text: str) -> bool:
    """Whether it is a whole number of 64 bits, in digits that a server knows."""
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX


def count_of(value: int | str, total: int, *, round_up: bool) -> int:
    """``3`` is 3; ``"25%"`` is a quarter of the total, in whole pods."""
    if isinstance(value, int):
        return value
    percent = int(value.removesuffix("%"))
    return -(-percent * total // 100) if round_up else percent * total // 100
