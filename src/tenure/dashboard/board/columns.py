"""The columns of the table: which fit, how wide each is, and what stands in them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final, NamedTuple

from rich.style import Style
from rich.text import Text

from tenure.dashboard.board.bars import bar
from tenure.dashboard.board.cells import fitted, middle
from tenure.dashboard.board.rows import NO_POOL, NodeRow, PoolRow, Row
from tenure.dashboard.board.tones import LOOKS, signs, style
from tenure.dashboard.fleet.values import NodeView
from tenure.dashboard.fleet.words import away, count, hourly, money, narrow_clock, span
from tenure.model.cloud.offering import MICRO_DOLLARS
from tenure.model.values.printable import clean

_GAP: Final = 1
#: The cursor, the sign, and a space behind each.
LEAD: Final = 4
_NAME_MAX: Final = 40
#: Room for ``in 13h30m``.
_NEXT_WIDE: Final = 9


class Column(NamedTuple):
    key: str
    title: str
    #: From a terminal of this width on.
    since: int
    narrow: int
    #: On a terminal of 120 columns or more.
    wide: int
    right: bool = False


COLUMNS: Final = (
    Column("name", "NAME", 0, 16, 22),
    Column("phase", "PHASE", 0, 10, 11),
    Column("zone", "ZONE", 0, 10, 12),
    Column("type", "TYPE", 120, 0, 14),
    Column("capacity", "CAPACITY", 140, 0, 9),
    Column("cpu", "CPU", 0, 8, 11),
    Column("memory", "MEMORY", 0, 8, 11),
    Column("pods", "PODS", 0, 4, 4, right=True),
    Column("price", "$/H", 0, 6, 7, right=True),
    Column("age", "AGE", 140, 0, 6, right=True),
    Column("next", "NEXT", 0, 6, _NEXT_WIDE, right=True),
    Column("reason", "REASON", 100, 16, 20),
)
WIDE: Final = 120
_DIM: Final = Style(dim=True)
_BOLD: Final = Style(bold=True)


class Layout(NamedTuple):
    columns: tuple[Column, ...]
    widths: tuple[int, ...]


def layout(width: int, names: Iterable[str] = ()) -> Layout:
    """What is left goes to the name, as far as it needs it, and then to the last column."""
    columns = tuple(one for one in COLUMNS if width >= one.since)
    widths = [one.wide if width >= WIDE else one.narrow for one in columns]
    left = width - LEAD - sum(widths) - _GAP * (len(widths) - 1)
    longest = min(max((len(name) for name in names), default=0), _NAME_MAX)
    more = max(min(longest - widths[0], left), 0)
    widths[0] += more
    if columns[-1].key == "reason":
        widths[-1] = max(widths[-1] + left - more, 1)
    else:
        widths[0] += max(left - more, 0)
    return Layout(columns, tuple(widths))


def heads(shape: Layout, sort: str, *, reverse: bool) -> Text:
    line = Text(" " * LEAD, _DIM)
    for place, (column, width) in enumerate(zip(shape.columns, shape.widths, strict=True)):
        line.append(" " * _GAP if place else "")
        sign = ("▲" if reverse else "▼") if column.key == sort else ""
        line.append(fitted(column.title + sign, width, right=column.right), _BOLD if sign else _DIM)
    return line


def line_of(row: Row, shape: Layout, now: datetime, width: int, *, chosen: bool) -> Text:
    """One line, as wide as the terminal."""
    mark = "›" if chosen else " "
    if isinstance(row, PoolRow):
        return _pool_line(row, mark, width)
    look = LOOKS[row.node.tone]
    line = Text.assemble((mark, _BOLD), " ", (look.sign, style(row.node.tone)), " ")
    for place, (column, size) in enumerate(zip(shape.columns, shape.widths, strict=True)):
        line.append(" " * _GAP if place else "")
        shown = cell(row, column.key, size, now)
        painted = style(row.node.tone) if column.key in ("phase", "reason") else Style()
        line.append(fitted(shown, size, right=column.right), painted)
    return line


def _pool_line(row: PoolRow, mark: str, width: int) -> Text:
    pool = row.pool
    number = count(row.all, "node") if row.shown == row.all else f"{row.shown} of {row.all} nodes"
    line = Text.assemble(
        (mark, _BOLD),
        " ▸ " if row.folded else " ▾ ",
        (clean(pool.name, 64) or NO_POOL, _BOLD),
        f"  {number}  ",
        signs(pool.nodes),
        f"  {hourly(pool.price, pool.unpriced)}",
    )
    if pool.reason:
        said = f"{pool.reason}: {pool.because}" if pool.because else pool.reason
        line.append(f"  {clean(said)}", _DIM)
    line.truncate(width, overflow="ellipsis", pad=True)
    return line


def cell(row: NodeRow, key: str, width: int, now: datetime) -> str:
    node = row.node
    match key:
        case "cpu":
            return bar(node.cpu, width)
        case "memory":
            return bar(node.memory, width)
        case "pods":
            return str(node.pods)
        case "price":
            return _price(node.price, width) if node.price is not None else "–"
        case "age":
            return span(now - node.created_at)
        case "next":
            return _next(node, width, now)
        case "name":
            return middle(clean(node.name), width)
        case _:
            return clean(_told(node, key)) or "–"


def _told(node: NodeView, key: str) -> str:
    if key == "reason":
        return f"{node.reason}: {node.because}" if node.because else node.reason
    return {
        "phase": node.phase,
        "zone": node.zone,
        "type": node.instance_type,
        "capacity": node.capacity_type,
    }[key]


def _price(micro_dollars: int, width: int) -> str:
    """Rounded until it fits: a number that is cut is another number."""
    said = money(micro_dollars)
    dollars = micro_dollars / MICRO_DOLLARS
    shorter = [f"${dollars:,.{digits}f}" for digits in (3, 2, 1, 0)]
    found = (one for one in (said, *shorter) if len(one) <= width)
    return next(found, f"${dollars / 1000:.0f}k" if dollars < 1e7 else f"${dollars:.0e}")


def _next(node: NodeView, width: int, now: datetime) -> str:
    """How long until the next change."""
    if node.next_at is None:
        return "–"
    if node.next_at <= now:
        return "now"
    return away(node.next_at, now) if width >= _NEXT_WIDE else span(node.next_at - now)


def when(instant: datetime, now: datetime) -> str:
    """``08:12:30, in 3m05s``."""
    return f"{narrow_clock(instant, now)}, {away(instant, now)}"
