"""What a provider states about unhealthy nodes: which conditions, for how long, and what then."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

import msgspec


class RepairAction(StrEnum):
    """In the order of how much they disturb."""

    NONE = "None"
    REBOOT = "Reboot"
    REPLACE = "Replace"


class RepairStatement(msgspec.Struct, frozen=True, kw_only=True):
    """A condition of a Node that means unhealthy, and what to do about it."""

    condition_type: str
    status: str
    #: How long it is tolerated.
    toleration: timedelta
    #: RE2 that the condition's reason must match somewhere. Exactly one statement of a provider
    #: has none: it is for every reason that no other one matches.
    reason: str = ""
    #: How long the drain may take; None: no bound.
    grace_period: timedelta | None = None
    #: 0 to 100; of several due ones the highest is told.
    priority: int = 0
    action: RepairAction = RepairAction.REPLACE
