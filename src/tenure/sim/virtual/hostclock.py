"""The clocks of the machine that Tenure runs on: the wall clock may be set, the other may not.

The embedded cluster itself, API server included, keeps to the true time.
"""

from __future__ import annotations

from datetime import datetime

from tenure.ports.clock import Clock
from tenure.sim.virtual.faults import FaultSwitch


class HostClock:
    def __init__(self, clock: Clock, faults: FaultSwitch) -> None:
        self._clock = clock
        self._faults = faults

    def now(self) -> datetime:
        offset = self._faults.current.clock_offset
        return self._clock.now() + offset if offset else self._clock.now()

    def monotonic(self) -> float:
        return self._clock.monotonic()
