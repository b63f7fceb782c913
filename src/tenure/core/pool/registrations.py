"""Whether a pool's new nodes register and become Ready: its condition ``NodeRegistrationHealthy``.

False when two of the last four timed out, at whatever stage; True again when fewer have. The last
four are known only to the running process: after a restart, a pool that is False counts as one whose
last two nodes timed out.

Nodes of an older generation of pool or node class do not count for the new one: then it is Unknown
until the next node registers or times out. Nothing depends on it; it is for users.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

import msgspec

from tenure.core.conditions import Wanted, awaiting
from tenure.model.api.meta import BEGINNING, ApiObject, Condition
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.snapshot.observations import Arrival

HEALTHY: Final = "NodeRegistrationHealthy"

#: How many of the last new nodes count.
REMEMBERED: Final = 4
#: From this many failures among them on the condition is False.
TOO_MANY: Final = 2

_UNKNOWN_FAILURE: Final = Arrival(claim="", failure="unknown")


#: The generation of a pool, and that of its node class as the pool last saw it.
Generations = tuple[int, int | None]


class Registrations(msgspec.Struct, frozen=True):
    """What is known of a pool's new nodes."""

    #: When one of the existing claims last registered.
    last_at: datetime | None = None
    arrivals: tuple[Arrival, ...] = ()


def generations_of(pool: NodePool, node_class: ApiObject | None = None) -> Generations:
    """``node_class``: its present state, if known."""
    seen = pool.status.node_class_observed_generation
    return pool.metadata.generation, node_class.metadata.generation if node_class else seen


def registrations_of(
    claims: Iterable[NodeClaim], arrivals: Sequence[Arrival], generations: Generations
) -> Registrations:
    found = [c.condition("Registered") for c in claims if c.registered]
    at = [one.last_transition_time or BEGINNING for one in found if one is not None]
    current = tuple(one for one in arrivals if one.generations == generations)
    return Registrations(max(at, default=None), current)


def registration_health(
    pool: NodePool, known: Registrations, generations: Generations
) -> Wanted | None:
    """The wanted condition; None: leave it as it is."""
    said = pool.condition(HEALTHY)
    unhealthy = said is not None and said.status == "False"
    if said is not None and unhealthy and _is_outdated(said, pool, generations):
        return awaiting(HEALTHY)
    before = (_UNKNOWN_FAILURE,) * TOO_MANY if unhealthy else ()
    last = (*before, *known.arrivals)[-REMEMBERED:]
    failed = [one for one in last if one.failure]
    if len(failed) >= TOO_MANY:
        named = [one for one in failed if one.claim]
        return _given_up(named) if named else None
    if before or _has_come_up(said, known):
        return Wanted(HEALTHY, "True", HEALTHY)
    return awaiting(HEALTHY) if said is None else None


def _is_outdated(said: Condition, pool: NodePool, generations: Generations) -> bool:
    seen = pool.status.node_class_observed_generation
    return (said.observed_generation, seen) != generations


def _has_come_up(said: Condition | None, known: Registrations) -> bool:
    """True stays True; Unknown becomes True once a node has registered since."""
    if any(not one.failure for one in known.arrivals):
        return True
    if known.last_at is None:
        return False
    since = said.last_transition_time if said is not None and said.status == "Unknown" else None
    return since is None or known.last_at >= since


def _given_up(failed: Sequence[Arrival]) -> Wanted:
    which = ", ".join(f"{one.claim} ({one.failure})" for one in failed)
    return Wanted(
        HEALTHY,
        "False",
        "RegistrationFailed",
        f"of the last {REMEMBERED} new nodes these failed: {which}",
    )
