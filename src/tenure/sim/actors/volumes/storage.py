"""Storage, wired together: claims, volumes, and where they are attached.

What a cluster without volumes pays for it is one look at each written pod.
"""

from __future__ import annotations

from collections.abc import Callable

from tenure.sim.actors.volumes.attaching import AttachDetach
from tenure.sim.actors.volumes.binding import ClaimBinder
from tenure.sim.actors.volumes.driver import VolumeDriver, VolumeTimings
from tenure.sim.actors.volumes.uses import ClaimKey, ClaimUses
from tenure.sim.apiserver.store.store import Store
from tenure.sim.virtual.environment import Environment
from tenure.sim.virtual.faults import FaultSwitch


class Storage:
    def __init__(
        self,
        environment: Environment,
        store: Store,
        *,
        alive: Callable[[str], bool],
        timings: VolumeTimings | None = None,
        faults: FaultSwitch | None = None,
    ) -> None:
        """``alive``: whether that node's kubelet is at work."""
        timings = timings or VolumeTimings()
        uses = ClaimUses(store, self._used)
        self.attachments = AttachDetach(
            environment, store, uses, alive=alive, faults=faults or FaultSwitch()
        )
        self.driver = VolumeDriver(environment, store, timings)
        self.binder = ClaimBinder(
            environment, store, uses, self.attachments, provision_for=timings.provision_for
        )
        self.attachments.on_detached(self.binder.discard_released)

    def _used(self, claim: ClaimKey) -> None:
        self.attachments.look(claim)
        self.binder.look(claim)
