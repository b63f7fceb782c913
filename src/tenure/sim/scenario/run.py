"""Plays a scenario: lets time pass from one line of the script to the next, and watches.

At each instant of the script, in this order: what must hold *at* it is looked at, what
happens at it is done, what must hold from it on begins to be watched: at the end of every
instant in which anything changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.errors import ApiError, InstanceGone, ProviderError
from tenure.model.cloud.offering import MICRO_DOLLARS
from tenure.sim.check.rules import Violation
from tenure.sim.chronicle import Chronicle
from tenure.sim.cloud.billing import Owed, Unpriced
from tenure.sim.scenario.actions import Crash, EndOutage, Start, ZoneOutage, apply
from tenure.sim.scenario.context import Gone, Missing, ScenarioContext, span
from tenure.sim.scenario.findings import ExpectationState, Finding, Watched
from tenure.sim.scenario.load import Scenario
from tenure.sim.scenario.steps import Step
from tenure.sim.scenario.tallies import TALLIES
from tenure.sim.scenario.targets import Filter
from tenure.sim.scenario.worldoptions import with_seed
from tenure.sim.world import World

#: The view of the run is updated at least this often, in the cluster's time.
_SLICE: Final = timedelta(minutes=1)


class Summary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    ended_at: datetime
    instances_launched: int
    instances_ended: int
    nodes: int
    pods_running: int
    pods_pending: int
    #: Dollars; None where nothing of it is known.
    cost: float | None
    hourly: float | None
    instances_of_unknown_price: Unpriced


class Result(msgspec.Struct, frozen=True, kw_only=True):
    scenario: str
    seed: int
    findings: tuple[Finding, ...]
    violations: tuple[Violation, ...]
    summary: Summary

    @property
    def fine(self) -> bool:
        return not self.violations and all(
            one.held is not ExpectationState.FAILED for one in self.findings
        )


class Simulation:
    """One run of a scenario. ``run`` plays it; the world can be looked at in between."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        seed: int | None = None,
        until: timedelta | None = None,
        world: World | None = None,
    ) -> None:
        """``world``: one that has objects already, and the options of this scenario."""
        self.scenario = scenario
        self.until = scenario.until if until is None else until
        self.world = world or World(with_seed(scenario.options, seed))
        self.context = ScenarioContext(self.world)
        Chronicle(self.world)
        self._watched = [Watched(one) for one in scenario.expectations]
        self._failures: list[Finding] = []
        self._script = list(_with_ends(scenario.steps))
        self._seen = (-1, -1)
        self._begun = False
        self.world.loop.on_instant_end.append(self._look)

    def run(self, pause: Callable[[], object] = lambda: None) -> Result:
        """To the end; gives what came of it. ``pause`` is called now and then, time standing still."""
        self.run_until(self.until, pause)
        return self.result()

    def run_until(self, end: timedelta, pause: Callable[[], object] = lambda: None) -> None:
        """Play everything up to and including that instant."""
        self._begin()
        for instant in self._instants(end):
            self._pass(instant, pause)
            self._look_at(instant)
            while self._script and self._script[0].at <= instant:
                self._do(self._script.pop(0))
            self._begin_watching(instant)
        self._pass(end, pause)

    def _pass(self, until: timedelta, pause: Callable[[], object]) -> None:
        while self.world.elapsed < until:
            next_stop = min(self.world.elapsed + _SLICE, until)
            self.world.run_until(self.context.instant(next_stop))
            pause()

    def result(self) -> Result:
        self._look()
        findings = [watched.conclude(self.context) for watched in self._watched]
        return Result(
            scenario=self.scenario.name,
            seed=self.world.options.seed,
            findings=(*self._failures, *findings),
            violations=tuple(self.world.checkers.violations),
            summary=self._summary(),
        )

    def close(self) -> None:
        self.world.close()

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            for manifest in self.scenario.objects:
                apply(self.context, manifest)

    def _instants(self, end: timedelta) -> Iterator[timedelta]:
        """Every instant of the script that is still to come, in order."""
        past = self.world.elapsed
        instants = {step.at for step in self._script}
        instants |= {w.instant for w in self._watched if w.instant is not None}
        instants |= {w.begins for w in self._watched}
        yield from sorted(at for at in instants if past <= at <= end)

    def _do(self, step: Step) -> None:
        try:
            subject, message = step.deed.do(self.context)
        except (Missing, ApiError, ProviderError) as error:
            gone = isinstance(error, Gone | InstanceGone)
            self._failures.append(
                Finding(
                    held=ExpectationState.GONE if gone else ExpectationState.FAILED,
                    expected=f"at {span(step.at)}: {step.verb}",
                    found=str(error),
                    at=self.world.now,
                    place=step.place,
                    step=True,
                )
            )
            subject, message = "Script", f"{step.verb} could not be done: {error}"
        self.world.history.note("script", subject, step.verb, message)

    def _look_at(self, instant: timedelta) -> None:
        for watched in self._watched:
            if watched.instant == instant:
                watched.look(self.context)

    def _begin_watching(self, instant: timedelta) -> None:
        """What spans time is looked at from its beginning, after what happens then."""
        for watched in self._watched:
            if watched.begins == instant and watched.spans(instant):
                watched.look(self.context)

    def _look(self) -> None:
        """The end of an instant: look at what spans time, if anything has changed."""
        if self.context.version == self._seen:
            return
        self._seen = self.context.version
        elapsed = self.world.elapsed
        for watched in self._watched:
            if watched.spans(elapsed):
                watched.look_again(self.context)

    def _summary(self) -> Summary:
        cloud = self.world.cloud
        pods, _ = TALLIES["pods"]
        nodes, _ = TALLIES["nodes"]
        running = pods(self.context, Filter())
        return Summary(
            ended_at=self.world.now,
            instances_launched=cloud.launch_count,
            instances_ended=cloud.termination_count,
            nodes=nodes(self.context, Filter())["count"],
            pods_running=running["running"],
            pods_pending=running["pending"],
            cost=_dollars(cloud.bill.owed(self.world.now)),
            hourly=_dollars(cloud.bill.owed_hourly()),
            instances_of_unknown_price=cloud.bill.unpriced,
        )


def _dollars(owed: Owed) -> float | None:
    return None if owed.amount is None else round(owed.amount / MICRO_DOLLARS, 4)


def _with_ends(steps: tuple[Step, ...]) -> list[Step]:
    """What lasts has a second half: the start after a crash, the end of an outage."""
    script = list(steps)
    for step in steps:
        match step.deed:
            case Crash(down_for=lasts) if lasts:
                script.append(
                    Step(at=step.at + lasts, verb="start", deed=Start(), place=step.place)
                )
            case ZoneOutage(lasts=lasts) if lasts is not None:
                end = EndOutage(step.deed)
                script.append(Step(at=step.at + lasts, verb=step.verb, deed=end, place=step.place))
    return sorted(script, key=lambda step: step.at)
