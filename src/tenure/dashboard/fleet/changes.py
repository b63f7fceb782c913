"""What is different between two frames; and the next frame from the one before and that."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from tenure.dashboard.fleet.values import Change, Frame, NodeView, PendingPod

V = TypeVar("V", NodeView, PendingPod)


def change_between(before: Frame, after: Frame) -> Change:
    """Pools, totals and notes are few: all of them are in it."""
    nodes, gone = _differing(before.nodes, after.nodes)
    pending, bound = _differing(before.pending, after.pending)
    return Change(
        at=after.at,
        leader=after.leader,
        notes=after.notes,
        lost=after.lost,
        totals=after.totals,
        pools=after.pools,
        nodes=nodes,
        gone=(*gone, *bound),
        pending=pending,
    )


def _differing(before: Iterable[V], after: Iterable[V]) -> tuple[tuple[V, ...], tuple[str, ...]]:
    """Those that are new or differ, and the keys of those that are gone."""
    known = {one.key: one for one in before}
    new = []
    for one in after:
        old = known.pop(one.key, None)
        if old is not one and old != one:
            new.append(one)
    return tuple(new), tuple(known)


def is_news(change: Change, before: Frame) -> bool:
    """Whether it says anything but that time went by."""
    return bool(
        change.nodes
        or change.gone
        or change.pending
        or (change.leader, change.notes, change.lost) != (before.leader, before.notes, before.lost)
        or (change.totals, change.pools) != (before.totals, before.pools)
    )


def applied(change: Change, before: Frame) -> Frame:
    """The next frame."""
    return msgspec.structs.replace(
        before,
        at=change.at,
        leader=change.leader,
        notes=change.notes,
        lost=change.lost,
        totals=change.totals,
        pools=change.pools,
        nodes=tuple(sorted(_with(before.nodes, change.nodes, change.gone), key=_place)),
        pending=tuple(sorted(_with(before.pending, change.pending, change.gone), key=_waited)),
    )


def _with(before: Iterable[V], new: Iterable[V], gone: Iterable[str]) -> Iterable[V]:
    known = {one.key: one for one in before}
    for key in gone:
        known.pop(key, None)
    return (known | {one.key: one for one in new}).values()


def _place(one: NodeView) -> tuple[str, str, str]:
    return one.pool, one.name, one.key


def _waited(one: PendingPod) -> tuple[object, str]:
    return one.since, one.key
