"""How long a new node may take: the TTL of its claim, and whether it still applies.

The clock starts with the Node's creation once the claim is registered; until then with the
launch; until then with the claim. Flapping between ``False`` and ``Unknown`` does not restart
it. It no longer applies once the node was Ready; the claim remembers that (``core.marks.memory``). Other
evidence counts as well, so that a claim of Karpenter's is not terminated by a TTL only because
it does not remember.

Beside Karpenter the default of 15m is Karpenter's to act on: there only a TTL that a user has written
terminates a node, and until 15m a node without one counts as booting.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

import msgspec

from tenure.core.marks.memory import ready_once
from tenure.core.marks.reboot import rebooted_at
from tenure.core.marks.timeout import (
    DEFAULT_TTL,
    launched_at,
    readiness_ttl,
    span_of,
    states_readiness,
)
from tenure.core.reasons import Reason
from tenure.model.api.meta import BEGINNING, later
from tenure.model.api.names import INITIALIZED
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.snapshot.unreadable import is_unreadable

#: How long a claim without ``initializationTTL`` may be Ready and not initialized, and still count
#: as a node in flight.
INITIALIZES_WITHIN: Final = timedelta(minutes=10)
#: The reason of ``ReadyOnce`` on a node that was initialized once, and is not while it is rebooted.
SPENT: Final = "Initialized"


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
    #: Whether it is terminated then. Beside Karpenter the default TTL is not ours to act on.
    acts: bool = True


def boot_of(claim: NodeClaim, node: Node | None, *, stated_only: bool = False) -> Boot | None:
    """None once the node has been Ready, and initialized where that has a limit.

    During a reboot no TTL applies; the TTLs start again after it. ``stated_only``: the default TTL does
    not act.
    """
    if claim.rebooting:
        return None
    if not was_ready(claim, node):
        stage, since = _start(claim, node)
        ttl = claim.spec.readiness_ttl or "15m"
        acts = not stated_only or states_readiness(claim)
        return Boot(stage, since, ttl, later(since, readiness_ttl(claim)), acts)
    return _initialization(claim, node)


def initialization_ttl(claim: NodeClaim) -> timedelta | None:
    return span_of(claim.spec.initialization_ttl)


def was_ready(claim: NodeClaim, node: Node | None) -> bool:
    """Whether the node has been Ready, by any evidence: then the TTL no longer applies."""
    if claim.initialized or ready_once(claim) is not None:
        return True
    if node is None or not claim.registered:
        return False
    return node.ready or node.labels.get(INITIALIZED) == "true"


def _start(claim: NodeClaim, node: Node | None) -> tuple[Stage, datetime]:
    if claim.registered and node is not None:
        return Stage.READINESS, max(node.created_at, rebooted_at(claim) or BEGINNING)
    if (launched := launched_at(claim)) is not None:
        return Stage.REGISTRATION, launched
    return Stage.LAUNCH, claim.created_at


def _initialization(claim: NodeClaim, node: Node | None) -> Boot | None:
    """Ready, but not initialized: limited only if the claim has an ``initializationTTL``."""
    span = initialization_ttl(claim)
    ready = ready_once(claim)
    if span is None or claim.initialized or node is None:
        return None
    if ready is None or ready.last_transition_time is None or ready.reason == SPENT:
        return None
    since = max(ready.last_transition_time, rebooted_at(claim) or BEGINNING)
    ttl = claim.spec.initialization_ttl or ""
    return Boot(Stage.INITIALIZATION, since, ttl, later(since, span))


def initialized_until(claim: NodeClaim) -> datetime | None:
    """Until when a claim that is Ready and not initialized counts as a node in flight.

    For an unreadable claim this starts at its creation: its conditions and TTLs are unknown.
    """
    if is_unreadable(claim):
        return later(claim.created_at, DEFAULT_TTL + INITIALIZES_WITHIN)
    once = ready_once(claim)
    if claim.initialized or claim.rebooting or once is None:
        return None
    if once.last_transition_time is None:
        return None
    return later(once.last_transition_time, initialization_ttl(claim) or INITIALIZES_WITHIN)
