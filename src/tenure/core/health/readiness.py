"""How long a new node may take: the TTL of its claim, and whether it is spent.

The clock starts with the Node's creation once the claim is registered; until then with the
launch; until then with the claim. Flapping between ``False`` and ``Unknown`` does not restart
it. It is spent for ever once the node was Ready; the claim's condition ``ReadyOnce`` remembers
that. Other evidence counts as well, so that a claim taken over from Karpenter is not terminated by
a TTL merely because the condition is missing.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

import msgspec

from tenure.core.reasons import Reason
from tenure.core.reboot.history import rebooted_at
from tenure.errors import SpecError
from tenure.model.api.meta import BEGINNING, find_condition, later
from tenure.model.api.names import INITIALIZED
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.model.values.duration import NEVER, parse_duration

READY_ONCE: Final = "ReadyOnce"

#: How long a claim may be Ready without being initialized and is still counted on, where it does
#: not say.
INITIALIZES_WITHIN: Final = timedelta(minutes=10)
#: Its reason on a node that has been initialized once, and is not while it is rebooted.
SPENT: Final = "Initialized"
#: Written on claims that a user made without the field.
DEFAULT_TTL: Final = timedelta(minutes=15)


class Stage(StrEnum):
    """What a new node has not managed yet; Karpenter's words for its metrics."""

    LAUNCH = "launch_timeout"
    REGISTRATION = "registration_timeout"
    READINESS = "readiness_timeout"
    INITIALIZATION = "initialization_timeout"


#: What is said of a node that has not managed it in time.
TIMEOUTS: Final = {
    Stage.LAUNCH: Reason.LAUNCH_TIMEOUT,
    Stage.REGISTRATION: Reason.REGISTRATION_TIMEOUT,
    Stage.READINESS: Reason.READINESS_TIMEOUT,
    Stage.INITIALIZATION: Reason.INITIALIZATION_TIMEOUT,
}


class Boot(msgspec.Struct, frozen=True):
    """A node that has not come up yet, and until when it may take."""

    stage: Stage
    since: datetime
    ttl: str
    due_at: datetime


def boot_of(claim: NodeClaim, node: Node | None) -> Boot | None:
    """None once the node has been Ready, and initialized where that has a limit.

    While a node is rebooted its clocks stand still: they begin anew when it is back.
    """
    if claim.rebooting:
        return None
    if not was_ready(claim, node):
        stage, since = _start(claim, node)
        ttl = claim.spec.readiness_ttl or "15m"
        return Boot(stage, since, ttl, later(since, readiness_ttl(claim)))
    return _initialization(claim, node)


def readiness_ttl(claim: NodeClaim) -> timedelta:
    span = _span(claim.spec.readiness_ttl)
    return DEFAULT_TTL if span is None else span


def initialization_ttl(claim: NodeClaim) -> timedelta | None:
    return _span(claim.spec.initialization_ttl)


def was_ready(claim: NodeClaim, node: Node | None) -> bool:
    """Whether the TTL is spent, by whatever evidence there is."""
    if claim.ready_once or claim.initialized:
        return True
    if node is None or not claim.registered:
        return False
    return node.ready or node.labels.get(INITIALIZED) == "true"


def _start(claim: NodeClaim, node: Node | None) -> tuple[Stage, datetime]:
    if claim.registered and node is not None:
        return Stage.READINESS, max(node.created_at, rebooted_at(claim) or BEGINNING)
    launched = find_condition(claim.status.conditions, "Launched")
    if launched is not None and launched.status == "True" and launched.last_transition_time:
        return Stage.REGISTRATION, launched.last_transition_time
    return Stage.LAUNCH, claim.created_at


def _initialization(claim: NodeClaim, node: Node | None) -> Boot | None:
    """Ready, but not initialized: bounded only where the pool or claim says so."""
    span = initialization_ttl(claim)
    ready = claim.condition(READY_ONCE)
    if span is None or claim.initialized or node is None:
        return None
    if ready is None or ready.last_transition_time is None or ready.reason == SPENT:
        return None
    since = max(ready.last_transition_time, rebooted_at(claim) or BEGINNING)
    ttl = claim.spec.initialization_ttl or ""
    return Boot(Stage.INITIALIZATION, since, ttl, later(since, span))


def _span(value: str | None) -> timedelta | None:
    """The duration; None for none, for ``Never`` and for what cannot be read."""
    if value is None or value == NEVER:
        return None
    try:
        return parse_duration(value).timedelta
    except (SpecError, OverflowError):
        return None


def initialized_until(claim: NodeClaim) -> datetime | None:
    """Of a claim that is Ready and not initialized: by when it has to be, to be counted on.

    Of one that cannot be read, from its creation on: its conditions and TTLs are unknown.
    """
    if is_unreadable(claim):
        return later(claim.created_at, DEFAULT_TTL + INITIALIZES_WITHIN)
    once = claim.condition(READY_ONCE)
    if claim.initialized or claim.rebooting or once is None or once.status != "True":
        return None
    if once.last_transition_time is None:
        return None
    return later(once.last_transition_time, initialization_ttl(claim) or INITIALIZES_WITHIN)
