"""A map of the input that knows what was taken from it: what is left over is reported."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, Final

import msgspec

from tenure.cli.convert.report import Code, Note
from tenure.errors import SpecError, shown
from tenure.model.values.duration import NEVER, Duration, compact, parse_duration, read_loosely

#: Beyond, no duration can be written.
_SECONDS_MAX: Final = 2**63 // 1_000_000_000


#: How like a known name an unknown one has to be, to be taken for a slip of the pen.
_CLOSE: Final = 0.85


class Fields:
    def __init__(self, value: Any, at: str, notes: list[Note]) -> None:
        self.at = at
        self._notes = notes
        self._left: dict[str, Any] = {}
        #: The names that a Provisioner may have here.
        self._known: set[str] = set()
        if isinstance(value, dict):
            self._left = {name: one for name, one in value.items() if one is not None}
        elif value is not None:
            self.refuse(SpecError(at, value, "a map", "Write name: value lines below it."))

    def path(self, name: str) -> str:
        return f"{self.at}.{name}" if self.at else name

    def refuse(self, error: SpecError) -> None:
        said = str(error).removeprefix(f"{error.at}: ")
        self._notes.append(Note(Code.INVALID, (error.at,), said))

    def take(self, name: str) -> Any:
        """None where it is absent."""
        self._known.add(name)
        return self._left.pop(name, None)

    def peek(self, name: str) -> Any:
        """As it is written; it is not taken."""
        return self._left.get(name)

    def meant(self, path: str) -> str | None:
        """The name of a field that this one is written almost like; None: there is none."""
        name = path.removeprefix(f"{self.at}.")
        close = get_close_matches(name, sorted(self._known), n=1, cutoff=_CLOSE)
        return close[0] if close else None

    def inner(self, name: str) -> Fields:
        return Fields(self.take(name), self.path(name), self._notes)

    def left(self) -> Iterator[tuple[str, Any]]:
        """What nothing has taken, each with its path; it counts as taken from now on."""
        left, self._left = self._left, {}
        for name, value in left.items():
            yield self.path(name), value

    # -- values ------------------------------------------------------------------------

    def text(self, name: str) -> str | None:
        value = self.take(name)
        if value is None or (isinstance(value, str) and value):
            return value
        self.refuse(SpecError(self.path(name), value, "text", f"For example {name}: default."))
        return None

    def texts(self, name: str) -> dict[str, str]:
        """A map of texts: labels or annotations."""
        found: dict[str, str] = {}
        for at, value in self.inner(name).left():
            if isinstance(value, str):
                found[at.removeprefix(f"{self.path(name)}.")] = value
            else:
                self.refuse(SpecError(at, value, "text", "Write it in quotes."))
        return found

    def flag(self, name: str) -> bool | None:
        value = self.take(name)
        if value is None or isinstance(value, bool):
            return value
        self.refuse(SpecError(self.path(name), value, "true or false", f"Write {name}: true."))
        return None

    def seconds(self, name: str) -> str | None:
        """A number of seconds, as a Go duration."""
        value = self.take(name)
        if value is None:
            return None
        number = isinstance(value, int) and not isinstance(value, bool)
        if number and 0 <= value <= _SECONDS_MAX:
            return compact(parse_duration(f"{value}s"))
        expected = f"a whole number of seconds from 0 to {_SECONDS_MAX}"
        self.refuse(SpecError(self.path(name), value, expected, f"For example {name}: 3600."))
        return None

    def span(self, name: str) -> str | None:
        """A duration as users write it, days included, as a Go duration; ``Never`` stays."""
        value = self.take(name)
        if value is None:
            return None
        if value == NEVER:
            return NEVER
        try:
            return compact(_duration(value, self.path(name)))
        except SpecError as error:
            self.refuse(error)
            return None


def _duration(value: Any, at: str) -> Duration:
    expected = "a duration such as 720h or 30d, or Never"
    if not isinstance(value, str):
        raise SpecError(at, value, expected, f"Add a unit, for example {value}s.")
    try:
        found = parse_duration(value, at)
    except SpecError as error:
        loosely = read_loosely(value)
        if loosely is None:
            raise SpecError(at, value, expected, error.hint) from None
        found = loosely
    if found < Duration():
        raise SpecError(at, value, expected, "Use one that is not negative.")
    return found


def shown_value(value: Any) -> str:
    """As JSON, so that it can be copied; only its beginning if it is long."""
    return shown(msgspec.json.encode(value).decode())
