"""Asks the cloud of a cluster that is looked at, now and then: types and prices, instances, drift. It is never told anything."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

from tenure.cli.cluster.askcloud import CloudReader
from tenure.cli.cluster.read import namespace_of
from tenure.cli.cluster.seen import Seen, or_note
from tenure.errors import TenureError
from tenure.kube.client.client import Client
from tenure.model.settings import Settings
from tenure.ports.clock import Clock
from tenure.ports.provider import Provider
from tenure.ports.transport import Transport
from tenure.sim.cloud.remote import EmbeddedCloud, state_at

#: Between two looks at types and instances. What ``tenure up`` serves costs nothing to ask.
PERIOD: Final = timedelta(minutes=1)
EMBEDDED_PERIOD: Final = timedelta(seconds=5)
#: Whether an instance has drifted is one question for each: not asked more often than this.
DRIFT_EVERY: Final = timedelta(minutes=15)


class CloudLooks:
    def __init__(
        self,
        transport: Transport,
        client: Client,
        provider: Provider,
        settings: Settings,
        clock: Clock,
        seen: Seen,
        *,
        embedded: bool,
    ) -> None:
        self._transport, self._client, self._provider = transport, client, provider
        self._settings, self._clock, self._seen = settings, clock, seen
        self._embedded = embedded
        self._drift_asked_at: float | None = None
        self._looked = asyncio.Event()
        #: What the last look could not find out.
        self.notes: tuple[str, ...] = ()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self._look()
            except TenureError as error:
                self.notes = (f"the cloud could not be asked: {error}",)
            self._looked.set()
            period = EMBEDDED_PERIOD if self._embedded else PERIOD
            await asyncio.sleep(period.total_seconds())

    async def until_looked(self) -> None:
        """Until it was asked once, whatever came of it."""
        await self._looked.wait()

    async def _look(self) -> None:
        notes: list[str] = []
        provider = await self._told(notes) if self._embedded else self._provider
        seen = self._seen.noting(notes)
        reader = CloudReader(self._client, self._clock, self._settings, seen)
        namespace = await namespace_of(self._client, self._settings, provider, [])
        async with provider.open(reader.surroundings(namespace)) as cloud:
            if self._settings.beside_karpenter:
                seen.observations.repair_statements = cloud.repair_statements
            else:
                await reader.ask(cloud, None, drift=self._asks_drift())
        self.notes = tuple(notes)

    async def _told(self, notes: list[str]) -> Provider:
        """The instances of an embedded cluster are known to the process that serves it alone."""
        state = await or_note(lambda: state_at(self._transport), None, "the embedded cloud", notes)
        return EmbeddedCloud(state)

    def _asks_drift(self) -> bool:
        if self._embedded:
            return False
        now, last = self._clock.monotonic(), self._drift_asked_at
        if last is not None and now < last + DRIFT_EVERY.total_seconds():
            return False
        self._drift_asked_at = now
        return True
