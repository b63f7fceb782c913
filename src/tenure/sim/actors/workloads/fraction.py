"""Counts that users give as a number or as a percentage of something."""

from __future__ import annotations


def count_of(value: int | str, total: int, *, round_up: bool) -> int:
    """``3`` is 3; ``"25%"`` is a quarter of the total, in whole pods."""
    if isinstance(value, int):
        return value
    percent = int(value.removesuffix("%"))
    return -(-percent * total // 100) if round_up else percent * total // 100
