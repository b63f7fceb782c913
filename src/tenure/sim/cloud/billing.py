"""What the account owes, exactly: integers of micro-dollars and microseconds.

The meter counts micro-dollars per hour × microseconds, so that nothing is rounded before
it is asked for, and the order of launches cannot change the sum.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

_MICROSECOND: Final = timedelta(microseconds=1)
_HOUR: Final = timedelta(hours=1) // _MICROSECOND


class Bill:
    def __init__(self, now: datetime) -> None:
        #: What all running instances cost together, in micro-dollars per hour.
        self.hourly = 0
        self._metered = 0
        self._metered_until = now

    def start(self, price: int, now: datetime) -> None:
        """One more instance at that many micro-dollars per hour."""
        self._meter(now)
        self.hourly += price

    def stop(self, price: int, now: datetime) -> None:
        self._meter(now)
        self.hourly -= price

    def total(self, now: datetime) -> int:
        """Everything up to now, in micro-dollars, rounded down."""
        self._meter(now)
        return self._metered // _HOUR

    def _meter(self, now: datetime) -> None:
        self._metered += self.hourly * ((now - self._metered_until) // _MICROSECOND)
        self._metered_until = now
