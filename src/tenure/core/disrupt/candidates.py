"""What planning depends on: the pools that have nodes which a method may come to want.

The nodes stay in the view as long as nothing changes in the cluster, due or not: from when on each
is a candidate is a matter of time, and so of the decision.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from itertools import chain

import msgspec

from tenure.core.disrupt.method import Candidate, Method, Methods, UnderWay, Watch
from tenure.core.disrupt.replacements import pauses_of
from tenure.core.gates.fleet import PoolFleet, fleet_of
from tenure.core.marks.command import is_replaced, reason_of, replacements_by_uid, still_replaced
from tenure.core.marks.interruption import is_interrupted
from tenure.core.marks.ownership import room_of
from tenure.core.terminate.drain import drain_until
from tenure.core.terminate.pods import DrainView
from tenure.core.windows.windows import Windows, windows_for_commands
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.window import ACTIONS
from tenure.model.snapshot.observations import WriteRefusal
from tenure.model.snapshot.snapshot import Snapshot


class Launched(msgspec.Struct, frozen=True):
    """A claim that was launched as a replacement."""

    claim: NodeClaim
    #: The name by which packing knows it.
    room: str
    #: Names of the claims that it replaces, of those that are there and do not terminate.
    replaces: frozenset[str]


class NodeFacts(msgspec.Struct, frozen=True):
    """What the disruption of one node depends on."""

    drain: DrainView
    #: Claims that were launched to replace it.
    replacements: tuple[Launched, ...] = ()


class Unfinished(msgspec.Struct, frozen=True):
    """A claim whose group is committed in part, and it is not."""

    claim: NodeClaim
    #: As if it were committed; None: something in the way cannot be read.
    under_way: UnderWay | None


class PoolCandidates(msgspec.Struct, frozen=True, kw_only=True):
    """A pool with nodes that a method may come to want."""

    pool: NodePool
    fleet: PoolFleet
    #: By claim name.
    nodes: Mapping[str, NodeFacts]
    #: By the reason of the method, in the order of the methods.
    watches: tuple[tuple[str, Watch], ...]
    #: All maintenance windows.
    windows: Windows = ()
    #: Until when nothing is replaced, and after whose failed replacement.
    pauses: tuple[tuple[datetime, str], ...] = ()
    #: By UID: of its claims, their Nodes and itself, whose last write for a disruption was refused.
    refused: Mapping[str, WriteRefusal] = {}
    unfinished: tuple[Unfinished, ...] = ()


class Wanted(msgspec.Struct, frozen=True):
    """A candidate, and what its disruption depends on."""

    method: Method
    candidate: Candidate
    pool: PoolCandidates
    #: The index of the method in the list.
    order: int
    #: The same node, as later methods want it.
    others: tuple[Wanted, ...] = ()

    @property
    def claim(self) -> NodeClaim:
        return self.candidate.claim

    @property
    def facts(self) -> NodeFacts:
        return self.pool.nodes[self.claim.name]

    @property
    def sort_key(self) -> tuple[bool, int, float, int, str]:
        """A node whose replacements exist comes first: they were launched before a crash."""
        facts, node = self.facts, self.candidate.node
        pods, launched_ = facts.drain.pods, bool(facts.replacements)
        return not launched_, self.order, -self.candidate.rank, len(pods), node.name


def candidates_in(
    methods: Methods,
    snapshot: Snapshot,
    *,
    without: Collection[str] = (),
    unfinished: Iterable[Unfinished] = (),
) -> Iterable[PoolCandidates]:
    """``without``: claims that something else is decided about."""
    watched: dict[str, list[tuple[Method, Watch]]] = {}
    for method in methods:
        for watch in method.watch(snapshot):
            nodes = tuple(
                pair
                for pair in watch.nodes
                if _may_begin(pair[0], method, watch) and pair[0].name not in without
            )
            if nodes:
                free = msgspec.structs.replace(watch, nodes=nodes)
                watched.setdefault(watch.pool, []).append((method, free))
    begun: dict[str, list[Unfinished]] = {}
    for one in unfinished:
        begun.setdefault(one.claim.pool_name, []).append(one)
    for name in sorted((watched.keys() | begun.keys()) & snapshot.pools.keys()):
        pairs = [pair for _, watch in watched.get(name, ()) for pair in watch.nodes]
        pairs += [(one.claim, node) for one in begun.get(name, ()) if (node := _node_of(one))]
        by_name = {pair[0].name: pair for pair in pairs}
        yield PoolCandidates(
            pool=snapshot.pools[name],
            fleet=fleet_of(name, snapshot),
            nodes={key: facts_of(*by_name[key], snapshot) for key in sorted(by_name)},
            watches=tuple((method.traits.reason, watch) for method, watch in watched.get(name, ())),
            windows=windows_for_commands(frozenset(ACTIONS), snapshot),
            pauses=tuple(pauses_of(snapshot.claims_of_pool(name))),
            refused=snapshot.observations.refusals_of(
                (snapshot.pools[name], *chain.from_iterable(by_name.values()))
            ),
            unfinished=tuple(begun.get(name, ())),
        )


def _node_of(unfinished: Unfinished) -> Node | None:
    return unfinished.under_way.command.node if unfinished.under_way is not None else None


def _may_begin(claim: NodeClaim, method: Method, watch: Watch) -> bool:
    """Not one that is terminating, or has a command under way that the method does not take over."""
    terminates = claim.deleting or is_interrupted(claim)
    if terminates or not is_replaced(claim):
        return not terminates
    own = reason_of(claim) == method.traits.reason
    return watch.takes_over and (method.traits.voluntary or not own)


def facts_of(claim: NodeClaim, node: Node, snapshot: Snapshot) -> NodeFacts:
    came = snapshot.once(replacements_by_uid).get(claim.uid, ())
    replacements = tuple(
        Launched(
            one,
            room_of(one, snapshot),
            frozenset(other.name for other in still_replaced(one, snapshot)),
        )
        for one in came
    )
    return NodeFacts(drain_until(node, None, snapshot), replacements)
