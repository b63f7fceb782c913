"""Rows of columns whose last one holds sentences: they are wrapped beneath each other, never cut.

Where the output is no terminal a sentence stays on one line, for grep and for diffs.
"""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TextIO

_GAP: Final = "  "
#: Narrower than this the last column stands on lines of its own.
_LAST_MIN: Final = 30
_INDENT: Final = "    "
#: As ``explain`` begins its lines: an indent, a word, and at least two spaces.
_LABEL: Final = re.compile(r"\s+\S+ {2,}")


def terminal_width(stream: TextIO | None = None) -> int | None:
    """How wide the terminal is; None where the output is none. ``COLUMNS`` wins, as everywhere."""
    stream = stream or sys.stdout
    if not stream.isatty():
        return None
    given = os.environ.get("COLUMNS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return 80


def wrapped_text(text: str, stream: TextIO | None = None) -> str:
    """As wide as the terminal is; as it is where the output is none."""
    return "\n".join(paragraph(text, terminal_width(stream)))


def rows(cells: Iterable[Sequence[str]], width: int | None, *, indent: str = "") -> Iterator[str]:
    """Lines: every column as wide as its longest cell, the last one wrapped to the rest."""
    table = [tuple(row) for row in cells]
    if not table:
        return
    widths = [max(map(len, column)) for column in list(zip(*table, strict=True))[:-1]]
    for *firsts, last in table:
        padded = [text.ljust(size) for text, size in zip(firsts, widths, strict=True)]
        yield from hanging(indent + _GAP.join([*padded, ""]), last, width)


def hanging(lead: str, text: str, width: int | None) -> Iterator[str]:
    """The text after its lead; further lines begin beneath its first word."""
    if width is None or len(lead) + len(text) <= width or not text:
        yield f"{lead}{text}".rstrip()
        return
    if width - len(lead) < _LAST_MIN:
        yield lead.rstrip()
        lead = _INDENT
    yield from _wrapped(text, max(width, _LAST_MIN), lead, " " * len(lead))


def paragraph(text: str, width: int | None) -> Iterator[str]:
    """The text, wrapped; a line keeps its indent, and what follows a label stays beneath itself."""
    for line in text.splitlines():
        begin = line[: len(line) - len(line.lstrip())]
        if width is None or len(line) <= width:
            yield line
        elif (label := _LABEL.match(line)) is not None:
            yield from hanging(label[0], line[label.end() :], width)
        else:
            yield from _wrapped(line.strip(), width, begin, f"{begin}  ")


def _wrapped(text: str, width: int, first: str, rest: str) -> list[str]:
    # A name or a command is never divided: it is copied and pasted.
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
