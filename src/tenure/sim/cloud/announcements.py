"""What the embedded cloud has announced, until it is acknowledged.

A queue for each cluster, as public clouds offer it: a notice that is not acknowledged is delivered
again whenever a stream is opened. So it is lost neither with the reader nor with the connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime

import msgspec

from tenure.model.cloud.notice import Notice, NoticeKind


class Announcements:
    def __init__(self) -> None:
        #: By receipt, in the order in which they were announced, each with its cluster.
        self._pending: dict[str, tuple[str, Notice]] = {}
        self._streams: list[tuple[str, asyncio.Queue[Notice]]] = []
        self._count = 0
        #: By provider id: the earliest instant that was announced for its end; None: no instant was.
        self.interruptions: dict[str, datetime | None] = {}

    def announce(self, cluster: str, notice: Notice) -> None:
        self._count += 1
        known = msgspec.structs.replace(notice, receipt=f"notice-{self._count}")
        self._pending[known.receipt] = (cluster, known)
        if notice.kind is NoticeKind.INTERRUPTION:
            self._interrupted(notice)
        for listening, announced in self._streams:
            if listening == cluster:
                announced.put_nowait(known)

    def _interrupted(self, notice: Notice) -> None:
        said = (self.interruptions.get(notice.provider_id), notice.deadline)
        earliest = min((at for at in said if at is not None), default=None)
        self.interruptions[notice.provider_id] = earliest

    def pending(self, cluster: str) -> tuple[Notice, ...]:
        """What is not acknowledged yet."""
        return tuple(notice for of, notice in self._pending.values() if of == cluster)

    def acknowledge(self, notice: Notice) -> None:
        self._pending.pop(notice.receipt, None)

    async def stream(self, cluster: str) -> AsyncIterator[Notice]:
        announced: asyncio.Queue[Notice] = asyncio.Queue()
        for notice in self.pending(cluster):
            announced.put_nowait(notice)
        stream = (cluster, announced)
        self._streams.append(stream)
        try:
            while True:
                yield await announced.get()
        finally:
            self._streams.remove(stream)
