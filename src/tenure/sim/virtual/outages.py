"""Zones that are cut off: their kubelets reach nothing, and what is launched there does not come.

Kubelets and the cloud ask at every occasion, and are told when a zone fails or recovers, because
nothing polls here. Two outages of one zone overlap as one: the zone is back when both have ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable


class ZoneOutages:
    def __init__(self) -> None:
        self._out: Counter[str] = Counter()
        self._refusing: Counter[str] = Counter()
        self._listeners: list[Callable[[str], object]] = []

    def listen(self, listener: Callable[[str], object]) -> None:
        """Call back with the zone whenever one has failed or recovered."""
        self._listeners.append(listener)

    def begin(self, zone: str, *, refuses_launches: bool = False) -> None:
        self._change(zone, 1, refuses_launches)

    def end(self, zone: str, *, refuses_launches: bool = False) -> None:
        """As it began."""
        self._change(zone, -1, refuses_launches)

    def is_out(self, zone: str) -> bool:
        return self._out[zone] > 0

    def refuses_launches(self, zone: str) -> bool:
        """Whether the cloud says so at once; else the instance starts, and its Node does not come."""
        return self._refusing[zone] > 0

    def _change(self, zone: str, step: int, refuses_launches: bool) -> None:
        was_out = self.is_out(zone)
        self._out[zone] += step
        if refuses_launches:
            self._refusing[zone] += step
        if self.is_out(zone) != was_out:
            for listener in self._listeners:
                listener(zone)
