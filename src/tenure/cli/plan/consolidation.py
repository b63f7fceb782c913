"""The plan of consolidation in words, and as JSON: each move, and what all of them save."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tenure.core.facts import counted, sentence, some
from tenure.model.cloud.offering import MICRO_DOLLARS, format_price
from tenure.model.snapshot.consolidation import ConsolidationPlan, PlannedMove


def consolidation_lines(plan: ConsolidationPlan) -> Iterator[str]:
    if plan.waits is not None:
        yield f"Consolidation: not now, because {plan.waits}"
        return
    yield from _moves(plan)
    if plan.empty:
        nodes = counted(len(plan.empty), "empty node")
        yield f"    without a move, for the reason Empty: {nodes} ({some(plan.empty)})"


def _moves(plan: ConsolidationPlan) -> Iterator[str]:
    nodes = counted(plan.candidates, "node")
    if not plan.moves:
        yield f"Consolidation: no move; {nodes} could go"
        return
    before, after = format_price(plan.price), format_price(plan.price - plan.saves)
    moves = counted(len(plan.moves), "move")
    saves = format_price(plan.saves)
    yield f"Consolidation: {moves} save {saves}; {nodes} that could go cost {before}, then {after}"
    for place, move in enumerate(plan.moves, 1):
        yield f"  {place:3}. {_told(move)}"


def _told(move: PlannedMove) -> str:
    gone = ", ".join(move.nodes)
    what = f"replace {gone} by {_launches(move)}" if move.launches else f"delete {gone}"
    pods, saves = counted(move.pods, "pod"), format_price(move.saves)
    return f"{what}: {pods} rescheduled, saves {saves}, disruption cost {move.cost:.1f}"


def _launches(move: PlannedMove) -> str:
    kinds = Counter(
        f"{one.instance_type} ({one.capacity_type}, {one.zone}, NodePool {one.pool})"
        for one in move.launches
    )
    return ", ".join(f"{count} × {kind}" if count > 1 else kind for kind, count in kinds.items())


def as_json(plan: ConsolidationPlan) -> dict[str, Any]:
    return {
        "at": plan.at,
        "waits": str(plan.waits) if plan.waits is not None else None,
        "candidates": plan.candidates,
        "empty": plan.empty,
        "dollarsPerHour": plan.price / MICRO_DOLLARS,
        "savesPerHour": plan.saves / MICRO_DOLLARS,
        "moves": [
            {
                "nodes": move.nodes,
                "nodeClaims": move.claims,
                "launches": [
                    {
                        "nodePool": one.pool,
                        "instanceType": one.instance_type,
                        "zone": one.zone,
                        "capacityType": one.capacity_type,
                        "dollarsPerHour": one.price / MICRO_DOLLARS,
                    }
                    for one in move.launches
                ],
                "pods": move.pods,
                "savesPerHour": move.saves / MICRO_DOLLARS,
                "disruptionCost": move.cost,
            }
            for move in plan.moves
        ],
        "stays": {name: sentence(why) for name, why in plan.why.items()},
    }
