"""A real cluster as a source of frames: heard of by informers, evaluated by the production deciders, and only looked at.

In order: the API server is greeted; informers list and watch every kind that deciders read; the cloud is asked at first
and then now and then; each turn evaluates what changed; a frame is told once a second. What cannot be read is a note. A
connection that is lost is a banner, and everything goes on by itself once it is back. Nothing but reads leaves the process.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import datetime
from functools import partial
from random import Random
from typing import Any, Final

from tenure.cli.board.answers import explained, pods_of
from tenure.cli.board.cloudlooks import CloudLooks
from tenure.cli.board.connection import Connection, FollowedClock
from tenure.cli.board.frames import Frames
from tenure.cli.board.lanes import Lanes
from tenure.cli.board.leadership import Leadership
from tenure.cli.board.questions import Questions
from tenure.cli.board.turns import Turns
from tenure.cli.board.webpage import LookPage
from tenure.cli.cluster.evaluated import EvaluatedCluster
from tenure.cli.cluster.greeting import advice
from tenure.cli.cluster.listing import CannotRead
from tenure.cli.cluster.options import ChosenCluster
from tenure.cli.cluster.read import READ_MAX, greet, named, plain_errors
from tenure.cli.cluster.seen import Seen
from tenure.dashboard.board.source import Listener, PodLine
from tenure.dashboard.fleet.frame import Inputs
from tenure.dashboard.fleet.values import Frame, Lane
from tenure.errors import Forbidden, NotFound, TenureError, Unavailable
from tenure.kube.cache.informer import in_words
from tenure.kube.client.client import Client
from tenure.kube.client.credentials import credentials_for
from tenure.kube.client.http import HttpTransport
from tenure.model.api.resource import Resource
from tenure.model.settings import Settings
from tenure.ports.provider import Provider
from tenure.ports.transport import Transport
from tenure.runtime.clock.system import SystemClock
from tenure.runtime.clock.wakeup import Waker
from tenure.runtime.observe.crds import read_crds, watch_crds
from tenure.runtime.observe.view import DISPENSABLE, View
from tenure.runtime.readonly import LookOnlyTransport
from tenure.runtime.telemetry.ring import RingJournal
from tenure.sim.cloud.remote import EmbeddedCloud, state_at

_TOO_EARLY: Final = "the cluster is still being read"


class LiveCluster:
    """A ``Source``."""

    def __init__(self, chosen: ChosenCluster, page: LookPage | None = None) -> None:
        """``page``: served for as long as the cluster is looked at."""
        self._chosen, self._page = chosen, page
        self._stopped = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._questions = Questions(self._wake)
        self._look: Look | None = None
        self._lanes = Lanes()

    @property
    def title(self) -> str:
        return self._chosen.reached.access.server

    def run(self, listener: Listener) -> None:
        """Until stopped. Raises ``CannotRead``, or another ``TenureError`` for input that cannot be used."""
        if not self._stopped:
            with suppress(asyncio.CancelledError):
                asyncio.run(self._run(listener))

    def stop(self) -> None:
        self._stopped = True
        self._questions.close()
        loop, task = self._loop, self._task
        if loop is not None and task is not None:
            with suppress(RuntimeError):  # It ended meanwhile.
                loop.call_soon_threadsafe(task.cancel)

    def explain(self, subject: str, width: int) -> str:
        return self._questions.ask(lambda: explained(subject, self._evaluated(), width))

    def pods(self, key: str) -> tuple[PodLine, ...]:
        return self._questions.ask(lambda: pods_of(key, self._evaluated()))

    def lane(self, key: str) -> Lane | None:
        return self._questions.ask(lambda: self._lanes.lane(key, self._evaluated()))

    def _wake(self) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._questions.answer)

    def _evaluated(self) -> EvaluatedCluster:
        if self._look is None or self._look.turns.evaluated_at is None:
            raise Unavailable(_TOO_EARLY)
        return self._look.evaluated()

    def _told(self, listener: Listener) -> Callable[[Frame], None]:
        def told(frame: Frame) -> None:
            self._lanes.record(frame)
            listener.show(frame)

        return told

    async def _run(self, listener: Listener) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        reached, clock = self._chosen.reached, SystemClock()
        credentials = credentials_for(reached.access, clock)
        with plain_errors(reached):
            async with HttpTransport(reached.access, credentials) as transport:
                door = LookOnlyTransport(transport)
                look = self._look = await _begun(door, self._chosen, listener)
                try:
                    await look.live(self._told(listener), self._page)
                except* (TenureError, OSError) as group:
                    raise _first(group) from None


async def _begun(transport: Transport, chosen: ChosenCluster, listener: Listener) -> Look:
    async with asyncio.timeout(READ_MAX.total_seconds()):
        served_by_up, server = await greet(transport)
        embedded = served_by_up and not chosen.settings.beside_karpenter
        clock = FollowedClock(SystemClock())
        clock.follow(server, chosen.settings, embedded=served_by_up)
        notes = list(chosen.notes)
        settings = await named(Client(transport), chosen.settings, notes)
        provider = chosen.provider
        if embedded:
            provider = EmbeddedCloud(await state_at(transport))
        return Look(
            transport=transport,
            settings=settings,
            provider=provider,
            clock=clock,
            server=chosen.reached.access.server,
            name=chosen.name,
            listener=listener,
            notes=tuple(notes),
            served_by_up=served_by_up,
        )


class Look:
    """One look at a cluster, from the first greeting to the end."""

    def __init__(
        self,
        *,
        transport: Transport,
        settings: Settings,
        provider: Provider,
        clock: FollowedClock,
        server: str,
        name: str,
        listener: Listener,
        notes: tuple[str, ...],
        served_by_up: bool,
    ) -> None:
        self._settings, self._clock, self._notes = settings, clock, notes
        self._name = name or settings.cluster_name
        beside = settings.beside_karpenter
        embedded = served_by_up and not beside
        self._client = Client(transport)
        self._refused: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._unread: dict[Resource, str] = {}
        self._view = View(
            self._client,
            node_classes=() if beside else provider.node_classes,
            clock=clock,
            random=Random(server),
            report=self._reported,
            settings=settings,
        )
        waker = Waker(clock, settings.turn_gap)
        self._waker = waker
        seen = Seen(self._view.cache, provider, [], beside=beside, wake=waker.wake)
        self.turns = Turns(
            cache=self._view.cache,
            seen=seen,
            clock=clock,
            waker=waker,
            settings=settings,
            stopwatch=time.monotonic,
            failed=lambda error: self._fault("what could be consolidated", error),
        )
        self._faults: dict[str, str] = {}
        self._leaders = Leadership(self._client, settings, clock, embedded=embedded)
        self._cloud = CloudLooks(
            transport, self._client, provider, settings, clock, seen, embedded=embedded
        )
        self._connection = Connection(
            transport,
            clock,
            settings,
            embedded=served_by_up,
            server=server,
            moved=self.turns.clock_moved,
            lost=listener.connection,
        )

    async def live(self, tell: Callable[[Frame], None], page: LookPage | None = None) -> None:
        """Until cancelled. Raises ``CannotRead`` for a kind that nothing can be said without."""
        async with asyncio.TaskGroup() as tasks:

            def go(work: Coroutine[Any, Any, None]) -> None:
                tasks.create_task(work)

            go(self._view.run())
            go(self._connection.watch())
            go(self._until_refused())
            go(self._leaders.run())
            await self._view.until_synced()
            self._view.wake_on_change(self._waker.wake)
            if self._settings.beside_karpenter:
                await read_crds(self._client, self._view.cache)
                go(watch_crds(self._client, self._view.cache))
            else:
                go(self._plan())
            go(self._cloud.run())
            go(self.turns.run())
            await self.turns.until_evaluated()
            go(Frames(self.inputs, tell).run())
            if page is not None:
                fault = partial(self._fault, "an answer for the page")
                go(page.serve(self, self._clock.now(), fault))

    async def _plan(self) -> None:
        """What could be consolidated: nothing is, by types that are not known yet."""
        await self._cloud.until_looked()
        await self.turns.planner.run()

    def evaluated(self) -> EvaluatedCluster:
        return EvaluatedCluster(
            at=self._clock.now(),
            snapshot=self.turns.snapshot(),
            evaluator=self.turns.evaluator,
            settings=self._settings,
            leader=self._leaders.leader,
        )

    @property
    def journal(self) -> RingJournal:
        return self.turns.journal

    @property
    def evaluated_at(self) -> datetime | None:
        return self.turns.evaluated_at

    def inputs(self) -> Inputs:
        return Inputs(
            at=self._clock.now(),
            snapshot=self.turns.snapshot(),
            verdicts=self.turns.evaluator,
            cluster=self._name,
            leader=self._leaders.leader,
            notes=(
                *self._notes,
                *self._still_unread(),
                *self._leaders.notes,
                *self._cloud.notes,
                *self._faults.values(),
            ),
            lost=self._connection.problem,
        )

    def _reported(self, resource: Resource, error: TenureError) -> None:
        """An informer could not list, or lost its watch; it tries again by itself."""
        if not isinstance(error, Forbidden | NotFound):
            return
        what = advice(error, resource)
        said = f"{resource} cannot be listed: {in_words(error)}{f'; {what}' if what else ''}"
        self._unread[resource] = said
        if resource not in DISPENSABLE and not self._view.synced and not self._refused.done():
            self._refused.set_exception(CannotRead(said))

    def _still_unread(self) -> list[str]:
        synced = {one.resource for one in self._view.informers if one.connected}
        return [said for kind, said in self._unread.items() if kind not in synced]

    async def _until_refused(self) -> None:
        await self._refused

    def _fault(self, what: str, error: Exception) -> None:
        self._faults[what] = f"{what} could not be found out: {error!r}"


def _first(group: BaseExceptionGroup[Exception]) -> Exception:
    for one in group.exceptions:
        return _first(one) if isinstance(one, BaseExceptionGroup) else one
    raise AssertionError("a group has an exception")
