"""Answers that cost something, as JSON: made once for all who ask, kept for a moment, and not waited for too long."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from tenure.dashboard.web.source import NotNow
from tenure.dashboard.web.visible import visible

#: Bytes of one answer.
SIZE_MAX: Final = 8 * 2**20


class _Kept(msgspec.Struct, frozen=True):
    answer: bytes
    until: float


class Once:
    """By key. ``fresh`` and ``patience`` are seconds of the loop."""

    def __init__(
        self,
        make: Callable[[str], Awaitable[bytes]],
        *,
        fresh: float,
        patience: float,
        keys: int = 1,
        under_way: int = 1,
    ) -> None:
        """``keys``: how many answers are kept; ``under_way``: how many are made, or wait for it, at once."""
        self._make = make
        self._fresh, self._patience = fresh, patience
        self._keys, self._under_way = keys, under_way
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._tasks: dict[str, asyncio.Task[bytes]] = {}
        self._one_by_one = asyncio.Lock()

    async def get(self, key: str = "") -> bytes:
        kept = self._kept.get(key)
        if kept is not None and kept.until > asyncio.get_running_loop().time():
            return kept.answer
        task = self._tasks.get(key)
        if task is None:
            if len(self._tasks) >= self._under_way:
                raise NotNow("too many answers are being made; try again in a moment")
            task = asyncio.create_task(self._made(key))
            self._tasks[key] = task
        done, _ = await asyncio.wait({task}, timeout=self._patience)
        if not done:
            raise NotNow("the answer takes long and is still being made; try again in a moment")
        return task.result()

    async def _made(self, key: str) -> bytes:
        try:
            async with self._one_by_one:
                answer = visible(await self._make(key))
            if len(answer) > SIZE_MAX:
                raise NotNow(f"the answer is larger than {SIZE_MAX // 2**20} MiB")
            until = asyncio.get_running_loop().time() + self._fresh
            self._kept.pop(key, None)
            self._kept[key] = _Kept(answer, until)
            while len(self._kept) > self._keys:
                self._kept.popitem(last=False)
            return answer
        finally:
            del self._tasks[key]

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
