"""Plans are made beside the loop: in slices, while it rests, and the same in every run."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tenure.core.decision import Subject
from tenure.core.disrupt.consolidation.subject import PLAN, PLANNED_NODE
from tenure.model.api.meta import ApiObject
from tenure.model.api.names import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from tenure.model.settings import Settings
from tenure.model.snapshot.consolidation import ConsolidationPlan
from tenure.model.snapshot.observations import Observations
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.values.fact import Fact
from tenure.packing.consolidate.facts import WellUsed
from tenure.runtime.clock.heartbeat import Heartbeat
from tenure.runtime.clock.wakeup import Waker
from tenure.runtime.consolidation.planner import PATIENCE, SLICE, ConsolidationPlanner
from tenure.runtime.consolidation.triggers import LATE
from tenure.runtime.observe.store import ObservationStore
from tenure.sim.virtual.loop import VirtualClock, VirtualLoop
from tests.core.build import (
    NOW,
    SETTINGS,
    a_claim,
    a_class,
    a_node,
    a_pending_pod,
    a_pod,
    a_pool,
    types,
)
from tests.snapshots import snapshot_with

SOLD = {INSTANCE_TYPE: "small", ZONE: "zone-a", CAPACITY_TYPE: "on-demand"}


def two_nodes(*more: ApiObject, seen: Mapping[str, datetime] | None = None) -> Snapshot:
    """Their pods fit on one. ``seen``: when pods were first seen to wait."""
    each = [
        one
        for name in "ab"
        for one in (
            a_claim(name),
            a_node(f"node-{name}", claim=name, labels=SOLD),
            a_pod(f"web-{name}", node=f"node-{name}"),
        )
    ]
    observations = Observations(instance_types=types(), waiting_seen=seen or {})
    return snapshot_with(a_class(), a_pool(), *each, *more, observations=observations)


class Bench:
    def __init__(
        self,
        settings: Settings = SETTINGS,
        *,
        broken: bool = False,
        arrive_for: timedelta = timedelta(0),
        look: float = 1.0,
    ) -> None:
        """``arrive_for``: so long a pod that waits for a node comes all the time.

        ``look``: seconds between two looks at the stopwatch.
        """
        self._arrive_for, self._look = arrive_for, look
        self.loop = VirtualLoop()
        self.clock = VirtualClock(self.loop, datetime(2026, 3, 2, 12, tzinfo=UTC))
        self.waker = Waker(self.clock, settings.turn_gap)
        self.heartbeat = Heartbeat(self.clock, self.waker)
        self.store = ObservationStore()
        self.slices = 0
        self.times: list[float] = []
        self.lasted: list[float] = []
        self.errors: list[Exception] = []
        self._broken = broken
        self.planner = ConsolidationPlanner(
            clock=self.clock,
            heartbeat=self.heartbeat,
            observations=self.store.consolidation,
            snapshot=self._snapshot,
            settings=settings,
            stopwatch=self._stopwatch,
            made=self._made,
            sliced=self.lasted.append,
            failed=self.errors.append,
        )

    def _snapshot(self) -> Snapshot:
        if self._broken:
            raise KeyError("metadata")
        if self.clock.now() >= NOW + self._arrive_for:
            return two_nodes()
        new = a_pending_pod("new")
        return two_nodes(new, seen={new.uid: self.clock.now()})

    def _stopwatch(self) -> float:
        """By itself each look takes longer than a slice may: so there is a slice for each step."""
        self.slices += 1
        return self.slices * self._look

    def _made(self, plan: ConsolidationPlan, took: float) -> None:
        self.times.append(took)

    def run(self, work: Coroutine[Any, Any, None] | None = None, seconds: float = 5.0) -> None:
        try:
            self.run_more(seconds, work)
        finally:
            self.close()

    def run_more(self, seconds: float, work: Coroutine[Any, Any, None] | None = None) -> None:
        async def both() -> None:
            task = asyncio.ensure_future(self.planner.run())
            if work is not None:
                await work
            await asyncio.sleep(seconds)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        self.loop.run_until_complete(both())

    def close(self) -> None:
        self.loop.close()

    @property
    def plan(self) -> ConsolidationPlan | None:
        return self.store.consolidation.plan


def test_a_plan_is_an_observation() -> None:
    bench = Bench()
    bench.run()
    assert bench.plan is not None
    assert bench.plan.at == NOW
    move, *_ = bench.plan.moves
    assert (len(move.nodes), move.launches, move.saves, move.pods) == (1, (), 100_000, 1)
    first, *nodes = bench.store.take_observed()
    assert first == PLAN
    assert nodes == [Subject(PLANNED_NODE, "node-a"), Subject(PLANNED_NODE, "node-b")]
    assert len(bench.times) == 1


def test_no_plan_is_made_while_nodes_are_launched_for_pods() -> None:
    bench = Bench(arrive_for=timedelta(minutes=1))
    bench.run(seconds=59)
    assert bench.plan is None
    bench = Bench(arrive_for=timedelta(minutes=1))
    bench.run(seconds=75)
    assert bench.plan is not None


def test_pods_that_never_cease_to_arrive_put_a_plan_off_for_five_minutes() -> None:
    bench = Bench(arrive_for=timedelta(hours=1))
    bench.run(seconds=LATE - 1)
    assert not bench.times
    bench = Bench(arrive_for=timedelta(hours=1))
    bench.run(seconds=LATE + 15)
    assert len(bench.times) == 1


def test_the_search_waits_while_a_turn_is_due() -> None:
    bench = Bench()

    async def busy() -> None:
        bench.heartbeat.beat()
        await asyncio.sleep(PATIENCE / 2)
        assert bench.slices == 0
        bench.heartbeat.rests(None)
        bench.waker.wake()
        await asyncio.sleep(PATIENCE / 4)
        assert bench.slices == 0
        await bench.waker.wait(None)

    bench.run(busy())
    assert bench.plan is not None


def test_a_loop_that_never_rests_does_not_stop_it() -> None:
    bench = Bench()
    bench.heartbeat.beat()
    bench.run(seconds=200 * PATIENCE)
    assert bench.plan is not None


def test_it_is_suspended_between_two_tries() -> None:
    """Another task runs between the slices of one plan."""
    bench = Bench()
    seen: list[int] = []

    async def other() -> None:
        while bench.plan is None:
            seen.append(bench.slices)
            await asyncio.sleep(0)

    bench.run(other())
    assert len(set(seen)) > 2


def test_no_slice_is_longer_than_it_may_be() -> None:
    """Where a step takes 4 ms: none is begun that would not end in time."""
    bench = Bench(look=0.004)
    bench.run()
    assert bench.plan is not None
    assert len(bench.lasted) > 2
    assert max(bench.lasted) <= SLICE
    assert sum(bench.lasted) == pytest.approx(bench.times[0])


def test_a_plan_that_cannot_be_made_is_reported_and_dropped() -> None:
    bench = Bench(broken=True)
    bench.store.consolidation.planned(ConsolidationPlan(at=NOW))
    bench.run()
    assert bench.plan is None
    (error,) = bench.errors
    assert isinstance(error, KeyError)


def test_without_voluntary_disruption_nothing_is_planned() -> None:
    bench = Bench(Settings(voluntary_disruption=False))
    bench.run()
    assert (bench.plan, bench.slices) == (None, 0)


@pytest.mark.parametrize("same", [True, False])
def test_the_same_plan_again_is_no_news(same: bool) -> None:
    store = ObservationStore()
    store.consolidation.planned(ConsolidationPlan(at=NOW))
    store.take_observed()
    price = 0 if same else 1
    store.consolidation.planned(ConsolidationPlan(at=NOW.replace(hour=13), price=price))
    assert bool(store.take_observed()) != same


def test_only_nodes_of_which_a_plan_says_something_else_are_evaluated_again() -> None:
    store = ObservationStore()
    why: dict[str, tuple[Fact, ...]] = {"n-1": (WellUsed(1, 1),), "n-2": (WellUsed(2, 1),)}
    store.consolidation.planned(ConsolidationPlan(at=NOW, why=why))
    store.take_observed()
    why = {"n-1": (WellUsed(1, 1),), "n-2": (WellUsed(3, 1),), "n-3": ()}
    store.consolidation.planned(ConsolidationPlan(at=NOW, why=why))
    changed = [Subject(PLANNED_NODE, "n-2"), Subject(PLANNED_NODE, "n-3")]
    assert store.take_observed() == [PLAN, *changed]
    store.consolidation.forget()
    assert len(store.take_observed()) == 4
