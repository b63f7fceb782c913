"""Can every node of a pool be replaced while its maintenance windows let that happen?

Counted is the best case: the longest opening of the next weeks, as many nodes at once as the budgets
of the pool allow, and for each replacement the time that claims of the pool took from creation to
Initialized. Drains take time on top. So what is found here does not fit for certain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from statistics import median_low
from typing import Final

import msgspec

from tenure.cli.lint.remarks import Remark
from tenure.core.facts import some
from tenure.core.gates.budgets import limit
from tenure.core.gates.fleet import fleet_of
from tenure.core.gates.reasons import TRAITS, Disruption
from tenure.core.gates.traits import Traits
from tenure.core.marks.ownership import is_our_pool
from tenure.core.recurrence import Phase
from tenure.core.windows.windows import Windows, windows_naming
from tenure.model.api.meta import FOR_EVER, later
from tenure.model.api.node import Node
from tenure.model.api.nodepool import NodePool
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.values.duration import Duration, compact
from tenure.schema.findings import Code, Finding

#: How far ahead openings are looked for, and over how many changes of windows.
HORIZON: Final = timedelta(days=35)
_CHANGES_MAX: Final = 1000
#: What replaces every node of a pool, sooner or later.
_ROTATING: Final = (TRAITS[Disruption.DRIFTED], TRAITS[Disruption.EXPIRED])


class _Opening(msgspec.Struct, frozen=True):
    start: datetime
    lasts: timedelta


def rotation_remarks(snapshot: Snapshot, now: datetime) -> Iterator[Remark]:
    """One for each pool whose nodes do not fit; the actions of which that is so together."""
    for name, pool in sorted(snapshot.pools.items()):
        if not is_our_pool(pool, snapshot) or (takes := _replacement_time(pool, snapshot)) is None:
            continue
        said: dict[str, list[str]] = {}
        for traits in _ROTATING:
            for message in _too_short(pool, traits, takes, snapshot, now):
                said.setdefault(message, []).extend(sorted(traits.window_actions))
        for message, actions in said.items():
            told = f"{' and '.join(actions)}: {message}"
            finding = Finding(Code.WINDOW_TOO_SHORT, "spec.disruption.budgets", told)
            yield Remark(about=f"NodePool/{name}", finding=finding)


def _too_short(
    pool: NodePool, traits: Traits, takes: timedelta, snapshot: Snapshot, now: datetime
) -> Iterator[str]:
    windows = windows_naming(traits.window_actions, snapshot)
    fleet = fleet_of(pool.name, snapshot)
    for concerned, nodes in _by_windows(pool, windows, snapshot):
        opening = _longest_opening(concerned, now)
        if opening is None:
            continue
        at_once = limit(pool, traits, fleet, opening.start)
        if not at_once or (opening.lasts // takes) * at_once >= len(nodes):
            continue
        rounds = -(-len(nodes) // at_once)
        named = some([one.name for one in concerned])
        yield (
            f"{len(nodes)} Nodes, {at_once} at once and {_shown(takes)} for each replacement, need "
            f"{_shown(rounds * takes)}; maintenance windows leave at most {_shown(opening.lasts)} at a "
            f"time ({named})"
        )


def _by_windows(
    pool: NodePool, windows: Windows, snapshot: Snapshot
) -> Iterator[tuple[Windows, list[Node]]]:
    """Nodes of the pool that the same windows select; those that none selects are left out."""
    groups: dict[tuple[int, ...], list[Node]] = {}
    for _, node in sorted(snapshot.nodes_of_pool(pool.name).items()):
        covering = (index for index, one in enumerate(windows) if one.covers(node.labels))
        groups.setdefault(tuple(covering), []).append(node)
    for selected, nodes in groups.items():
        if selected:
            yield tuple(windows[index] for index in selected), nodes


def _longest_opening(windows: Windows, now: datetime) -> _Opening | None:
    """In which all of them let the action start; None where one does not end, or none begins.

    What never opens is another finding, or meant. What is open now has begun at a time that is not
    known: it does not count.
    """
    found: list[_Opening] = []
    opened, at, end = None, now, later(now, HORIZON)
    phases = [window.phase(now) for window in windows]
    for _ in range(_CHANGES_MAX):
        closed = is_closed(windows, phases)
        if closed and opened is not None and opened > now:
            found.append(_Opening(opened, at - opened))
        opened = None if closed else opened or at
        at = min((one.changes_at or FOR_EVER for one in phases), default=FOR_EVER)
        if at > end:
            if opened is not None:
                return None
            break
        # A phase holds until its change: with fifty windows, only one or two are asked again.
        phases = [
            phase if (phase.changes_at or FOR_EVER) > at else window.phase(at)
            for window, phase in zip(windows, phases, strict=True)
        ]
    return max(found, key=lambda one: one.lasts, default=None)


def is_closed(windows: Windows, phases: Sequence[Phase]) -> bool:
    """As ``closed_by`` says it of one Node."""
    known = list(zip(windows, phases, strict=True))
    if any(window.blocks and phase.on for window, phase in known):
        return True
    allowing = [phase.on for window, phase in known if not window.blocks]
    return bool(allowing) and not any(allowing)


def _replacement_time(pool: NodePool, snapshot: Snapshot) -> timedelta | None:
    """The usual time from the creation of a claim of the pool until it is Initialized."""
    taken: list[timedelta] = []
    for claim in snapshot.claims_of_pool(pool.name).values():
        said, created = claim.condition("Initialized"), claim.metadata.creation_timestamp
        if said is None or said.status != "True" or created is None:
            continue
        if said.last_transition_time is not None and said.last_transition_time > created:
            taken.append(said.last_transition_time - created)
    return median_low(sorted(taken)) if taken else None


def _shown(span: timedelta) -> str:
    return compact(Duration.of(timedelta(seconds=round(span.total_seconds()))))
