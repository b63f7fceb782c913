"""How long a new node may take: the TTL of its claim, and whether it still applies.

The clock starts with the Node's creation once the claim is registered; until then with the
launch; until then with the claim. Flapping between ``False`` and ``Unknown`` does not restart
it. It no longer applies once the node was Ready; the claim's condition ``ReadyOnce`` records
that. Other evidence counts as well, so that a claim taken over from Karpenter is not terminated by
a TTL only because the condition is missing.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

import msgspec

from tenure.core.marks.ownership import READY_ONCE
from tenure.core.marks.reboot import rebooted_at
from tenure.core.reasons import Reason
from tenure.errors import SpecError
from tenure.model.api.meta import BEGINNING, find_condition, later
from tenure.model.api.names import INITIALIZED
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.model.values.duration import NEVER, parse_duration

#: How long a claim without ``initializationTTL`` may be Ready and not initialized, and still count
#: as a node in flight.
INITIALIZES_WITHIN: Final = timedelta(minutes=10)
#: The reason of ``ReadyOnce`` on a node that was initialized once, and is not while it is rebooted.
SPENT: Final = "Initialized"
#: For claims that a user created without the field.
DEFAULT_TTL: Final = timedelta(minutes=15)


class Stage(StrEnum):
    """The stage that a new node has not completed yet; the values of Karpenter's metrics."""

    LAUNCH = "launch_timeout"
    REGISTRATION = "registration_timeout"
    READINESS = "readiness_timeout"
    INITIALIZATION = "initialization_timeout"


#: The reason for a node that has not completed the stage in time.
TIMEOUTS: Final = {
    Stage.LAUNCH: Reason.LAUNCH_TIMEOUT,
    Stage.REGISTRATION: Reason.REGISTRATION_TIMEOUT,
    Stage.READINESS: Reason.READINESS_TIMEOUT,
    Stage.INITIALIZATION: Reason.INITIALIZATION_TIMEOUT,
}


class Boot(msgspec.Struct, frozen=True):
    """A node that is still booting, and by when it must have completed the stage."""

    stage: Stage
    since: datetime
    ttl: str
    due_at: datetime


def boot_of(claim: NodeClaim, node: Node | None) -> Boot | None:
    """None once the node has been Ready, and initialized where that has a limit.

    During a reboot no TTL applies; the TTLs start again after it.
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
    """Whether the node has been Ready, by any evidence: then the TTL no longer applies."""
    if claim.ready_once or claim.initialized:
        return True
    if node is None or not claim.registered:
        return False
    return node.ready or node.labels.get(INITIALIZED) == "true"


def has_timed_out(claim: NodeClaim) -> bool:
    """Whether it was deleted when its TTL was over, and its Node had never been Ready.

    Its Node may be gone by now, so a TTL that begins with the Node counts from the launch here.
    """
    deleted = claim.metadata.deletion_timestamp
    if deleted is None or claim.rebooting or was_ready(claim, None):
        return False
    _, since = _start(claim, None)
    return later(since, readiness_ttl(claim)) <= deleted


def _start(claim: NodeClaim, node: Node | None) -> tuple[Stage, datetime]:
    if claim.registered and node is not None:
        return Stage.READINESS, max(node.created_at, rebooted_at(claim) or BEGINNING)
    launched = find_condition(claim.status.conditions, "Launched")
    if launched is not None and launched.status == "True" and launched.last_transition_time:
        return Stage.REGISTRATION, launched.last_transition_time
    return Stage.LAUNCH, claim.created_at


def _initialization(claim: NodeClaim, node: Node | None) -> Boot | None:
    """Ready, but not initialized: limited only if the claim has an ``initializationTTL``."""
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
    """The duration; None for none, for ``Never`` and for an invalid value."""
    if value is None or value == NEVER:
        return None
    try:
        return parse_duration(value).timedelta
    except (SpecError, OverflowError):
        return None


def initialized_until(claim: NodeClaim) -> datetime | None:
    """Until when a claim that is Ready and not initialized counts as a node in flight.

    For an unreadable claim this starts at its creation: its conditions and TTLs are unknown.
    """
    if is_unreadable(claim):
        return later(claim.created_at, DEFAULT_TTL + INITIALIZES_WITHIN)
    once = claim.condition(READY_ONCE)
    if claim.initialized or claim.rebooting or once is None or once.status != "True":
        return None
    if once.last_transition_time is None:
        return None
    return later(once.last_transition_time, initialization_ttl(claim) or INITIALIZES_WITHIN)
