"""Colour on a terminal, and none elsewhere. It repeats what words say, and never says more.

``NO_COLOR`` (no-color.org) takes it away everywhere, ``FORCE_COLOR`` brings it to a pipe, and a terminal that calls
itself dumb gets none. Good is cyan, not green: red and green look alike to one reader in twelve.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Final, TextIO

from tenure.core.reasons import REASONS, Reason

#: By what the colour stands for.
_CODES: Final = {
    "good": "36",
    "waits": "33",
    "bad": "1;31",
    "title": "1",
    "aside": "2",
}

#: Words with which lines begin, and what they stand for.
_TITLES: Final = (
    "Plan|To do now|Not now|Candidates that wait|Consolidation|Settled|Forecast|Not in time|Pools|"
    "What was expected|Promises that were broken"
)
_LABELS: Final = (
    "at|from|clock|acts|note|state|meaning|action|changes|advice|also|or|to fit|budgets|policy|"
    "deadline|gone|ignored|saves|domain|breaker|budget"
)
_RULES: Final = (
    (re.compile(rf"^({_TITLES})(?=:|$)"), "title"),
    (re.compile(rf"^ {{2}}({_LABELS})(?= {{2}})"), "aside"),
    (re.compile(r"^ {2}(blocked|launches|drifted|no rule)(?= {2})"), "waits"),
    (re.compile(r"^(?:\S+:\d+: )?(error)(?= [A-Z]\w+:)"), "bad"),
    (re.compile(r"^(?:\S+:\d+: )?(warning)(?= [A-Z]\w+:)"), "waits"),
    (re.compile(r"^(?:\S+:\d+: )?(info)(?= [A-Z]\w+:)"), "aside"),
)
#: A reason where a line is about it: alone in its column, or before a colon.
_REASON: Final = re.compile(r"(?<=  )([A-Z][A-Za-z]+)(?=[:\s]|$)")


def wanted(stream: TextIO | None = None) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return (stream or sys.stdout).isatty() and os.environ.get("TERM") != "dumb"


def coloured(text: str, meaning: str, stream: TextIO | None = None) -> str:
    """``meaning``: good, waits, bad, title or aside."""
    return _painted(text, meaning) if wanted(stream) else text


def text_in_colour(text: str, stream: TextIO | None = None) -> str:
    """Titles, labels, and the reasons in it. Call it last: a colour has no width."""
    if not wanted(stream):
        return text
    return "\n".join(map(_line, text.splitlines()))


def _line(line: str) -> str:
    for pattern, meaning in _RULES:
        if (found := pattern.match(line)) is not None:
            start, end = found.span(1)
            line = line[:start] + _painted(found[1], meaning) + line[end:]
            break
    return _REASON.sub(lambda found: reason_in_colour(found[1]), line)


def reason_in_colour(word: str) -> str:
    """A word that is no reason is left as it is."""
    try:
        info = REASONS[Reason(word)]
    except ValueError:
        return word
    return _painted(word, "waits" if info.event == "Warning" else "good")


def _painted(text: str, meaning: str) -> str:
    return f"\x1b[{_CODES[meaning]}m{text}\x1b[0m"
