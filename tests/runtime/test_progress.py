"""A long turn lets others run, and a loop that stands still is found out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.facts import Quoted
from tenure.core.reasons import Reason
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.runtime.clock.heartbeat import STUCK_AFTER, Heartbeat
from tenure.runtime.clock.wakeup import Waker
from tenure.runtime.loop import SLICE
from tenure.runtime.telemetry.serving import not_alive
from tenure.sim.virtual.loop import VirtualClock, VirtualLoop
from tests.builders import MINUTE, SECOND
from tests.runtime.telemetry.test_scrape import Onlooker
from tests.runtime.worlds import Bench

KEYS = 40


class Counting:
    """A decider with many keys, each of which takes half a slice by the stopwatch."""

    concern = Concern.DRAIN

    def __init__(self) -> None:
        self.seconds = 0.0
        self.evaluated: list[str] = []

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return [f"{number:02d}" for number in range(KEYS)]

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> str:
        return key

    def decide(self, view: str, settings: Settings, now: datetime) -> Sequence[Verdict]:
        self.seconds += SLICE / 2
        self.evaluated.append(view)
        subject = Subject("Node", view)
        return [
            Verdict(
                concern=self.concern, subject=subject, reason=Reason.NOT_OURS, facts=(Quoted(""),)
            )
        ]


class Slow(Bench):
    def __init__(self) -> None:
        self.counting = Counting()
        super().__init__()
        self.decider = self.counting
        self.crash()
        self.controller.metrics.stopwatch = lambda: self.counting.seconds


def test_a_long_turn_is_done_in_slices_and_others_run_in_between() -> None:
    """One that leaves nothing over for the next: the evaluator has no stopwatch."""
    with Slow() as story:
        ticks: list[int] = []

        async def others() -> None:
            while len(story.counting.evaluated) < KEYS:
                ticks.append(len(story.counting.evaluated))
                await asyncio.sleep(0)

        task = story.loop.create_task(others())
        story.run(SECOND)
        assert task.done()
        assert story.counting.evaluated == sorted(story.counting.evaluated), "in order, each once"
        assert len(story.counting.evaluated) == KEYS
        assert len(set(ticks)) > KEYS / 3, "others ran between the slices"
        slices = story.controller.metrics.slice_duration._sum.get() / SLICE
        assert slices >= KEYS / 2


def test_a_key_that_takes_long_is_counted_and_named() -> None:
    with Slow() as story:
        story.controller.evaluator._stopwatch = lambda: story.counting.seconds
        decide = story.counting.decide

        def slowly(view: str, settings: Settings, now: datetime) -> Sequence[Verdict]:
            story.counting.seconds += 2 if view == "07" else 0
            return decide(view, settings, now)

        story.counting.decide = slowly  # type: ignore[method-assign]
        warned: list[str] = []
        story.controller.reporter.warn = warned.append
        story.run(SECOND)
        assert warned == [
            "evaluating drain of 07 took 2.1 s, more than 0.5 s: everything else waited"
        ]
        assert story.controller.metrics.over_budget.labels("drain")._value.get() == 1


def test_a_loop_that_stands_still_while_work_is_due_fails_its_health_check() -> None:
    with Bench() as story:
        story.run(MINUTE)
        assert list(not_alive(Onlooker(story))) == []

        async def never() -> float | None:
            await asyncio.Event().wait()
            return None

        story.controller.loop.turn = never  # type: ignore[method-assign]
        story.controller.waker.wake()
        story.run(timedelta(seconds=STUCK_AFTER - 1))
        assert list(not_alive(Onlooker(story))) == []
        story.run(5 * SECOND)
        (why,) = not_alive(Onlooker(story))
        assert why == "the control loop makes no progress: a turn is overdue by 34 s"


def test_a_loop_that_has_nothing_to_do_is_not_overdue() -> None:
    with Bench() as story:
        story.run(60 * MINUTE)
        assert story.controller.heartbeat.overdue() < 5
        assert story.controller.heartbeat.stuck() == ""


def test_it_is_overdue_from_when_the_turn_was_due_and_not_from_the_last_one() -> None:
    loop = VirtualLoop()
    try:
        clock = VirtualClock(loop, datetime.fromisoformat("2026-01-05T08:00:00Z"))
        waker = Waker(clock, timedelta(0))
        heartbeat = Heartbeat(clock, waker)
        waker.wake()
        loop.advance(60)
        assert heartbeat.overdue() == 0, "the first lists may take as long as they need"
        heartbeat = Heartbeat(clock, waker := Waker(clock, timedelta(0)))
        heartbeat.rests(until=100.0)
        loop.advance(90)
        assert heartbeat.overdue() == 0
        loop.advance(110)
        assert heartbeat.overdue() == 10
        heartbeat.rests(until=None)
        loop.advance(1000)
        assert heartbeat.overdue() == 0
        waker.wake()
        loop.advance(1007)
        assert heartbeat.overdue() == 7
        heartbeat.beat()
        assert heartbeat.overdue() == 0
    finally:
        loop.close()
