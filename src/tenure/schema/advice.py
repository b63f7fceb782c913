"""What is legal in an object and probably not meant: worth a word, never a refusal.

First what does nothing yet (``docs/limits.md`` says more), then what contradicts itself: labels
that no node can have, times that never come. Ask for objects without problems only; what cannot
be read cannot be advised about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from tenure.model.cron import Cron
from tenure.model.meta import ApiObject
from tenure.model.nodeclaim import NodeClaim, NodeClaimTemplateSpec
from tenure.model.nodepool import DEFAULT_BUDGETS, NodePool
from tenure.model.quantity import parse_resources
from tenure.model.requirements import Requirements
from tenure.model.window import MaintenanceWindow

#: Persisted by the schema whether anybody wrote it or not, so it is no wish.
_READINESS_DEFAULT: Final = "15m"


class Idle(msgspec.Struct, frozen=True):
    """A field that is stored, and that nothing acts on yet."""

    at: str
    why: str
    #: The entry of docs/limits.md that says so; a test holds the two together.
    limit: str
    is_set: Callable[[NodePool], bool]

    def __str__(self) -> str:
        return f"{self.at}: does nothing yet, {self.why}"


def _template(pool: NodePool) -> NodeClaimTemplateSpec:
    return pool.spec.template.spec


IDLE_IN_POOLS: Final = (
    Idle(
        "spec.template.spec.readinessTTL",
        "new nodes are waited for without end",
        "No time-outs",
        lambda pool: _template(pool).readiness_ttl not in (None, _READINESS_DEFAULT),
    ),
    Idle(
        "spec.template.spec.initializationTTL",
        "new nodes are waited for without end",
        "No time-outs",
        lambda pool: _template(pool).initialization_ttl not in (None, "Never"),
    ),
    Idle(
        "spec.template.spec.terminationGracePeriod",
        "a drain takes as long as its pods and their budgets make it",
        "No deadline for a drain",
        lambda pool: _template(pool).termination_grace_period is not None,
    ),
    Idle(
        "spec.repair",
        "a sick node is left as it is",
        "No repair",
        lambda pool: pool.spec.repair is not None,
    ),
    Idle(
        "spec.disruption.budgets",
        "no node is taken away by choice",
        "No voluntary disruption",
        lambda pool: pool.spec.disruption.budgets != DEFAULT_BUDGETS,
    ),
    Idle(
        "spec.replicas",
        "such a pool launches nothing",
        "Static capacity",
        lambda pool: pool.spec.replicas is not None,
    ),
)
IDLE_WINDOW: Final = "spec: does nothing yet, no node is taken away by choice"
IDLE_WINDOW_LIMIT: Final = "Maintenance windows"


def advice_for(obj: ApiObject, now: datetime) -> tuple[str, ...]:
    """A sentence for each, with the field in front."""
    match obj:
        case NodePool():
            return tuple(_for_pool(obj))
        case NodeClaim():
            return tuple(_for_labels(obj.spec, "spec"))
        case MaintenanceWindow():
            return (IDLE_WINDOW, *_for_window(obj, now))
        case _:
            return ()


def _for_pool(pool: NodePool) -> Iterator[str]:
    yield from (str(idle) for idle in IDLE_IN_POOLS if idle.is_set(pool))
    yield from _for_labels(_template(pool), "spec.template.spec")
    for name, amount in parse_resources(pool.spec.limits).items():
        if amount < 0:
            yield f"spec.limits[{name}]: less than nothing, so the pool launches nothing"


def _for_labels(spec: NodeClaimTemplateSpec, at: str) -> Iterator[str]:
    for index, written in enumerate(spec.requirements):
        if written.operator in ("Exists", "DoesNotExist") and written.values:
            where = f"{at}.requirements[{index}].values"
            yield f"{where}: not looked at, because the operator is {written.operator}"
    for key, wanted in sorted(Requirements.from_wire(spec.requirements).items()):
        if wanted.impossible:
            yield f"{at}.requirements: those on {key} contradict each other, so no node fits"


def _for_window(window: MaintenanceWindow, now: datetime) -> Iterator[str]:
    for index, schedule in enumerate(window.spec.schedules):
        zone = ZoneInfo(schedule.time_zone or "UTC")
        if Cron.parse(schedule.cron).next_after(now, zone) is None:
            yield f"spec.schedules[{index}].cron: there is no such day, so it never begins"
    for index, dates in enumerate(window.spec.dates):
        if datetime.fromisoformat(dates.until.upper()) <= now:
            yield f"spec.dates[{index}].until: is past, so these dates never come again"
