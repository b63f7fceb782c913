"""What the gates read of one node, and what a gate answers that blocks it."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
from msgspec import UNSET, UnsetType

from tenure.core.decision import Blocker
from tenure.core.facts import Fact
from tenure.core.gates.fleet import PoolFleet
from tenure.core.gates.operations import Gate
from tenure.core.gates.traits import Traits
from tenure.core.health.facts import CircuitBreakerOpen
from tenure.core.reasons import Reason
from tenure.core.terminate.pods import DrainView
from tenure.core.windows.windows import Windows
from tenure.model.api.meta import later
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.values.problem import Problems


class LaunchTime(msgspec.Struct, frozen=True):
    """A node that is launched for a command, by the recent launches of its pool."""

    pool: str
    takes: timedelta
    #: When it was launched; None: it is still to be.
    since: datetime | None = None

    def up_at(self, now: datetime) -> datetime:
        return later(self.since or now, self.takes)


class GateFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the gates read, of one node.

    What an operation does not ask about may be left out (``UNSET``). A gate that is asked without
    its facts (``NEEDS``) does not let it pass: that is a fault of ours.
    """

    claim: NodeClaim
    node: Node | None = None
    pool: NodePool | None = None
    #: Maintenance windows that name the action.
    windows: Windows | UnsetType = UNSET
    #: Why the pool's repair block cannot be used; empty when it can.
    broken: Problems = ()
    #: Why repair for conditions is left to another controller; None: it is not.
    left: Fact | None = None
    #: Why its failure domains block it, and why the breaker of its pool does; empty: they do not.
    outage: tuple[Fact, ...] | UnsetType = UNSET
    breaker: CircuitBreakerOpen | UnsetType | None = UNSET
    #: When these two may differ although nothing changes.
    breakers_change_at: datetime | None = None
    #: Until when the pool replaces nothing, and after whose failed replacement.
    pauses: tuple[tuple[datetime, str], ...] | UnsetType = UNSET
    traits: Traits | UnsetType = UNSET
    fleet: PoolFleet | UnsetType = UNSET
    #: Disruptions of the pool that were started in the same pass, and do not show in the fleet.
    started: int = 0
    #: Those of them that the pool remembers as starts.
    recorded: int = 0
    drain: DrainView | UnsetType = UNSET
    #: How long the drain may take by the method; None: it sets no bound.
    bound: timedelta | None = None
    #: Why its pods fit nowhere, whether that passes by itself, and when it may differ.
    unplaced: Fact | UnsetType | None = UNSET
    passing: bool = False
    replan_at: datetime | None = None
    #: The new nodes that it waits for.
    launches: tuple[LaunchTime, ...] | UnsetType = UNSET


class Blocked(msgspec.Struct, frozen=True, kw_only=True):
    gate: Gate
    reason: Reason
    facts: tuple[Fact, ...]
    blockers: tuple[Blocker, ...] = ()
    #: When this gate may let it pass although nothing changes; None: never.
    until: datetime | None = None
    #: When the answer may differ, that is also when a gate before it may block; None: never.
    recheck_at: datetime | None = None
    #: A user has closed it: other disruptions that end do not open it.
    closed: bool = False
