"""Series about the levers that are set beside Karpenter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from tenure.core.beside.cover import BUDGET, PROTECTION, REPLACEMENT, WINDOW
from tenure.core.beside.facts.levers import LeverBlocks
from tenure.core.beside.kinds import LEVERS, LeverKind
from tenure.core.beside.mark import is_on, until_of
from tenure.core.decision import Verdict
from tenure.core.reasons import Reason
from tenure.model.api.meta import later
from tenure.model.api.node import Node
from tenure.model.snapshot.snapshot import Snapshot
from tenure.runtime.telemetry import metricnames as names
from tenure.runtime.telemetry.metricnames import Named

#: A lever goes within seconds of its end; one that is there for longer is left over.
GRACE: Final = timedelta(minutes=5)

_CONCERNS: Final = frozenset(kind.concern for kind in LEVERS)

Row = tuple[tuple[str, ...], float]


def lever_rows(
    snapshot: Snapshot, verdicts: Iterable[Verdict], now: datetime
) -> Iterator[tuple[Named, list[Row]]]:
    causes: Counter[tuple[str, str]] = Counter()
    for kind in LEVERS:
        known = (WINDOW, PROTECTION, BUDGET, REPLACEMENT)
        causes.update({(kind.short, cause): 0 for cause in known})
    for verdict in verdicts:
        if verdict.concern in _CONCERNS and verdict.reason is Reason.LEVER_ON:
            for fact in verdict.facts:
                if isinstance(fact, LeverBlocks):
                    causes.update((fact.kind.short, cause) for cause in fact.causes)
    yield names.LEVERS, [(key, number) for key, number in sorted(causes.items())]
    yield names.LEVERS_PAST_END, [((), _past_end(snapshot, now))]


def _past_end(snapshot: Snapshot, now: datetime) -> int:
    """Nodes, and not levers. On one that leaves a lever stays, and stops nothing."""
    return sum(
        any(_is_past(node, kind, now) for kind in LEVERS) and not _leaves(node, snapshot)
        for node in snapshot.nodes.values()
    )


def _leaves(node: Node, snapshot: Snapshot) -> bool:
    claim = snapshot.claim_of(node)
    return node.deleting or (claim is not None and claim.deleting)


def _is_past(node: Node, kind: LeverKind, now: datetime) -> bool:
    until = until_of(node, kind) if is_on(node, kind) else None
    return until is not None and later(until, GRACE) < now
