"""What consolidation would save: the moves of the last plan, with what each of them waits for.

A plan has no moves of nodes that a window blocks, or while voluntary disruption is off: they would only
be in the way of others. What they would save is of interest all the same, so it is asked once more as if these
gates were open.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from datetime import datetime
from typing import Final

import msgspec

from tenure.cli.cluster.evaluated import EvaluatedCluster
from tenure.core.decision import Concern
from tenure.core.disrupt.consolidation.planned import plan_now
from tenure.core.disrupt.consolidation.question import Asked, ask
from tenure.core.disrupt.facts.candidates import NodeIsEmpty
from tenure.core.disrupt.facts.consolidation import NodeUnderutilized
from tenure.core.facts import Fact
from tenure.core.gates.facts import PoolPauses, VoluntaryDisruptionOff
from tenure.core.gates.operations import Gate
from tenure.core.marks.command import is_replaced
from tenure.core.reasons import Reason
from tenure.core.windows.facts import InvalidWindowBlocks, OutsideAllowWindows, WindowBlocks
from tenure.model.api.meta import ApiObject
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.resource import NODE_CLAIMS, NODES
from tenure.model.snapshot.consolidation import ConsolidationPlan, PlannedMove

#: Gates that open at an instant, or by a setting of Tenure.
_OPENING: Final = frozenset({Gate.OFF, Gate.WINDOW, Gate.PAUSE})
_CLOSED: Final = (
    VoluntaryDisruptionOff,
    WindowBlocks,
    OutsideAllowWindows,
    InvalidWindowBlocks,
    PoolPauses,
)
_STAYS: Final = frozenset({Reason.UNCONSOLIDATABLE, Reason.CONSOLIDATES_LATER})
_WAITS: Final = frozenset(
    {Reason.DISRUPTION_BLOCKED, Reason.DISRUPTION_WAITS, Reason.VOLUNTARY_DISRUPTION_OFF}
)


class Move(msgspec.Struct, frozen=True, kw_only=True):
    planned: PlannedMove
    #: What it waits for; empty: nothing.
    blocked: tuple[Fact, ...] = ()
    #: Why it is not made after all; empty: it holds.
    rejected: tuple[Fact, ...] = ()
    #: It is being made.
    begun: bool = False

    @property
    def saves(self) -> int:
        """Micro-dollars per hour."""
        return 0 if self.rejected else self.planned.saves


class ConsolidationOutlook(msgspec.Struct, frozen=True, kw_only=True):
    at: datetime
    #: Why there is no plan now; None: there is one.
    waits: Fact | None = None
    moves: tuple[Move, ...] = ()
    #: By the name of a Node that is in no move: why.
    stays: Mapping[str, tuple[Fact, ...]] = {}
    #: Names of Nodes that are in no move and have no pods: they go for the reason ``Empty``.
    empty: tuple[str, ...] = ()
    #: What all candidates cost, in micro-dollars per hour, and how many there are.
    price: int = 0
    candidates: int = 0

    @property
    def saves(self) -> int:
        return sum(move.saves for move in self.moves)

    def of(self, claims: Container[str]) -> tuple[Move, ...]:
        """The moves that hold, and take one of these claims away."""
        return tuple(
            move
            for move in self.moves
            if not move.rejected and any(name in claims for name in move.planned.claims)
        )


def consolidation_outlook(evaluated: EvaluatedCluster) -> ConsolidationOutlook | None:
    """None where that could not be found out, and beside Karpenter, whose it is."""
    if evaluated.settings.beside_karpenter:
        return None
    plan = evaluated.snapshot.observations.consolidation
    if plan is not None and plan.waits is not None:
        return ConsolidationOutlook(at=plan.at, waits=plan.waits)
    moves = [] if plan is None else [move for move in plan.moves if _is_there(move, evaluated)]
    gone = [] if plan is None else [move for move in plan.moves if move not in moves]
    shown = [_move(move, evaluated) for move in moves]
    price = 0 if plan is None else plan.price - sum(move.price for move in gone)
    candidates = 0 if plan is None else plan.candidates - sum(len(move.nodes) for move in gone)
    closed = _closed(plan)
    found = _if_open(evaluated) if plan is None or closed else None
    if plan is None and found is None:
        return None
    stays = _stays(evaluated)
    if found is not None:
        shown += _further(found, moves, closed)
        price, candidates = max(price, found.price), max(candidates, found.candidates)
        stays |= {name: why for name, why in found.why.items() if why and name in closed}
    going = {name for move in shown for name in move.planned.nodes}
    return ConsolidationOutlook(
        at=evaluated.at if plan is None else plan.at,
        moves=tuple(shown),
        stays={name: why for name, why in stays.items() if name not in going},
        empty=tuple(sorted(_empty(evaluated) - going)),
        price=price,
        candidates=candidates,
    )


def moves_of(item: ApiObject, evaluated: EvaluatedCluster) -> tuple[Move, ...]:
    """Of a node only where no verdict says what its move saves: while a window blocks it, for example."""
    snapshot = evaluated.snapshot
    match item:
        case NodePool():
            claims = frozenset(snapshot.claims_of_pool(item.name))
        case Node():
            claims = frozenset(snapshot.claims_with_provider(item.spec.provider_id))
        case NodeClaim():
            claims = frozenset({item.name})
        case _:
            return ()
    plan = snapshot.observations.consolidation
    if not isinstance(item, NodePool) and (plan is None or not claims.isdisjoint(plan.by_claim)):
        return ()
    outlook = consolidation_outlook(evaluated)
    return () if outlook is None else outlook.of(claims)


def _is_there(move: PlannedMove, evaluated: EvaluatedCluster) -> bool:
    """Whether one of its nodes is still to go."""
    claims = (evaluated.snapshot.claims.get(name) for name in move.claims)
    return any(claim is not None and not claim.deleting for claim in claims)


def _move(move: PlannedMove, evaluated: EvaluatedCluster) -> Move:
    claims = [evaluated.snapshot.claims.get(name) for name in move.claims]
    known = [claim for claim in claims if claim is not None]
    if any(map(is_replaced, known)):
        return Move(planned=move, begun=True)
    for claim in known:
        for verdict in evaluated.about(NODE_CLAIMS, claim):
            why = tuple(
                fact
                for fact in verdict.facts
                if not isinstance(fact, NodeUnderutilized | NodeIsEmpty)
            )
            if verdict.reason is Reason.CONSOLIDATION_REJECTED:
                return Move(planned=move, rejected=why)
            if verdict.concern is Concern.DISRUPTION and verdict.reason in _WAITS:
                return Move(planned=move, blocked=why)
    return Move(planned=move)


def _closed(plan: ConsolidationPlan | None) -> dict[str, tuple[Fact, ...]]:
    """Nodes that only a gate keeps that opens, by name: what it says."""
    if plan is None:
        return {}
    return {name: why for name, why in plan.why.items() if why and isinstance(why[0], _CLOSED)}


def _if_open(evaluated: EvaluatedCluster) -> ConsolidationPlan | None:
    try:
        asked = ask(evaluated.snapshot, evaluated.settings, evaluated.at, despite=_OPENING)
        return None if asked.waits is not None else plan_now(_leave(asked, evaluated), evaluated.at)
    except Exception:  # noqa: BLE001  # an object that cannot be evaluated: a note says so of the plan itself
        return None


def _leave(asked: Asked, evaluated: EvaluatedCluster) -> Asked:
    """Where empty nodes take no pods: they go as soon as the gates open."""
    question = asked.question
    if question is None:
        return asked
    leaving = _empty(evaluated).difference(one.name for one in question.candidates)
    nodes = tuple(
        msgspec.structs.replace(node, closed=True) if node.name in leaving else node
        for node in question.nodes
    )
    return msgspec.structs.replace(asked, question=msgspec.structs.replace(question, nodes=nodes))


def _empty(evaluated: EvaluatedCluster) -> set[str]:
    return {
        fact.node
        for verdict in evaluated.in_force()
        if verdict.reason is Reason.NODE_EMPTY
        for fact in verdict.facts
        if isinstance(fact, NodeIsEmpty)
    }


def _further(
    found: ConsolidationPlan, moves: list[PlannedMove], closed: Mapping[str, tuple[Fact, ...]]
) -> Iterator[Move]:
    """Those whose nodes are in no move of the plan itself."""
    known = {name for move in moves for name in move.nodes}
    off = (VoluntaryDisruptionOff(),)
    for move in found.moves:
        if known.isdisjoint(move.nodes):
            why = next((closed[name] for name in move.nodes if name in closed), ())
            if why or not closed:
                yield Move(planned=move, blocked=why or off)


def _stays(evaluated: EvaluatedCluster) -> dict[str, tuple[Fact, ...]]:
    return {
        verdict.subject.name: verdict.facts
        for verdict in sorted(evaluated.in_force(), key=lambda one: one.subject)
        if verdict.subject.kind == NODES.kind and verdict.reason in _STAYS
    }
