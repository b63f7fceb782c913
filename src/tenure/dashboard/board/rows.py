"""Which rows there are, and in which order: filtered, sorted within their pool, folded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from tenure.dashboard.board.bars import percent
from tenure.dashboard.board.tones import LOOKS, SEVERITY
from tenure.dashboard.fleet.values import Frame, NodeView, PoolView, Share

#: Longer filters match nothing anyway.
FILTER_MAX: Final = 200
_FAR: Final = datetime.max.replace(tzinfo=UTC)
NO_POOL: Final = "without NodePool"


class PoolRow(msgspec.Struct, frozen=True):
    pool: PoolView
    #: How many of its nodes the filter lets through, and how many there are.
    shown: int
    all: int
    folded: bool

    @property
    def key(self) -> str:
        return f"NodePool/{self.pool.name}"


class NodeRow(msgspec.Struct, frozen=True):
    node: NodeView

    @property
    def key(self) -> str:
        return self.node.key


Row = PoolRow | NodeRow


class Arrangement(msgspec.Struct, frozen=True, kw_only=True):
    """What the reader has chosen."""

    #: A column's key; empty: by zone and name.
    sort: str = ""
    reverse: bool = False
    filter: str = ""
    #: Names of pools whose nodes are not shown.
    folded: frozenset[str] = frozenset()


def _share(share: Share | None) -> int:
    return -1 if share is None else percent(share)


#: By column. The largest number, and what is most urgent, comes first.
_ORDERS: Final[Mapping[str, Callable[[NodeView], Any]]] = {
    "name": lambda node: node.name,
    "phase": lambda node: (SEVERITY[node.tone], node.phase),
    "zone": lambda node: node.zone,
    "type": lambda node: node.instance_type,
    "capacity": lambda node: node.capacity_type,
    "cpu": lambda node: -_share(node.cpu),
    "memory": lambda node: -_share(node.memory),
    "pods": lambda node: -node.pods,
    "price": lambda node: -(node.price if node.price is not None else -1),
    "age": lambda node: node.created_at,
    "next": lambda node: node.next_at or _FAR,
    "reason": lambda node: node.reason,
}
SORTABLE: Final = tuple(_ORDERS)


def rows_of(frame: Frame, chosen: Arrangement) -> list[Row]:
    """Pools by name, each with its nodes below it; nodes without a pool at the end."""
    by_pool: dict[str, list[NodeView]] = {pool.name: [] for pool in frame.pools}
    for node in frame.nodes:
        by_pool.setdefault(node.pool, []).append(node)
    known = {pool.name: pool for pool in frame.pools}
    wanted = _words(chosen.filter)
    rows: list[Row] = []
    for name in sorted(by_pool, key=lambda name: (not name, name)):
        nodes = by_pool[name]
        pool = known.get(name) or _pool_of(name, nodes)
        through = [node for node in nodes if matches(node, wanted)]
        if wanted and not through:
            continue
        folded = name in chosen.folded
        rows.append(PoolRow(pool, len(through), len(nodes), folded))
        if not folded:
            rows += [NodeRow(node) for node in _sorted(through, chosen)]
    return rows


def matches(node: NodeView, wanted: Iterable[str]) -> bool:
    """Whether each word is somewhere in what the row says."""
    said = "\n".join(
        (
            *(node.name, node.node, node.pool, node.zone, node.instance_type),
            *(node.capacity_type, node.phase, LOOKS[node.tone].word, node.reason, node.next),
        )
    ).casefold()
    return all(word in said for word in wanted)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text[:FILTER_MAX].casefold().split())


def _sorted(nodes: list[NodeView], chosen: Arrangement) -> list[NodeView]:
    """Stable: nodes that are equal in the column stay in the order of zone and name."""
    nodes = sorted(nodes, key=lambda node: (node.zone, node.name, node.key))
    if (order := _ORDERS.get(chosen.sort)) is not None:
        nodes.sort(key=order, reverse=chosen.reverse)
    return nodes


def _pool_of(name: str, nodes: Iterable[NodeView]) -> PoolView:
    """Of nodes whose pool is not listed, or that have none."""
    tones: dict[Any, int] = {}
    price = unpriced = 0
    for node in nodes:
        tones[node.tone] = tones.get(node.tone, 0) + 1
        price += node.price or 0
        unpriced += node.price is None
    return PoolView(name=name, nodes=tones, price=price, unpriced=unpriced)
