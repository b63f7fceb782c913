"""The cluster as far as we have heard: one informer for each kind, and the cache they fill.

A view runs whether or not its replica leads: one that takes over knows everything already,
and judges all of it anew. While nobody judges, what changes is not kept as a change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from tenure.errors import TenureError
from tenure.kube.cache import Cache
from tenure.kube.client import Client
from tenure.kube.informer import Informer
from tenure.model import resource as r
from tenure.model.resource import Resource
from tenure.ports.clock import Clock

#: What deciders read. The provider's node classes come on top.
WATCHED: Final = (
    r.NODE_POOLS,
    r.NODE_CLAIMS,
    r.NODES,
    r.PODS,
    r.DAEMON_SETS,
    r.POD_DISRUPTION_BUDGETS,
    r.MAINTENANCE_WINDOWS,
    r.PERSISTENT_VOLUMES,
    r.VOLUME_ATTACHMENTS,
)


class View:
    def __init__(
        self,
        client: Client,
        *,
        node_classes: Sequence[Resource],
        clock: Clock,
        random: Random,
        report: Callable[[Resource, TenureError], None] = lambda *_: None,
    ) -> None:
        self._clock = clock
        self._listed = asyncio.Event()
        self.cache = Cache()
        self.informers = [
            Informer(
                client,
                resource,
                self.cache,
                clock=clock,
                random=random,
                report=report,
                listed=self._look_whether_synced,
            )
            for resource in (*WATCHED, *node_classes)
        ]
        self.rest()

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for informer in self.informers:
                tasks.create_task(informer.run())

    def wake_on_change(self, wake: Callable[[], None]) -> None:
        """Somebody judges from now on: keep the changes for him, and call him."""
        self.cache.take_changes()
        self.cache.wake = wake

    def rest(self) -> None:
        """Nobody judges: changes that nobody takes would pile up."""
        self.cache.wake = self.cache.forget_changes

    @property
    def synced(self) -> bool:
        """Whether every kind has been listed; before that nothing can be judged."""
        return self._listed.is_set()

    async def until_synced(self) -> None:
        await self._listed.wait()

    @property
    def outdated(self) -> str:
        """What of it is too old to take anything away on its word; empty when nothing is."""
        now = self._clock.monotonic()
        old = [str(one.resource) for one in self.informers if not one.is_fresh(now)]
        return f"nothing is heard of {', '.join(old)}" if old else ""

    def _look_whether_synced(self) -> None:
        if all(informer.synced for informer in self.informers):
            self._listed.set()
