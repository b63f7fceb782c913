"""Karpenter, as far as the Lease is concerned: holds it as client-go does, and knows nothing of us."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from tenure.kube.client.client import Client
from tenure.kube.lease.record import micro_time
from tenure.model.api.resource import LEASES
from tenure.model.api.workload import Lease
from tenure.ports.clock import Clock

NAME = "karpenter-leader-election"
RENEW_EVERY = 2.0


async def lease_of(client: Client, namespace: str) -> Lease:
    return msgspec.json.decode(await client.get(LEASES, NAME, namespace), type=Lease)


class Karpenter:
    def __init__(
        self, client: Client, clock: Clock, namespace: str, name: str = "karpenter-1"
    ) -> None:
        self._client = client
        self._clock = clock
        self.namespace = namespace
        self.name = name
        self._renewing: asyncio.Task[None] | None = None

    async def create(self) -> None:
        body = {"metadata": {"name": NAME}, "spec": self._record(acquired=True, transitions=0)}
        await self._client.create(LEASES, body, self.namespace)

    async def take(self) -> None:
        """The annotations stay, the count goes up."""
        count = (await lease_of(self._client, self.namespace)).spec.lease_transitions
        await self.write(self._record(acquired=True, transitions=count + 1))

    async def give_back(self) -> None:
        self.stop()
        now = micro_time(self._clock.now())
        record = {"holderIdentity": "", "leaseDurationSeconds": 1}
        await self.write({**record, "renewTime": now, "acquireTime": now})

    def renew(self) -> None:
        """Again and again, from now on."""
        self._renewing = asyncio.get_running_loop().create_task(self._renews())

    def stop(self) -> None:
        if self._renewing is not None:
            self._renewing.cancel()

    async def _renews(self) -> None:
        while True:
            await asyncio.sleep(RENEW_EVERY)
            await self.write(self._record())

    async def write(self, spec: dict[str, Any]) -> None:
        await self._client.patch(LEASES, NAME, {"spec": spec}, namespace=self.namespace)

    def _record(self, *, acquired: bool = False, transitions: int | None = None) -> dict[str, Any]:
        now = micro_time(self._clock.now())
        record: dict[str, Any] = {"holderIdentity": self.name, "leaseDurationSeconds": 15}
        record |= {"renewTime": now}
        record |= {"acquireTime": now} if acquired else {}
        return record if transitions is None else {**record, "leaseTransitions": transitions}
