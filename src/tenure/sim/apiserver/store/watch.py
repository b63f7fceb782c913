"""What happened, in order, and the streams of those who want to know.

Each kind keeps a ring of its latest events. A watch that asks for a version older than
the ring's beginning gets one ERROR event ("too old", 410) and must list again. An event
is encoded once, however many watch it. With a selector the event's type is evaluated anew:
an object that starts to match was ADDED to that watch, one that stops was DELETED.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from itertools import takewhile

import msgspec

from tenure.errors import Gone
from tenure.sim.apiserver.objects.refusals import status_body
from tenure.sim.apiserver.objects.tree import Obj, with_metadata

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"
Matches = Callable[[Obj], bool]

_encode = msgspec.json.encode
_OPENING = {
    type_: f'{{"type":"{type_}","object":'.encode()
    for type_ in (ADDED, MODIFIED, DELETED, "BOOKMARK", "ERROR")
}


class Record:
    """One version of one object. Its JSON is kept only while a write of it is told to those who watch.

    A list encodes it anew: kept for good, the JSON of 100,000 pods would take 220 MiB.
    """

    __slots__ = ("_raw", "obj")

    def __init__(self, obj: Obj) -> None:
        self.obj = obj
        self._raw = b""

    @property
    def raw(self) -> bytes:
        return self._raw or _encode(self.obj)

    @contextmanager
    def encoded_once(self) -> Iterator[None]:
        """However many watches ask for it inside."""
        self._raw = _encode(self.obj)
        try:
            yield
        finally:
            self._raw = b""


class Event:
    """A write: what became of the object, and what it was before."""

    __slots__ = ("old", "record", "type", "version")

    def __init__(self, type_: str, version: int, record: Record, old: Record | None) -> None:
        self.type, self.version, self.record, self.old = type_, version, record, old


class History:
    """The latest events of one kind; ``floor`` is the newest version it has forgotten."""

    def __init__(self, length: int) -> None:
        self._events: deque[Event] = deque()
        self._length = length
        self.floor = 0

    def append(self, event: Event) -> None:
        if len(self._events) == self._length:
            self.floor = self._events.popleft().version
        self._events.append(event)

    def since(self, version: int) -> list[Event]:
        """Everything after that version, oldest first; raises ``Gone`` if it is forgotten."""
        if version < self.floor:
            raise Gone(f"too old resource version: {version} ({self.floor})")
        newer = list(takewhile(lambda e: e.version > version, reversed(self._events)))
        newer.reverse()
        return newer

    def forget(self, version: int) -> None:
        """Forget everything up to that version."""
        while self._events and self._events[0].version <= version:
            self._events.popleft()
        self.floor = max(self.floor, version)


class Watch:
    """One open stream of lines, fed by the store and read by one consumer."""

    def __init__(
        self,
        *,
        namespace: str = "",
        matches: Matches | None = None,
        bookmarks: bool = False,
        after: int = 0,
        seen: Callable[[Obj], Obj] | None = None,
        on_close: Callable[[Watch], None],
    ) -> None:
        """``seen``: the form in which this watch shows objects; nothing for the one that is stored."""
        self._namespace = namespace
        self._matches = matches
        self.bookmarks = bookmarks
        self._after = after
        self.seen = seen
        self._on_close = on_close
        self._lines: deque[bytes] = deque()
        self._closed = False
        self._waiter: asyncio.Future[None] | None = None

    def offer(self, event: Event) -> None:
        """Put the event on the stream if this watch is about that object."""
        if event.version <= self._after:
            return
        if self._namespace and event.record.obj["metadata"]["namespace"] != self._namespace:
            return
        if self.seen is not None:
            event = _in_form(event, self.seen)
        if self._matches is None:
            self._push(_line(event.type, event.record.raw))
            return
        type_ = self._evaluated(event, self._matches)
        if type_ == DELETED and event.type != DELETED:
            self._push(_line(type_, _last_match(event)))
        elif type_ is not None:
            self._push(_line(type_, event.record.raw))

    @staticmethod
    def _evaluated(event: Event, matches: Matches) -> str | None:
        before = event.old is not None and matches(event.old.obj)
        after = event.type != DELETED and matches(event.record.obj)
        if after:
            return MODIFIED if before else ADDED
        return DELETED if before else None

    def bookmark(self, obj: Obj) -> None:
        """Tell the consumer up to which version it has seen everything."""
        self._push(_line("BOOKMARK", _encode(obj)))

    def fail(self, error: Gone) -> None:
        """Say why there is nothing to see, as the last event of the stream."""
        self._push(_line("ERROR", status_body(error)))
        self.end()

    def _push(self, line: bytes) -> None:
        if self._closed:
            return
        self._lines.append(line)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def end(self) -> None:
        """End it from the server's side; lines already sent can still be read."""
        if not self._closed:
            self._closed = True
            self._on_close(self)
            self._wake()

    async def close(self) -> None:
        self._lines.clear()
        self.end()

    def drain(self) -> Iterator[bytes]:
        """The lines that are there now, without waiting."""
        while self._lines:
            yield self._lines.popleft()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while not self._lines:
            if self._closed:
                raise StopAsyncIteration
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self._lines.popleft()


def _in_form(event: Event, form: Callable[[Obj], Obj]) -> Event:
    old = None if event.old is None else Record(form(event.old.obj))
    return Event(event.type, event.version, Record(form(event.record.obj)), old)


def _last_match(event: Event) -> bytes:
    """What left the selection: the object as it last matched, with the version of its leaving."""
    assert event.old is not None
    return _encode(with_metadata(event.old.obj, resourceVersion=str(event.version)))


def _line(type_: str, raw: bytes) -> bytes:
    return b"%b%b}\n" % (_OPENING[type_], raw)
