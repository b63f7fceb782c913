"""What keeps a node: all gates that block it, and of these the one that lasts longest.

The order of the gates says which is asked first; a user wants to know what ends last. So a verdict tells of
the gate that ends last, of equals the first, and lists the objects of all of them in the same order:

1. what only a user ends: a window without an end, a budget of 0, a PDB that never allows an eviction;
2. what ends at a known instant, the latest first;
3. what ends with others, at no known instant: a budget that is used up, a PDB that allows no more for now.

The forecast goes by the same order. Where windows are closed when the others end, the next chance is theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

import msgspec

from tenure.core.decision import Blocker, Subject
from tenure.core.facts import Fact, joined, told
from tenure.core.gates.facts import (
    RepairSwitchedOff,
    RepairVetoed,
    VelocityUse,
    VoluntaryDisruptionOff,
)
from tenure.core.gates.gatefacts import Blocked, GateFacts
from tenure.core.gates.gates import all_blocked, allowance_of, in_window
from tenure.core.gates.operations import ASKED, Gate, Operation
from tenure.core.terminate.facts.pods import PdbAllowsNoMore
from tenure.core.windows.facts import NextChance, blocking_windows
from tenure.core.writes import subject_of
from tenure.model.api.meta import FOR_EVER
from tenure.model.api.nodepool import NodePool
from tenure.model.api.resource import MAINTENANCE_WINDOWS, NODE_POOL_POLICIES, NODE_POOLS
from tenure.model.settings import Settings
from tenure.model.snapshot.governed import known_part, ruling_of

#: What a verdict is about that no object decides: a flag of Tenure's.
SETTING: Final = "Setting"
_FLAGS: Final[dict[type[Fact], str]] = {
    RepairSwitchedOff: "--node-repair",
    VoluntaryDisruptionOff: "--voluntary-disruption",
}
#: The causes of these are not asked for by a user, and end with the nodes that share them.
_WITH_OTHERS: Final = frozenset({Gate.OUTAGE, Gate.BREAKER, Gate.LIMITS})
#: Schedules of budgets that are followed, one change after the other.
_STEPS_MAX: Final = 32
_BEFORE: Final = datetime.min.replace(tzinfo=UTC)


class Keeping(msgspec.Struct, frozen=True):
    """What keeps a node."""

    #: What ends last.
    governing: Blocked
    #: Objects of all gates that block, what ends last first.
    blockers: tuple[Blocker, ...]


class _Ending(msgspec.Struct, frozen=True):
    blocked: Blocked
    #: ``FOR_EVER``: only a user ends it. None: it ends with others, and when is not known.
    at: datetime | None
    objects: tuple[Blocker, ...]


def keeping(
    operation: Operation,
    facts: GateFacts,
    settings: Settings,
    now: datetime,
    *,
    only: Iterable[Gate] = tuple(Gate),
) -> Keeping | None:
    """None: no gate blocks it, of those that the operation asks and that are in ``only``."""
    asked = ASKED[operation].intersection(only)
    found = all_blocked(operation, facts, settings, now, only=asked)
    if not found:
        return None
    endings = sorted((_ending(one, facts) for one in found), key=_last, reverse=True)
    objects = (one for ending in endings for one in ending.objects)
    governing = endings[0].blocked
    if Gate.WINDOW in asked:
        governing = in_window(governing, facts)
    return Keeping(governing, tuple(sorted(objects, key=_object_last, reverse=True)))


def _last(one: _Ending) -> datetime:
    return _BEFORE if one.at is None else one.at


def _object_last(one: Blocker) -> datetime:
    return FOR_EVER if one.lasting else one.until or _BEFORE


def _ending(blocked: Blocked, facts: GateFacts) -> _Ending:
    if blocked.gate is Gate.PODS:
        objects = tuple(_lasting(one) for one in blocked.blockers)
        last = max(map(_object_last, objects))
        return _Ending(blocked, None if last == _BEFORE else last, objects)
    at = _ends_at(blocked, facts)
    return _Ending(blocked, at, tuple(_objects(blocked, facts, at)))


def _lasting(one: Blocker) -> Blocker:
    ends = one.until is not None or isinstance(one.fact, PdbAllowsNoMore)
    return msgspec.structs.replace(one, lasting=not ends)


def _ends_at(blocked: Blocked, facts: GateFacts) -> datetime | None:
    if blocked.gate in _WITH_OTHERS:
        return None
    if blocked.gate is Gate.BUDGET:
        return _budget_ends_at(blocked, facts)
    return blocked.until or FOR_EVER


def _budget_ends_at(blocked: Blocked, facts: GateFacts) -> datetime | None:
    """One that nothing but a schedule or a user opens ends when its schedules allow a node."""
    why = blocked.facts[0]
    if isinstance(why, VelocityUse) and why.next_at is not None:
        return why.next_at
    if not blocked.closed:
        return None
    at = blocked.until
    for _ in range(_STEPS_MAX):
        if at is None:
            return FOR_EVER
        found = allowance_of(facts, at)
        if found is None or not found.closed:
            break
        at = found.changes_at
    return at or FOR_EVER


# -- objects -----------------------------------------------------------------------------------


def _objects(blocked: Blocked, facts: GateFacts, at: datetime | None) -> Iterator[Blocker]:
    lasting, until = at == FOR_EVER, None if at == FOR_EVER else at
    fact = joined(tuple(one for one in blocked.facts if not isinstance(one, NextChance)))
    for subject in _subjects(blocked, facts):
        yield Blocker(subject=subject, fact=fact, until=until, lasting=lasting)


def _subjects(blocked: Blocked, facts: GateFacts) -> Iterator[Subject]:
    first = blocked.facts[0]
    match blocked.gate:
        case Gate.WINDOW | Gate.CLOSING:
            yield from (Subject(MAINTENANCE_WINDOWS.kind, name) for name in _windows(blocked))
        case Gate.OFF if type(first) in _FLAGS:
            yield Subject(SETTING, _FLAGS[type(first)])
        case Gate.VETO if isinstance(first, RepairVetoed):
            yield Subject(first.kind, first.name)
        case Gate.VETO:
            yield subject_of(facts.claim)
        case _ if facts.pool is not None:
            yield Subject.of(NODE_POOLS.kind, facts.pool)
            for name in _policies(blocked.gate, facts.pool):
                yield Subject(NODE_POOL_POLICIES.kind, name)
        case _:
            return


def _policies(gate: Gate, pool: NodePool) -> tuple[str, ...]:
    """Where the budgets, or the repair block, that block come from."""
    ruling = ruling_of(known_part(pool))
    if ruling is None:
        return ()
    said = {Gate.BUDGET: ruling.budgets, Gate.RULES: ruling.repair, Gate.BREAKER: ruling.repair}
    return ruling.policies if said.get(gate) is not None else ()


def _windows(blocked: Blocked) -> Iterator[str]:
    """That forbid it now, and those that the next chance waits for."""
    names: dict[str, None] = {}
    for one in told(blocked.facts):
        names.update(dict.fromkeys(blocking_windows(one)))
        if isinstance(one, NextChance):
            names.update(dict.fromkeys(one.windows))
    yield from filter(None, names)
