"""A forecast of a cluster that was looked at, and where it was made."""

from __future__ import annotations

from datetime import UTC, timedelta, tzinfo

import msgspec

from tenure.cli.cluster.evaluated import EvaluatedCluster
from tenure.core.decision import Concern
from tenure.core.forecast.candidates import Unsaid
from tenure.core.forecast.forecast import Horizon, forecast
from tenure.core.forecast.result import Forecast
from tenure.core.reasons import Reason
from tenure.model.api.names import DRIFTED_CONDITION, EMPTY_CONDITION
from tenure.model.api.resource import NODE_CLAIMS
from tenure.model.values.cron import parse_zone

#: What the verdicts of these deciders will make a claim say.
_SAYS = {
    (Concern.DRIFT, Reason.DRIFTED): DRIFTED_CONDITION,
    (Concern.EMPTINESS, Reason.NODE_EMPTY): EMPTY_CONDITION,
}


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """Where the forecast was made, and what it lacks."""

    where: str
    #: Who acts there, in words; empty where that is no question.
    leader: str = ""
    #: Which clock the instants are of, where it is not the reader's.
    clock: str = ""
    #: The beginning in other words: how long after the start.
    also_at: str = ""
    notes: tuple[str, ...] = ()
    #: Of the clocks that text and page show.
    zone: tzinfo = UTC


def zone_named(name: str) -> tzinfo:
    return parse_zone(name, "--time-zone")


def forecast_of(
    evaluated: EvaluatedCluster, span: timedelta, drains_for: timedelta | None
) -> Forecast:
    return forecast(
        evaluated.snapshot,
        evaluated.settings,
        evaluated.at,
        Horizon(span, drains_for),
        _unsaid(evaluated),
    )


def _unsaid(evaluated: EvaluatedCluster) -> Unsaid:
    """Claims that have drifted or are empty, and do not say so yet: no replica has written it."""
    found: dict[str, set[str]] = {}
    for verdict in evaluated.in_force():
        condition = _SAYS.get((verdict.concern, verdict.reason))
        if condition is not None and verdict.subject.kind == NODE_CLAIMS.kind:
            found.setdefault(condition, set()).add(verdict.subject.name)
    return {condition: frozenset(names) for condition, names in found.items()}
