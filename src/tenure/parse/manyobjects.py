"""Objects in a file, however many: one JSON object for each line, or manifests in YAML or JSON.

What is compressed or in UTF-16 is unpacked first. A file of lines is read line by line, so that a large cluster's objects fit, and so is a long list in JSON, as kubectl
prints it, item by item; every other file is held to the limits of manifests. A line that cannot be read is named, and the others are read.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from tenure.errors import SpecError
from tenure.parse.files import text_of
from tenure.parse.jsontext import DECODE_ERRORS, body
from tenure.parse.unpacked import is_packed, unpacked
from tenure.parse.yamltext import Document, documents_in, read_documents

#: The first lines of a file tell what it is.
_FIRST: Final = 1 << 22

#: Bytes from which on a list in JSON is read item by item, and at most.
_LONG: Final = 1 << 23
_LONGEST: Final = 1 << 30
#: Where it stands, and the object or what is wrong with it.
Found = tuple[str, dict[str, Any] | SpecError]


def read_objects(path: Path) -> Iterator[Found]:
    """Every object, those in lists one by one. Raises ``SpecError`` for a file that is none of these."""
    try:
        with path.open("rb") as file:
            first = file.readline(_FIRST)
            lines = _is_object(_without_mark(first))
    except IsADirectoryError:
        hint = "kubectl get nodes,pods,nodepools,nodeclaims -A -o json > cluster.json writes one."
        raise SpecError("--from", str(path), "one file, not a folder", hint) from None
    except OSError as error:
        raise SpecError(
            "--from", str(path), f"a file that can be read ({error.strerror})"
        ) from None
    if is_packed(first):
        with unpacked(path) as plain:
            yield from _found_in(plain, path)
    elif lines:
        with path.open("rb") as file:
            yield from _lines(file, path.name)
    elif (found := _long_list(path)) is not None:
        yield from _items(path.name, found)
    else:
        yield from _documents(read_documents(path))


def _found_in(plain: IO[bytes], path: Path) -> Iterator[Found]:
    """The same of what was unpacked from the file at ``path``."""
    lines = _is_object(_without_mark(plain.readline(_FIRST)))
    plain.seek(0)
    if lines:
        yield from _lines(plain, path.name)
        return
    data = _without_mark(plain.read())
    if len(data) > _LONG and (found := _list_in(data)) is not None:
        yield from _items(path.name, found)
    else:
        yield from _documents(documents_in(text_of(data, str(path)), str(path)))


class _List(msgspec.Struct):
    """A list of objects, none of which is looked at yet."""

    items: list[msgspec.Raw]
    kind: str = ""
    apiVersion: str = ""  # noqa: N815  # The field's name.


def _long_list(path: Path) -> _List | None:
    """None for what is short, and for what is no list in JSON: it is read with the lines of its mistakes."""
    if not _LONG < path.stat().st_size <= _LONGEST:
        return None
    return _list_in(_without_mark(path.read_bytes()))


def _list_in(data: bytes | msgspec.Raw) -> _List | None:
    try:
        return msgspec.json.decode(data, type=_List)
    except DECODE_ERRORS:
        return None


def _items(place: str, found: _List) -> Iterator[Found]:
    for number, raw in enumerate(found.items):
        here = f"{place}: items[{number}]"
        if (inner := _list_in(raw)) is not None:
            yield from _items(here, inner)
            continue
        try:
            item = body(bytes(raw))
        except SpecError as error:
            yield here, SpecError(here, error.got, error.expected, error.hint)
        else:
            listed = {"kind": found.kind, "apiVersion": found.apiVersion, "items": [item]}
            yield from _unfolded(here, listed)


def _lines(file: IO[bytes], name: str) -> Iterator[Found]:
    for number, line in enumerate(file, 1):
        if line := _without_mark(line).strip():
            place = f"{name}:{number}"
            try:
                yield from _unfolded(place, body(line))
            except SpecError as error:
                yield place, SpecError(place, error.got, error.expected, error.hint)


def _documents(documents: Iterable[Document]) -> Iterator[Found]:
    for document in documents:
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


def _without_mark(line: bytes) -> bytes:
    """Some editors begin a file with a byte order mark."""
    return line.removeprefix(BOM_UTF8)


def _is_object(line: bytes) -> bool:
    """Whether the line is an object by itself, and none of several."""
    try:
        found = msgspec.json.decode(line)
    except DECODE_ERRORS:
        return False
    return isinstance(found, dict)
