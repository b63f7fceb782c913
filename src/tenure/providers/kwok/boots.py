"""Registers Nodes when their time has come: opens each envelope, and throws it away.

The Node is made first and the envelope goes second, so that the instance is to be found in
one of them at every instant; every read looks into the envelope first. A crash between
the two is healed by the next registration of the same name, which meets itself. What fails
is tried again, later and later; a follower that may not write waits that way for its turn.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

from tenure.errors import AlreadyExists, TenureError
from tenure.model.api.resource import NODES
from tenure.ports.provider import Surroundings
from tenure.providers.kwok.envelopes import Envelope, Envelopes

RETRY_MIN: Final = timedelta(seconds=1)
RETRY_MAX: Final = timedelta(seconds=30)


class Boots:
    def __init__(self, surroundings: Surroundings, envelopes: Envelopes) -> None:
        self._api = surroundings.api
        self._clock = surroundings.clock
        self._report = surroundings.report
        self._envelopes = envelopes
        self._read_only = surroundings.read_only
        self._tasks: dict[str, asyncio.Task[None]] = {}
        #: Held while a Node is being registered: a request that is on its way is carried out,
        #: whether or not a caller still waits for its answer.
        self._under_way: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def resume(self, ours: Callable[[Envelope], bool]) -> None:
        """Take up what was waiting when the last controller stopped."""
        self._start("", lambda: self._patiently("", lambda: self._expect_all(ours)))

    def expect(self, envelope: Envelope) -> None:
        """Register it when it is due, unless a task does so already."""
        if envelope.name not in self._tasks:
            self._start(envelope.name, lambda: self._wait_and_register(envelope))

    async def cancel(self, name: str) -> None:
        """Returns when nothing of ours registers that Node any more; what has begun is awaited."""
        if (task := self._tasks.get(name)) is not None:
            async with self._under_way[name]:
                await self._end(task)

    async def close(self) -> None:
        while self._tasks:
            _, task = self._tasks.popitem()
            await self._end(task)

    def _start(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if self._read_only:
            return
        task = asyncio.get_running_loop().create_task(work())
        self._tasks[name] = task
        task.add_done_callback(lambda done: self._forget(name, done))

    def _forget(self, name: str, done: asyncio.Task[None]) -> None:
        if self._tasks.get(name) is done:
            del self._tasks[name]
            self._under_way.pop(name, None)

    async def _end(self, task: asyncio.Task[None]) -> None:
        task.cancel()
        await asyncio.wait({task})

    async def _expect_all(self, ours: Callable[[Envelope], bool]) -> None:
        for envelope in await self._envelopes.all():
            if ours(envelope):
                self.expect(envelope)

    async def _wait_and_register(self, envelope: Envelope) -> None:
        pause = envelope.due_at - self._clock.now()
        await asyncio.sleep(max(pause.total_seconds(), 0))
        await self._patiently(envelope.name, lambda: self._register(envelope))

    async def _register(self, envelope: Envelope) -> None:
        current = await self._envelopes.find(envelope.name)
        if current is None or current.uid != envelope.uid:
            return  # The instance was ended while it booted.
        # By hand from before, or by a call whose answer was lost: it is there, that counts.
        with suppress(AlreadyExists):
            await self._api.create(NODES, envelope.node)
        await self._envelopes.discard(envelope)

    async def _patiently(self, name: str, act: Callable[[], Coroutine[Any, Any, None]]) -> None:
        pause = RETRY_MIN
        while True:
            try:
                async with self._under_way[name]:
                    return await act()
            except TenureError as error:
                self._report(error)
                await asyncio.sleep(pause.total_seconds())
                pause = min(pause * 2, RETRY_MAX)
