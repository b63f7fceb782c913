"""JSON within limits. Depth is counted before anything is decoded: decoders recurse."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, NoReturn

import msgspec

from tenure.errors import SpecError
from tenure.parse.limits import BODY, FILE, Limits

#: What a typed decoder raises for bytes from outside; deep input exhausts its recursion.
DECODE_ERRORS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

#: A string as a whole, so that what is inside does not count; the quantifiers never backtrack.
_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]|[0-9]++', re.S)


def body(data: bytes, *, limits: Limits = BODY) -> Any:
    """A request's body as plain values. Raises ``SpecError``."""
    _check_size(data, "body", limits)
    _check_tokens(data, "body", limits)
    try:
        return msgspec.json.decode(data)
    except DECODE_ERRORS as error:
        raise SpecError("body", str(error), "JSON") from None


def load(text: str, name: str, *, limits: Limits = FILE) -> Any:
    """A file's text as plain values; a key that is there twice is a mistake. Raises ``SpecError``."""
    data = text.encode()
    _check_size(data, name, limits)
    _check_tokens(data, name, limits)

    def constant(word: str) -> NoReturn:
        raise SpecError(name, word, "a finite number")

    def finite(number: str) -> float:
        value = float(number)
        return value if math.isfinite(value) else constant(str(value))

    try:
        return json.loads(
            text,
            parse_constant=constant,
            parse_float=finite,
            object_pairs_hook=lambda pairs: _mapping(pairs, name),
        )
    except json.JSONDecodeError as error:
        where = f"{name}, line {error.lineno}, column {error.colno}"
        raise SpecError(where, _line(text, error.lineno), f"JSON; {error.msg}") from error


def _mapping(pairs: list[tuple[str, Any]], name: str) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise SpecError(name, twice, "each key once", "Leave one of the two out.")
    return found


def _check_size(data: bytes, name: str, limits: Limits) -> None:
    if len(data) > limits.size:
        raise SpecError(name, f"{len(data)} bytes", f"at most {limits.size} bytes")


def _check_tokens(data: bytes, name: str, limits: Limits) -> None:
    """Depth, and the length of numbers."""
    brackets = data.count(b"[") + data.count(b"{")
    if brackets <= limits.depth and not re.search(rb"[0-9]{%d}" % (limits.number + 1), data):
        return
    depth = 0
    for match in _TOKEN.finditer(data):
        sign = match[0][:1]
        if sign in b"[{":
            depth += 1
            if depth > limits.depth:
                got = f"{depth} levels of nesting"
                raise SpecError(_place(name, match), got, f"at most {limits.depth} levels")
        elif sign in b"]}":
            depth -= 1
        elif sign != b'"' and len(match[0]) > limits.number:
            got = f"a number of {len(match[0])} characters"
            raise SpecError(_place(name, match), got, f"at most {limits.number} characters")


def _place(name: str, match: re.Match[bytes]) -> str:
    line = match.string.count(b"\n", 0, match.start()) + 1
    return f"{name}:{line}"


def _line(text: str, number: int) -> str:
    lines = text.splitlines()
    return lines[number - 1].strip() if number <= len(lines) else ""
