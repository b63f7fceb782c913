"""A forecast as one HTML file: a timeline, what cannot be done in time, and the same day by day.

The file needs nothing else: no script, no style sheet and no picture from elsewhere. Names come from
the cluster, and any user who may create an object chooses them: every text goes through ``escape``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, time, timedelta, tzinfo
from html import escape
from itertools import pairwise
from typing import Final

import msgspec

from tenure.cli.forecast.forecasting import Setting
from tenure.cli.forecast.text import (
    clock,
    heading,
    not_listed,
    pool_words,
    reason_words,
    rotation_words,
    troubled,
)
from tenure.cli.forecast.timeline import by_day, timeline
from tenure.cli.view.instants import in_zone
from tenure.core.facts import counted
from tenure.core.forecast.result import Forecast, Start, WindowForecast
from tenure.model.api.meta import format_time

_WIDTH: Final = 1000
_ROW: Final = 22
#: Left of the timeline, for names.
_NAMES: Final = 220
#: Bars nearer to each other are one: they could not be told apart, and a browser that draws a hundred
#: thousand does not scroll.
_NEAR: Final = 1.5

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 1280px; padding: 0 1rem;
  color: #1c2430; background: #fff; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; } td, th { padding: .15rem .8rem .15rem 0; text-align: left;
  vertical-align: top; }
td.clock { white-space: nowrap; font-variant-numeric: tabular-nums; color: #55606e; }
svg { width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; fill: currentColor; }
.allow { fill: #2e9e5b; } .block { fill: #d0473f; } .start { fill: #2f6fd0; } .expiry { fill: #b07a12; }
.often { opacity: .55; } .legend span { margin-right: 1.5rem; } .legend svg { width: 12px; height: 12px; }
.grid { stroke: #c9d0d8; stroke-width: 1; } .late { color: #b3261e; font-weight: 600; }
.fine { color: #1f7a44; } .note { color: #7a5a00; }
@media (prefers-color-scheme: dark) { body { color: #e4e8ee; background: #14181d; }
  td.clock { color: #9aa5b1; } .grid { stroke: #39424d; } .late { color: #ff8a80; }
  .fine { color: #7bd6a0; } .note { color: #e5c07b; } }
"""


def _key(kind: str, words: str) -> str:
    colour = f'<svg viewBox="0 0 12 12"><rect class="{kind}" width="12" height="12"/></svg>'
    return f"<span>{colour} {words}</span>"


_LEGEND: Final = (
    '<p class="legend">'
    + _key("allow", "an Allow window is active")
    + _key("block", "a Block window is active")
    + _key("expiry", "nodes expire")
    + _key("start", "nodes are disrupted")
    + _key("start often", "paler: several, with gaps too small to draw")
    + "</p>"
)


def as_page(forecast: Forecast, setting: Setting) -> str:
    (title,) = in_zone((escape(heading(forecast, setting)),), setting.zone)
    body = "\n".join(in_zone(_body(forecast, setting), setting.zone))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        f"<title>{title}</title><style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _body(forecast: Forecast, setting: Setting) -> Iterator[str]:
    yield f"<h1>{escape(heading(forecast, setting))}</h1>"
    if setting.leader:
        yield f"<p>Acts: {escape(setting.leader)}</p>"
    for note in (*forecast.notes, *setting.notes, *not_listed(forecast)):
        yield f'<p class="note">{escape(note)}</p>'
    yield "<h2>Not in time</h2>"
    yield from _not_in_time(forecast)
    yield "<h2>Timeline</h2>"
    yield from _picture(forecast, setting.zone)
    yield "<h2>Pools</h2>"
    yield from _pools(forecast)
    zone = setting.zone
    for day, entries in by_day(timeline(forecast), zone):
        yield f"<h2>{escape(day)}</h2>"
        yield "<table>"
        for one in entries:
            at = escape(clock(one, zone))
            yield f'<tr><td class="clock">{at}</td><td>{escape(one.text)}</td></tr>'
        yield "</table>"


def _not_in_time(forecast: Forecast) -> Iterator[str]:
    found = list(troubled(forecast))
    if not found:
        yield '<p class="fine">Nothing: no candidate waits for ever, for days, or until it is too old.</p>'
        return
    yield "<ul>"
    for pool, rotation in found:
        words = escape(rotation_words(pool, rotation, forecast.until))
        causes = "".join(
            f"<li>{escape(counted(count, 'node'))}{', for example' if count > 1 else ''}: "
            f"{escape(str(why))}</li>"
            for count, why in rotation.why
        )
        yield f'<li><span class="late">{words}</span>{f"<ul>{causes}</ul>" if causes else ""}</li>'
    yield "</ul>"


def _pools(forecast: Forecast) -> Iterator[str]:
    yield "<table>"
    for pool in forecast.pools:
        yield f"<tr><th>{escape(pool.name)}</th><td>{escape(pool_words(pool))}</td></tr>"
        if pool.problem:
            yield f'<tr><td></td><td class="late">{escape(pool.problem)}</td></tr>'
        for one in pool.rotations:
            words = f"{one.reason}: {reason_words(one)}"
            yield f"<tr><td></td><td>{escape(words)}</td></tr>"
    yield "</table>"


# -- the picture -----------------------------------------------------------------------------


class _Bar(msgspec.Struct, frozen=True, kw_only=True):
    left: float
    right: float
    kind: str
    #: What the first and the last of those that it stands for are.
    first: str
    last: str
    count: int = 1


class _Scale:
    def __init__(self, begin: datetime, end: datetime) -> None:
        self._begin, self._span = begin, max(end - begin, timedelta(seconds=1))
        self.end = end

    def x(self, at: datetime) -> float:
        share = (min(max(at, self._begin), self.end) - self._begin) / self._span
        return round(_NAMES + share * (_WIDTH - _NAMES), 2)


def _picture(forecast: Forecast, zone: tzinfo) -> Iterator[str]:
    scale = _Scale(forecast.at, forecast.until)
    rows = list(_rows(forecast, scale))
    height = (len(rows) + 1) * _ROW + 6
    yield f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="Timeline">'
    yield from _grid(forecast, scale, height, zone)
    for index, (name, bars) in enumerate(rows):
        top = (index + 1) * _ROW
        label = name if len(name) <= 34 else f"{name[:33]}…"
        yield f'<text x="0" y="{top + 15}">{escape(label)}<title>{escape(name)}</title></text>'
        yield from (_drawn(bar, top + 4) for bar in _merged(bars))
    yield "</svg>"
    yield _LEGEND


def _grid(forecast: Forecast, scale: _Scale, height: int, zone: tzinfo) -> Iterator[str]:
    days = (forecast.until - forecast.at).days + 1
    step = max(1, days // 14)
    today = forecast.at.astimezone(zone).date()
    for index in range(1, days + 1, step):
        # Days are not all as long where the clocks change.
        at = datetime.combine(today + timedelta(days=index), time(), zone)
        if at > forecast.until:
            return
        x = scale.x(at)
        yield f'<line class="grid" x1="{x}" y1="{_ROW - 6}" x2="{x}" y2="{height}"/>'
        yield f'<text x="{x + 3}" y="12">{at:%a %d}</text>'


def _rows(forecast: Forecast, scale: _Scale) -> Iterator[tuple[str, Sequence[_Bar]]]:
    for window in forecast.windows:
        yield f"window {window.name}", list(_active(window, scale))
    for pool in forecast.pools:
        expiries = [one.at for one in forecast.expiries if one.pool == pool.name]
        if expiries:
            yield f"{pool.name}: expire", list(_ticks(expiries, scale))
        starts = [one for one in forecast.starts if one.pool == pool.name]
        for reason in sorted({one.reason for one in starts}):
            mine = [one for one in starts if one.reason == reason]
            yield f"{pool.name}: {reason}", list(_disrupted(mine, scale))


def _active(window: WindowForecast, scale: _Scale) -> Iterator[_Bar]:
    edges = list(window.changes)
    if window.active:
        edges.insert(0, datetime.min.replace(tzinfo=UTC))
    if len(edges) % 2:
        edges.append(scale.end)
    for index, (start, end) in enumerate(pairwise(edges)):
        if not index % 2:
            until = f"until {format_time(end)}"
            said = until if start.year == 1 else f"{format_time(start)} {until}"
            words = f"{window.type} {', '.join(window.actions)}: {said}"
            yield _bar(start, end, "allow" if window.type == "Allow" else "block", words, scale)


def _disrupted(starts: Iterable[Start], scale: _Scale) -> Iterator[_Bar]:
    for one in starts:
        words = f"NodeClaim {one.claim} at {format_time(one.at)}"
        yield _bar(one.at, one.ends_at or scale.end, "start", words, scale)


def _ticks(instants: Iterable[datetime], scale: _Scale) -> Iterator[_Bar]:
    return (_bar(at, at, "expiry", format_time(at), scale) for at in instants)


def _bar(start: datetime, end: datetime, kind: str, words: str, scale: _Scale) -> _Bar:
    left = scale.x(start)
    return _Bar(left=left, right=max(scale.x(end), left + 1.5), kind=kind, first=words, last=words)


def _merged(bars: Sequence[_Bar]) -> Iterator[_Bar]:
    """One bar for those that follow each other too closely to be seen apart."""
    last: _Bar | None = None
    for bar in sorted(bars, key=lambda one: one.left):
        if last is not None and bar.left - last.right < _NEAR:
            right, count = max(last.right, bar.right), last.count + 1
            last = msgspec.structs.replace(last, right=right, last=bar.last, count=count)
            continue
        if last is not None:
            yield last
        last = bar
    if last is not None:
        yield last


def _drawn(bar: _Bar, top: int) -> str:
    words, kind = bar.first, bar.kind
    if bar.count > 1:
        words, kind = f"{bar.count} times: {bar.first}, …, {bar.last}", f"{bar.kind} often"
    width = round(bar.right - bar.left, 2)
    return (
        f'<rect class="{kind}" x="{bar.left}" y="{top}" width="{width}" height="{_ROW - 8}">'
        f"<title>{escape(words)}</title></rect>"
    )
