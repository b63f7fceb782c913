"""Patterns in words: what to write instead, with an example."""

from __future__ import annotations

import re
from typing import Final

from tenure.model.api import fields

_SPAN: Final = "Use for example 90s, 15m or 1h30m."

#: Pattern → (what is expected, example).
PHRASES: Final = {
    fields.PLAIN_DURATION: ("whole hours, minutes or seconds", _SPAN),
    fields.PLAIN_DURATION_OR_NEVER: ("whole hours, minutes or seconds, or Never", _SPAN),
    fields.MINUTES_DURATION: ("hours and minutes", "Use for example 30m, 8h or 8h30m."),
    fields.GO_DURATION: ("a Go duration", _SPAN),
    fields.GO_DURATION_OR_NEVER: ("a Go duration, or Never", _SPAN),
    fields.CRON: (
        "a cron of five fields or a name such as @daily",
        'Use for example "0 9 * * mon-fri".',
    ),
    fields.PERCENT_OR_COUNT: (
        "a number or a percentage up to 100%",
        'Use for example "10%" or "3".',
    ),
    fields.QUALIFIED_NAME: ("a name, with a domain or without", "Use for example example.com/gpu."),
    fields.LABEL_VALUE: ("a label value", "Use letters, digits, '-', '_' and '.'."),
    fields.QUANTITY: ("a quantity", "Use for example 500m, 16 or 64Gi."),
    fields.TIME_ZONE: ("an IANA time zone", "Use for example Europe/Berlin or UTC."),
    "^[^/]*$": ("an API group without a version", "Use for example karpenter.k8s.aws."),
}


#: What people write for a duration, in hours, minutes or seconds.
_MEANT: Final = re.compile(
    r"\s*(\d+)\s*(w|weeks?|d|days?|h|hours?|hrs?|m|mins?|minutes?|s|secs?|seconds?)\s*",
    re.IGNORECASE,
)
_IN_HOURS: Final = {"w": 168, "d": 24}


def phrase(pattern: str, value: str = "") -> tuple[str, str]:
    """What text of that pattern is, and what to write: the value as it was probably meant, or an example."""
    expected, example = PHRASES.get(pattern, (f"text that matches {pattern}", ""))
    meant = _MEANT.fullmatch(value)
    if example != _SPAN or meant is None:
        return expected, example
    count, unit = int(meant[1]), meant[2][0].lower()
    written = f"{count * _IN_HOURS[unit]}h" if unit in _IN_HOURS else f"{count}{unit}"
    return (
        expected,
        f"Write {written}: there are no days." if unit in _IN_HOURS else f"Write {written}.",
    )


def as_expectation(message: str) -> tuple[str, str]:
    """A rule's message, "must … ; …", as what is expected and what to do about it."""
    wanted, _, advice = message.partition("; ")
    if wanted.startswith("must be "):
        expected = wanted.removeprefix("must be ")
    elif wanted.startswith("must not "):
        expected = "it not to " + wanted.removeprefix("must not ")
    else:
        expected = "it to " + wanted.removeprefix("must ")
    return expected, advice and f"{advice[0].upper()}{advice[1:]}."
