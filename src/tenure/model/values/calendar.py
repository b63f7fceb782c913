"""Instants that the API server hands out and Python's calendar does not have.

Kubernetes writes years beyond 9999, and keeps instants of custom resources as users wrote them:
without a zone, or in the year 0. Each becomes the nearest instant that we can count with. An
object is looked through like this only when it could not be decoded at once.

``without_odd_generations`` leaves out what no decision needs of a condition.
"""

from __future__ import annotations

import re
from typing import Any, Final

_INSTANT: Final = re.compile(
    r"(?P<year>[+-]?[0-9]{4,12})-(?P<day>[0-9]{2}-[0-9]{2})[Tt ]"
    r"(?P<time>[0-9]{2}:[0-9]{2}:[0-9]{2})(?:[.,][0-9]+)?(?P<zone>[Zz]|[+-][0-9]{2}:?[0-9]{2})?"
)
_FIRST, _LAST = "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"
#: An instant is shorter, and long texts are not searched.
_LENGTH_MAX: Final = 64


def within_calendar(value: Any) -> Any:
    """The same JSON, with every instant in it moved into the calendar."""
    if isinstance(value, str):
        return _moved(value) if len(value) <= _LENGTH_MAX else value
    if isinstance(value, dict):
        return {name: within_calendar(one) for name, one in value.items()}
    if isinstance(value, list):
        return [within_calendar(one) for one in value]
    return value


def without_odd_generations(raw: Any) -> Any:
    """The same JSON; an ``observedGeneration`` of a condition that is no number is left out."""
    status = raw.get("status") if isinstance(raw, dict) else None
    if not isinstance(status, dict) or not isinstance(status.get("conditions"), list):
        return raw
    conditions = [_with_generation(one) for one in status["conditions"]]
    return {**raw, "status": {**status, "conditions": conditions}}


def _with_generation(condition: Any) -> Any:
    if not isinstance(condition, dict) or type(condition.get("observedGeneration")) is int:
        return condition
    return {name: value for name, value in condition.items() if name != "observedGeneration"}


def _moved(text: str) -> str:
    found = _INSTANT.fullmatch(text)
    if found is None:
        return text
    year = int(found["year"])
    if year > 9999:
        return _LAST
    if year < 1:
        return _FIRST
    # A leap second is the second before it; an instant without a zone is one of UTC.
    time = re.sub(":60$", ":59", found["time"])
    zone = (found["zone"] or "Z").upper()
    return f"{year:04d}-{found['day']}T{time}{zone}"
