"""What the page's server asks of the program that it is a part of."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

import msgspec

from tenure.dashboard.fleet.frame import Inputs
from tenure.runtime.telemetry.ring import Entry


class NotThere(Exception):
    """There is no such object, or nothing explains its kind: a sentence."""


class NotNow(Exception):
    """It cannot be answered yet, or not in time: a sentence."""


class About(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    version: str
    cluster: str
    leader: str
    authentication: str
    since: datetime
    #: ``run``, ``beside-karpenter``, ``up``, ``board`` or ``scenario``.
    mode: str
    #: Cluster seconds per real second; None: real time.
    speed: float | None = None


class Source(Protocol):
    def about(self) -> About:
        """``authentication`` is said by the server."""
        ...

    def inputs(self) -> Inputs | None:
        """Of a frame of this instant; None while not every kind is listed."""
        ...

    def entries(self, since: int) -> tuple[Iterable[Entry], int]:
        """The journal from that number on, oldest first; and the number of the next entry."""
        ...

    async def why(self, subject: str) -> bytes:
        """``tenure explain --json`` with its text. Raises ``NotThere`` and ``NotNow``."""
        ...

    async def calendar(self) -> bytes:
        """``tenure forecast --json``. Raises ``NotNow``."""
        ...

    def close(self) -> None:
        """Nothing is asked any more."""
        ...
