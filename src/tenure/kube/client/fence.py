"""The fence: nothing leaves once the lease is lost, or was renewed too long ago.

It is asked twice. The executor asks ``closed`` before an action and holds back; and the HTTP
library is made to ask in the very step that hands a request to the socket. A check any
earlier leaves a gap in which the process can be paused for longer than the lease. Of the step itself some
ten microseconds are left: one request at most is late after a pause, and its precondition makes it harmless.
The clock counts the time in which the machine was suspended, too: a process is not told of that.

A request is handed over with its body, headers included, in one step; a request without a
body is not, so a call that changes something needs one. Reads pass.

What was handed over may still wait in the kernel, which repeats it for a quarter of an hour
if the network is down: it is told to give up when the answer would be too late anyway.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.connector import Connection

from tenure.errors import NotLeader
from tenure.model.api.meta import format_time
from tenure.ports.fence import Fence

READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})

#: Seconds on a clock that only goes forward; which second is zero does not matter.
Steady = Callable[[], float]

# Only Linux has a clock that goes on while the machine sleeps.
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
# Only Linux gives up when it is told to.
_USER_TIMEOUT: Final[int | None] = getattr(socket, "TCP_USER_TIMEOUT", None)


def boottime() -> float:
    """A steady clock that counts suspension."""
    return time.clock_gettime(_CLOCK)


class LeaseFence:
    """Opened by each renewal, for a while; closed before the first one."""

    def __init__(self, steady: Steady = boottime) -> None:
        self._steady = steady
        self._until: float | None = None
        self._renewed_at: datetime | None = None
        self._why = "this replica does not hold the lease"

    def open_until(self, until: float, renewed_at: datetime) -> None:
        """``until`` is on the steady clock; ``renewed_at`` is for people."""
        self._until, self._renewed_at = until, renewed_at

    def close(self, why: str) -> None:
        self._until, self._why = None, why

    def closed(self) -> str:
        if self._until is None:
            return self._why
        if self._steady() < self._until:
            return ""
        assert self._renewed_at is not None, "it was opened"
        return f"the lease was last renewed at {format_time(self._renewed_at)}"

    def time_left(self) -> timedelta:
        """Until it closes by itself; nothing when it is closed."""
        left = 0.0 if self._until is None else self._until - self._steady()
        return timedelta(seconds=max(left, 0))


def impatient_socket(address: tuple[Any, ...], patience: timedelta) -> socket.socket:
    """For an address as ``getaddrinfo`` has it: what is not confirmed in time is not repeated."""
    made = socket.socket(*address[:3])
    if _USER_TIMEOUT is not None:
        made.setsockopt(socket.IPPROTO_TCP, _USER_TIMEOUT, patience // timedelta(milliseconds=1))
    return made


def fenced_requests(fence: Fence) -> type[aiohttp.ClientRequest]:
    """Requests that ask the fence as they are handed to the socket."""

    class FencedRequest(aiohttp.ClientRequest):
        async def write_bytes(
            self,
            writer: AbstractStreamWriter,
            conn: Connection,
            content_length: int | None = None,
        ) -> None:
            # Until here nothing has been written: the headers wait for the body.
            if self.method not in READS and (why := fence.closed()):
                # The caller gets this instead of an answer, and closes the connection.
                assert conn.protocol is not None, "it was just connected"
                conn.protocol.set_exception(NotLeader(f"{self.method} {self.url.path}: {why}"))
                return
            await super().write_bytes(writer, conn, content_length)

    return FencedRequest
