"""A cluster with Tenure beside a Karpenter that is played: it launches, registers, initializes and drains.

It is a second controller in the same embedded cluster: deciders of Tenure that do what Karpenter does, with a
transport of its own. The checkers look at Tenure's requests alone. It replaces nothing by itself, unlike the real one
(``tests/real/beside``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from tenure.core.claim.decider import LifecycleDecider
from tenure.core.claim.garbage import GarbageDecider
from tenure.core.claim.node import NodeDecider
from tenure.core.decider import AnyDecider
from tenure.core.disrupt.emptiness import EmptinessDecider
from tenure.core.provision.decider import ProvisionDecider
from tenure.core.terminate.deadlinestatus import DeadlineDecider
from tenure.core.terminate.decider import TerminationDecider
from tenure.core.terminate.drain import DrainDecider
from tenure.model.settings import Settings
from tenure.runtime.controller import Controller
from tenure.sim.apiserver.api import Api
from tenure.sim.apiserver.transport import InProcessTransport
from tenure.sim.history import History
from tenure.sim.world import World, WorldOptions
from tests.builders import Manifest
from tests.runtime.callfaults import FaultyStory

#: No window, no policy of Tenure's is Karpenter's to read.
SETTINGS: Final = Settings()
BESIDE: Final = Settings(beside_karpenter=True, karpenter_version="1.15")
#: With its feature gates known.
KNOWN: Final = msgspec.structs.replace(BESIDE, karpenter_feature_gates="NodeRepair=false")


def of_karpenter(settings: Settings) -> Sequence[AnyDecider]:
    return (
        TerminationDecider(),
        DrainDecider(),
        DeadlineDecider(),
        LifecycleDecider(),
        NodeDecider(),
        EmptinessDecider(),
        GarbageDecider(),
        ProvisionDecider(settings.protection_clock),
    )


class Accompanied(FaultyStory):
    """Tenure runs beside it from the start; calls of Tenure alone are counted, and may go wrong."""

    def __init__(
        self,
        *manifests: Mapping[str, Any],
        settings: Settings = KNOWN,
        fatal: int = 0,
        do: Any = None,
        **options: Any,
    ) -> None:
        chosen = WorldOptions(settings=settings, **options)
        super().__init__(fatal, do, *(dict(one) for one in manifests), options=chosen)
        self._plays: asyncio.Task[None] | None = None
        self.start_karpenter()

    @property
    def karpenter_runs(self) -> bool:
        return self._plays is not None

    def start_karpenter(self) -> None:
        """Also again, with nothing in its memory."""
        self._plays = self.loop.create_task(_played(self).run())

    def stop_karpenter(self) -> None:
        if self._plays is not None:
            self._plays.cancel()
            self.loop.run_until_complete(asyncio.gather(self._plays, return_exceptions=True))
            self._plays = None

    def close(self) -> None:
        self.stop_karpenter()
        super().close()


def _played(world: World) -> Controller:
    return Controller(
        transport=InProcessTransport(Api(world.store)),
        cloud=world.cloud,
        clock=world.host_clock,
        journal=History(world.environment.clock),
        settings=SETTINGS,
        random=world.environment.random_for("karpenter"),
        choose=of_karpenter,
        report=world.errors.append,
    )


def a_soft_policy(after: str = "30m", **spec: Any) -> Manifest:
    """Its pool says ``expireAfter: Never``."""
    return {
        "apiVersion": "tenure.dev/v1alpha1",
        "kind": "NodePoolPolicy",
        "metadata": {"name": "usual"},
        "spec": {"expireAfter": after, **spec},
    }
