"""An embedded cluster with Tenure at work in it, in virtual time.

The store, the actors and the cloud are the world; the controller is the production one,
with the production client and informers, on the in-process transport. Nothing runs
between two calls of ``run``: the world stands still until it is asked to go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from tenure.core.decider import AnyDecider
from tenure.core.policy.deciders import deciders
from tenure.errors import TenureError
from tenure.kube.lease.elector import Elector
from tenure.model.settings import Settings
from tenure.ports.cloud import Cloud
from tenure.ports.fence import OPEN, Fence
from tenure.ports.transport import Transport
from tenure.runtime.controller import Controller
from tenure.sim.actors.pdb.controller import PdbController
from tenure.sim.actors.scheduling.scheduler import Scheduler
from tenure.sim.actors.workloads.daemonset import DaemonSets
from tenure.sim.actors.workloads.deployment import Deployments
from tenure.sim.actors.workloads.job import Jobs
from tenure.sim.actors.workloads.replicaset import ReplicaSets
from tenure.sim.actors.workloads.statefulset import StatefulSets
from tenure.sim.apiserver.applying import apply_manifest
from tenure.sim.apiserver.faulty import FaultyTransport
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.transport import InProcessTransport
from tenure.sim.check.checkers import Checkers
from tenure.sim.check.rules import Violation
from tenure.sim.check.transport import CheckedApi
from tenure.sim.history import History
from tenure.sim.infrastructure import Infrastructure, InfrastructureOptions
from tenure.sim.virtual.environment import Environment
from tenure.sim.virtual.hostclock import HostClock
from tenure.sim.virtual.loop import VirtualLoop

#: A Monday morning, far from daylight-saving changes.
DEFAULT_EPOCH: Final = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)


class WorldOptions(msgspec.Struct, frozen=True, kw_only=True):
    epoch: datetime = DEFAULT_EPOCH
    seed: int = 0
    settings: Settings = Settings()
    infrastructure: InfrastructureOptions = InfrastructureOptions()
    #: How fast ReplicaSets create pods; None: all at once.
    pods_per_second: float | None = None
    #: Pace against real time; None runs flat out.
    speed: float | None = None


class World:
    def __init__(
        self, options: WorldOptions | None = None, *, loop: VirtualLoop | None = None
    ) -> None:
        self.options = options or WorldOptions()
        self.loop = loop or VirtualLoop(self.options.speed)
        env = Environment(self.loop, epoch=self.options.epoch, seed=self.options.seed)
        self.environment = env
        self.store = Store(env.clock, env.random_for("store"), env.at, env.soon)
        self.history = History(env.clock)
        self.infrastructure = Infrastructure(env, self.store, self.options.infrastructure)
        self.cloud = self.infrastructure.cloud
        self.kubelets = self.infrastructure.kubelets
        self.scheduler = Scheduler(env, self.store)
        self.replica_sets = ReplicaSets(
            env, self.store, pods_per_second=self.options.pods_per_second
        )
        self.deployments = Deployments(env, self.store, self.replica_sets.pods)
        self.daemon_sets = DaemonSets(env, self.store)
        self.stateful_sets = StatefulSets(env, self.store)
        self.jobs = Jobs(env, self.store)
        self.pdb_controller = PdbController(env, self.store)
        self.checkers = Checkers(
            env,
            self.store,
            self.cloud,
            self.options.settings,
            self._note_violation,
            clock_offset=lambda: self.infrastructure.faults.current.clock_offset,
        )
        self.api = CheckedApi(self.store, self.checkers)
        #: What Tenure is given at its next start; a story may put something of its own in between.
        self.transport: Transport = FaultyTransport(
            InProcessTransport(self.api), self.infrastructure.faults, env.random_for("transport")
        )
        self.cloud_api: Cloud = self.cloud
        self._fence: Fence = OPEN
        #: Of the machine that Tenure runs on.
        self.host_clock = HostClock(env.clock, self.infrastructure.faults)
        self.errors: list[TenureError] = []
        self.controller = self._new_controller()
        self._running: asyncio.Task[None] | None = None
        self._down = False
        # A fault in an actor must end the run, not disappear in a log.
        self._broken: BaseException | None = None
        self.loop.set_exception_handler(self._on_error)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
        if error is None:
            self.checkers.assert_kept()

    def choose(self, settings: Settings) -> Sequence[AnyDecider]:
        """The deciders that Tenure has; a test may give it others."""
        return deciders(settings)

    def _new_controller(self) -> Controller:
        return Controller(
            transport=self.transport,
            cloud=self.cloud_api,
            clock=self.host_clock,
            journal=self.history,
            settings=self.options.settings,
            random=self.environment.random_for("tenure"),
            fence=self._fence,
            choose=self.choose,
            report=self.errors.append,
            warn=lambda sentence: self.history.note("host", "Clock", "Warning", sentence),
        )

    @property
    def now(self) -> datetime:
        return self.environment.now()

    @property
    def elapsed(self) -> timedelta:
        return self.now - self.options.epoch

    # -- what a user does ------------------------------------------------------------

    def apply(self, manifest: Mapping[str, Any]) -> Obj:
        """Create the object, or merge the manifest into the one that is there."""
        return apply_manifest(self.store, manifest)

    # -- time ------------------------------------------------------------------------

    def start(self) -> None:
        """Start Tenure, for the first time or again after ``crash``; ``run`` does it unasked."""
        self._down = False
        if self._running is None:
            self.checkers.instances.tenure_started()
            self._running = self.loop.create_task(self.controller.run())

    def start_elected(self, elector: Elector) -> None:
        """Start Tenure as a replica that acts while it holds the Lease."""
        self._fence = elector.fence
        self._running = self.loop.create_task(elector.run(self._term))

    async def _term(self) -> None:
        self.controller = self._new_controller()
        self.checkers.instances.tenure_started()
        await self.controller.run()

    def crash(self, *, stay_down: bool = False) -> None:
        """End Tenure without a word, at this instant; its memory is lost.

        The next ``run`` starts it again, or, if it is to stay down, the next ``start``.
        """
        self._stop()
        self._down = stay_down
        self.controller = self._new_controller()

    def set_settings(self, settings: Settings) -> None:
        """An operator starts Tenure again with other settings; its memory is lost."""
        self._stop()
        self.options = msgspec.structs.replace(self.options, settings=settings)
        self.checkers.settings = settings
        self.controller = self._new_controller()

    def run(self, for_: timedelta) -> None:
        """Let that much time pass."""
        if not self._down:
            self.start()
        try:
            self.loop.run_until_complete(self._pass(for_))
        except RuntimeError:
            if self._broken is None:
                raise
        if self._broken is not None:
            raise self._broken

    def run_until(self, instant: datetime) -> None:
        self.run(max(instant - self.now, timedelta(0)))

    def run_while(
        self, condition: Callable[[], bool], *, at_most: timedelta, step: timedelta
    ) -> bool:
        """Go on, a step at a time, while the condition holds. False when it still does."""
        end = self.now + at_most
        while condition():
            if self.now >= end:
                return False
            self.run(step)
        return True

    def close(self) -> None:
        self._stop()
        self.loop.close()

    async def _pass(self, span: timedelta) -> None:
        if self._running is None:
            return await asyncio.sleep(span / timedelta(seconds=1))
        sleeper = asyncio.ensure_future(asyncio.sleep(span / timedelta(seconds=1)))
        await asyncio.wait({sleeper, self._running}, return_when=asyncio.FIRST_COMPLETED)
        if self._running.done():
            sleeper.cancel()
            self._running.result()  # Raises what ended it.
        return None

    def _note_violation(self, violation: Violation) -> None:
        self.history.note("checker", "Promise", "Broken", f"{violation.rule}: {violation.message}")

    def _on_error(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception") or RuntimeError(context.get("message", "unknown"))
        self._broken = self._broken or error
        self.loop.stop()

    def _stop(self) -> None:
        if self._running is None:
            return
        self._running.cancel()
        self.loop.run_until_complete(asyncio.gather(self._running, return_exceptions=True))
        self._running = None
