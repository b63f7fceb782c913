"""How writes reach those who follow them: actors by callback, clients by watch.

Callbacks are never run inside the write that caused them: they are queued and run one
after the other at the same instant, in the order of the writes, also when a callback
writes itself. Watches get their line at once and read it when their task runs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from random import Random
from typing import Final

from tenure.errors import Gone
from tenure.model.api.resource import NAMESPACES, Resource
from tenure.ports.clock import Clock
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.store.kindstore import Shelf, Subscriber
from tenure.sim.apiserver.store.watch import ADDED, Event, Matches, Watch

Schedule = Callable[[datetime, Callable[[], None]], object]
Post = Callable[[Callable[[], None]], object]

BOOKMARK_EVERY: Final = timedelta(minutes=1)
#: Without a wish of the client, the server ends a watch after 30 to 60 minutes.
WATCH_SECONDS_MIN: Final = 1800
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


class Feed:
    def __init__(self, clock: Clock, random: Random, schedule: Schedule, post: Post) -> None:
        self._clock = clock
        self._random = random
        self._own_random = Random("namespaces")
        self._schedule = schedule
        self._post = post
        self.version = 0
        # Each write with those who have yet to hear of it.
        self._undelivered: deque[tuple[Iterator[Subscriber], str, Obj, Obj | None]] = deque()
        self._delivering = False
        self._bookmarked: dict[Watch, Resource] = {}

    # Actors.

    def subscribe(self, shelf: Shelf, subscriber: Subscriber, *, replay: bool) -> None:
        shelf.subscribers.append(subscriber)
        if replay:
            for _, record in shelf.listed():
                self._enqueue((subscriber,), ADDED, record.obj, None)

    def publish(self, shelf: Shelf, event: Event) -> None:
        """Store the write and send it to every watcher."""
        shelf.put(event)
        old = event.old.obj if event.old is not None else None
        if shelf.subscribers:
            self._enqueue(tuple(shelf.subscribers), event.type, event.record.obj, old)

    def _enqueue(self, to: tuple[Subscriber, ...], type_: str, new: Obj, old: Obj | None) -> None:
        self._undelivered.append((iter(to), type_, new, old))
        if not self._delivering:
            self._delivering = True
            self._post(self._deliver)

    def _deliver(self) -> None:
        try:
            while self._undelivered:
                to, type_, new, old = self._undelivered[0]
                for subscriber in to:
                    subscriber(type_, new, old)
                self._undelivered.popleft()
        finally:
            self._delivering = False
            if self._undelivered:  # A callback failed; the others must still hear of theirs.
                self._delivering = True
                self._post(self._deliver)

    # Clients.

    def watch(
        self,
        shelf: Shelf,
        *,
        namespace: str = "",
        matches: Matches | None = None,
        since: int | None = None,
        initial_end: bool = False,
        bookmarks: bool = False,
        timeout: timedelta | None = None,
    ) -> Watch:
        """Open a watch. ``since=None`` begins with everything there is, as ADDED events."""

        base = shelf.base

        def forget(closed: Watch) -> None:
            base.watches.pop(closed, None)
            self._bookmarked.pop(closed, None)

        watch = Watch(
            namespace=namespace,
            matches=matches,
            bookmarks=bookmarks,
            after=since or 0,
            seen=None if base is shelf else shelf.outward,
            on_close=forget,
        )
        try:
            self._catch_up(base, watch, since)
        except Gone as error:
            watch.fail(error)
            return watch
        if initial_end:
            watch.bookmark(self._bookmark(shelf.kind.resource, initial_end=True))
        base.watches[watch] = None
        self._limit(shelf.kind.resource, watch, timeout)
        return watch

    def _catch_up(self, shelf: Shelf, watch: Watch, since: int | None) -> None:
        if since is not None:
            for event in shelf.history.since(since):
                watch.offer(event)
            return
        for _, record in shelf.listed():
            watch.offer(Event(ADDED, self.version, shelf.as_read(record), None))

    def _limit(self, resource: Resource, watch: Watch, timeout: timedelta | None) -> None:
        """Arrange for the bookmarks and the end of this watch."""
        now = self._clock.now()
        if timeout is None:
            # Drawn apart, so that this watch moves no name in a story.
            random = self._own_random if resource == NAMESPACES else self._random
            timeout = timedelta(seconds=WATCH_SECONDS_MIN * (1 + random.random()))
        if watch.bookmarks:
            if not self._bookmarked:
                self._schedule(now + BOOKMARK_EVERY, self._bookmark_all)
            self._bookmarked[watch] = resource

        def expire() -> None:
            if watch.bookmarks:
                watch.bookmark(self._bookmark(resource))
            watch.end()

        self._schedule(now + timeout, expire)

    def _bookmark_all(self) -> None:
        for watch, resource in self._bookmarked.items():
            watch.bookmark(self._bookmark(resource))
        if self._bookmarked:
            self._schedule(self._clock.now() + BOOKMARK_EVERY, self._bookmark_all)

    def _bookmark(self, resource: Resource, *, initial_end: bool = False) -> Obj:
        metadata: Obj = {"resourceVersion": str(self.version), "creationTimestamp": None}
        if initial_end:
            metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
        return {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
