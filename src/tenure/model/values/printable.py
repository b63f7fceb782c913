"""Text from a cluster, made fit for a terminal: nothing in it moves the cursor, turns the writing round, or has no end.

Names, labels, reasons and messages come from users who may write objects. Whatever prints them cleans them first.
"""

from __future__ import annotations

import unicodedata
from typing import Final

#: Longer text is cut: no name and no sentence of ours is.
LONGEST: Final = 4000
#: What stands for a character that is not shown.
_HIDDEN: Final = "�"
_SPACES: Final = frozenset("\t\n\v\f\r\u2028\u2029")
#: Controls, formats (bidirectional ones among them), surrogates, private and unassigned characters.
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
#: Marks above and below a letter: more than this on one letter cover the lines around it.
_MARKS_MAX: Final = 2


def clean(text: str, longest: int = LONGEST) -> str:
    """On one line."""
    if text.isascii() and text.isprintable() and len(text) <= longest:
        return text  # Nearly all of it.
    cut = text[:longest]
    shown, marks = [], 0
    for one in cut:
        kind = unicodedata.category(one)
        marks = marks + 1 if kind in ("Mn", "Me") else 0
        if one in _SPACES:
            shown.append(" ")
        elif kind in _UNSEEN:
            shown.append(_HIDDEN)
        elif marks <= _MARKS_MAX:
            shown.append(one)
    return "".join(shown) + ("…" if len(text) > longest else "")


def clean_lines(text: str, longest: int = 100_000) -> str:
    """On as many lines as it has, of any length; ``longest`` is of all of them."""
    return "\n".join(clean(line, longest) for line in text[:longest].split("\n"))
