"""All Nodes as places for pods, kept over turns: only those that something has changed of are read again.

It spares work and nothing else. To read thousands of them takes as long as some turns, so it can be done in steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from tenure.core.provision.supply import existing_node, in_service_at, nodes_in_flight
from tenure.model.snapshot.snapshot import Snapshot
from tenure.packing.demand.problem import ExistingNode
from tenure.packing.demand.steps import Steps, at_once

#: Nodes that are read in one step: with their pods, some milliseconds.
NODES_READ: Final = 50


class KnownNodes:
    def __init__(self) -> None:
        self._nodes: dict[str, ExistingNode] = {}
        self._in_service: dict[str, datetime] = {}
        #: Names of those that are to be read again.
        self._todo: dict[str, None] = {}
        #: Up to which change it has followed (``Touched``).
        self._number = -1
        #: Those that accept pods, and those that do not; None: not since something has changed.
        self._sorted: tuple[tuple[ExistingNode, ...], tuple[ExistingNode, ...]] | None = None

    def following(self, snapshot: Snapshot) -> Steps[None]:
        """In steps, between which the cluster may change."""
        names, self._number = snapshot.touched_nodes(self._number)
        known = dict.fromkeys((*self._nodes, *snapshot.nodes)) if names is None else names
        self._todo |= dict.fromkeys(known)
        read = 0
        while self._todo:
            name, _ = self._todo.popitem()
            try:
                self._read(name, snapshot)
            except BaseException:
                self._todo[name] = None
                raise
            if not (read := read + 1) % NODES_READ:
                yield

    def _read(self, name: str, snapshot: Snapshot) -> None:
        self._sorted = None
        node = snapshot.nodes.get(name)
        if node is None:
            self._nodes.pop(name, None)
            self._in_service.pop(name, None)
            return
        self._nodes[name] = existing_node(node, snapshot)
        since = in_service_at(node, snapshot.claim_of(node))
        if since is not None:
            self._in_service[name] = since
        else:
            self._in_service.pop(name, None)

    def sorted(self) -> tuple[tuple[ExistingNode, ...], tuple[ExistingNode, ...]]:
        """Those that accept pods, and those that do not, by name."""
        if self._sorted is None:
            nodes = [one for _, one in sorted(self._nodes.items())]
            closed = tuple(one for one in nodes if one.closed)
            self._sorted = tuple(one for one in nodes if not one.closed), closed
        return self._sorted

    def in_service(self) -> dict[str, datetime]:
        return dict(self._in_service)


def reading_nodes(snapshot: Snapshot) -> Steps[None]:
    """In steps: read what has changed. The others have less to do after that."""
    known: KnownNodes = snapshot.derived.lasting.setdefault(KnownNodes, KnownNodes())
    yield from known.following(snapshot)


def _known(snapshot: Snapshot) -> KnownNodes:
    at_once(reading_nodes(snapshot))
    known: KnownNodes = snapshot.derived.lasting[KnownNodes]
    return known


def nodes_with_capacity(snapshot: Snapshot) -> list[ExistingNode]:
    """Those that exist and accept pods, and those in flight."""
    return [*_known(snapshot).sorted()[0], *nodes_in_flight(snapshot)]


def closed_nodes(snapshot: Snapshot) -> list[ExistingNode]:
    """Nodes that accept no pods, as they are."""
    return list(_known(snapshot).sorted()[1])


def in_service_since(snapshot: Snapshot) -> Mapping[str, datetime]:
    """Nodes that the scheduler can use now, and since when, according to Node and claim."""
    return _known(snapshot).in_service()
