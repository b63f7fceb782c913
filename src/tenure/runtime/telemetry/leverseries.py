"""Series about the levers that are set beside Karpenter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from tenure.core.beside.cover import PROTECTION, REPLACEMENT, WINDOW
from tenure.core.beside.facts import LeverBlocks
from tenure.core.beside.mark import is_on, until_of
from tenure.core.decision import Concern, Verdict
from tenure.core.reasons import Reason
from tenure.model.api.meta import later
from tenure.model.snapshot.snapshot import Snapshot
from tenure.runtime.telemetry import metricnames as names
from tenure.runtime.telemetry.metricnames import Named

#: A lever goes within seconds of its end; one that is there for longer is left over.
GRACE: Final = timedelta(minutes=5)

Row = tuple[tuple[str, ...], float]


def lever_rows(
    snapshot: Snapshot, verdicts: Iterable[Verdict], now: datetime
) -> Iterator[tuple[Named, list[Row]]]:
    causes: Counter[str] = Counter({WINDOW: 0, PROTECTION: 0, REPLACEMENT: 0})
    for verdict in verdicts:
        if verdict.concern is Concern.LEVER and verdict.reason is Reason.LEVER_ON:
            for fact in verdict.facts:
                if isinstance(fact, LeverBlocks):
                    causes.update(fact.causes)
    yield names.LEVERS, [((cause,), number) for cause, number in sorted(causes.items())]
    yield names.LEVERS_PAST_END, [((), _past_end(snapshot, now))]


def _past_end(snapshot: Snapshot, now: datetime) -> int:
    ends = (until_of(node) for node in snapshot.nodes.values() if is_on(node))
    return sum(until is not None and later(until, GRACE) < now for until in ends)
