"""A scenario as a source of frames: played in virtual time, at a multiple of ours, and looked at between two steps."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Final

from tenure.cli.board.answers import explained, pods_of
from tenure.cli.board.lanes import Lanes
from tenure.cli.board.questions import Questions
from tenure.cli.cluster.embedded import scene_of
from tenure.cli.cluster.evaluated import EvaluatedCluster
from tenure.dashboard.board.source import Listener, PodLine
from tenure.dashboard.fleet.frame import FrameMaker, Inputs
from tenure.dashboard.fleet.values import Frame, Lane
from tenure.errors import Unavailable
from tenure.runtime.controller import Controller
from tenure.sim.scenario.context import span
from tenure.sim.scenario.load import load_scenario
from tenure.sim.scenario.run import Simulation

#: As the demo's.
SPEED: Final = 25.0
FASTEST: Final = 3600.0
#: Real seconds between two frames.
_PERIOD: Final = 0.25
LEADER: Final = "Tenure, in the embedded cluster"


class PlayedScenario:
    """A ``Source``. Raises ``SpecError`` for a scenario that cannot be played."""

    def __init__(self, file: Path, speed: float = SPEED, seed: int | None = None) -> None:
        self._scenario, self._speed, self._seed = load_scenario(file), speed, seed
        self._name = file.name
        self._woken = threading.Event()
        self._stopped = False
        self._questions = Questions(self._woken.set)
        self._simulation: Simulation | None = None
        self._maker, self._lanes = FrameMaker(), Lanes()
        self._controller: Controller | None = None

    @property
    def title(self) -> str:
        return self._name

    def run(self, listener: Listener) -> None:
        """Until stopped; at the end of the scenario the cluster stands still."""
        simulation = self._simulation = Simulation(self._scenario, seed=self._seed)
        try:
            due = time.monotonic()
            while not self._stopped:
                listener.show(self.step())
                due = max(due + _PERIOD, time.monotonic())
                self._wait_until(due)
        finally:
            self._questions.close()
            simulation.close()

    def begin(self) -> None:
        """For those who play it step by step, without ``run``."""
        self._simulation = Simulation(self._scenario, seed=self._seed)

    def end(self) -> None:
        """In a thread without an event loop of its own that runs."""
        if self._simulation is not None:
            self._simulation.close()

    def advance(self, end: timedelta, step: timedelta = timedelta(minutes=1)) -> Frame:
        """To that time after the start; the last frame. All of them are recorded."""
        simulation = self._simulation
        assert simulation is not None
        at = simulation.world.elapsed
        while at < end:
            at = min(at + step, end)
            simulation.run_until(at)
            self._lanes.record(self.frame())
        return self.frame()

    def to_the_end(self) -> Frame:
        """As fast as it goes."""
        simulation = self._simulation = Simulation(self._scenario, seed=self._seed)
        try:
            simulation.run_until(simulation.until)
            return self.frame()
        finally:
            simulation.close()

    def step(self) -> Frame:
        """What there is to see after the next stretch of time."""
        simulation = self._simulation
        assert simulation is not None
        if not self.over:
            step = timedelta(seconds=_PERIOD * self._speed)
            simulation.run_until(min(simulation.world.elapsed + step, simulation.until))
        frame = self.frame()
        self._lanes.record(frame)
        return frame

    @property
    def over(self) -> bool:
        simulation = self._simulation
        return simulation is not None and simulation.world.elapsed >= simulation.until

    def frame(self) -> Frame:
        simulation = self._simulation
        assert simulation is not None
        world = simulation.world
        if world.controller is not self._controller:  # It was started anew, with memory of its own.
            self._maker, self._controller = FrameMaker(), world.controller
        end = (f"the scenario has ended, {span(world.elapsed)} after the start",)
        return self._maker.frame(
            Inputs(
                at=world.now,
                snapshot=world.controller.snapshot(),
                verdicts=world.controller.evaluator,
                cluster=self._name,
                leader=LEADER,
                notes=end if self.over else (),
            )
        )

    def _wait_until(self, due: float) -> None:
        while not self._stopped:
            self._questions.answer()
            pause = due - time.monotonic()
            if pause <= 0:
                return
            self._woken.wait(pause)
            self._woken.clear()

    def stop(self) -> None:
        self._stopped = True
        self._questions.close()
        self._woken.set()

    def explain(self, subject: str, width: int) -> str:
        return self._questions.ask(lambda: explained(subject, self._evaluated(), width))

    def pods(self, key: str) -> tuple[PodLine, ...]:
        return self._questions.ask(lambda: pods_of(key, self._evaluated()))

    def lane(self, key: str) -> Lane | None:
        return self._questions.ask(lambda: self._lanes.lane(key, self._evaluated()))

    def _evaluated(self) -> EvaluatedCluster:
        if self._simulation is None:
            raise Unavailable("the scenario has not begun")
        return scene_of(self._simulation.world)


def last_frame(file: Path, seed: int | None) -> Frame:
    """At the end of the scenario, played as fast as it goes."""
    played = PlayedScenario(file, seed=seed)
    return played.to_the_end()
