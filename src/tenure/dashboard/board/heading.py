"""The lines above the table, and those below it on the selected row."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Final

from rich.text import Text

from tenure.dashboard.board.columns import when
from tenure.dashboard.board.rows import NO_POOL, NodeRow, PoolRow, Row
from tenure.dashboard.board.tones import LOOKS, signs, style
from tenure.dashboard.fleet.values import BlockerView, Frame, NodeView, Share, Tone
from tenure.dashboard.fleet.words import count, hourly, money, span
from tenure.model.values.printable import clean

#: The lines on the selected row.
DETAILS: Final = 5
_GIB: Final = 1 << 30
#: Named on the line of blockers; what lasts longest comes first.
_BLOCKERS: Final = 3


def title(frame: Frame | None, name: str, width: int) -> Text:
    """Which cluster, when, and who acts on it."""
    if frame is None:
        return _cut(
            Text.assemble(("Tenure", "bold"), f"  {clean(name)}: reading the cluster …"), width
        )
    line = Text.assemble(
        ("Tenure", "bold"),
        f"  {clean(frame.cluster or name, 60)}  {frame.at:%Y-%m-%d %H:%M:%S}Z",
    )
    if frame.leader:
        line.append(f"  acts: {clean(frame.leader)}", "dim")
    return _cut(line, width)


def totals(frame: Frame | None, width: int) -> Text:
    if frame is None:
        return Text()
    total = frame.totals
    line = Text.assemble((count(sum(total.nodes.values()), "node"), "bold"), "  ")
    line.append(signs(total.nodes, words=width >= 120))
    line.append(f"  {count(total.running, 'pod')} running")
    if total.pending:
        line.append(f", {total.pending:,} pending", style(Tone.WAITING))
    line.append("  ")
    line.append(hourly(total.price, total.unpriced), "bold")
    if total.unpriced and total.price:
        line.append(f" ({total.unpriced:,} of unknown price)", "dim")
    return _cut(line, width)


def banner(notes: tuple[str, ...], connection: str, width: int) -> Text:
    """What is wrong with the connection, else the first note; empty where there is none."""
    if connection:
        return _cut(Text(f"! {clean(connection)}", "bold reverse"), width)
    if not notes:
        return Text()
    more = f" (n: all {len(notes)} notes)" if len(notes) > 1 else " (n: whole note)"
    line = Text(f"! {clean(notes[0])}")
    line.truncate(max(width - len(more), 10), overflow="ellipsis")
    return _cut(Text.assemble((line.plain, "bold"), (more, "dim")), width)


def details(row: Row | None, frame: Frame | None, width: int) -> list[Text]:
    """On the row under the cursor, so many lines."""
    if frame is None:
        lines = []
    elif row is None:
        lines = [Text("no nodes" if not frame.nodes else "no node matches the filter", "dim")]
    elif isinstance(row, PoolRow):
        lines = list(_of_pool(row, width))
    else:
        lines = list(_of_node(row, frame, width))
    lines += [Text()] * (DETAILS - len(lines))
    return [_cut(line, width) for line in lines[:DETAILS]]


def _of_pool(row: PoolRow, width: int) -> Iterator[Text]:
    pool = row.pool
    name = f"NodePool {clean(pool.name, 64)}" if pool.name else f"Nodes {NO_POOL}"
    yield Text.assemble((name, "bold"), f"  {hourly(pool.price, pool.unpriced)}")
    yield signs(pool.nodes, words=True)
    if pool.reason:
        yield from _reason(pool.reason, pool.because, width)


def _of_node(row: NodeRow, frame: Frame, width: int) -> Iterator[Text]:
    node = row.node
    look = LOOKS[node.tone]
    yield Text.assemble(
        (f"{look.sign} {clean(node.name)}", style(node.tone)),
        f"  {' · '.join(_facts(node, frame))}",
    )
    yield from _reason(node.reason, node.because, width)
    yield _next_line(node, frame)
    yield _blocked_line(node, frame)


def _reason(reason: str, because: str, width: int) -> Iterator[Text]:
    """On at most two lines."""
    said = f"{clean(reason)}: {clean(because)}" if because else clean(reason)
    first, *rest = textwrap.wrap(said, max(width, 20)) or [""]
    line = Text(first)
    line.stylize("bold", 0, len(clean(reason)) + 1)
    yield line
    if rest:
        yield Text(" ".join(rest))


def _facts(node: NodeView, frame: Frame) -> Iterator[str]:
    if node.node and node.node != node.name:
        yield f"Node {clean(node.node)}"
    yield from (clean(one) for one in (node.instance_type, node.capacity_type, node.zone) if one)
    yield f"cpu {_cpu(node.cpu)}"
    yield f"memory {_memory(node.memory)}"
    yield count(node.pods, "pod")
    yield f"{money(node.price)}/h" if node.price is not None else "price unknown"
    yield f"age {span(frame.at - node.created_at)}"


def _next_line(node: NodeView, frame: Frame) -> Text:
    said = clean(node.next)
    if node.next_at is not None:
        said = f"{said}, " if said else ""
        said = f"{said}{when(node.next_at, frame.at)}"
    line = Text.assemble(("next ", "dim"), said or "nothing, unless the cluster changes")
    if node.deadline is not None:
        line.append("  deadline ", "dim")
        line.append(when(node.deadline, frame.at), "bold")
    return line


def _blocked_line(node: NodeView, frame: Frame) -> Text:
    if not node.blockers:
        return Text()
    first, *others = node.blockers
    told = not first.message or first.message in node.because
    line = Text.assemble((f"blocked by {clean(first.subject)}", "bold"))
    line.append(_ends(first, frame) if told else f": {clean(first.message)}{_ends(first, frame)}")
    for one in others[: _BLOCKERS - 1]:
        line.append(f" · {clean(one.subject)}{_ends(one, frame)}")
    more = len(others) - _BLOCKERS + 1 + node.more_blockers
    return line.append(f" · {more} more", "dim") if more > 0 else line


def _ends(blocker: BlockerView, frame: Frame) -> str:
    """Behind its name: until when."""
    if blocker.until is not None:
        return f", until {when(blocker.until, frame.at)}"
    return ", until it is changed" if blocker.lasting else ""


def _cpu(share: Share | None) -> str:
    if share is None:
        return "unknown"
    return f"{share.requested / 1000:g} of {share.allocatable / 1000:g}"


def _memory(share: Share | None) -> str:
    if share is None:
        return "unknown"
    return f"{share.requested / _GIB:.1f} of {share.allocatable / _GIB:.1f} GiB"


def _cut(line: Text, width: int) -> Text:
    line.truncate(width, overflow="ellipsis")
    return line
