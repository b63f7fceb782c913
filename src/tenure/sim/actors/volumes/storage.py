"""Storage, wired together: claims, volumes, and where they are attached.

What a cluster without volumes pays for it is one look at each written pod.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tenure.model.api.resource import STORAGE_CLASSES
from tenure.sim.actors.nodestatus import STORAGE_DRIVER
from tenure.sim.actors.volumes.attaching import AttachDetach
from tenure.sim.actors.volumes.binding import ClaimBinder
from tenure.sim.actors.volumes.driver import VolumeDriver, VolumeTimings
from tenure.sim.actors.volumes.uses import ClaimKey, ClaimUses
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.store.classes import IS_DEFAULT
from tenure.sim.apiserver.store.store import Store
from tenure.sim.virtual.environment import Environment
from tenure.sim.virtual.faults import FaultSwitch

#: What a claim gets that names no class: as a cloud's block storage.
STANDARD: Final[Obj] = {
    "metadata": {"name": "standard", "annotations": {IS_DEFAULT: "true"}},
    "provisioner": STORAGE_DRIVER,
    "volumeBindingMode": "WaitForFirstConsumer",
}


class Storage:
    def __init__(
        self,
        environment: Environment,
        store: Store,
        *,
        alive: Callable[[str], bool],
        timings: VolumeTimings | None = None,
        faults: FaultSwitch | None = None,
        zones: Sequence[str] = (),
    ) -> None:
        """``alive``: whether that node's kubelet is at work. ``zones``: those of the cloud."""
        timings = timings or VolumeTimings()
        store.create(STORAGE_CLASSES, STANDARD)
        uses = ClaimUses(store, self._used)
        self.attachments = AttachDetach(
            environment, store, uses, alive=alive, faults=faults or FaultSwitch()
        )
        self.driver = VolumeDriver(environment, store, timings)
        self.binder = ClaimBinder(
            environment,
            store,
            uses,
            self.attachments,
            provision_for=timings.provision_for,
            zones=zones,
        )
        self.attachments.on_detached(self.binder.discard_released)

    def _used(self, claim: ClaimKey) -> None:
        self.attachments.look(claim)
        self.binder.look(claim)
