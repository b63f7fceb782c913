"""What time it is for the API server, told by the ``Date`` of its answers.

Instants in objects are compared with our own wall clock. Where that lies far from the API
server's, whatever was decided by it is not to be trusted: a clock that was set ahead makes every
time-out due at once. An answer is kept with the monotonic instant of its arrival, so that a step
of our clock shows at once, and not only with the next answer.

A ``Date`` has whole seconds, and an answer that took long says little: neither matters for a
bound of several seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

from tenure.errors import TenureError
from tenure.model.values.duration import Duration
from tenure.ports.clock import Clock
from tenure.ports.transport import Request, Response, Stream, Transport

#: Seconds. An answer that took longer was written at some time in between.
SLOW: Final = 2.0
#: Seconds after which the server's time is asked for before it is relied upon.
OLD: Final = 60.0
#: Seconds after which it is asked for before something is held because of it.
DOUBTFUL: Final = 1.0
#: Open to every account, and small.
_PROBE: Final = Request(method="GET", path="/version")
_SECOND: Final = timedelta(seconds=1)
_HALF: Final = _SECOND / 2
#: Characters; the form that HTTP has takes 29.
_DATE_MAX: Final = 40


class ServerTime:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._said = ""
        self._at: datetime | None = None
        self._heard_at = 0.0
        self._asking = asyncio.Lock()

    def heard(self, date: str, took: float) -> None:
        """An answer came just now, so many seconds after it was asked for."""
        if not date or took > SLOW:
            return
        heard_at = self._clock.monotonic()
        if date == self._said and heard_at - self._heard_at < DOUBTFUL:
            return  # Another answer within the same second says nothing new.
        at = read_date(date)
        if at is None:
            return
        at += _HALF
        if self._at is not None:
            expected = self._at + timedelta(seconds=heard_at - self._heard_at)
            if abs(at - expected) <= _SECOND:
                at = expected  # As far as whole seconds can tell: our idea of it does not jitter.
        self._said, self._at, self._heard_at = date, at, heard_at

    def skew(self) -> timedelta:
        """By how much our wall clock is ahead of the server's; nothing while that is unknown."""
        if self._at is None:
            return timedelta(0)
        since = timedelta(seconds=self._clock.monotonic() - self._heard_at)
        return self._clock.now() - (self._at + since)

    def off(self, bound: timedelta) -> str:
        """How our clock is off by more than the bound, in words; empty when it is not."""
        skew = self.excess(bound)
        return in_words(skew, "this replica") if skew else ""

    def excess(self, bound: timedelta) -> timedelta:
        """The skew, if it is more than the bound; nothing if it is not."""
        skew = self.skew()
        return skew if abs(skew) > bound else timedelta(0)

    async def ask_if_needed(self, transport: Transport, bound: timedelta) -> None:
        """Ask for the server's time, if what we know of it is old, or would hold something."""
        if not self._is_old(bound):
            return
        async with self._asking:
            if self._is_old(bound):
                # Without an answer what we know of it stands; the call itself will fail, too.
                with suppress(TenureError):
                    await transport.request(_PROBE)

    def _is_old(self, bound: timedelta) -> bool:
        age = self._clock.monotonic() - self._heard_at
        return self._at is None or age > OLD or (age > DOUBTFUL and bool(self.off(bound)))


class DatedTransport:
    """Passes everything on, and hears what time it is for the server."""

    def __init__(self, transport: Transport, time: ServerTime, clock: Clock) -> None:
        self._transport = transport
        self._time = time
        self._clock = clock

    async def request(self, request: Request) -> Response:
        asked_at = self._clock.monotonic()
        response = await self._transport.request(request)
        self._time.heard(date_of(response.headers), self._clock.monotonic() - asked_at)
        return response

    async def stream(self, request: Request) -> Stream | Response:
        return await self._transport.stream(request)


def in_words(skew: timedelta, whose: str) -> str:
    """``skew``: by how much that clock is ahead."""
    span = Duration.of(timedelta(seconds=round(abs(skew).total_seconds())))
    side = "ahead of" if skew > timedelta(0) else "behind"
    return f"the clock of {whose} is {span} {side} the API server's"


def date_of(headers: Mapping[str, str]) -> str:
    return headers.get("Date") or headers.get("date") or ""


def read_date(text: str) -> datetime | None:
    """``Sun, 06 Nov 1994 08:49:37 GMT``; None for what is no instant."""
    if len(text) > _DATE_MAX:
        return None
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return at.astimezone(UTC) if at.tzinfo is not None else None
