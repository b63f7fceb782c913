"""Keeps a table equal to what the API server has: list once, then watch.

Order of the rules: a paged list replaces everything (what is missing from it was
deleted); then events from that version on; a bookmark only moves the version; "410
Gone", as a refusal or as an ERROR event inside the stream, means list again; a stream
that ends is opened again from the last version, at once if it brought anything; whatever
else happens is tried again after a growing, jittered pause. A stream that says nothing at
all may be dead although no error said so, or of a quiet kind whose bookmarks are late: after two
missed ones a page of the list is compared with what we have. If that is the same, nothing was
missed: the watch goes on from there without a word. If not, that is said, and it is opened again.

Deletions are neither lost nor invented, and nothing that a server may answer ends the
informer: the controller lives through any outage.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from random import Random
from typing import Final, Protocol

import msgspec

from tenure.errors import ApiError, Gone, NotFound, SpecError, TenureError, Unavailable
from tenure.kube.cache.cache import number_of
from tenure.kube.client.client import Client, ListPage, Status, error_from_status
from tenure.model.api.meta import ApiObject, ObjectMeta
from tenure.model.api.resource import Resource
from tenure.model.snapshot.kinds import Unreadable, WatchEvent, decode_event, decode_list
from tenure.parse.jsontext import DECODE_ERRORS
from tenure.ports.clock import Clock
from tenure.ports.transport import Stream


class Sink(Protocol):
    """Where an informer puts what it learns."""

    def replace(self, resource: Resource, items: list[ApiObject], version: str) -> None: ...
    def upsert(self, resource: Resource, item: ApiObject) -> None: ...
    def remove(self, resource: Resource, item: ApiObject) -> None: ...
    def versions(self, resource: Resource) -> Mapping[str, str]: ...


class _OnlyMeta(msgspec.Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


_META = msgspec.json.Decoder(_OnlyMeta)
_STATUS = msgspec.json.Decoder(Status)

RETRY_MIN: Final = timedelta(milliseconds=200)
RETRY_MAX: Final = timedelta(seconds=30)

#: Bookmarks come every minute: after this long two were missed, and we look for ourselves.
SILENCE_MAX: Final = timedelta(seconds=130)
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
        label_selector: str = "",
    ) -> None:
        """``listed`` is called after every list. ``label_selector``: of the objects that are kept."""
        self.resource = resource
        self._client = client
        self._sink = sink
        self._clock = clock
        self._random = random
        self._report = report
        self._listed = listed
        self._label_selector = label_selector
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
        async for page in self._client.pages(self.resource, label_selector=self._label_selector):
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
        stream = await self._client.watch(
            self.resource, self._version, label_selector=self._label_selector
        )
        self.connected = True
        watchdog = None
        silent = False
        try:
            async with asyncio.timeout(None) as patience:
                watchdog = _Watchdog(patience, self._clock, lambda: self.last_heard_at)
                await self._read(stream)
        except TimeoutError:
            silent = True
        finally:
            if watchdog is not None:
                watchdog.stop()
            self.connected = False
            await stream.close()
        if silent:
            await self._probe()

    async def _probe(self) -> None:
        """Whether a silent watch has missed something; raises ``Unavailable`` if it has.

        A page that is the whole list and the same as what we have is as good as a bookmark.
        """
        page = await self._client.list_page(self.resource, label_selector=self._label_selector)
        whole = not page.metadata.continue_
        if missed := self._missed(page, whole=whole):
            raise Unavailable(f"the watch of {self.resource} fell silent and missed {missed}")
        if whole:
            self._version = page.metadata.resource_version
            self._heard()

    def _missed(self, page: ListPage, *, whole: bool) -> str:
        """An object that differs from ours; empty when there is none on this page."""
        known = dict(self._sink.versions(self.resource))
        for item in decode_list(self.resource, page.items or ()):
            version = known.pop(item.key, None)
            if version is None or number_of(version) < number_of(item.metadata.resource_version):
                return f"a change of {item.key}"
        listed_at = number_of(page.metadata.resource_version)
        gone = [key for key, version in known.items() if number_of(version) <= listed_at]
        return f"the end of {min(gone)}" if whole and gone else ""

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
        """An object that cannot be read stops no other, but it is reported."""
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
    """Without a status code where no server has answered: the code would be ours."""
    if isinstance(error, Unavailable) and error.status == Unavailable.status:
        return error.message
    return str(error)


class _Watchdog:
    """Interrupts its user after a silence; one timer now and then, not one per line."""

    def __init__(
        self, patience: asyncio.Timeout, clock: Clock, heard_at: Callable[[], float | None]
    ) -> None:
        """``heard_at``: when a line came last, on the monotonic clock."""
        self._patience = patience
        self._clock = clock
        self._heard_at = heard_at
        self._loop = asyncio.get_running_loop()
        self._opened_at = clock.monotonic()
        self._look_at(self._opened_at)

    def stop(self) -> None:
        self._timer.cancel()

    def _look_at(self, since: float) -> None:
        pause = since + SILENCE_MAX.total_seconds() - self._clock.monotonic()
        self._timer = self._loop.call_later(pause, self._look, since)

    def _look(self, before: float) -> None:
        since = max(self._heard_at() or 0.0, self._opened_at)
        if since == before:
            self._patience.reschedule(self._loop.time())
        else:
            self._look_at(since)
