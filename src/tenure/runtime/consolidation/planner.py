"""Makes plans of consolidation beside the loop, in slices, and only while no turn is due.

The nodes are read, which is a question (``core/disrupt/consolidation``); then an answer is searched for. Both
are suspended after each slice and go on where they were. What has changed meanwhile is a matter of
the next plan: each move is checked again before it is made. A plan that cannot be made is reported, and
the last one is dropped; nothing else depends on it. Where pods come and go and plans find nothing, they are made ever
more rarely (``triggers``). While nodes are launched for pods that arrive, no plan is made for
up to five minutes: it would take away what the next pods need.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Final, TypeVar

from tenure.core.decision import Subject, Verdict
from tenure.core.disrupt.consolidation.planned import planned
from tenure.core.disrupt.consolidation.question import Asked, asking
from tenure.core.provision.batch import pods_arrive
from tenure.model.settings import Settings
from tenure.model.snapshot.consolidation import ConsolidationPlan
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.ports.clock import Clock
from tenure.runtime.clock.heartbeat import Heartbeat
from tenure.runtime.consolidation.rejections import Rejections
from tenure.runtime.consolidation.triggers import LATE, Triggers, makes_room
from tenure.runtime.observe.consolidation import ConsolidationObservations

T = TypeVar("T")

#: Seconds for which a slice should keep the event loop, at the most; and after which it begins no further step:
#: a step takes a few milliseconds, and now and then Python collects garbage meanwhile.
SLICE: Final = 0.02
BEGINS: Final = 0.01
#: Seconds between two looks whether the loop rests, and how long that is waited for: in a cluster that
#: changes all the time a slice is done all the same, now and then.
PAUSE: Final = 0.01
PATIENCE: Final = 1.0


class ConsolidationPlanner:
    def __init__(
        self,
        *,
        clock: Clock,
        heartbeat: Heartbeat,
        observations: ConsolidationObservations,
        snapshot: Callable[[], Snapshot],
        settings: Settings,
        stopwatch: Callable[[], float],
        made: Callable[[ConsolidationPlan, float], None],
        sliced: Callable[[float], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """``made``: a plan, and how many seconds it took; ``sliced``: how many one slice took."""
        self._clock, self._heartbeat = clock, heartbeat
        self._observations = observations
        self._snapshot = snapshot
        self._settings = settings
        self._stopwatch = stopwatch
        self._made, self._sliced, self._failed = made, sliced, failed
        self._triggers, self._rejections = Triggers(), Rejections()
        self._woken = asyncio.Event()
        #: When the last plan was made, or the first could have been.
        self._planned_at = clock.monotonic()

    def told(self, changes: Iterable[Change], observed: Iterable[Subject]) -> None:
        """What a turn begins with."""
        before = self._triggers.due_at()
        at = self._clock.monotonic()
        for change in changes:
            self._triggers.changed(change, at)
            self._rejections.changed(change, makes_room=makes_room(change))
        observed = tuple(observed)
        self._triggers.observed(observed)
        self._rejections.observed(observed)
        if self._triggers.due_at() != before:
            self._woken.set()

    def hear(self, verdict: Verdict) -> None:
        """What the pipeline says of a move: where it does not hold, another plan is made without it."""
        if self._rejections.hear(verdict, self._clock.monotonic()):
            self._triggers.rejected()
            self._woken.set()

    @property
    def due_in(self) -> float | None:
        """Seconds until the next plan, if nothing happens before; None: then there is none."""
        due_at = self._triggers.due_at() if self._settings.voluntary_disruption else None
        return None if due_at is None else due_at - self._clock.monotonic()

    async def run(self) -> None:
        """Until cancelled."""
        if not self._settings.voluntary_disruption:
            return
        while True:
            await self._until_due()
            self._triggers.began(self._clock.monotonic())
            try:
                await self._plan()
            except Exception as error:  # noqa: BLE001  # a fault of ours, and no reason to stop
                self._observations.forget()
                self._triggers.ended(changes_at=None, busy=True, again=True)
                self._failed(error)

    async def _until_due(self) -> None:
        while True:
            self._woken.clear()
            due_at = self._triggers.due_at()
            pause = None if due_at is None else due_at - self._clock.monotonic()
            if pause is not None and pause <= 0:
                return
            try:
                async with asyncio.timeout(pause):
                    await self._woken.wait()
            except TimeoutError:
                return

    async def _plan(self) -> None:
        await self._until_rest()
        now, took = self._clock.now(), 0.0
        late = self._clock.monotonic() >= self._planned_at + LATE
        if not late and pods_arrive(self._snapshot(), self._settings, now):
            self._triggers.postponed()
            return
        rejected = self._rejections.at(self._clock.monotonic())
        steps = asking(self._snapshot(), self._settings, now, rejected)
        asked, some = await self._in_slices(steps)
        took += some
        plan, some = await self._in_slices(planned(asked, now))
        took += some
        if asked.waits is None:  # Else the last one may still be of use in a moment.
            self._planned_at = self._clock.monotonic()
            self._observations.planned(plan)
            self._made(plan, took)
        self._ended(asked, plan, now)

    async def _in_slices(self, steps: Iterator[T | None]) -> tuple[T, float]:
        """What the last step gives, and how long all took."""
        took = 0.0
        while True:
            await self._until_rest()
            began = self._stopwatch()
            found = self._slice(steps, began)
            lasted = self._stopwatch() - began
            self._sliced(lasted)
            took += lasted
            if found is not None:
                return found, took

    def _slice(self, steps: Iterator[T | None], began: float) -> T | None:
        for found in steps:
            if found is not None or self._stopwatch() - began >= BEGINS:
                return found
        raise AssertionError("the last step gives what is asked for")

    def _ended(self, asked: Asked, plan: ConsolidationPlan, now: datetime) -> None:
        instants = self._rejections.ends_at, self._on_monotonic(asked.changes_at, now)
        self._triggers.ended(
            changes_at=min((at for at in instants if at is not None), default=None),
            quiet_at=self._on_monotonic(asked.quiet_at, now),
            busy=bool(plan.moves),
            again=asked.waits is not None,
        )

    def _on_monotonic(self, at: datetime | None, now: datetime) -> float | None:
        return None if at is None else self._clock.monotonic() + (at - now).total_seconds()

    async def _until_rest(self) -> None:
        """Others go first, and the loop above all."""
        await asyncio.sleep(0)
        until = self._clock.monotonic() + PATIENCE
        while not self._heartbeat.resting and self._clock.monotonic() < until:
            await asyncio.sleep(PAUSE)
