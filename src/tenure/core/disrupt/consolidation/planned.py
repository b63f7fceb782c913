"""Makes a plan of what the search finds: a generator, so that it can be suspended after each step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from tenure.core.disrupt.consolidation.question import Asked
from tenure.core.facts import Fact
from tenure.core.gates.longest import Keeping
from tenure.model.snapshot.consolidation import (
    BlockedNode,
    BlockingObject,
    ConsolidationPlan,
    PlannedLaunch,
    PlannedMove,
)
from tenure.packing.consolidate.balanced import scores
from tenure.packing.consolidate.question import Move, Question
from tenure.packing.consolidate.search import Search


def planned(asked: Asked, at: datetime) -> Iterator[ConsolidationPlan | None]:
    """None: the search may be suspended here. The plan comes last, and is the only one."""
    question = asked.question
    blocked = {name: _blocked_node(kept) for name, kept in asked.kept.items()}
    if question is None:
        yield ConsolidationPlan(
            at=at, why=asked.why, blocked=blocked, waits=asked.waits, empty=asked.empty
        )
        return
    search = Search(question)
    yield None
    moves: list[PlannedMove] = []
    for tried in search.steps():
        if tried is not None and tried.move is not None:
            moves.append(_planned_move(tried.move, asked.claims, question))
        yield None
    why: dict[str, tuple[Fact, ...]] = dict(asked.why)
    why |= {name: (fact,) for name, fact in search.why.items()}
    for _ in search.letting_go():
        yield None
    yield ConsolidationPlan(
        at=at,
        moves=tuple(moves),
        why=why,
        blocked=blocked,
        price=sum(one.price for one in question.candidates),
        candidates=len(question.candidates),
        empty=asked.empty,
        going=asked.going,
    )


def plan_now(asked: Asked, at: datetime) -> ConsolidationPlan:
    """The plan, without a pause."""
    (plan,) = (step for step in planned(asked, at) if step is not None)
    return plan


def _blocked_node(kept: Keeping) -> BlockedNode:
    """As a plan keeps it: the model knows neither gates nor verdicts."""
    objects = tuple(
        BlockingObject(
            kind=one.subject.kind,
            name=one.subject.name,
            namespace=one.subject.namespace,
            uid=one.subject.uid,
            fact=one.fact,
            until=one.until,
            lasting=one.lasting,
        )
        for one in kept.blockers
    )
    return BlockedNode(gate=kept.governing.gate, objects=objects)


def _planned_move(move: Move, claims: Mapping[str, str], question: Question) -> PlannedMove:
    return PlannedMove(
        claims=tuple(sorted(claims[name] for name in move.names)),
        nodes=tuple(sorted(move.names)),
        launches=tuple(
            PlannedLaunch(
                pool=one.pool,
                instance_type=one.instance_type,
                zone=one.zone,
                capacity_type=one.capacity_type,
                price=one.price,
            )
            for one in move.claims
        ),
        price=move.price,
        worst=move.worst,
        cost=move.cost,
        pods=move.pods,
        scores=scores(move, question.balanced),
    )
