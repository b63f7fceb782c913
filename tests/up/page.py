"""Reads a page of commands with what they say, and compares it with what they really say.

``…`` stands for anything: alone for any lines, at the end of a line for its rest. What differs
from run to run (ages, made-up names, addresses, instants, the width of columns) is not compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_BLOCK: Final = re.compile(r"^```(shell-session|yaml)\n(.*?)^```", re.M | re.S)
_FILE: Final = re.compile(r"# (\S+\.yaml)\n")
ANYTHING: Final = "…"
_MASKS: Final = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "INSTANT"),
    (re.compile(r"\b10\.\d+\.\d+\.\d+\b"), "ADDRESS"),
    (re.compile(r"127\.0\.0\.1:\d+"), "SERVER"),
    (re.compile(r"\b(\d+[dhms])+\b"), "AGE"),
    (re.compile(r"\bweb-[a-z0-9]+-[a-z0-9]{5}\b"), "POD"),
    (re.compile(r"\bdefault-[a-z0-9]{5}\b"), "CLAIM"),
    (re.compile(r"[ \t]+"), " "),
)


class Step(NamedTuple):
    """A command and what it is promised to say; or a file and its content."""

    command: str = ""
    said: tuple[str, ...] = ()
    file: str = ""
    content: str = ""


def steps(page: str) -> Iterator[Step]:
    for kind, block in _BLOCK.findall(page):
        if kind == "yaml":
            if name := _FILE.match(block):
                yield Step(file=name[1], content=block)
            continue
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, *said = part.splitlines()
            yield Step(command, tuple(said))


def masked(text: str) -> str:
    for pattern, instead in _MASKS:
        text = pattern.sub(instead, text)
    return "\n".join(line.strip() for line in text.strip().splitlines())


def _line(promised: str) -> str:
    return ".*".join(re.escape(masked(part)) for part in promised.split(ANYTHING))


def says(output: str, promised: tuple[str, ...]) -> bool:
    """Whether the output is what was promised."""
    parts = [r"(?:.*\n)*?" if line == ANYTHING else f"{_line(line)}\n" for line in promised]
    text = masked(output)
    return re.fullmatch("".join(parts), f"{text}\n" if text else "") is not None


def mentions(output: str, promised: tuple[str, ...]) -> bool:
    """Whether every promised line has come, in that order, whatever else has come."""
    lines = iter(masked(output).splitlines())
    return all(any(re.fullmatch(_line(one), line) for line in lines) for one in promised)
