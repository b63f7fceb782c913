"""One screen: header, nodes, what happened lately. Fits any terminal from 80 by 24.

On a narrow terminal what a node waits for stands on a line of its own beneath it; nodes at
work have none. If the nodes do not fit, the ones something happens to come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from tenure.cli.view import labels as words
from tenure.cli.view.board import Board, NodeRow
from tenure.cli.view.tail import Line
from tenure.core.reasons import REASONS, Reason

#: From this width on, reason and next step stand in columns.
WIDE: Final = 140
#: Header, an empty line under it, and one above and under the tail's title.
_AROUND: Final = 6
#: The tail keeps at least this many lines.
_TAIL_MIN: Final = 6

_COLUMNS: Final = ("NODE", "INSTANCE TYPE", "ZONE", "CAPACITY", "AGE", "PODS", "PHASE")
_RIGHT: Final = frozenset({"AGE", "PODS"})
_GAP: Final = "  "
_INDENT: Final = "  └ "
#: The reason is never cut shorter than this.
_WHY_MIN: Final = 20

#: No green: beside red it says nothing to one reader in twelve.
_PHASE_STYLES: Final = {
    "in service": "cyan",
    "terminating": "yellow",
    "draining": "yellow",
    "empty": "yellow",
    "gone": "dim",
    "unhealthy": "red",
    "lost": "red",
    "timed out": "red",
    "failed": "red",
    "drifted": "yellow",
    "expired": "yellow",
    "to leave": "yellow",
}
_COMING_STYLE: Final = "magenta"


class Heading(msgspec.Struct, frozen=True, kw_only=True):
    """What the screen says beside the facts."""

    title: str
    elapsed: str
    speed: str
    footer: str


def screen(
    board: Board, lines: Sequence[Line], heading: Heading, *, width: int, height: int
) -> RenderableType:
    """Exactly ``height`` lines of at most ``width``."""
    room = max(height - _AROUND, 2)
    nodes = _nodes(board.rows, width=width, lines_max=max(room - _TAIL_MIN, 2))
    tail_room = max(room - len(nodes), 0)
    tail = [_told(line) for line in list(lines)[-tail_room:]] if tail_room else []
    shown = [
        *_header(board, heading),
        Text(),
        *nodes,
        Text(),
        Text("WHAT HAPPENED, AND WHY", style="dim"),
        *tail,
        *[Text()] * (tail_room - len(tail)),
        Text(heading.footer, style="dim"),
    ]
    for line in shown:
        line.truncate(width, overflow="ellipsis")
    return Group(*shown)


def _header(board: Board, heading: Heading) -> list[Text]:
    totals = board.totals
    first = Text.assemble(
        (heading.title, "bold"),
        f"   {words.clock(board.now)} (+{heading.elapsed})   {heading.speed}",
    )
    nodes = words.count(totals.in_service, "node")
    nodes += f", {totals.coming} coming" if totals.coming else ""
    nodes += f", {totals.terminating} terminating" if totals.terminating else ""
    second = Text.assemble(
        f"{nodes} · {words.count(totals.running, 'pod')} running",
        (f", {totals.pending} waiting", "yellow") if totals.pending else "",
        " · ",
        (words.owed(totals.hourly, "/h"), "bold"),
        f", {words.owed(totals.spent)} so far",
    )
    return [first, second]


# -- nodes -----------------------------------------------------------------------------


def _nodes(rows: Sequence[NodeRow], *, width: int, lines_max: int) -> list[Text]:
    if not rows:
        return [Text("no nodes yet", style="dim")]
    wide = width >= WIDE
    kept = _most_important(rows, wide=wide, lines_max=lines_max - 1)
    cells = [_cells(row) for row in kept]
    widths = [max(map(len, column)) for column in zip(_COLUMNS, *cells, strict=True)]
    titles = [*_aligned(_COLUMNS, widths), *(("WHY → NEXT",) if wide else ())]
    lines = [Text(_GAP.join(titles), style="dim")]
    for row, texts in zip(kept, cells, strict=True):
        lines += _lines(row, _aligned(texts, widths), width=width)
    return lines


def _most_important(rows: Sequence[NodeRow], *, wide: bool, lines_max: int) -> list[NodeRow]:
    """As many rows as fit, in their order; nodes at work give way first, then those that only wait."""
    kept, left = set[str](), lines_max
    for row in sorted(rows, key=lambda row: (row.settled, row.only_waits)):
        left -= 1 if wide or row.settled else 2
        if left < 0:
            break
        kept.add(row.node.key)
    return [row for row in rows if row.node.key in kept]


def _cells(row: NodeRow) -> list[str]:
    node = row.node
    described = (node.instance_type or "–", node.zone or "–", node.capacity_type or "–")
    return [node.name, *described, words.span(row.age), str(node.pods), node.phase]


def _aligned(texts: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [
        text.rjust(width) if title in _RIGHT else text.ljust(width)
        for title, text, width in zip(_COLUMNS, texts, widths, strict=True)
    ]


def _lines(row: NodeRow, texts: Sequence[str], *, width: int) -> list[Text]:
    style = _PHASE_STYLES.get(row.node.phase, _COMING_STYLE)
    *plain, phase = texts
    line = Text.assemble(_GAP.join(plain), _GAP, (phase, style))
    if row.settled:
        return [line]
    if width >= WIDE:
        return [Text.assemble(line, _GAP, _note(row, width - line.cell_len - len(_GAP), style))]
    return [line, Text.assemble(_INDENT, _note(row, width - len(_INDENT), style))]


def _note(row: NodeRow, width: int, style: str) -> Text:
    """Why, and what next; if both do not fit, the reason is cut first."""
    next_ = Text(f" → {row.next_}" if row.next_ else "", style=style)
    why = Text(row.why, style="italic")
    why.truncate(max(width - next_.cell_len, _WHY_MIN), overflow="ellipsis")
    return Text.assemble(why, next_)


# -- what happened ---------------------------------------------------------------------


def _told(line: Line) -> Text:
    at = (f"{words.clock(line.at)} ", "dim")
    if line.source != "tenure":
        return Text.assemble(at, (line.message, "bold"))
    style = "red" if REASONS[Reason(line.reason)].event == "Warning" else "cyan"
    return Text.assemble(at, f"{line.who} ", (line.reason, style), f" {line.message}")
