"""Objects in a file, however many: one JSON object for each line, or manifests in YAML or JSON.

A file of lines is read line by line, so that a large cluster's objects fit; every other file is held to the
limits of manifests. A line that cannot be read is named, and the others are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from tenure.errors import SpecError
from tenure.parse.jsontext import DECODE_ERRORS, body
from tenure.parse.yamltext import read_documents

#: The first lines of a file tell what it is.
_FIRST: Final = 1 << 22

#: Where it stands, and the object or what is wrong with it.
Found = tuple[str, dict[str, Any] | SpecError]


def read_objects(path: Path) -> Iterator[Found]:
    """Every object, those in lists one by one. Raises ``SpecError`` for a file that is none of these."""
    try:
        with path.open("rb") as file:
            lines = _is_object(file.readline(_FIRST))
    except OSError as error:
        raise SpecError(
            "--from", str(path), f"a file that can be read ({error.strerror})"
        ) from None
    yield from _lines(path) if lines else _documents(path)


def _lines(path: Path) -> Iterator[Found]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line := line.strip():
                place = f"{path.name}:{number}"
                try:
                    yield from _unfolded(place, body(line))
                except SpecError as error:
                    yield place, SpecError(place, error.got, error.expected, error.hint)


def _documents(path: Path) -> Iterator[Found]:
    for document in read_documents(path):
        yield from _unfolded(document.place(""), document.value)


def _unfolded(place: str, value: Any) -> Iterator[Found]:
    if not isinstance(value, dict):
        yield place, SpecError(place, value, "an object", 'For example {"kind": "Node", …}.')
    elif str(value.get("kind", "")).endswith("List") and isinstance(value.get("items"), list):
        kind = str(value["kind"]).removesuffix("List")
        # A typed list leaves out what its items are.
        type_ = {"apiVersion": value.get("apiVersion"), "kind": kind} if kind else {}
        for item in value["items"]:
            yield from _unfolded(place, {**type_, **item} if isinstance(item, dict) else item)
    elif isinstance(value.get("items"), list) and "kind" not in value:
        for item in value["items"]:
            yield from _unfolded(place, item)
    else:
        yield place, value


def _is_object(line: bytes) -> bool:
    """Whether the line is an object by itself, and none of several."""
    try:
        found = msgspec.json.decode(line)
    except DECODE_ERRORS:
        return False
    return isinstance(found, dict)
