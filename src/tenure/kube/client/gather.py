"""Reads a watch in bursts: lines that arrive one after the other wake the process once.

An API server sends each event of a watch by itself. To be woken for each of them, to decrypt it and to hand it on
costs more than to decode it. So after each read, the kernel is told to gather for a moment what comes, and to wake the
process earlier only for a lot of it, or for the end of the connection. The first line after a silence is not delayed.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from aiohttp.http_exceptions import LineTooLong

#: Bytes. So much wakes the process while it gathers, and is followed by the next read at once: a flood is not slowed.
MUCH: Final = 2**16


class Gathering:
    """Of one connection. Where its socket cannot gather, it is read as before, and handed on in bursts."""

    def __init__(self, transport: asyncio.BaseTransport | None, pause: timedelta) -> None:
        self._socket: socket.socket | None = (
            transport.get_extra_info("socket") if transport is not None else None
        )
        self._pause = pause.total_seconds()

    async def after(self, read: int) -> None:
        """So many bytes were read: return when it is time for the next read."""
        if not self._pause or read >= MUCH:
            return
        self._wake_for(MUCH)
        try:
            await asyncio.sleep(self._pause)
        finally:
            self._wake_for(1)

    def _wake_for(self, size: int) -> None:
        if self._socket is None:
            return
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)
        except OSError:  # It is closed, or this system does not know the option.
            self._socket = None


class Lines:
    """Cuts what was read into lines, each with its end."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        #: The beginning of a line that has no end yet.
        self.rest = b""

    def of(self, data: bytes) -> Iterator[bytes]:
        data, start = self.rest + data, 0
        while end := data.find(b"\n", start) + 1:
            yield self._checked(data[start:end])
            start = end
        self.rest = self._checked(data[start:])

    def _checked(self, line: bytes) -> bytes:
        if len(line) > self._longest:
            raise LineTooLong(line[:100], self._longest)
        return line
