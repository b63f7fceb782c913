"""Makes frames of a cluster: at first everything is read, then what has changed.

In steps, because to read a thousand nodes takes as long as some turns of the loop. Between two steps the cluster may
change: what did is read again for the next frame.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final

import msgspec

from tenure.dashboard.fleet.governing import Verdicts
from tenure.dashboard.fleet.nodeview import Shown, key_of_claim, key_of_node, shown_node
from tenure.dashboard.fleet.notes import notes_of
from tenure.dashboard.fleet.pending import pending_pods
from tenure.dashboard.fleet.prices import Prices
from tenure.dashboard.fleet.totals import pool_views, totals_of
from tenure.dashboard.fleet.values import Frame, Lost, NodeView
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS
from tenure.model.snapshot.snapshot import Snapshot
from tenure.packing.demand.steps import Steps, at_once

#: Nodes that are read in one step, with some 20 pods each: a quarter of a millisecond, by which a turn may be late.
NODES_READ: Final = 3
#: Objects that changed whose nodes are found in one step: as long.
FOUND_A_STEP: Final = 50


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """What a frame is made of."""

    at: datetime
    snapshot: Snapshot
    #: None: this replica has none, because it does not lead.
    verdicts: Verdicts | None
    #: What the cluster is called, and who acts on it.
    cluster: str = ""
    leader: str = ""
    #: Put before those that the frame has of its own.
    notes: tuple[str, ...] = ()
    lost: Lost | None = None


def frame_of(
    snapshot: Snapshot,
    verdicts: Verdicts | None,
    now: datetime,
    *,
    cluster: str = "",
    leader: str = "",
    notes: Iterable[str] = (),
) -> Frame:
    """One frame. For frames one after the other, a ``FrameMaker`` is faster."""
    inputs = Inputs(
        at=now,
        snapshot=snapshot,
        verdicts=verdicts,
        cluster=cluster,
        leader=leader,
        notes=tuple(notes),
    )
    return FrameMaker().frame(inputs)


_Find = Callable[[str, Snapshot], Iterable[str]]


class FrameMaker:
    """Keeps each node as long as nothing changes that it was made of."""

    def __init__(self) -> None:
        self._claims: dict[str, NodeClaim] = {}
        self._nodes: dict[str, Node] = {}
        self._shown: dict[str, Shown] = {}
        #: By the name of a Node: the key of the view that it is a part of.
        self._part_of: dict[str, str] = {}
        self._prices = Prices()
        self._verdicts: Verdicts | None = None
        #: Up to which change it has followed the Nodes and the verdicts.
        self._nodes_number = -1
        self._verdicts_number = -1
        #: What changed, by name, with what finds the keys of the nodes that it is of.
        self._changed: deque[tuple[_Find, str]] = deque()
        #: Keys that are to be read again.
        self._todo: dict[str, None] = {}
        #: Keys in the order of the frame; None: it may be another one now.
        self._order: list[str] | None = None

    def frame(self, inputs: Inputs) -> Frame:
        """At once."""
        return at_once(self.making(inputs))

    def making(self, inputs: Inputs) -> Steps[Frame]:
        """In steps."""
        snapshot, verdicts = inputs.snapshot, inputs.verdicts
        self._note_changes(snapshot, verdicts)
        found = 0
        while self._changed:
            find, what = self._changed.popleft()
            self._todo.update(dict.fromkeys(find(what, snapshot)))
            if not (found := found + 1) % FOUND_A_STEP:
                yield
        read = 0
        while self._todo:
            key, _ = self._todo.popitem()
            try:
                self._read(key, snapshot, verdicts)
            except BaseException:
                self._todo[key] = None
                raise
            if not (read := read + 1) % NODES_READ:
                yield
        pending, waiting = pending_pods(snapshot, verdicts)
        yield
        nodes = self._sorted()
        yield
        pools = pool_views(nodes, self._shown, snapshot, verdicts)
        yield
        totals = totals_of(self._shown.values(), waiting)
        yield
        return Frame(
            at=inputs.at,
            cluster=inputs.cluster,
            leader=inputs.leader,
            notes=(*inputs.notes, *notes_of(snapshot)),
            lost=inputs.lost,
            totals=totals,
            pools=pools,
            nodes=nodes,
            pending=pending,
        )

    def _sorted(self) -> tuple[NodeView, ...]:
        if self._order is None:
            self._order = sorted(self._shown, key=lambda key: _place(self._shown[key].view))
        return tuple(self._shown[key].view for key in self._order)

    # -- what is to be read again --------------------------------------------------------

    def _note_changes(self, snapshot: Snapshot, verdicts: Verdicts | None) -> None:
        names, self._nodes_number = snapshot.touched_nodes(self._nodes_number)
        everything = self._prices.follow(snapshot) or verdicts is not self._verdicts
        if verdicts is not self._verdicts:
            self._verdicts, self._verdicts_number = verdicts, -1
        subjects: list[str] | None = []
        if verdicts is not None:
            subjects, self._verdicts_number = verdicts.touched_subjects(self._verdicts_number)
        if everything or names is None or subjects is None:
            self._todo.update(dict.fromkeys(self._shown))
        self._note_changed_claims(snapshot)
        nodes, self._nodes = self._nodes, dict(snapshot.nodes)
        touched = dict.fromkeys((*(names or ()), *_changed(nodes, self._nodes)))
        self._changed += ((self._keys_of, name) for name in touched)
        self._changed += ((self._keys_about, subject) for subject in subjects or ())

    def _note_changed_claims(self, snapshot: Snapshot) -> None:
        before, self._claims = self._claims, dict(snapshot.claims)
        for name in _changed(before, self._claims):
            self._todo[key_of_claim(name)] = None
            # Another claim may have had the Node, or has it now.
            claim = self._claims.get(name) or before[name]
            self._changed.append((self._keys_with_provider, claim.provider_id))

    def _keys_with_provider(self, provider_id: str, snapshot: Snapshot) -> Iterator[str]:
        for node in snapshot.nodes_with_provider(provider_id):
            yield from self._keys_of(node, snapshot)

    def _keys_of(self, name: str, snapshot: Snapshot) -> Iterator[str]:
        """Views that a Node is, was or may become a part of."""
        yield key_of_node(name)
        if (key := self._part_of.get(name)) is not None:
            yield key
        node = snapshot.nodes.get(name)
        if node is not None:
            for claim in snapshot.claims_with_provider(node.spec.provider_id):
                yield key_of_claim(claim)

    def _keys_about(self, subject: str, snapshot: Snapshot) -> Iterator[str]:
        """``Kind/namespace/name``"""
        kind, namespace, name = subject.split("/", 2)
        if kind == NODE_CLAIMS.kind:
            yield key_of_claim(name)
        elif kind == NODES.kind:
            yield from self._keys_of(name, snapshot)
        elif kind == PODS.kind:
            pod = snapshot.pods.get(f"{namespace}/{name}")
            if pod is not None and pod.spec.node_name:
                yield from self._keys_of(pod.spec.node_name, snapshot)

    # -- reading -------------------------------------------------------------------------

    def _read(self, key: str, snapshot: Snapshot, verdicts: Verdicts | None) -> None:
        kind, _, name = key.partition("/")
        claim: NodeClaim | None = None
        node: Node | None
        if kind == NODE_CLAIMS.kind:
            claim = snapshot.claims.get(name)
            node = None if claim is None else first_node(claim, snapshot)
        else:
            node = snapshot.nodes.get(name)
            if node is not None and owner_of(node, snapshot) is not None:
                node = None  # A part of its claim.
        before = self._shown.get(key)
        if claim is None and node is None:
            if before is not None:
                del self._shown[key]
                self._order = None
            return
        made = shown_node(claim, node, snapshot, verdicts, self._prices)
        if made != before:
            self._shown[key] = made
            if before is None or _place(made.view) != _place(before.view):
                self._order = None
        if node is not None:
            self._part_of[node.name] = key


def _place(view: NodeView) -> tuple[str, str, str]:
    return view.pool, view.name, view.key


def _changed(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """Names of objects that are new, gone, or not the same."""
    found = [name for name, one in now.items() if before.get(name) is not one]
    return found + [name for name in before if name not in now]


def first_node(claim: NodeClaim, snapshot: Snapshot) -> Node | None:
    """The claim's Node. Where several have its provider id, the first; the others are shown by themselves."""
    nodes = snapshot.nodes_with_provider(claim.provider_id)
    return nodes[min(nodes)] if nodes else None


def owner_of(node: Node, snapshot: Snapshot) -> NodeClaim | None:
    """The claim that it is shown with."""
    claims = snapshot.claims_with_provider(node.spec.provider_id)
    for claim in claims.values():
        first = first_node(claim, snapshot)
        if first is not None and first.name == node.name:
            return claim
    return None
