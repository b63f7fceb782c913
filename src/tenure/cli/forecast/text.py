"""A forecast in words: first what cannot be done in time, then the pools, then day by day."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta, tzinfo

import msgspec

from tenure.cli.forecast.forecasting import Setting
from tenure.cli.forecast.timeline import Entry, by_day, timeline
from tenure.cli.view.instants import in_zone, span, with_relative
from tenure.core.facts import counted, some
from tenure.core.forecast.result import Forecast, PoolForecast, Rotation
from tenure.model.api.meta import format_time


def as_text(forecast: Forecast, setting: Setting) -> str:
    return "\n".join(in_zone(_lines(forecast, setting), setting.zone))


def heading(forecast: Forecast, setting: Setting) -> str:
    return f"Forecast from {span_text(forecast, setting)}"


def span_text(forecast: Forecast, setting: Setting) -> str:
    also_at = f", {setting.also_at} after the start," if setting.also_at else ""
    return (
        f"{format_time(forecast.at)}{also_at} until {format_time(forecast.until)} "
        f"for {setting.where}; nothing was changed"
    )


def verdict_text(forecast: Forecast) -> str:
    pools = {pool.name for pool, _ in troubled(forecast)}
    if not pools:
        return "all in time: no candidate waits for days or for ever, and none becomes too old"
    named = f"NodePool{'' if len(pools) == 1 else 's'} {some(sorted(pools))}"
    return f"{named} cannot replace all nodes in time"


def _lines(forecast: Forecast, setting: Setting) -> Iterator[str]:
    yield f"Forecast: {verdict_text(forecast)}"
    yield f"  from      {span_text(forecast, setting)}"
    if setting.clock:
        yield f"  clock     {setting.clock}"
    if setting.leader:
        yield f"  acts      {setting.leader}"
    for note in (*forecast.notes, *setting.notes, *not_listed(forecast)):
        yield f"  note      {note}"
    yield ""
    if late := list(with_relative(_not_in_time(forecast), forecast.at)):
        yield from late
        yield ""
    yield from with_relative(_pools(forecast), forecast.at)
    yield from _days(forecast, setting.zone)


def not_listed(forecast: Forecast) -> Iterator[str]:
    for window in forecast.windows:
        if window.known_until < forecast.until:
            until = format_time(window.known_until)
            yield (
                f"changes of MaintenanceWindow {window.name} after {until} are not listed: "
                "they are too many"
            )


# -- what cannot be done in time -------------------------------------------------------------


def troubled(forecast: Forecast) -> Iterator[tuple[PoolForecast, Rotation]]:
    for pool in forecast.pools:
        for rotation in pool.rotations:
            if not rotation.in_time:
                yield pool, rotation


def rotation_words(pool: PoolForecast, rotation: Rotation, until: datetime) -> str:
    """With the numbers."""
    due, again = rotation.due - rotation.again, rotation.again
    named = [counted(due, f"{rotation.reason} node")] if due else []
    if again:
        expires = "expires" if again == 1 else "expire"
        named.append(f"{counted(again, 'replacement')} that {expires} again")
    said = f"NodePool {pool.name}: {' and '.join(named)}, windows and budgets let {rotation.started} start"
    if rotation.waiting:
        verb = "waits" if rotation.waiting == 1 else "wait"
        said += f"; {rotation.waiting} still {verb} at {format_time(until)}"
    if rotation.never:
        said += f", {rotation.never} of them for ever"
    if rotation.otherwise:
        said += f"; {_otherwise(rotation)}"
    if rotation.late:
        verb = "becomes" if rotation.late == 1 else "become"
        said += (
            f"; {rotation.late} {verb} older than expireAfter, by up to {span(rotation.late_by)}"
        )
    if rotation.longest >= timedelta(seconds=1):
        said += f"; the longest wait until a start is {span(rotation.longest)}"
    return said


def _otherwise(rotation: Rotation) -> str:
    number = rotation.otherwise
    verbs = "starts or waits" if number == 1 else "start or wait"
    return f"{number} {verbs} for another reason"


def _not_in_time(forecast: Forecast) -> Iterator[str]:
    found = list(troubled(forecast))
    if not found:
        return
    yield f"Not in time: {len(found)}"
    for pool, rotation in found:
        yield f"  {rotation_words(pool, rotation, forecast.until)}"
        for count, why in rotation.why:
            example = ", for example" if count > 1 else ""
            yield f"    {counted(count, 'node')}{example}: {why}"


# -- pools -----------------------------------------------------------------------------------


def pool_words(pool: PoolForecast) -> str:
    said = [counted(pool.nodes, "node")]
    if pool.launch_takes is not None:
        said.append(f"new nodes take {span(pool.launch_takes)}")
    if pool.peak.at is not None:
        said.append(f"at most {pool.peak.nodes} disrupted at once ({format_time(pool.peak.at)})")
    elif not pool.expired_by_force:
        said.append("none is disrupted")
    if pool.expired_by_force:
        said.append(f"Karpenter expires {pool.expired_by_force} by force")
    return ", ".join(said)


def reason_words(rotation: Rotation) -> str:
    said = f"{rotation.due} due ({rotation.now} now), {rotation.started} start"
    if rotation.otherwise:
        said += f", {_otherwise(rotation)}"
    if rotation.last_start is not None:
        said += f", the last at {format_time(rotation.last_start)}"
    if rotation.longest >= timedelta(hours=1):
        said += f", the longest wait until a start is {span(rotation.longest)}"
    return said


def _pools(forecast: Forecast) -> Iterator[str]:
    yield f"Pools: {len(forecast.pools) or 'none'}"
    for pool in forecast.pools:
        yield f"  {pool.name}: {pool_words(pool)}"
        if pool.problem:
            yield f"    blocked: {pool.problem}"
        for rotation in pool.rotations:
            yield f"    {rotation.reason}: {reason_words(rotation)}"
    if forecast.peak.at is not None and len(forecast.pools) > 1:
        at = format_time(forecast.peak.at)
        yield f"  all: at most {forecast.peak.nodes} disrupted at once ({at})"


# -- day by day ------------------------------------------------------------------------------


def _days(forecast: Forecast, zone: tzinfo) -> Iterator[str]:
    entries = timeline(forecast)
    for window in forecast.windows:
        if window.never:
            yield f"  MaintenanceWindow {window.name} is never active"
    if not entries:
        yield ""
        yield "Nothing is foreseen."
        return
    for same in _equal_days(entries, zone):
        first, last = same[0], same[-1]
        yield ""
        yield first.name
        yield from first.lines
        if len(same) > 1:
            yield f"  and the same on the next {counted(len(same) - 1, 'day')}, until {last.name}"


class _Day(msgspec.Struct, frozen=True):
    name: str
    date: date
    lines: list[str]


def _equal_days(entries: Sequence[Entry], zone: tzinfo) -> list[list[_Day]]:
    """Days that follow each other with the same lines."""
    found: list[list[_Day]] = []
    for name, members in by_day(entries, zone):
        day = _Day(name, members[0].at.astimezone(zone).date(), _day_lines(members, zone))
        last = found[-1][-1] if found else None
        if last and last.lines == day.lines and day.date - last.date == timedelta(days=1):
            found[-1].append(day)
        else:
            found.append([day])
    return found


def _day_lines(members: Sequence[Entry], zone: tzinfo) -> list[str]:
    width = max(len(clock(one, zone)) for one in members)
    return [f"  {clock(one, zone):<{width}}  {_short(one, zone)}" for one in members]


def clock(entry: Entry, zone: tzinfo) -> str:
    first = f"{entry.at.astimezone(zone):%H:%M:%S}"
    last = f"{entry.until.astimezone(zone):%H:%M:%S}" if entry.until is not None else ""
    return f"{first} – {last}" if last and last != first else first


def _short(entry: Entry, zone: tzinfo) -> str:
    """Instants of the same day without their date: the heading has it."""
    (text,) = in_zone((entry.text,), zone)
    return text.replace(f"{entry.at.astimezone(zone):%Y-%m-%d}T", "")
