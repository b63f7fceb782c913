"""Go durations, exact: the language of every duration field we read.

Accepted is what Go's ``time.ParseDuration`` accepts, no more and no less: an optional
sign, then numbers with a unit (``ns us µs ms s m h``), fractions allowed, or a bare
``0``. So ``1d`` is refused, and the message says what to write instead.

A value is a whole number of nanoseconds. Python's ``timedelta`` knows microseconds
only; converting rounds up, so that nothing that waits for a duration fires early.
"""

from __future__ import annotations

import datetime
import re
from fractions import Fraction
from functools import lru_cache
from typing import Final

import msgspec

from tenure.errors import SpecError
from tenure.model.values.text import PARSED_MAX

NEVER: Final = "Never"
#: Where it is not clear what is meant.
UNITS_HINT: Final = "The units are h, m, s, ms, us and ns; for example 30s, 15m, 1h30m or 720h."

_MICROSECOND: Final = 1_000
_MILLISECOND: Final = 1_000_000
_SECOND: Final = 1_000_000_000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE

_UNITS: Final = {
    "ns": 1,
    "us": _MICROSECOND,
    "\u00b5s": _MICROSECOND,  # The micro sign; Go prints this one.
    "\u03bcs": _MICROSECOND,  # The Greek letter mu; it looks the same.
    "ms": _MILLISECOND,
    "s": _SECOND,
    "m": _MINUTE,
    "h": _HOUR,
}

_PART: Final = re.compile(
    "(?:([0-9]+)(?:\\.([0-9]*))?|\\.([0-9]+))(ns|us|\u00b5s|\u03bcs|ms|s|m|h)(?=[0-9.]|$)"
)

#: Go counts in a signed 64-bit integer; -2**63 can be written, +2**63 cannot.
_LIMIT: Final = 1 << 63

#: Units that users write although Go does not know them; only used to word a hint.
_LOOSE_UNITS: Final = {
    **_UNITS,
    **dict.fromkeys(("sec", "secs", "second", "seconds"), _SECOND),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), _MINUTE),
    **dict.fromkeys(("hr", "hrs", "hour", "hours"), _HOUR),
    **dict.fromkeys(("d", "day", "days"), 24 * _HOUR),
    **dict.fromkeys(("w", "week", "weeks"), 7 * 24 * _HOUR),
}
_LOOSE_PART: Final = re.compile(r"\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([^\W\d_]+)\s*")


class Duration(msgspec.Struct, frozen=True, order=True, gc=False):
    """A signed span of time; ``str()`` is Go's canonical form."""

    nanoseconds: int = 0

    @property
    def timedelta(self) -> datetime.timedelta:
        """The span for use with ``datetime``, rounded up to the next microsecond."""
        return datetime.timedelta(microseconds=-(-self.nanoseconds // _MICROSECOND))

    def __bool__(self) -> bool:
        return self.nanoseconds != 0

    def __str__(self) -> str:
        total = abs(self.nanoseconds)
        sign = "-" if self.nanoseconds < 0 else ""
        if total >= _SECOND:
            return sign + _format_clock(total)
        for unit, size in (("ms", _MILLISECOND), ("\u00b5s", _MICROSECOND), ("ns", 1)):
            if total >= size:
                return f"{sign}{_format_decimal(total, size)}{unit}"
        return "0s"

    @classmethod
    def of(cls, span: datetime.timedelta) -> Duration:
        """The same span, exactly: a microsecond is a whole number of nanoseconds."""
        return cls(span // datetime.timedelta(microseconds=1) * _MICROSECOND)


def parse_duration(text: str, at: str = "duration") -> Duration:
    """The duration that ``text`` spells; ``at`` is the field to name in the error."""
    if len(text) > PARSED_MAX:
        expected = f"a Go duration of at most {PARSED_MAX} characters"
        raise SpecError(at, text, expected, "For example 1h30m.")
    nanoseconds = _parse(text)
    if nanoseconds is None:
        raise SpecError(at, text, "a Go duration such as 1h30m", _hint(text))
    if not -_LIMIT <= nanoseconds < _LIMIT:
        raise SpecError(at, text, "a Go duration of at most 2562047h47m16s", "Use a shorter one.")
    return Duration(nanoseconds)


def parse_duration_or_never(text: str, at: str = "duration") -> Duration | None:
    """Like ``parse_duration``, but ``Never`` is fine and gives None."""
    if text == NEVER:
        return None
    try:
        return parse_duration(text, at)
    except SpecError as error:
        hint = "Use Never." if text.strip().lower() == "never" else error.hint
        raise SpecError(at, text, f"{error.expected}, or Never", hint) from None


@lru_cache(maxsize=4096)
def _parse(text: str) -> int | None:
    """Nanoseconds, possibly beyond the limit, or None when the text is no duration.

    Cached by the text alone, what is no duration included: a cluster has a few hundred distinct
    ones, and each is asked for at every look at its object.
    """
    negative = text.startswith("-")
    start = 1 if text.startswith(("-", "+")) else 0
    if text[start:] == "0":
        return 0
    total, position = 0, start
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            return None
        total += _part_nanoseconds(*part.groups())
        if total > _LIMIT:
            return _LIMIT
        position = part.end()
    if position == start:
        return None
    return -total if negative else total


def _part_nanoseconds(
    whole: str | None, fraction: str | None, bare_fraction: str | None, unit: str
) -> int:
    """One number with its unit; anything Go cannot count becomes more than the limit."""
    digits = (whole or "").lstrip("0")
    # Twenty digits overflow in every unit. Asked first, because int() of a text without
    # bound is slow, and refused beyond 4,300 digits.
    value = int(digits or "0") * _UNITS[unit] if len(digits) < 20 else 2 * _LIMIT
    if value <= _LIMIT:
        value += _fraction_nanoseconds(fraction or bare_fraction or "", _UNITS[unit])
    return value


def _fraction_nanoseconds(digits: str, unit: int) -> int:
    """What follows the decimal point, with Go's own rounding.

    Go keeps as many digits as fit 63 bits and multiplies in floating point. Doing the
    same gives the same nanosecond, also where exact arithmetic would give another one.
    """
    value, scale = 0, 1.0
    for digit in digits:
        if value > (_LIMIT - 1) // 10:
            break
        following = value * 10 + int(digit)
        if following > _LIMIT:
            break
        value, scale = following, scale * 10
    return int(float(value) * (float(unit) / scale))


def _format_clock(total: int) -> str:
    """One second and above: ``1h30m0s``, without leading zero units."""
    minutes, rest = divmod(total, _MINUTE)
    text = f"{_format_decimal(rest, _SECOND)}s"
    if not minutes:
        return text
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{text}" if hours else f"{minutes}m{text}"


def _format_decimal(value: int, unit: int) -> str:
    whole, rest = divmod(value, unit)
    if not rest:
        return str(whole)
    return f"{whole}.{rest:0{len(str(unit)) - 1}d}".rstrip("0")


@lru_cache(maxsize=1024)
def _hint(text: str) -> str:
    """What the writer probably meant, in words Go understands."""
    stripped = text.strip()
    if re.fullmatch(r"[0-9]{1,9}", stripped):
        return f"Add a unit: {stripped}s, {stripped}m or {stripped}h."
    meant = read_loosely(stripped)
    if meant is None:
        return UNITS_HINT
    return f"Use {compact(meant)}."


def read_loosely(text: str) -> Duration | None:
    """``1d12h``, ``4 hours``, ``1h 30m``: read as it is meant, None where that is not clear."""
    if len(text) > PARSED_MAX:
        return None
    total, position = Fraction(0), 0
    while position < len(text):
        part = _LOOSE_PART.match(text, position)
        if part is None or part[2].lower() not in _LOOSE_UNITS:
            return None
        total += Fraction(part[1]) * _LOOSE_UNITS[part[2].lower()]
        position = part.end()
    return Duration(int(total)) if 0 < total < _LIMIT else None


def compact(duration: Duration) -> str:
    """The way users write it: ``24h`` rather than ``24h0m0s``."""
    return re.sub(r"(?<=h)0m0s$|(?<=m)0s$", "", str(duration))
