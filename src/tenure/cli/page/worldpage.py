"""The page of ``tenure up``: of a world that runs in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Final

from tenure.cli.cluster.evaluated import EvaluatedCluster
from tenure.cli.page.source import PageSource
from tenure.dashboard.fleet.frame import Inputs
from tenure.dashboard.web.files import Files
from tenure.dashboard.web.guards import NONE, LoopbackGuard
from tenure.dashboard.web.server import PageServer
from tenure.dashboard.web.source import About
from tenure.runtime.telemetry.ring import Entry, RingJournal
from tenure.runtime.telemetry.serving import LOOPBACK
from tenure.sim.world import World

CLUSTER: Final = "embedded cluster"
LEADER: Final = "tenure up"


class WorldProgram:
    def __init__(self, world: World, speed: float) -> None:
        self._world, self._speed = world, speed
        self._since = world.now
        self._journal = RingJournal(world.options.settings.journal_size or 1)
        world.history.tell(self._journal)

    def about(self) -> About:
        return About(
            version=version("tenure"),
            cluster=CLUSTER,
            leader=LEADER,
            authentication=NONE,
            since=self._since,
            mode="up",
            speed=None if self._speed == 1 else self._speed,
        )

    def inputs(self) -> Inputs | None:
        controller = self._world.controller
        return Inputs(
            at=self._world.now,
            snapshot=controller.snapshot(),
            verdicts=controller.evaluator,
            cluster=CLUSTER,
            leader=LEADER,
        )

    def entries(self, since: int) -> tuple[Iterable[Entry], int]:
        return self._journal.since(since)

    def evaluated(self) -> EvaluatedCluster:
        controller = self._world.controller
        return EvaluatedCluster(
            at=self._world.now,
            snapshot=controller.snapshot(),
            evaluator=controller.evaluator,
            settings=self._world.options.settings,
        )

    def silence(self) -> str:
        return ""

    def where(self) -> str:
        return CLUSTER


@asynccontextmanager
async def world_page(
    world: World, files: Files, *, port: int, speed: float, failed: Callable[[Exception], object]
) -> AsyncIterator[str]:
    """Its address, for as long as the block lasts. Raises ``OSError``."""
    source = PageSource(WorldProgram(world, speed), speed=speed)
    server = PageServer(source, files, LoopbackGuard(), speed=speed, failed=failed)
    bound = await server.open(LOOPBACK, port)
    try:
        yield f"http://{LOOPBACK}:{bound}"
    finally:
        await server.close()
