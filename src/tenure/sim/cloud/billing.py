"""What the account owes, exactly: integers of micro-dollars and microseconds.

The meter counts micro-dollars per hour × microseconds, so that nothing is rounded before
it is asked for, and the order of launches cannot change the sum.

An instance whose price is 0 has no price that is known: it is counted, never added as 0.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

_MICROSECOND: Final = timedelta(microseconds=1)
_HOUR: Final = timedelta(hours=1) // _MICROSECOND


class Owed(msgspec.Struct, frozen=True):
    """A sum of money of which a part may be unknown."""

    #: Micro-dollars, or micro-dollars per hour.
    known: int = 0
    #: Instances that cost something and have no price that is known.
    unpriced: int = 0

    @property
    def amount(self) -> int | None:
        """None where nothing of it is known."""
        return None if self.unpriced and not self.known else self.known

    def said(self, text: str) -> str:
        """``text`` says what is known."""
        if self.amount is None:
            return "unknown"
        return f"at least {text}" if self.unpriced else text


class Unpriced(msgspec.Struct, frozen=True):
    """Instances whose price is not known: those that run, and all that ever ran."""

    now: int = 0
    ever: int = 0

    def __str__(self) -> str:
        """Empty where every price is known."""
        if not self.ever:
            return ""
        told = f"the price of {self.ever} instance{'s' * (self.ever > 1)} is unknown"
        return told if self.now == self.ever else f"{told}, {self.now} of them still running"


class Bill:
    def __init__(self, now: datetime) -> None:
        #: What all running instances with a price cost together, in micro-dollars per hour.
        self.hourly = 0
        self.unpriced = Unpriced()
        self._metered = 0
        self._metered_until = now

    def start(self, price: int, now: datetime) -> None:
        """One more instance at that many micro-dollars per hour; 0: not known."""
        self._meter(now)
        self.hourly += price
        if not price:
            self.unpriced = Unpriced(self.unpriced.now + 1, self.unpriced.ever + 1)

    def stop(self, price: int, now: datetime) -> None:
        self._meter(now)
        self.hourly -= price
        if not price:
            self.unpriced = Unpriced(self.unpriced.now - 1, self.unpriced.ever)

    def owed_hourly(self) -> Owed:
        return Owed(self.hourly, self.unpriced.now)

    def owed(self, now: datetime) -> Owed:
        """Everything up to now."""
        return Owed(self.total(now), self.unpriced.ever)

    def total(self, now: datetime) -> int:
        """What is known of everything up to now, in micro-dollars, rounded down."""
        self._meter(now)
        return self._metered // _HOUR

    def _meter(self, now: datetime) -> None:
        self._metered += self.hourly * ((now - self._metered_until) // _MICROSECOND)
        self._metered_until = now
