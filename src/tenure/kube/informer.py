"""Keeps a table equal to what the API server has: list once, then watch.

Order of the rules: a paged list replaces everything (what is missing from it was
deleted); then events from that version on; a bookmark only moves the version; "410
Gone", as a refusal or as an ERROR event inside the stream, means list again; a stream
that ends is opened again from the last version, at once if it brought anything; whatever
else happens is tried again after a growing, jittered pause. A stream that says nothing at
all, not even a bookmark, is dead although nobody said so, and is opened again.

Deletions are neither lost nor invented, and nothing that a server may answer ends the
informer: the controller lives through any outage.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Final, Protocol

import msgspec

from tenure.errors import ApiError, Gone, NotFound, SpecError, TenureError, Unavailable
from tenure.kube.client import Client, Status, error_from_status
from tenure.model.kinds import Unreadable, WatchEvent, decode_event, decode_list
from tenure.model.meta import ApiObject, ObjectMeta
from tenure.model.resource import Resource
from tenure.parse.jsontext import DECODE_ERRORS
from tenure.ports.clock import Clock
from tenure.ports.transport import Stream


class Sink(Protocol):
    """Where an informer puts what it learns."""

    def replace(self, resource: Resource, items: list[ApiObject], version: str) -> None: ...
    def upsert(self, resource: Resource, item: ApiObject) -> None: ...
    def remove(self, resource: Resource, item: ApiObject) -> None: ...


class _OnlyMeta(msgspec.Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


_META = msgspec.json.Decoder(_OnlyMeta)
_STATUS = msgspec.json.Decoder(Status)

RETRY_MIN: Final = timedelta(milliseconds=200)
RETRY_MAX: Final = timedelta(seconds=30)

#: Bookmarks come every minute: a stream that is silent for this long is dead.
SILENCE_MAX: Final = timedelta(minutes=2)
#: What was heard longer ago than this is too old to take anything away on its word.
FRESH_FOR: Final = timedelta(minutes=4)


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
        listed: Callable[[], None] = lambda: None,
    ) -> None:
        """``listed`` is called after every list."""
        self.resource = resource
        self._client = client
        self._sink = sink
        self._clock = clock
        self._random = random
        self._report = report
        self._listed = listed
        self._version = ""
        self._lines = 0
        #: Health, which everything that takes away relies on.
        self.synced = False
        self.connected = False
        #: On the monotonic clock.
        self.last_heard_at: float | None = None
        #: Why nothing is heard, in words; empty while something is.
        self.problem = ""
        #: How often everything was listed.
        self.lists = 0

    def is_fresh(self, now: float) -> bool:
        """Whether its table may be trusted to be close to what is; ``now`` is monotonic."""
        heard_at = self.last_heard_at
        return heard_at is not None and now - heard_at <= FRESH_FOR.total_seconds()

    async def run(self) -> None:
        """Until cancelled."""
        fruitless = 0
        while True:
            lines = self._lines
            failed = await self._round()
            heard = self._lines != lines
            fruitless = 0 if heard else fruitless + 1
            if failed or not heard:
                await asyncio.sleep(self._pause(fruitless))

    async def _round(self) -> bool:
        """List if there is nothing to go on from, then follow; whether it failed."""
        try:
            if not self._version:
                await self._list()
            await self._follow()
        except Gone:
            self._version = ""
            return True
        except TenureError as error:
            self.problem = in_words(error)
            self._report(self.resource, error)
            return True
        return False

    async def _list(self) -> None:
        items: list[ApiObject] = []
        version = ""
        async for page in self._client.pages(self.resource):
            # Each page for itself: the bytes of them all would be many times what we keep.
            items += decode_list(self.resource, page.items or ())
            version = page.metadata.resource_version
        for item in items:
            self._complain(item)
        self._sink.replace(self.resource, items, version)
        self._version = version
        self._heard()
        self.lists += 1
        self.synced = True
        self._listed()

    async def _follow(self) -> None:
        stream = await self._client.watch(self.resource, self._version)
        self.connected = True
        watchdog = None
        try:
            async with asyncio.timeout(None) as patience:
                watchdog = _Watchdog(patience, lambda: self._lines)
                await self._read(stream)
        except TimeoutError as error:
            raise Unavailable(f"the watch of {self.resource} fell silent") from error
        finally:
            if watchdog is not None:
                watchdog.stop()
            self.connected = False
            await stream.close()

    async def _read(self, stream: Stream) -> None:
        async for line in stream:
            try:
                self._apply(decode_event(self.resource, line))
            except DECODE_ERRORS as error:
                raise ApiError(f"a line of the watch cannot be read: {error}") from error
            self._lines += 1
            self._heard()

    def _apply(self, event: WatchEvent[ApiObject] | WatchEvent[msgspec.Raw]) -> None:
        item = event.object
        if isinstance(item, msgspec.Raw):
            if event.type == "ERROR":
                raise error_from_status(_STATUS.decode(item))
            self._version = _META.decode(item).metadata.resource_version or self._version
            return
        if event.type == "DELETED":
            self._sink.remove(self.resource, item)
        else:
            self._complain(item)
            self._sink.upsert(self.resource, item)
        self._version = item.metadata.resource_version or self._version

    def _complain(self, item: ApiObject) -> None:
        """An object that cannot be read stops nobody, but somebody has to hear of it."""
        if isinstance(item, Unreadable):
            at = f"{self.resource.kind}/{item.key}"
            self._report(self.resource, SpecError(at, item.problem, "an object we can read"))

    def _heard(self) -> None:
        self.last_heard_at = self._clock.monotonic()
        self.problem = ""

    def _pause(self, fruitless: int) -> float:
        longest = min(RETRY_MIN * (1 << min(max(fruitless - 1, 0), 10)), RETRY_MAX)
        return longest.total_seconds() * (0.5 + self._random.random() / 2)


def in_words(error: TenureError) -> str:
    """Why a kind could not be listed or watched."""
    if isinstance(error, NotFound):  # Some servers say "page not found", and no more.
        return "the API server does not have this kind"
    return plainly(error)


def plainly(error: TenureError) -> str:
    """Without a number where nobody has answered: it would be ours."""
    if isinstance(error, Unavailable) and error.status == Unavailable.status:
        return error.message
    return str(error)


class _Watchdog:
    """Ends somebody's patience when a count stands still; one timer now and then, not per line."""

    def __init__(self, patience: asyncio.Timeout, count: Callable[[], int]) -> None:
        self._patience = patience
        self._count = count
        self._loop = asyncio.get_running_loop()
        self._look_later()

    def stop(self) -> None:
        self._timer.cancel()

    def _look_later(self) -> None:
        pause = SILENCE_MAX.total_seconds()
        self._timer = self._loop.call_later(pause, self._look, self._count())

    def _look(self, before: int) -> None:
        if self._count() == before:
            self._patience.reschedule(self._loop.time())
        else:
            self._look_later()
