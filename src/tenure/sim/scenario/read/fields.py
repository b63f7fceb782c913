"""Strict reading: every field is known, of the right type, and named when it is not.

A ``Reader`` goes on after a mistake with a stand-in value, so that one look at a file
reports all of them; the caller raises ``BadInput`` at the end if there were any. One mistake is
one line: a field that is missing because its name is misspelt is not reported again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Any, Final

import msgspec

from tenure.errors import KNOWN_FIELD, SpecError, TenureError
from tenure.parse.yamltext import Document
from tenure.sim.scenario.read.timespans import SPAN, parse_span

#: How alike two words must be to be taken for one and the same.
_CLOSE: Final = 0.7
#: Longer lists of choices are not said twice in a line.
_LISTED: Final = 12
_MISSING: Final = object()


class BadInput(TenureError):
    """Everything that is wrong with the input."""

    def __init__(self, problems: Sequence[SpecError]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = tuple(problems)


class Shown(msgspec.Struct, frozen=True):
    """A value as it is shown in a sentence, without quotes."""

    text: str

    def __repr__(self) -> str:
        return self.text


NOTHING: Final = Shown("nothing")


def shown(value: Any) -> Any:
    """The value, as it would be written."""
    if value is None:
        return NOTHING
    if not isinstance(value, dict | list):
        return value
    text = json.dumps(value, ensure_ascii=False, default=str)
    return Shown(text)


def nearest(word: str, known: Sequence[str]) -> str:
    """A guess, if the word is so close that it can only be a slip; else what there is."""
    return _guess(word, known) or f"Known here: {', '.join(known)}."


def _guess(word: str, known: Sequence[str]) -> str:
    close = closest(word, known)
    return f'Did you mean "{close}"?' if close else ""


def closest(word: str, known: Sequence[str]) -> str:
    """The known word of which this one is a slip; empty when there is none."""
    close = get_close_matches(word, known, n=1, cutoff=_CLOSE)
    return close[0] if close else ""


class Reader:
    """Collects what is wrong with a document, field by field."""

    def __init__(self, document: Document, problems: list[SpecError]) -> None:
        self.document = document
        self.problems = problems
        #: What is right, though not as it is written today: sentences, each with its place.
        self.notes: list[str] = []
        self._example = ""

    def problem(self, at: str, got: Any, expected: str, hint: str = "") -> None:
        error = SpecError(self.document.place(at), shown(got), expected, hint or self._example)
        self.problems.append(error)

    def note(self, at: str, sentence: str) -> None:
        self.notes.append(f"{self.document.place(at)}: {sentence}")

    @contextmanager
    def example(self, hint: str) -> Iterator[None]:
        """What to show with a mistake in here that has no better hint."""
        before, self._example = self._example, hint
        try:
            yield
        finally:
            self._example = before

    def fields(self, value: Any, at: str, known: Sequence[str]) -> Fields:
        """The fields of a mapping; unknown ones are problems."""
        if not isinstance(value, dict):
            hint = self._example or f"For example {known[0]}: …."
            self.problem(at, value, "fields and values", hint)
            return Fields(self, {}, at, unread=True)
        meant = set()
        for key, item in value.items():
            if key not in known:
                self.problem(join(at, key), item, KNOWN_FIELD, nearest(key, known))
                meant.add(closest(key, known))
        return Fields(self, value, at, meant=meant)

    def items(self, value: Any, at: str) -> Iterator[tuple[str, Any]]:
        """The elements of a list, each with its place."""
        if value is None:
            return
        if not isinstance(value, list):
            self.problem(at, value, "a list", "Begin each element with a dash.")
            return
        for index, item in enumerate(value):
            yield f"{at}[{index}]", item

    def text(self, value: Any, at: str) -> str:
        if isinstance(value, str):
            return value
        nested = isinstance(value, dict | list)
        self.problem(at, value, "text", "Write it on one line." if nested else "Put it in quotes.")
        return ""

    def whole(self, value: Any, at: str, *, least: int = 0) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and value >= least:
            return value
        self.problem(at, value, f"a whole number of at least {least}", "For example 3.")
        return least

    def number(self, value: Any, at: str) -> float:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        self.problem(at, value, "a number", "For example 0.25.")
        return 0.0

    def flag(self, value: Any, at: str) -> bool:
        if isinstance(value, bool):
            return value
        self.problem(at, value, "true or false")
        return False

    def choice(self, value: Any, at: str, choices: Sequence[str]) -> str:
        if value in choices and isinstance(value, str):
            return value
        if len(choices) > _LISTED:
            self.problem(at, value, "a word that is known here", nearest(str(value), choices))
        else:
            hint = _guess(str(value), choices) or f"For example {choices[0]}."
            self.problem(at, value, f"one of {', '.join(choices)}", hint)
        return choices[0]

    def span(self, value: Any, at: str) -> timedelta:
        """A duration of at least nothing, also in days."""
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)  # ``0`` is fine, and for the others there is a good hint.
        try:
            if not isinstance(value, str):
                raise SpecError(at, value, SPAN, "For example 90s or 5m.")
            return parse_span(value, at)
        except SpecError as error:
            self.problem(at, value, error.expected, error.hint)
            return timedelta(0)

    def instant(self, value: Any, at: str) -> datetime:
        parsed = parse_instant(value) if isinstance(value, str) else None
        if parsed is None:
            self.problem(at, value, "an RFC 3339 instant", "For example 2026-01-05T08:00:00Z.")
            return datetime(2026, 1, 5, tzinfo=UTC)
        return parsed


class Fields:
    """A mapping whose fields are known; each method reads one, or gives the default."""

    def __init__(
        self,
        reader: Reader,
        values: dict[str, Any],
        at: str,
        *,
        meant: Set[str] = frozenset(),
        unread: bool = False,
    ) -> None:
        self.reader, self.values, self.at = reader, values, at
        #: Fields that were misspelt, which has been said; empty: one that is like none.
        self.meant = meant
        #: Not even fields, which has been said.
        self._unread = unread

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def path(self, name: str) -> str:
        return join(self.at, name)

    def raw(self, name: str, default: Any = None) -> Any:
        return self.values.get(name, default)

    def text(self, name: str, default: str | None = None) -> str:
        """Without a default, the field must be there."""
        return str(self._read(name, default, self.reader.text, "text"))

    def span(self, name: str, default: timedelta | None = None) -> timedelta:
        value = self._read(name, default, self.reader.span, "a duration such as 5m")
        return value if isinstance(value, timedelta) else timedelta(0)

    def whole(self, name: str, default: int | None = None) -> int:
        value = self._read(name, default, self.reader.whole, "a whole number")
        return value if isinstance(value, int) else 0

    def choice(self, name: str, choices: Sequence[str], default: str | None = None) -> str:
        expected = f"one of {', '.join(choices)}"
        read = self.reader.choice
        value = self._read(name, default, lambda v, at: read(v, at, choices), expected)
        return str(value)

    def one_of(self, names: Sequence[str], what: str) -> str:
        """Exactly one of these fields is there: which; empty after a problem."""
        there = [name for name in names if name in self.values]
        if len(there) == 1:
            return there[0]
        if not there and self.was_meant(names):
            return ""
        got = Shown(", ".join(there)) if there else NOTHING
        self.reader.problem(self.at, got, f"one {what}", f"One of: {', '.join(names)}.")
        return ""

    def _read(self, name: str, default: Any, read: Any, expected: str) -> Any:
        value = self.values.get(name, _MISSING)
        if value is not _MISSING:
            return read(value, self.path(name))
        if default is None:
            if not self._unread and name not in self.meant:
                self.reader.problem(self.path(name), None, expected)
            return ""
        return default

    def was_meant(self, names: Sequence[str]) -> bool:
        """Whether one of these may be missing because of a mistake that has been said."""
        return self._unread or not self.meant.isdisjoint({"", *names})


def parse_instant(text: str) -> datetime | None:
    """An aware instant in UTC; None when the text is none."""
    try:
        parsed = datetime.fromisoformat(text)
        return None if parsed.tzinfo is None else parsed.astimezone(UTC)
    except (ValueError, OverflowError):  # The year 1 east of Greenwich is none in UTC.
        return None


def join(at: str, key: str) -> str:
    return f"{at}.{key}" if at else key
