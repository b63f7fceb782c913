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

#: Bytes of one line. No API server stores an object of a tenth of that.
_LINE: Final = 1 << 24
_DEVICES: Final = ("/", "dev")

#: Bytes from which on a list in JSON is read item by item, and at most.
_LONG: Final = 1 << 23
_LONGEST: Final = 1 << 30
#: Where it stands, and the object or what is wrong with it.
Found = tuple[str, dict[str, Any] | SpecError]


def read_objects(path: Path) -> Iterator[Found]:
    """Every object, those in lists one by one. Raises ``SpecError`` for a file that is none of these."""
    try:
        if not _is_plain_file(path):
            first, lines = b"", False
        else:
            with path.open("rb") as file:
                first = file.readline(_FIRST)
                lines = _is_object(_without_mark(first))
    except OSError as error:
        raise SpecError(
            "--from", str(path), f"a file that can be read ({error.strerror})"
        ) from None
    if is_packed(first) or not _is_plain_file(path):
        with unpacked(path) as plain:
            yield from _found_in(plain, path)
    elif lines:
        with path.open("rb") as file:
            yield from _lines(file, path.name)
    elif (found := _long_list(path)) is not None:
        yield from _items(path.name, found)
    else:
        yield from _documents(read_documents(path))


def _is_plain_file(path: Path) -> bool:
    """Whether it can be read more than once: no pipe, no standard input. Raises ``SpecError`` for a folder."""
    if path.is_dir():
        hint = "kubectl get nodes,pods,nodepools,nodeclaims -A -o json > cluster.json writes one."
        raise SpecError("--from", str(path), "one file, not a folder", hint)
    # What stands for an open file may go on where it was left.
    return not path.exists() or (path.is_file() and path.parts[:2] != _DEVICES)


def _found_in(plain: IO[bytes], path: Path) -> Iterator[Found]:
    """The same of what was unpacked from the file at ``path``."""
    lines = _is_object(_without_mark(plain.readline(_FIRST)))
    plain.seek(0)
    # /dev/fd/63 has no name that says anything without its folder.
    name = str(path) if path.parts[:2] == _DEVICES else path.name
    if lines:
        yield from _lines(plain, name)
        return
    data = _without_mark(plain.read())
    if not data:
        raise SpecError("--from", str(path), "the objects of a cluster, and it is empty")
    if len(data) > _LONG and (found := _list_in(data)) is not None:
        yield from _items(name, found)
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
    for number, line in enumerate(_bounded(file), 1):
        place = f"{name}:{number}"
        if line is None:
            got = f"a line of more than {_LINE} bytes"
            yield place, SpecError(place, got, f"one object, of at most {_LINE} bytes")
        elif line := _without_mark(line).strip():
            try:
                yield from _unfolded(place, body(line))
            except SpecError as error:
                yield place, SpecError(place, error.got, error.expected, error.hint)


def _bounded(file: IO[bytes]) -> Iterator[bytes | None]:
    """The lines; None for one that is too long, of which no more than a piece is ever held."""
    while line := file.readline(_LINE + 1):
        if len(line) <= _LINE:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(_FIRST)
        yield None


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
