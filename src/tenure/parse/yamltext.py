"""YAML within limits, as plain values that remember on which line and in which column each of them stands.

Read as Kubernetes reads it: a time stamp is text, a key is text, a key that is there twice is a
mistake, a merge key (``<<``) brings fields that the map's own fields override. Tags other than
those of plain values are refused and never run anything.

Values are built from the parser's events and not by its loader: that one recurses, in C as well,
and ends the process on deep input. Depth, number and size are counted before a value is built; an
alias counts as all that it stands for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from tenure.errors import SpecError, shown
from tenure.parse.files import read_text
from tenure.parse.limits import FILE, Limits

#: A comment as other languages write it; not the slashes of an address.
_SLASHES: Final = re.compile(r"(^|\s)//")
_TAG: Final = "tag:yaml.org,2002:"
_MERGE: Final = f"{_TAG}merge"
_Parser: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Scalars(yaml.SafeLoader):
    """Which type a plain scalar has, and its value; without time stamps."""

    yaml_implicit_resolvers = {  # noqa: RUF012  # as the class above has it
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


_SCALARS: Final[Any] = _Scalars("")
_CONSTRUCT: Final = {
    f"{_TAG}null": _SCALARS.construct_yaml_null,
    f"{_TAG}bool": _SCALARS.construct_yaml_bool,
    f"{_TAG}int": _SCALARS.construct_yaml_int,
    f"{_TAG}float": _SCALARS.construct_yaml_float,
}
_TEXT: Final = (f"{_TAG}str", _MERGE, f"{_TAG}value", "!")
_MAP: Final = (None, "!", f"{_TAG}map")
_LIST: Final = (None, "!", f"{_TAG}seq")

#: Where the parts of a value stand: a place, or a place and the marks of the parts. A place is a line and a column
#: in one number, for there may be a million of them.
Marks = int | tuple[int, "dict[str, Marks] | list[Marks]"]

#: Bits of the column; one that is longer counts as the last that fits.
_COLUMN_BITS: Final = 20
_COLUMN_MAX: Final = 2**_COLUMN_BITS - 1
_FIRST: Final = 1 << _COLUMN_BITS | 1


class Position(NamedTuple):
    """Both from 1."""

    line: int
    column: int


class Document:
    """One YAML document: its value, and where everything in it stands."""

    def __init__(self, file: str, value: Any, marks: Marks = _FIRST, text: str = "") -> None:
        self.file = file
        self.value = value
        #: Of the whole file, for its comments.
        self.text = text
        self._marks = marks

    def place(self, at: str) -> str:
        """``file:line: field``, with the line of the nearest value that is there."""
        return f"{self.file}:{self.position(at).line}: {at}".removesuffix(": ")

    def position(self, at: str) -> Position:
        """Of a field, or of the nearest value around it that is there."""
        place = _nearest(self._marks, at)
        return Position(place >> _COLUMN_BITS, place & _COLUMN_MAX)


def read_documents(path: Path, *, shown_as: str = "") -> list[Document]:
    """Every document of a file; empty ones are left out."""
    file = shown_as or str(path)
    try:
        text = read_text(path, name=file)
    except FileNotFoundError:
        hint = "Look at its path; tenure new examples writes the examples into this folder."
        raise SpecError("file", file, "a file that exists", hint) from None
    except OSError as error:
        raise SpecError(
            "file", file, "a file that can be read", f"{error.strerror}: look at its path."
        ) from None
    return documents_in(text, file)


def documents_in(text: str, file: str, *, limits: Limits = FILE) -> list[Document]:
    """Every document of a text; empty ones are left out. ``file`` is what to call it."""
    found = _Builder(text, file, limits, quoted=True).documents()
    return [document for document in found if document.value is not None]


def load(text: str, file: str, *, limits: Limits, quoted: bool = True) -> Any:
    """The value of a text that has one document; None where it is empty.

    ``quoted``: whether an error may repeat the line it is about, which may hold a secret.
    """
    found = list(_Builder(text, file, limits, quoted=quoted).documents())
    if len(found) > 1:
        raise SpecError(file, f"{len(found)} documents", "one document", "Leave out the others.")
    return found[0].value if found else None


class _Built(NamedTuple):
    """A value and what it costs where an alias repeats it."""

    value: Any
    marks: Marks
    values: int
    size: int
    height: int


class _Open:
    """A list or map whose end has not come yet."""

    def __init__(self, event: Any, at: str, before: tuple[int, int]) -> None:
        self.is_map = isinstance(event, yaml.MappingStartEvent)
        self.place = _place_of(event)
        self.anchor: str | None = event.anchor
        self.at = at
        #: What was counted before it began: values and characters.
        self.before = before
        self.height = 1
        self.items: list[Any] = []
        self.fields: dict[str, Any] = {}
        self.merged: list[dict[str, Any]] = []
        self.item_marks: list[Marks] = []
        self.field_marks: dict[str, Marks] = {}
        self.merged_marks: list[dict[str, Marks]] = []
        #: Of a map, between a key and its value.
        self.key: str | None = None
        self.key_place = _FIRST


class _Builder:
    def __init__(self, text: str, file: str, limits: Limits, *, quoted: bool) -> None:
        self._text = text
        self._file = file
        self._limits = limits
        self._quoted = quoted
        self._values = 0
        self._size = 0
        self._stack: list[_Open] = []
        self._anchors: dict[str, _Built | None] = {}
        self._done: _Built | None = None

    def documents(self) -> Iterator[Document]:
        size = len(self._text.encode(errors="surrogatepass"))
        if size > self._limits.size:
            got, most = f"{size} bytes", f"at most {self._limits.size} bytes"
            raise SpecError(self._file, got, most, "Split the text.")
        found = 0
        for event in self._events():
            if isinstance(event, yaml.DocumentStartEvent):
                found += 1
                self._check(found, self._limits.documents, "documents", event)
                self._anchors.clear()
            elif isinstance(event, yaml.DocumentEndEvent):
                assert self._done is not None, "a document has a value"
                yield Document(self._file, self._done.value, self._done.marks, self._text)
            else:
                self._on(event)

    def _events(self) -> Iterator[Any]:
        parser = None
        try:
            parser = _Parser(self._text)
            while parser.check_event():
                yield parser.get_event()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line, column = (mark.line, mark.column) if mark else (0, 0)
            raise self._broken(line, column, error.problem) from None
        except yaml.YAMLError as error:
            first = str(error).splitlines()[0] if self._quoted else "(not shown)"
            raise SpecError(f"{self._file}:1", first, "YAML", "Save it as plain text.") from None
        except UnicodeEncodeError:
            hint = "Save it as plain text."
            raise SpecError(f"{self._file}:1", "half a character", "YAML", hint) from None
        finally:
            if parser is not None:
                parser.dispose()

    def _broken(self, line: int, column: int, problem: str | None) -> SpecError:
        lines = self._text.splitlines()
        found = lines[line].strip() if line < len(lines) else "the end of the file"
        at = f"{self._file}:{line + 1}:{column + 1}"
        if not self._quoted:
            return SpecError(at, "(not shown)", "YAML")
        said = (problem or "it cannot be read").strip()
        hint = (
            f"{said[0].upper()}{said[1:]}. Check indentation, quotes and colons, as in key: value."
        )
        if any(_SLASHES.search(one) for one in lines[max(line - 1, 0) : line + 1]):
            hint = "In YAML # begins a comment; // does not."
        return SpecError(at, found, "YAML", hint)

    # -- one event after the other --------------------------------------------------------

    def _on(self, event: Any) -> None:
        match event:
            case yaml.ScalarEvent():
                assert event.start_mark is not None, "it stands somewhere"
                self._count(1, len(event.value), event)
                if not self._is_key(event):
                    value = self._scalar(event)
                    built = _Built(value, _place_of(event), 1, len(event.value), 0)
                    self._finish(built, event.anchor, event)
            case yaml.AliasEvent():
                self._alias(event)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._open(event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._close(event)

    def _open(self, event: Any) -> None:
        top = self._stack[-1] if self._stack else None
        if top is not None and top.is_map and top.key is None:
            raise SpecError(self._place(event), "a list or map", "text as a key", _KEY_HINT)
        self._check(len(self._stack) + 1, self._limits.depth, "levels of nesting", event)
        if event.tag not in (_MAP if isinstance(event, yaml.MappingStartEvent) else _LIST):
            raise self._tagged(event, event.tag)
        before = (self._values, self._size)
        self._count(1, 0, event)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._stack.append(_Open(event, self._field(), before))

    def _close(self, event: Any) -> None:
        top = self._stack.pop()
        values, size = self._values - top.before[0], self._size - top.before[1]
        value: Any = top.items
        marks: Marks = (top.place, top.item_marks)
        if top.is_map:
            # The first that is merged wins over the others, and the map's own fields over all.
            value, lines = {}, {}
            for part, part_marks in zip(
                reversed(top.merged), reversed(top.merged_marks), strict=True
            ):
                value.update(part)
                lines.update(part_marks)
            value.update(top.fields)
            lines.update(top.field_marks)
            marks = (top.place, lines)
        self._finish(_Built(value, marks, values, size, top.height), top.anchor, event)

    def _alias(self, event: Any) -> None:
        name = event.anchor
        if name not in self._anchors:
            mark = event.start_mark
            raise self._broken(mark.line, mark.column, f"found undefined alias {shown(name)!r}")
        built = self._anchors[name]
        if built is None:
            hint = "Repeat the value, or leave the alias out."
            expected = "an alias after the end of its anchor"
            raise SpecError(self._place(event), f"*{shown(name)} inside itself", expected, hint)
        self._check(len(self._stack) + built.height, self._limits.depth, "levels of nesting", event)
        self._count(built.values, built.size, event)
        if self._stack and self._stack[-1].is_map and self._stack[-1].key is None:
            if not isinstance(built.value, str):
                raise SpecError(self._place(event), "an alias", "text as a key", _KEY_HINT)
            self._begin_field(built.value, event)
            return
        self._finish(built._replace(value=_copied(built.value)), None, event)

    def _is_key(self, event: Any) -> bool:
        """Whether the scalar is the key of a field, which then begins."""
        if not self._stack or not self._stack[-1].is_map or self._stack[-1].key is not None:
            return False
        if event.anchor is not None:
            place = _place_of(event)
            self._anchors[event.anchor] = _Built(event.value, place, 1, len(event.value), 0)
        self._begin_field(event.value, event)
        return True

    def _begin_field(self, key: str, event: Any) -> None:
        top = self._stack[-1]
        if key in top.fields or (key == "<<" and top.merged):
            place = f"{self._place(event)}: {_joined(top.at, key)}"
            raise SpecError(place, key, "each key once", "Leave one of the two out.")
        top.key, top.key_place = key, _place_of(event)

    def _finish(self, built: _Built, anchor: str | None, event: Any) -> None:
        """The value is complete: it goes where it belongs."""
        if anchor is not None:
            self._anchors[anchor] = built
        if not self._stack:
            self._done = built
            return
        top = self._stack[-1]
        top.height = max(top.height, built.height + 1)
        if not top.is_map:
            top.items.append(built.value)
            top.item_marks.append(built.marks)
            return
        assert top.key is not None, "a value follows its key"
        if top.key == "<<":
            self._merge(top, built, event)
        else:
            top.fields[top.key] = built.value
            parts = built.marks[1] if isinstance(built.marks, tuple) else None
            top.field_marks[top.key] = top.key_place if parts is None else (top.key_place, parts)
        top.key = None

    def _merge(self, top: _Open, built: _Built, event: Any) -> None:
        parts, marks = [built.value], [built.marks]
        if isinstance(built.value, list) and isinstance(built.marks, tuple):
            parts, marks = built.value, list(built.marks[1])  # type: ignore[arg-type]
        if not parts or not all(isinstance(part, dict) for part in parts):
            line = top.key_place >> _COLUMN_BITS
            place = f"{self._file}:{line}: {_joined(top.at, '<<')}"
            hint = "For example <<: *defaults."
            raise SpecError(place, "something else", "an alias of fields", hint)
        top.merged += parts
        top.merged_marks += [mark[1] for mark in marks]  # type: ignore[index, misc]

    # -- scalars --------------------------------------------------------------------------

    def _scalar(self, event: Any) -> Any:
        tag = event.tag
        if tag is None:
            # A quoted scalar is text; a plain one what it looks like.
            tag = _SCALARS.resolve(yaml.ScalarNode, event.value, event.implicit)
        if tag in _TEXT:
            return event.value
        if tag not in _CONSTRUCT:
            raise self._tagged(event, tag)
        if tag != f"{_TAG}null" and len(event.value) > self._limits.number:
            got = f"a number of {len(event.value)} characters"
            expected = f"at most {self._limits.number} characters"
            raise SpecError(self._place(event), got, expected, "Put text in quotes.")
        try:
            value = _CONSTRUCT[tag](yaml.ScalarNode(tag, event.value))
        except (ValueError, LookupError, OverflowError):
            raise self._tagged(event, tag) from None
        if isinstance(value, float) and not math.isfinite(value):
            raise SpecError(f"{self._place(event)}: {self._field()}", str(value), "a finite number")
        return value

    def _tagged(self, event: Any, tag: str) -> SpecError:
        got = getattr(event, "value", tag) if self._quoted else "(not shown)"
        place = f"{self._place(event)}: {self._field()}".removesuffix(": ")
        return SpecError(place, got, "a plain value", "Put it in quotes, without a tag.")

    # -- counting -------------------------------------------------------------------------

    def _count(self, values: int, size: int, event: Any) -> None:
        self._values += values
        self._size += size
        hint = "Aliases (*name) count as what they stand for."
        self._check(self._values, self._limits.values, "values", event, hint)
        self._check(self._size, self._limits.size, "characters", event, hint)

    def _check(self, got: int, most: int, what: str, event: Any, hint: str = "") -> None:
        if got > most:
            raise SpecError(self._place(event), f"{got} {what}", f"at most {most} {what}", hint)

    def _place(self, event: Any) -> str:
        return f"{self._file}:{event.start_mark.line + 1}"

    def _field(self) -> str:
        """The path of the value that comes next; for errors, so keys are cut."""
        if not self._stack:
            return ""
        top = self._stack[-1]
        if top.is_map:
            return _joined(top.at, top.key or "")
        return f"{top.at}[{len(top.items)}]"


_KEY_HINT: Final = "For example key: value."


def _place_of(event: Any) -> int:
    mark = event.start_mark
    line, column = int(mark.line), int(mark.column)
    return (line + 1) << _COLUMN_BITS | min(column + 1, _COLUMN_MAX)


def _joined(at: str, key: str) -> str:
    """Cut, as a path is kept for each list and map that is open."""
    key = shown(key)
    return f"{at}.{key}" if at else key


def _copied(value: Any) -> Any:
    """So that no two places share what one of them changes. As deep as the limit at most."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _nearest(marks: Marks, at: str) -> int:
    """The place of the value at a path, or of the nearest one around it."""
    best, depth = (marks if isinstance(marks, int) else marks[0]), 0
    paths: list[tuple[Marks, int]] = [(marks, 0)]
    seen: set[tuple[int, int]] = set()  # As keys with dots make many ways to the same place.
    while paths:
        found, used = paths.pop()
        if (id(found), used) in seen:
            continue
        seen.add((id(found), used))
        if used > depth:
            best, depth = (found if isinstance(found, int) else found[0]), used
        if isinstance(found, tuple) and used < len(at):
            paths += _steps(found[1], at, used)
    return best


def _steps(
    parts: dict[str, Marks] | list[Marks], at: str, used: int
) -> Iterator[tuple[Marks, int]]:
    if isinstance(parts, list):
        index, bracket, _ = at[used + 1 :].partition("]")
        if at[used] == "[" and bracket and index.isdecimal() and int(index) < len(parts):
            yield parts[int(index)], used + len(index) + 2
        return
    start = used + (at[used] == "." and used > 0)
    # A key may have dots and brackets in it, so each of them may be the end of one.
    ends = [end for end in range(start + 1, len(at)) if at[end] in ".["]
    for end in (*ends, len(at)):
        if (mark := parts.get(at[start:end])) is not None:
            yield mark, end
