"""About which subjects something new is known, and how instants move when the clock is set."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from tenure.core.decision import Subject


class Noted:
    """The subjects of new observations, each once, in order."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._subjects: dict[Subject, None] = {}

    def note(self, subject: Subject) -> None:
        self._subjects[subject] = None
        self._wake()

    def take(self) -> list[Subject]:
        subjects, self._subjects = self._subjects, {}
        return list(subjects)


def move_all(known: dict[Any, Any], step: timedelta) -> None:
    for key, value in known.items():
        known[key] = moved(value, step)


def moved(value: Any, step: timedelta) -> Any:
    """An instant of ours, or an observation with such instants; nested values are others'."""
    if isinstance(value, datetime):
        return value + step
    fields = {name: getattr(value, name) for name in value.__struct_fields__}
    instants = {name: at + step for name, at in fields.items() if isinstance(at, datetime)}
    return msgspec.structs.replace(value, **instants)
