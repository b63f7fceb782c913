"""By which clock a cluster is evaluated: this host's, unless the API server's is too far from it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from tenure.cli.view.instants import span
from tenure.model.settings import Settings
from tenure.ports.clock import Clock

#: A server says its time to the second, and an answer takes a moment.
_SAME_CLOCK: Final = timedelta(seconds=5)


class _Ahead:
    """The server's clock, as far ahead of this process's as it was a moment ago."""

    def __init__(self, clock: Clock, by: timedelta) -> None:
        self._clock = clock
        self._by = by

    def now(self) -> datetime:
        return self._clock.now() + self._by

    def monotonic(self) -> float:
        return self._clock.monotonic()


def clock_of(
    own: Clock, server: datetime | None, settings: Settings, *, embedded: bool
) -> tuple[Clock, str]:
    """The clock by which the cluster is evaluated; in words where it is not ours.

    A replica goes by the API server's time where its own clock is too far from it, and so do we.
    """
    by = server - own.now() if server is not None else timedelta()
    if abs(by) <= (_SAME_CLOCK if embedded else settings.clock_skew_max):
        return own, ""
    seconds = timedelta(seconds=round(abs(by).total_seconds()))
    away = f"{span(seconds)} {'ahead of' if by > timedelta() else 'behind'} this host's"
    whose = "the cluster's, which tenure up runs" if embedded else "the API server's, which is"
    return _Ahead(own, by), f"{whose} {away}"
