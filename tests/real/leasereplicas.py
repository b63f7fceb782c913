"""Replicas that want one Lease of a real API server, under the account that is shipped.

Each has a way of its own to the server, which can be cut silently: connections
stay open, and nothing comes through any more. What a leader does, though, goes to the server
directly: only the fence can stop it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from typing import Any, Final

import msgspec

from tenure.errors import NotFound, NotLeader
from tenure.kube.client.client import Client
from tenure.kube.client.credentials import credentials_for
from tenure.kube.client.fence import boottime
from tenure.kube.client.http import HttpTransport
from tenure.kube.client.kubeconfig import load_access
from tenure.kube.lease.elector import Elector
from tenure.kube.lease.status import LeaseRole
from tenure.model.api.resource import LEASES, NAMESPACES
from tenure.model.settings import Settings
from tenure.runtime.clock.system import SystemClock
from testbed.controlplane import ControlPlane
from tests.kube.karpenter import NAME, Karpenter
from tests.real.account import NAMESPACE, account
from tests.real.cluster import PATIENCE, patient

#: As short as the rules allow.
SETTINGS: Final = Settings(
    lease_namespace=NAMESPACE,
    lease_duration=timedelta(seconds=9),
    lease_renew_deadline=timedelta(seconds=4),
    lease_retry=timedelta(milliseconds=500),
)
#: No machine is so slow that this one is over before its story is.
LONG: Final = Settings(
    lease_namespace=NAMESPACE,
    lease_duration=timedelta(minutes=5),
    lease_retry=SETTINGS.lease_retry,
)
DURATION: Final = SETTINGS.lease_duration.total_seconds()
LOOK_EVERY: Final = 0.05
ACT_EVERY: Final = 0.05


class Way:
    """A stretch of wire to the server."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._whole = asyncio.Event()
        self._whole.set()

    def cut(self) -> None:
        self._whole.clear()

    def mend(self) -> None:
        self._whole.set()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        async with asyncio.TaskGroup() as both:
            both.create_task(self._pump(reader, back))
            both.create_task(self._pump(there, writer))

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                await self._whole.wait()
                target.write(data)
        target.close()


class Replica:
    def __init__(
        self, name: str, way: Way, lease: HttpTransport, settings: Settings, *, take_over: bool
    ) -> None:
        self.name = name
        self.way = way
        self.said: list[str] = []
        #: Instants on the steady clock at which an act had been carried out.
        self.acts: list[float] = []
        self.refused = 0
        self.elector = Elector(
            client=Client(lease),
            clock=SystemClock(),
            settings=settings,
            identity=name,
            take_over=take_over,
            say=self.said.append,
        )
        self.work: Client | None = None
        self.task: asyncio.Task[None] | None = None

    def start(self, work: HttpTransport) -> None:
        self.work = Client(work)
        self.task = asyncio.create_task(self.elector.run(self._lead))

    async def stop(self) -> None:
        await self.die()
        await self.elector.release()

    async def die(self) -> None:
        assert self.task is not None
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    @property
    def leads(self) -> bool:
        return self.elector.state.role is LeaseRole.LEADING

    @property
    def held_back(self) -> bool:
        return self.elector.state.role is LeaseRole.HELD_BACK

    async def _lead(self) -> None:
        assert self.work is not None
        note = {"metadata": {"annotations": {"acted": self.name}}}
        while True:
            try:
                await self.work.patch(NAMESPACES, "default", note)
                self.acts.append(boottime())
            except NotLeader:
                self.refused += 1
            await asyncio.sleep(ACT_EVERY)


class LeaseSetup:
    def __init__(self, plane: ControlPlane, users: Client, stack: AsyncExitStack) -> None:
        self.client = users
        self._plane = plane
        self._stack = stack

    async def replica(
        self, name: str, *, take_over: bool = False, settings: Settings = SETTINGS
    ) -> Replica:
        way = Way(self._plane.port)
        server = await asyncio.start_server(way.carry, "127.0.0.1", 0)
        await self._stack.enter_async_context(server)
        port = server.sockets[0].getsockname()[1]
        access = load_access(account(self._plane))
        access = msgspec.structs.replace(access, server=f"https://127.0.0.1:{port}")
        lease = HttpTransport(access, credentials_for(access, SystemClock()))
        transport = await self._stack.enter_async_context(lease)
        replica = Replica(name, way, transport, settings, take_over=take_over)
        users = load_access(self._plane.kubeconfig)
        work = HttpTransport(
            users, credentials_for(users, SystemClock()), fence=replica.elector.fence
        )
        replica.start(await self._stack.enter_async_context(work))
        self._stack.push_async_callback(replica.die)
        self._stack.callback(way.mend)
        return replica

    async def karpenter(self, namespace: str) -> Karpenter:
        """Karpenter takes the Lease, or makes one, and renews it."""
        karpenter = Karpenter(self.client, SystemClock(), namespace)
        self._stack.callback(karpenter.stop)
        try:
            await karpenter.take()
        except NotFound:
            await karpenter.create()
        karpenter.renew()
        return karpenter

    async def until(self, holds: Callable[[], Any], what: str) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                while not holds():
                    await asyncio.sleep(LOOK_EVERY)
        except TimeoutError:
            raise AssertionError(f"not {what} within {PATIENCE:.0f} s") from None


@asynccontextmanager
async def staged(plane: ControlPlane, *, fresh: bool = False) -> AsyncIterator[LeaseSetup]:
    """``fresh``: there is no Lease; otherwise there is one that no replica has held yet."""
    async with AsyncExitStack() as stack:
        users = await stack.enter_async_context(patient(plane.kubeconfig))
        await without_leases(users)
        stack.push_async_callback(without_leases, users)
        if not fresh:
            await users.create(LEASES, {"metadata": {"name": NAME}}, NAMESPACE)
        yield LeaseSetup(plane, users, stack)


async def without_leases(client: Client) -> None:
    items, _ = await client.list_all(LEASES, field_selector=f"metadata.name={NAME}")
    for item in items:
        metadata = msgspec.json.decode(item)["metadata"]
        await client.delete(LEASES, NAME, uid=metadata["uid"], namespace=metadata["namespace"])
