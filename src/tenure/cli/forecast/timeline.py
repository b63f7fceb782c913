"""A forecast as a list of lines that users read: what belongs together is one entry.

Starts of one pool for one reason are one entry while less than an hour lies between two of them; so
are expiries. A window that changes often has one entry a day.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta, tzinfo
from enum import StrEnum
from itertools import groupby
from typing import Final, TypeVar

import msgspec

from tenure.core.facts import counted, some
from tenure.core.forecast.result import Expiry, Forecast, Moment, MomentKind, Start, WindowForecast
from tenure.model.api.meta import format_time

#: A longer pause begins a new entry.
PAUSE: Final = timedelta(hours=1)
#: More changes of a window on one day are told by their number.
EACH_DAY: Final = 6
#: As many moments of one kind are told one by one.
ALONE: Final = 3
#: Becomes active, and no longer is. "Opens" would say of a Block window that work may begin.
_OPENS: Final = ("opens", "closes")
_BLOCKS: Final = ("begins to block", "no longer blocks")
_APPLIES: Final = ("applies", "ends")
_SEVERAL: Final = {
    MomentKind.PROTECTION: "protections end",
    MomentKind.DEADLINE: "nodes must be gone",
    MomentKind.BOOT: "new nodes must be up",
    MomentKind.REPAIR: "repairs fall due",
    MomentKind.FORCED_EXPIRY: "NodeClaims are expired by Karpenter, whatever windows and budgets say",
}

D = TypeVar("D", Start, Expiry, Moment)


class EntryKind(StrEnum):
    WINDOW = "window"
    BUDGET = "budget"
    EXPIRY = "expiry"
    START = "start"
    MOMENT = "moment"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    at: datetime
    #: The last instant of several; None: there is one.
    until: datetime | None = None
    kind: EntryKind
    #: Whose it is: a window or a pool.
    of: str
    text: str


def timeline(forecast: Forecast) -> list[Entry]:
    found = [
        *_windows(forecast.windows),
        *_budgets(forecast),
        *_expiries(forecast.expiries),
        *_starts(forecast),
        *_moments(forecast.moments),
    ]
    order = list(EntryKind)
    return sorted(found, key=lambda one: (one.at, order.index(one.kind), one.of, one.text))


def by_day(entries: Iterable[Entry], zone: tzinfo) -> Iterator[tuple[str, list[Entry]]]:
    """With the name of each day, and of the zone."""
    for day, members in groupby(entries, key=lambda one: f"{one.at.astimezone(zone):%Y-%m-%d %A}"):
        yield f"{day} ({zone})", list(members)


# -- windows and budgets ---------------------------------------------------------------------


def _windows(windows: Iterable[WindowForecast]) -> Iterator[Entry]:
    for one in windows:
        does = f"{one.type} {', '.join(one.actions)}; {counted(one.nodes, 'Node')}"
        name = f"MaintenanceWindow {one.name}"
        verbs = _OPENS if one.type == "Allow" else _BLOCKS
        yield from _changes(one.changes, one.active, name, does, EntryKind.WINDOW, verbs)


def _budgets(forecast: Forecast) -> Iterator[Entry]:
    for one in forecast.budgets:
        name = f"spec.disruption.budgets[{one.index}] of NodePool {one.pool}"
        does = f"nodes: {one.nodes}"
        yield from _changes(one.changes, one.active, name, does, EntryKind.BUDGET, _APPLIES)


def _changes(
    changes: Sequence[datetime],
    active: bool,
    name: str,
    does: str,
    kind: EntryKind,
    verbs: tuple[str, str],
) -> Iterator[Entry]:
    """``active``: before the first of them."""
    known = [(at, active ^ (index % 2 == 0)) for index, at in enumerate(changes)]
    for _, members in groupby(known, key=lambda one: one[0].date()):
        day = list(members)
        if len(day) > EACH_DAY:
            begins = sum(opens for _, opens in day)
            text = f"{name} {verbs[0]} {begins} times ({does})"
            yield Entry(at=day[0][0], until=day[-1][0], kind=kind, of=name, text=text)
            continue
        for at, opens in day:
            verb = verbs[0] if opens else verbs[1]
            yield Entry(at=at, kind=kind, of=name, text=f"{name} {verb} ({does})")


# -- nodes -----------------------------------------------------------------------------------


def _expiries(expiries: Iterable[Expiry]) -> Iterator[Entry]:
    by_pool: dict[str, list[Expiry]] = {}
    for one in expiries:
        by_pool.setdefault(one.pool, []).append(one)
    for pool, found in by_pool.items():
        for members in _runs(found):
            count = counted(len(members), "node")
            verb = "expires" if len(members) == 1 else "expire"
            text = f"NodePool {pool}: {count} {verb} ({some(one.claim for one in members)})"
            yield _entry(members, EntryKind.EXPIRY, pool, text)


def _starts(forecast: Forecast) -> Iterator[Entry]:
    due = {
        (pool.name, rotation.reason): rotation.due
        for pool in forecast.pools
        for rotation in pool.rotations
    }
    groups: dict[tuple[str, str, bool], list[Start]] = {}
    for one in forecast.starts:
        groups.setdefault((one.pool, one.reason, one.replaced), []).append(one)
    for (pool, reason, replaced), found in groups.items():
        for members in _runs(found):
            said = _started(members, due.get((pool, reason), 0), replaced=replaced)
            text = f"NodePool {pool}: {said}"
            yield _entry(members, EntryKind.START, pool, text)


def _started(members: Sequence[Start], due: int, *, replaced: bool) -> str:
    count = f"{len(members)} of {counted(due, f'{members[0].reason} node')}"
    if len(members) >= due:
        count = counted(len(members), f"{members[0].reason} node")
    verb = "replaced" if replaced else "removed"
    about = "about " if any(one.approximate for one in members) else ""
    ends = [one.ends_at for one in members]
    known = [at for at in ends if at is not None]
    if len(known) < len(ends):
        gone = f"; {counted(len(ends) - len(known), 'drain')} without an end"
    else:
        gone = f"; the last is gone at {format_time(max(known))}"
    at_once = most_at_once(members)
    peak = f", at most {at_once} at once" if at_once > 1 else ""
    return f"{about}{count} {verb}{peak}{gone}"


def most_at_once(starts: Iterable[Start]) -> int:
    """How many of these overlap."""
    changes = [(one.at, 1) for one in starts]
    changes += [(one.ends_at, -1) for one in starts if one.ends_at is not None]
    most = now = 0
    for _, step in sorted(changes):
        now += step
        most = max(most, now)
    return most


# -- the rest --------------------------------------------------------------------------------


def _moments(moments: Iterable[Moment]) -> Iterator[Entry]:
    groups: dict[tuple[MomentKind, object], list[Moment]] = {}
    for one in moments:
        groups.setdefault((one.kind, one.at.date()), []).append(one)
    for (kind, _), members in groups.items():
        if len(members) <= ALONE:
            for one in members:
                text = f"{one.subject}: {one.what}"
                yield Entry(at=one.at, kind=EntryKind.MOMENT, of=one.subject, text=text)
            continue
        named = some(one.subject for one in members)
        text = f"{len(members)} {_SEVERAL[kind]}: {named}"
        yield _entry(members, EntryKind.MOMENT, "", text)


def _runs(members: Iterable[D]) -> Iterator[list[D]]:
    run: list[D] = []
    for one in sorted(members, key=lambda one: one.at):
        pause = bool(run) and (one.at - run[-1].at > PAUSE or one.at.date() != run[0].at.date())
        if pause:
            yield run
            run = []
        run.append(one)
    if run:
        yield run


def _entry(members: Sequence[D], kind: EntryKind, of: str, text: str) -> Entry:
    first, last = members[0].at, members[-1].at
    until = last if last.replace(microsecond=0) > first.replace(microsecond=0) else None
    return Entry(at=first, until=until, kind=kind, of=of, text=text)
