"""A drain's timetable as a table, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from tenure.cli.view.instants import at_clock
from tenure.core.terminate.podtimes import PodTimes
from tenure.core.terminate.schedule import Timetable
from tenure.model.api.meta import format_time

_HEADINGS: Final = ("POD", "TIER", "EVICTION", "FORCED", "STOPPED BY", "BLOCKED BY")


def timetable_lines(table: Timetable, now: datetime) -> Iterator[str]:
    began = format_time(table.began_at)
    if table.leaving:
        yield f"Drain of Node/{table.node}, since {began}"
    else:
        yield f"Drain of Node/{table.node}, if it were deleted at {began}"
    yield f"  deadline  {table.deadline or 'none: there is no terminationGracePeriod'}"
    yield f"  gone      {_gone(table, now)}"
    yield from (f"  volume    {volume}" for volume in table.volumes)
    yield from (f"  ignored   {one.pod}: {one.why}" for one in table.bystanders)
    if table.pods:
        yield ""
        zone = f"Times are of {now:%Y-%m-%d}, in UTC; eviction tried at the earliest, stopped at the latest."
        yield from columns([_HEADINGS, *(_row(row, now) for row in table.pods)])
        yield f"  {zone}"


def _gone(table: Timetable, now: datetime) -> str:
    if table.ends_by is None:
        count = len(table.endless)
        holds = "1 thing below may block it" if count == 1 else f"{count} things below may block it"
        return f"never by itself: there is no terminationGracePeriod, and {holds} for ever"
    # By the second: what is due in this one is due now.
    due = table.ends_by.replace(microsecond=0) <= now
    until = "at once" if due else f"by {format_time(table.ends_by)} at the latest"
    return f"{until}; the cloud needs its time to end the instance after that"


def _row(row: PodTimes, now: datetime) -> tuple[str, ...]:
    def at(instant: datetime | None, otherwise: str = "-") -> str:
        return otherwise if instant is None else at_clock(instant, now)

    never = "-" if row.forced_at else "never"
    return (
        row.pod,
        row.tier,
        "terminating" if row.terminating else at(row.asked_at, never),
        "at once" if row.forced_at and row.forced_at <= now else at(row.forced_at),
        at(row.stopped_by, "unknown"),
        "; ".join(hold.message for hold in row.held_by) or "-",
    )


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table, as wide as it has to be."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        yield f"  {'  '.join(cells)}".rstrip()


def timetable_json(table: Timetable) -> dict[str, Any]:
    deadline = table.deadline
    return {
        "node": table.node,
        "leaving": table.leaving,
        "beganAt": table.began_at,
        "deadline": None if deadline is None else {"at": deadline.at, "why": deadline.why},
        "pods": [
            {
                "pod": row.pod,
                "tier": row.tier,
                "heldBy": [{"message": hold.message, "until": hold.until} for hold in row.held_by],
                "terminating": row.terminating,
                "askedAt": row.asked_at,
                "forcedAt": row.forced_at,
                "stoppedBy": row.stopped_by,
            }
            for row in table.pods
        ],
        "notWaitedFor": [{"pod": one.pod, "why": one.why} for one in table.bystanders],
        "volumes": list(table.volumes),
        "goneBy": table.ends_by,
        "endless": list(table.endless),
    }
