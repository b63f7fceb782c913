"""What consolidation would save in words, and as JSON: each move, what it waits for, and why nodes stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tenure.cli.consolidation.outlook import ConsolidationOutlook, Move
from tenure.core.facts import Fact, counted, instants_of, sentence, some
from tenure.core.windows.facts import blocking_windows
from tenure.model.cloud.offering import MICRO_DOLLARS, format_price
from tenure.model.snapshot.consolidation import PlannedMove

#: Lines about nodes that stay.
SHOWN: Final = 10


def consolidation_lines(outlook: ConsolidationOutlook, shown: int | None = SHOWN) -> Iterator[str]:
    """``shown``: lines about nodes that stay; None: all of them."""
    if outlook.waits is not None:
        yield f"Consolidation: not now, because {outlook.waits}"
        return
    yield f"Consolidation: {_total(outlook)}"
    heading: object = None
    for place, move in enumerate(sorted(outlook.moves, key=_rank), 1):
        if (said := _heading(move)) != heading:
            heading = said
            yield f"  {_words(move)}"
        yield f"  {place:3}. {_told(move.planned)}"
    if outlook.empty:
        need = "needs" if len(outlook.empty) == 1 else "need"
        who = counted(len(outlook.empty), "empty node")
        yield f"  {who} {need} no move: {some(outlook.empty)}"
    yield from _staying(outlook.stays, shown)


def _total(outlook: ConsolidationOutlook) -> str:
    holding = [move for move in outlook.moves if not move.rejected]
    if not holding:
        verb = "stays" if outlook.candidates == 1 else "stay"
        which = f"; {counted(outlook.candidates, 'candidate')} {verb}" if outlook.candidates else ""
        return f"no move now{which}"
    cost = "costs" if outlook.candidates == 1 else "cost"
    price, after = format_price(outlook.price), format_price(outlook.price - outlook.saves)
    nodes = f"{counted(outlook.candidates, 'candidate')} {cost} {price}, then {after}"
    return f"{saving(holding)}; {nodes}"


def saving(moves: Sequence[Move]) -> str:
    """What the moves save together, and how many of them wait."""
    count, waiting = len(moves), sum(bool(move.blocked) for move in moves)
    said, wait = counted(count, "move"), "waits" if waiting == 1 else "wait"
    saves = format_price(sum(move.saves for move in moves))
    if waiting == count:
        return f"{said} that {wait} would save {saves}"
    some_wait = f", of which {waiting} {wait}," if waiting else ""
    return f"{said}{some_wait} {'saves' if count == 1 else 'save'} {saves}"


def _rank(move: Move) -> int:
    """What may be made comes first; the order within is that of the plan."""
    return 3 if move.rejected else 2 if move.blocked else 0 if move.begun else 1


def _heading(move: Move) -> object:
    """Moves with the same one are shown together: facts about windows name the node, too."""
    facts = move.rejected or move.blocked
    windows = tuple(name for fact in facts for name in blocking_windows(fact))
    said: object = (windows, tuple(instants_of(facts))) if windows else facts
    return _rank(move), said


def _words(move: Move) -> str:
    if move.rejected:
        return f"not made: {sentence(move.rejected)}"
    if move.blocked:
        return f"waiting: {sentence(move.blocked)}"
    return "being made:" if move.begun else "next:"


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


def _staying(stays: Mapping[str, tuple[Fact, ...]], shown: int | None) -> Iterator[str]:
    """By what keeps them, the most frequent first."""
    if not stays:
        return
    groups: dict[object, list[str]] = {}
    for name, why in stays.items():
        groups.setdefault(name if shown is None else tuple(map(type, why)), []).append(name)
    yield f"  {counted(len(stays), 'node')} {'stays' if len(stays) == 1 else 'stay'}:"
    found = sorted(groups.values(), key=lambda names: (-len(names), names))
    for names in found[:shown]:
        example = ", for example" if len({stays[name] for name in names}) > 1 else ""
        who = f"Node{'' if len(names) == 1 else 's'} {some(names)}{example}"
        yield f"    {who}: {sentence(stays[names[0]])}"
    if more := sum(map(len, found[len(found) if shown is None else shown :])):
        yield f"    … and {more} more; --verbose shows each, and --json has all of them"


def as_json(outlook: ConsolidationOutlook) -> dict[str, Any]:
    return {
        "at": outlook.at,
        "waits": str(outlook.waits) if outlook.waits is not None else None,
        "candidates": outlook.candidates,
        "dollarsPerHour": outlook.price / MICRO_DOLLARS,
        "savesPerHour": outlook.saves / MICRO_DOLLARS,
        "moves": [_move_json(move) for move in outlook.moves],
        "empty": outlook.empty,
        "stays": {name: sentence(why) for name, why in outlook.stays.items()},
    }


def _move_json(move: Move) -> dict[str, Any]:
    planned = move.planned
    return {
        "nodes": planned.nodes,
        "nodeClaims": planned.claims,
        "launches": [
            {
                "nodePool": one.pool,
                "instanceType": one.instance_type,
                "zone": one.zone,
                "capacityType": one.capacity_type,
                "dollarsPerHour": one.price / MICRO_DOLLARS,
            }
            for one in planned.launches
        ],
        "pods": planned.pods,
        "savesPerHour": planned.saves / MICRO_DOLLARS,
        "disruptionCost": planned.cost,
        "begun": move.begun,
        "blocked": sentence(move.blocked) or None,
        "rejected": sentence(move.rejected) or None,
    }
