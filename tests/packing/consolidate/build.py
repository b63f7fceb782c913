"""Small makers for questions of consolidation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from tenure.model.api.names import CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, NODEPOOL, ZONE
from tenure.model.api.pod import Pod
from tenure.model.cloud.offering import InstanceType
from tenure.model.values.fact import Fact
from tenure.model.values.quantity import UNIT
from tenure.packing.consolidate.question import Candidate, Move, Question
from tenure.packing.consolidate.search import Search
from tenure.packing.demand.problem import NODES, ExistingNode, PoolTemplate
from tests.packing.build import FAMILY, a_pool

TYPES = {one.name: one for one in FAMILY}


def on(
    name: str,
    type_: str,
    *pods: Pod,
    zone: str = "a",
    term: str = "on-demand",
    types: Sequence[InstanceType] = FAMILY,
    pool: str = "general",
    closed: bool = False,
    price: int | None = None,
) -> tuple[ExistingNode, Candidate]:
    """A node of a type, and the candidate that it is."""
    kind = next(one for one in types if one.name == type_)
    labels = {INSTANCE_TYPE: type_, ZONE: zone, CAPACITY_TYPE: term, NODEPOOL: pool}
    node = ExistingNode.holding(
        pods,
        name=name,
        allocatable=kind.allocatable,
        labels={**labels, HOSTNAME: name},
        closed=closed,
    )
    offered = (one.price for one in kind.offerings if (one.zone, one.capacity_type) == (zone, term))
    candidate = Candidate(
        name=name,
        pool=pool,
        price=next(offered) if price is None else price,
        instance_type=type_,
        capacity_type=term,
        cost=1.0 + len(pods),
        capacity={**kind.capacity, NODES: UNIT},
    )
    return node, candidate


def ask(
    *there: tuple[ExistingNode, Candidate],
    pools: Iterable[PoolTemplate] = (a_pool(),),
    keep: Iterable[str] = (),
    **more: Any,
) -> Question:
    """``keep``: nodes that are no candidates."""
    kept = set(keep)
    return Question(
        nodes=tuple(node for node, _ in there),
        candidates=tuple(one for _, one in there if one.name not in kept),
        templates=tuple(pools),
        **more,
    )


def plan(question: Question) -> list[Move]:
    return [move for move in Search(question).moves() if move is not None]


def why_not(question: Question, name: str) -> Fact:
    """Why the plan leaves a node alone."""
    search = Search(question)
    list(search.moves())
    return search.why[name]


def told(moves: Iterable[Move]) -> list[tuple[list[str], list[str]]]:
    """Of each move: the nodes that go, and the cheapest types that are launched."""
    return [(sorted(one.names), [c.instance_type for c in one.claims]) for one in moves]


def unbound(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=""))
