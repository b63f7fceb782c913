"""Keeps a table equal to what the API server has: list once, then watch.

Order of the rules: a paged list replaces everything (what is missing from it was
deleted); then events from that version on; a bookmark only moves the version; "410
Gone", as a refusal or as an ERROR event inside the stream, means list again; a stream
that ends is opened again from the last version; whatever else goes wrong is retried
with a growing, jittered pause. Deletions are neither lost nor invented.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random
from typing import Protocol

import msgspec

from tenure.errors import ApiError, Gone, TenureError
from tenure.kube.client import Client, Status, error_from_status
from tenure.model.kinds import decode, decode_list
from tenure.model.meta import ApiObject, ObjectMeta
from tenure.model.resource import Resource
from tenure.ports.clock import Clock
from tenure.ports.transport import Stream


class Sink(Protocol):
    """Where an informer puts what it learns."""

    def replace(self, resource: Resource, items: list[ApiObject]) -> None: ...
    def upsert(self, resource: Resource, item: ApiObject) -> None: ...
    def remove(self, resource: Resource, item: ApiObject) -> None: ...


class _WatchEvent(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


class _OnlyMeta(msgspec.Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


_EVENT = msgspec.json.Decoder(_WatchEvent)
_META = msgspec.json.Decoder(_OnlyMeta)
_STATUS = msgspec.json.Decoder(Status)

RETRY_MIN = timedelta(milliseconds=200)
RETRY_MAX = timedelta(seconds=30)


class Informer:
    def __init__(
        self,
        client: Client,
        resource: Resource,
        sink: Sink,
        *,
        clock: Clock,
        random: Random,
        report: Callable[[Resource, TenureError], None] = lambda *_: None,
    ) -> None:
        self.resource = resource
        self._client = client
        self._sink = sink
        self._clock = clock
        self._random = random
        self._report = report
        self._version = ""
        #: Health, which everything that takes away relies on.
        self.synced = False
        self.connected = False
        self.last_heard_at: datetime | None = None

    async def run(self) -> None:
        """Until cancelled."""
        failures = 0
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._follow()
                failures = 0
            except Gone:
                self._version = ""
            except TenureError as error:
                failures += 1
                self._report(self.resource, error)
                await asyncio.sleep(self._pause(failures))

    async def _list(self) -> None:
        raw, version = await self._client.list_all(self.resource)
        items = decode_list(self.resource, raw)
        self._sink.replace(self.resource, items)
        self._version = version
        self._heard()
        self.synced = True

    async def _follow(self) -> None:
        stream = await self._client.watch(self.resource, self._version)
        self.connected = True
        try:
            await self._read(stream)
        finally:
            self.connected = False
            await stream.close()

    async def _read(self, stream: Stream) -> None:
        async for line in stream:
            try:
                event = _EVENT.decode(line)
            except msgspec.DecodeError as error:
                raise ApiError(f"a line of the watch cannot be read: {error}") from error
            self._apply(event)
            self._heard()

    def _apply(self, event: _WatchEvent) -> None:
        if event.type == "ERROR":
            raise error_from_status(_STATUS.decode(event.object))
        if event.type == "BOOKMARK":
            self._version = _META.decode(event.object).metadata.resource_version
            return
        item = decode(self.resource, event.object)
        if event.type == "DELETED":
            self._sink.remove(self.resource, item)
        else:
            self._sink.upsert(self.resource, item)
        self._version = item.metadata.resource_version or self._version

    def _heard(self) -> None:
        self.last_heard_at = self._clock.now()

    def _pause(self, failures: int) -> float:
        longest = min(RETRY_MIN * (1 << min(failures - 1, 10)), RETRY_MAX)
        return longest.total_seconds() * (0.5 + self._random.random() / 2)
