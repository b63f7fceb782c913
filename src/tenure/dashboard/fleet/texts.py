"""Texts from outside, of a length that a page can show."""

from __future__ import annotations

from typing import Final

#: The longest name that the API server lets in.
NAME_MAX: Final = 253
SENTENCE_MAX: Final = 1000


def cut(text: str, most: int = SENTENCE_MAX) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
