"""Rows of columns whose last one holds sentences: they are wrapped beneath each other, never cut.

Where the output is no terminal a sentence stays on one line, for grep and for diffs.
"""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Final, TextIO

_GAP: Final = "  "
#: Narrower than this the last column stands on lines of its own.
_LAST_MIN: Final = 30
_INDENT: Final = "    "
#: As ``explain`` begins its lines: an indent, a label of up to three words, and at least two spaces.
_LABEL: Final = re.compile(r"\s+\S+(?: \S+){0,2} {2,}")
#: A cell of a table gives way to others down to this.
_CELL_MIN: Final = 9
#: More lines than this in a cell are hard to read beside others.
_CELL_LINES: Final = 3


def terminal_width(stream: TextIO | None = None) -> int | None:
    """How wide the terminal is; None where the output is none. ``COLUMNS`` wins, as everywhere."""
    stream = stream or sys.stdout
    if not stream.isatty():
        return None
    given = os.environ.get("COLUMNS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80  # 0: it was never set.
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


def table(
    heads: Sequence[str], cells: Sequence[Sequence[str]], width: int | None, *, indent: str = "  "
) -> Iterator[str]:
    """A table; where it does not fit, long cells have several lines; where that does not help, each
    row is a block of lines with the heads as labels."""
    every = [tuple(heads), *map(tuple, cells)]
    widths = [max(map(len, column)) for column in zip(*every, strict=True)]
    if width is not None:
        room = width - len(indent) - len(_GAP) * (len(widths) - 1)
        widths = _narrowed(widths, [_least(column) for column in zip(*every, strict=True)], room)
        tall = any(len(cell) > _CELL_LINES for row in every for cell in _cells(row, widths))
        if tall or sum(widths) > room:
            yield from _blocks(heads, cells, width, indent)
            return
    for row in every:
        for line in zip_longest(*_cells(row, widths), fillvalue=""):
            padded = (text.ljust(size) for text, size in zip(line, widths, strict=True))
            yield f"{indent}{_GAP.join(padded)}".rstrip()


def _cells(row: Sequence[str], widths: Sequence[int]) -> list[list[str]]:
    """Each cell as its lines."""
    return [
        textwrap.wrap(text, size, break_long_words=False, break_on_hyphens=False) or [""]
        for text, size in zip(row, widths, strict=True)
    ]


def _least(column: Sequence[str]) -> int:
    words = (word for cell in column for word in cell.split())
    return max(_CELL_MIN, max(map(len, words), default=0))


def _narrowed(widths: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """The widest columns give way until all fit, or none can any more."""
    found = list(widths)
    while sum(found) > room:
        wide = [index for index, size in enumerate(found) if size > least[index]]
        if not wide:
            break
        widest = max(wide, key=lambda index: found[index])
        found[widest] -= 1
    return found


def _blocks(
    heads: Sequence[str], cells: Sequence[Sequence[str]], width: int, indent: str
) -> Iterator[str]:
    labels = [head.lower() for head in heads[1:]]
    longest = max(map(len, labels))
    for name, *rest in cells:
        yield f"{indent}{name}"
        for label, text in zip(labels, rest, strict=True):
            yield from hanging(f"{indent}  {label:<{longest}}{_GAP}", text, width)


def hanging(lead: str, text: str, width: int | None) -> Iterator[str]:
    """The text after its lead; further lines begin beneath its first word."""
    if width is None or len(lead) + len(text) <= width or not text:
        yield f"{lead}{text}".rstrip()
        return
    if width - len(lead) < _LAST_MIN:
        yield lead.rstrip()
        lead = lead[: len(lead) - len(lead.lstrip())] + _INDENT
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
