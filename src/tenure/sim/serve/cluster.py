"""An embedded cluster with Tenure in it, served: the world on a paced loop behind an API.

The cluster's clock begins at the real now and keeps to it at speed 1. A fault in an actor is
told and the cluster goes on, as a cluster does when one of its controllers stumbles; only the
end of Tenure itself ends it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

import msgspec

from tenure.sim.actors.kubelet.completion import Completion
from tenure.sim.actors.kubelet.podevents import PodEvents
from tenure.sim.apiserver.api import Api
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.cloud.remote import PATH, CloudState, as_json
from tenure.sim.cloud.standins import STAND_INS
from tenure.sim.serve.access import Access, opened
from tenure.sim.serve.controllers.endpoints import Endpoints
from tenure.sim.serve.controllers.everycluster import furnish
from tenure.sim.serve.controllers.revisions import keep_revisions
from tenure.sim.serve.lease import elector_of, unheld_lease
from tenure.sim.serve.notices import LabelledNodes
from tenure.sim.serve.pace import PacedLoop
from tenure.sim.serve.welcome import WELCOME, PublishedImages
from tenure.sim.world import World, WorldOptions


class ServedCluster:
    def __init__(
        self,
        options: WorldOptions | None = None,
        *,
        speed: float = 1.0,
        objects: Iterable[Obj] = WELCOME,
        prepare: Callable[[World], object] | None = None,
        report: Callable[[str], object],
    ) -> None:
        """``report`` is told of faults, one line each.

        Begins at the real now; with ``prepare``, which fills the world, at the instant of its options.
        """
        options = options or WorldOptions()
        if prepare is None:
            options = _with_stand_ins(options)
            options = msgspec.structs.replace(options, epoch=datetime.now(UTC))
        self._loop = PacedLoop(speed)
        self.world = World(options, loop=self._loop)
        if prepare is not None:
            prepare(self.world)
        self._report = report
        self._loop.set_exception_handler(self._on_fault)
        for manifest in (unheld_lease(options.settings), *objects):
            self.world.apply(manifest)
        furnish(self.world.store)
        keep_revisions(self.world.store)
        PublishedImages(self.world, report=report)
        LabelledNodes(self.world, report=report)
        self.world.kubelets.set_completion(Completion(self.world.store))
        Endpoints(self.world.environment, self.world.store)
        PodEvents(self.world.environment, self.world.store, self.world.kubelets.is_alive)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.world.close()

    @property
    def loop(self) -> PacedLoop:
        return self._loop

    @asynccontextmanager
    async def served(self, port: int = 0) -> AsyncIterator[Access]:
        """Serve it for as long as the block lasts. Raises ``OSError`` when the port is taken."""
        # Not the checked API that Tenure uses: what users do is no violation of Tenure's.
        api, clock = Api(self.world.store), self.world.environment.clock
        speed, report = self._loop.speed, self._report
        more = {PATH: self._cloud}
        async with opened(api, clock, port=port, speed=speed, report=report, more=more) as access:
            store, settings = self.world.store, self.world.options.settings
            elector = elector_of(store, clock, settings, loop=self._loop, report=report)
            self.world.start_elected(elector)
            try:
                yield access
            finally:
                self.world.store.end_watches()

    def _cloud(self) -> bytes:
        """For ``tenure explain`` and others that look from outside."""
        cloud = self.world.cloud
        return as_json(
            CloudState(
                node_classes=cloud.node_classes, types=cloud.types, instances=cloud.instances()
            )
        )

    def _on_fault(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, ConnectionError | TimeoutError):
            return  # A client that closed its connection: no fault.
        what = f"{type(error).__name__}: {error}" if error else context.get("message", "unknown")
        self._report(f"a fault of ours: {what}")


def _with_stand_ins(options: WorldOptions) -> WorldOptions:
    """Users bring along their node classes of AWS; beside Karpenter nothing is launched for them."""
    if options.settings.beside_karpenter:
        return options
    more = {"stands_in_for": STAND_INS, "makes_classes_ready": True}
    infrastructure = msgspec.structs.replace(options.infrastructure, **more)
    return msgspec.structs.replace(options, infrastructure=infrastructure)
