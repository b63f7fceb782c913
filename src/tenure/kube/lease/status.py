"""The role of a replica by the Lease: for probes, metrics and logs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from enum import StrEnum

import msgspec

from tenure.ports.clock import Clock


class LeaseRole(StrEnum):
    #: Another replica acts, or it is not known yet which.
    WAITING = "waiting"
    #: Something that is none of our replicas is, or may be, at work.
    HELD_BACK = "held back"
    LEADING = "leading"


class LeaseState(msgspec.Struct, frozen=True):
    role: LeaseRole
    #: For operators; says who holds what, and since when.
    sentence: str
    #: When the role, not the sentence, changed last.
    since: datetime
    #: Who holds our Lease, as far as we know; empty: no replica.
    holder: str = ""


class Bulletin:
    """Keeps the state, and says each new sentence once: a trouble louder than the rest."""

    def __init__(
        self, clock: Clock, say: Callable[[str], None], warn: Callable[[str], None], first: str
    ) -> None:
        self._clock = clock
        self._say = say
        self._warn = warn
        self.state = LeaseState(LeaseRole.WAITING, first, clock.now())

    def post(
        self, role: LeaseRole, sentence: str, holder: str = "", *, trouble: bool = False
    ) -> None:
        old = self.state
        since = old.since if role is old.role else self._clock.now()
        self.state = LeaseState(role, sentence, since, holder)
        if sentence != old.sentence:
            (self._warn if trouble else self._say)(sentence)

    def add_trouble(self, sentence: str) -> None:
        """News that does not change the role."""
        self.post(self.state.role, sentence, self.state.holder, trouble=True)
