"""Those who read the stream: each has a short queue of messages that all share; who reads too slowly is dropped."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Final

#: Messages that wait for a reader, at the most.
QUEUE_MAX: Final = 16


class Subscriber:
    def __init__(self) -> None:
        self._waiting: deque[bytes] = deque()
        self._woken = asyncio.Event()
        self.lost = False

    def put(self, message: bytes) -> None:
        if len(self._waiting) >= QUEUE_MAX:
            self.lost = True
            self._waiting.clear()
        else:
            self._waiting.append(message)
        self._woken.set()

    async def take(self) -> bytes:
        """What waits, as one message; empty: it is lost."""
        while not self._waiting and not self.lost:
            self._woken.clear()
            await self._woken.wait()
        found = b"".join(self._waiting)
        self._waiting.clear()
        return b"" if self.lost else found


class Subscribers:
    def __init__(self, most: int) -> None:
        self._most = most
        self._all: set[Subscriber] = set()

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Subscriber]:
        return iter(list(self._all))

    @property
    def full(self) -> bool:
        return len(self._all) >= self._most

    def add(self, one: Subscriber) -> None:
        self._all.add(one)

    def remove(self, one: Subscriber) -> None:
        self._all.discard(one)

    async def put_to_each(self, message: bytes) -> None:
        """One after the other: to write to all of them at once takes as long as a turn. Those who come meanwhile know it."""
        for one in self:
            one.put(message)
            await asyncio.sleep(0)
