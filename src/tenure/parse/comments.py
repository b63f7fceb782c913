"""Comments of a YAML text that speak to Tenure: ``# tenure: …``. The parser of values drops them all.

What looks like a comment inside of a value (text in quotes, a block of text) is none: the parser says where
values stand.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate
from typing import Any, Final, NamedTuple

import yaml

_COMMENT: Final = re.compile(r"(?:^|(?<=\s))#[ \t]*tenure:[ \t]*(?P<said>[^\r\n]*)", re.M)
#: Lines that hold nothing but a comment, or divide documents.
_EMPTY: Final = re.compile(r"[ \t]*(?:#.*|---[ \t]*(?:#.*)?|%.*)?\r?")
_Parser: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Comment(NamedTuple):
    """What it says, where, and about which line: its own, or the next one where it has a line of its own."""

    said: str
    line: int
    column: int
    about: int


def comments_in(text: str) -> list[Comment]:
    """Of a text that was read without an error. A text without such comments costs one search."""
    found = list(_COMMENT.finditer(text))
    if not found:
        return []
    inside = _inside_values(text, [match.start() for match in found])
    lines = text.split("\n")
    begins = [0, *accumulate(len(line) + 1 for line in lines)]
    followed = _next_values(lines)
    comments = []
    for match in (match for match, is_text in zip(found, inside, strict=True) if not is_text):
        line = bisect_right(begins, match.start())
        before = text[begins[line - 1] : match.start()]
        about = line if before.strip() else followed[line]
        comments.append(Comment(match["said"].strip(), line, len(before) + 1, about))
    return comments


def _next_values(lines: list[str]) -> list[int]:
    """Of each line, from 0 for the line before the first: the next one that holds a value; one beyond the last
    where none does."""
    found = [len(lines) + 1] * (len(lines) + 1)
    for line in range(len(lines) - 1, -1, -1):
        found[line] = found[line + 1] if _EMPTY.fullmatch(lines[line]) else line + 1
    return found


def _inside_values(text: str, places: list[int]) -> list[bool]:
    """Of each place, whether it is part of a scalar. Both come in the order of the text."""
    found, at = [False] * len(places), 0
    parser = _Parser(text)
    try:
        while parser.check_event() and at < len(places):
            event = parser.get_event()
            if not isinstance(event, yaml.ScalarEvent):
                continue
            assert event.start_mark is not None, "it stands somewhere"
            assert event.end_mark is not None, "it ends somewhere"
            while at < len(places) and places[at] < event.start_mark.index:
                at += 1
            while at < len(places) and places[at] < event.end_mark.index:
                found[at], at = not _is_header(text, event, places[at]), at + 1
    finally:
        parser.dispose()
    return found


def _is_header(text: str, event: Any, place: int) -> bool:
    """On the line of ``|`` or ``>``, where the block of text has not begun yet."""
    return event.style in ("|", ">") and "\n" not in text[event.start_mark.index : place]
