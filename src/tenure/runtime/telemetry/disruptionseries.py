"""Gauges over disruption: candidates, what they wait for, and maintenance windows.

They show what the verdicts in force say already: no pod, and no node beyond its verdict, is looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from tenure.core.decision import Concern, Verdict
from tenure.core.disrupt.facts.planning import TURN, CandidatesWait, NodesWatched
from tenure.core.facts import Fact
from tenure.core.gates.facts import WindowClosesTooSoon
from tenure.core.gates.operations import Gate
from tenure.core.gates.reasons import Disruption
from tenure.core.windows.facts import blocking_windows
from tenure.core.windows.parsed import PARSED
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS
from tenure.model.snapshot.snapshot import Snapshot
from tenure.runtime.telemetry import metricnames as names
from tenure.runtime.telemetry.metricnames import Named

Row = tuple[tuple[str, ...], float]

#: Gates of a verdict that names a maintenance window.
_OF_WINDOWS: Final = frozenset({Gate.WINDOW, Gate.CLOSING})


def disruption_rows(
    snapshot: Snapshot, verdicts: Iterable[Verdict], now: datetime
) -> Iterator[tuple[Named, list[Row]]]:
    disruption = [one for one in verdicts if one.gate or one.concern is Concern.DISRUPTION]
    yield from _candidates(disruption)
    yield from _windows(snapshot, disruption, now)


def _candidates(verdicts: Iterable[Verdict]) -> Iterator[tuple[Named, list[Row]]]:
    due = Counter({reason.lower(): 0 for reason in Disruption})
    waiting: list[Row] = []
    for verdict in verdicts:
        if verdict.subject.kind != NODE_POOLS.kind:
            continue
        for fact in verdict.facts:
            if isinstance(fact, NodesWatched):
                due[fact.reason.lower()] += fact.due
            elif isinstance(fact, CandidatesWait):
                pool = verdict.subject.name
                waiting += (((pool, gate or TURN), count) for gate, count in fact.gates)
    yield names.ELIGIBLE_NODES, [((reason,), count) for reason, count in due.items()]
    yield names.CANDIDATES_WAITING, waiting


def _windows(
    snapshot: Snapshot, verdicts: Iterable[Verdict], now: datetime
) -> Iterator[tuple[Named, list[Row]]]:
    blocked = Counter(
        window
        for verdict in verdicts
        if verdict.subject.kind == NODE_CLAIMS.kind and verdict.gate in _OF_WINDOWS
        for window in _named(verdict.facts)
    )
    valid: list[Row] = []
    active: list[Row] = []
    blocking: list[Row] = []
    change: list[Row] = []
    for name, window in sorted(snapshot.windows.items()):
        parsed = snapshot.derived.of(PARSED, window)
        phase = parsed.phase(now)
        kind = "Block" if parsed.blocks else "Allow"
        valid.append(((name,), float(not parsed.problem)))
        active.append(((name, kind), float(phase.on)))
        blocking.append(((name,), blocked[name]))
        if phase.changes_at is not None and phase.exact:
            change.append(((name,), phase.changes_at.timestamp()))
    yield names.WINDOW_VALID, valid
    yield names.WINDOW_ACTIVE, active
    yield names.WINDOW_BLOCKING, blocking
    yield names.WINDOW_CHANGE, change


def _named(facts: Iterable[Fact]) -> set[str]:
    """Not by ``told``, which looks into each fact: there may be thousands of verdicts."""
    why = (one.why if isinstance(one, WindowClosesTooSoon) else one for one in facts)
    return {window for fact in why for window in blocking_windows(fact)}
