"""One frame as plain text: for a pipe, a file, a terminal that can show nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from tenure.dashboard.board.bars import percent
from tenure.dashboard.board.columns import when
from tenure.dashboard.board.rows import NO_POOL, Arrangement, NodeRow, PoolRow, rows_of
from tenure.dashboard.board.tones import LOOKS, signs
from tenure.dashboard.fleet.values import Frame, NodeView, Share
from tenure.dashboard.fleet.words import count, hourly, money
from tenure.model.values.printable import clean

_HEADS = (
    "NODE",
    "PHASE",
    "ZONE",
    "TYPE",
    "CAPACITY",
    "CPU",
    "MEMORY",
    "PODS",
    "$/H",
    "NEXT",
    "WHY",
)


def plain_text(frame: Frame) -> str:
    """A line for each node, as wide as it needs; for ``grep`` and for people."""
    return "\n".join(line.rstrip() for line in _lines(frame))


def _lines(frame: Frame) -> Iterator[str]:
    total = frame.totals
    acts = f", acts: {clean(frame.leader)}" if frame.leader else ""
    yield f"Cluster {clean(frame.cluster) or 'without a name'} at {frame.at:%Y-%m-%dT%H:%M:%SZ}{acts}"
    tones = signs(total.nodes, words=True).plain
    pods = f"{count(total.running, 'pod')} running, {total.pending:,} pending"
    nodes = count(sum(total.nodes.values()), "node")
    yield f"{nodes}{f' ({tones})' if tones else ''} · {pods} · {hourly(total.price, total.unpriced)}"
    yield from (f"note: {clean(note)}" for note in frame.notes)
    rows = rows_of(frame, Arrangement())
    cells = [_cells(row.node, frame) for row in rows if isinstance(row, NodeRow)]
    widths = [max(map(len, column)) for column in zip(_HEADS, *cells, strict=True)]
    if rows:
        yield ""
        yield "  " + _aligned(_HEADS, widths)
    told = iter(cells)
    for row in rows:
        if isinstance(row, PoolRow):
            yield _pool(row)
        else:
            yield "  " + _aligned(next(told), widths)
    if frame.pending:
        yield ""
        yield f"{count(total.pending, 'pod')} pending"
        for pod in frame.pending:
            yield f"  {clean(pod.namespace)}/{clean(pod.name)}  {clean(pod.reason)}: {clean(pod.because)}"


def _pool(row: PoolRow) -> str:
    pool = row.pool
    why = f"  {clean(pool.reason)}: {clean(pool.because)}" if pool.reason else ""
    name = f"NodePool {clean(pool.name)}" if pool.name else f"Nodes {NO_POOL}"
    return f"{name}  {count(row.all, 'node')}  {hourly(pool.price, pool.unpriced)}{why}"


def _cells(node: NodeView, frame: Frame) -> tuple[str, ...]:
    next_ = when(node.next_at, frame.at) if node.next_at is not None else ""
    said = " ".join(part for part in (clean(node.next), f"({next_})" if next_ else "") if part)
    why = f"{clean(node.reason)}: {clean(node.because)}" if node.reason else clean(node.because)
    return (
        f"{LOOKS[node.tone].sign} {clean(node.name)}",
        clean(node.phase),
        clean(node.zone) or "–",
        clean(node.instance_type) or "–",
        clean(node.capacity_type) or "–",
        _share(node.cpu),
        _share(node.memory),
        str(node.pods),
        money(node.price) if node.price is not None else "–",
        said or "–",
        why,
    )


def _share(share: Share | None) -> str:
    return f"{percent(share)}%" if share is not None else "–"


def _aligned(texts: tuple[str, ...], widths: list[int]) -> str:
    return "  ".join(text.ljust(width) for text, width in zip(texts, widths, strict=True))
