"""What is wrong with a maintenance window, as far as no API server can say.

A window with any problem counts as blocking, so each is worth a sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from tenure.errors import SpecError
from tenure.model.api.meta import read_instant
from tenure.model.api.window import ACTIONS, WINDOW_TYPES, DateRange, MaintenanceWindow, Schedule
from tenure.schema.semantics.disruption import choice_problems
from tenure.schema.semantics.selector import selector_problems
from tenure.schema.semantics.spans import cron_problems, span_problems, zone_problems
from tenure.schema.structure.check import is_date_time


def window_problems(window: MaintenanceWindow) -> Iterator[SpecError]:
    spec = window.spec
    for index, schedule in enumerate(spec.schedules):
        yield from _schedule_problems(schedule, f"spec.schedules[{index}]")
    for index, dates in enumerate(spec.dates):
        yield from _date_problems(dates, f"spec.dates[{index}]")
    if not spec.actions:
        yield SpecError("spec.actions", [], "at least one action", "Use for example [Drift].")
    for index, action in enumerate(spec.actions):
        yield from choice_problems(action, ACTIONS, f"spec.actions[{index}]")
    yield from selector_problems(spec.selector, "spec.selector")
    yield from choice_problems(spec.type, WINDOW_TYPES, "spec.type")


def _schedule_problems(schedule: Schedule, at: str) -> Iterator[SpecError]:
    yield from cron_problems(schedule.cron, f"{at}.cron")
    yield from span_problems(schedule.duration, f"{at}.duration", positive=True)
    yield from zone_problems(schedule.time_zone, f"{at}.timeZone")


def _date_problems(dates: DateRange, at: str) -> Iterator[SpecError]:
    begins, ends = _instant(dates.from_), _instant(dates.until)
    for field, text, instant in (("from", dates.from_, begins), ("until", dates.until, ends)):
        if instant is None:
            hint = "Use for example 2026-12-24T00:00:00Z."
            yield SpecError(f"{at}.{field}", text, "an RFC 3339 instant", hint)
    if begins is not None and ends is not None and ends <= begins:
        expected = f"an instant after {dates.from_}"
        yield SpecError(f"{at}.until", dates.until, expected, "Swap the two.")


def _instant(text: str) -> datetime | None:
    """As the windows read it; None where they cannot."""
    return read_instant(text.upper()) if is_date_time(text) else None
