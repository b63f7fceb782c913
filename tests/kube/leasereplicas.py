"""Replicas that want one Lease, in virtual time, on the embedded store.

The leader acts four times a second, and each act looks at every replica's fence: two that
are open at once end the story. A replica can be cut off, slowed down, paused or killed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from tenure.errors import NotFound, Unavailable
from tenure.kube.client.client import Client
from tenure.kube.lease.elector import Elector
from tenure.kube.lease.secondtenure import SecondTenure
from tenure.kube.lease.status import LeaseRole
from tenure.model.api.resource import LEASES, NAMESPACES
from tenure.model.api.workload import Lease
from tenure.model.settings import BESIDE_LEASE, IN_CHARGE_LEASE, Settings
from tenure.ports.transport import Request, Response, Stream, Transport
from tenure.sim.apiserver.api import Api
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.transport import InProcessTransport
from tenure.sim.virtual.environment import Environment
from tenure.sim.virtual.loop import VirtualLoop, run_virtually
from tests.kube.karpenter import NAME, Karpenter, lease_of

EPOCH = datetime(2026, 1, 5, 8, tzinfo=UTC)
NAMESPACE = "kube-system"
ACT_EVERY = 0.25


def told(story: Callable[[LeaseSetup], Awaitable[None]], *, fresh: bool = False) -> None:
    """``fresh``: there is no Lease yet."""

    async def tell() -> None:
        setup = LeaseSetup()
        try:
            if not fresh:
                await setup.empty_lease()
            await story(setup)
        finally:
            await setup.end()

    run_virtually(tell())


class Way:
    """A replica's way to the API server, with bad days."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self._goes_on = asyncio.Event()
        self._goes_on.set()
        self.down = False
        self.latency = 0.0
        #: Methods whose next answer is lost, after it was carried out.
        self.lose: list[str] = []
        #: Answers to give instead.
        self.instead: dict[str, Response] = {}
        #: By the name of Leases that are listed: an answer to give instead.
        self.listed: dict[str, Response] = {}

    def pause(self) -> None:
        self._goes_on.clear()

    def wake(self) -> None:
        self._goes_on.set()

    async def gate(self) -> None:
        await self._goes_on.wait()

    async def request(self, request: Request) -> Response:
        await self.gate()
        if self.latency:
            await asyncio.sleep(self.latency)
        if self.down:
            raise Unavailable("connection refused")
        if (answer := self.instead.get(request.method)) is not None:
            return answer
        for name, answer in self.listed.items():
            if request.query.get("fieldSelector") == f"metadata.name={name}":
                return answer
        response = await self._inner.request(request)
        if request.method in self.lose:
            self.lose.remove(request.method)
            raise Unavailable("connection reset")
        await self.gate()
        return response

    async def stream(self, request: Request) -> Stream | Response:
        raise AssertionError("a Lease is never watched")


class Skewed:
    def __init__(self, environment: Environment, by: timedelta) -> None:
        self._environment = environment
        self._by = by

    def now(self) -> datetime:
        return self._environment.now() + self._by

    def monotonic(self) -> float:
        return self._environment.clock.monotonic()


class Replica:
    def __init__(self, setup: LeaseSetup, name: str, skew: timedelta, **more: Any) -> None:
        self.name = name
        self.said: list[str] = []
        self.warned: list[str] = []
        self.way = Way(setup.transport)
        #: Seconds for which the machine was suspended: no timer of ours counted them.
        self.suspended = 0.0
        self._stage = setup
        self.beside = more.pop("beside", False)
        settings = Settings(
            lease_namespace=more.pop("namespace", NAMESPACE),
            lease_name=BESIDE_LEASE if self.beside else IN_CHARGE_LEASE,
            beside_karpenter=self.beside,
        )
        client, steady = Client(self.way), self._steady
        self.second = SecondTenure(client, settings, steady=steady, warn=self._warns)
        self.elector = Elector(
            client=client,
            clock=Skewed(setup.environment, skew),
            settings=settings,
            identity=name,
            say=self.said.append,
            warn=self._warns,
            steady=steady,
            in_charge=self.second if self.beside else None,
            **more,
        )
        #: Instants at which work began.
        self.began: list[float] = []
        self.working = False
        self.task = setup.loop.create_task(self.elector.run(self._lead))

    def _steady(self) -> float:
        return self._stage.loop.time() + self.suspended

    def _warns(self, sentence: str) -> None:
        self.said.append(sentence)
        self.warned.append(sentence)

    @property
    def leads(self) -> bool:
        return self.elector.state.role is LeaseRole.LEADING

    @property
    def sentence(self) -> str:
        return self.elector.state.sentence

    async def stop(self) -> None:
        """Cleanly, as on SIGTERM."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.elector.release()

    def die(self) -> None:
        """As on SIGKILL: nothing leaves any more, and no other is told."""
        self.way.pause()
        self.task.cancel()

    async def _lead(self) -> None:
        self.began.append(self._stage.loop.time())
        self.working = True
        try:
            while True:
                await self.way.gate()
                if not self.elector.fence.closed():
                    self._stage.acted(self)
                await asyncio.sleep(ACT_EVERY)
        finally:
            self.working = False


class LeaseSetup:
    """A store, and all that want the Lease. Made inside of a running virtual loop."""

    def __init__(self, seed: int = 0) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self.loop = loop
        self.environment = env = Environment(loop, epoch=EPOCH, seed=seed)
        self.store = Store(env.clock, env.random_for("store"), env.at, env.soon)
        self.transport = InProcessTransport(Api(self.store))
        self.client = Client(self.transport)
        self.replicas: list[Replica] = []
        self.karpenters: list[Karpenter] = []
        self.acts: list[tuple[float, str]] = []

    def replica(self, name: str, skew: timedelta = timedelta(0), **more: Any) -> Replica:
        replica = Replica(self, name, skew, **more)
        self.replicas.append(replica)
        return replica

    async def karpenter(self, namespace: str = NAMESPACE) -> Karpenter:
        """Karpenter takes the Lease, or makes one, and renews it."""
        karpenter = Karpenter(self.client, self.environment.clock, namespace)
        self.karpenters.append(karpenter)
        try:
            await karpenter.take()
        except NotFound:
            await karpenter.create()
        karpenter.renew()
        return karpenter

    def acted(self, replica: Replica) -> None:
        rivals = (one for one in self.replicas if one.beside == replica.beside)
        open_ = [one.name for one in rivals if not one.elector.fence.closed()]
        assert open_ == [replica.name], "two may act at once"
        self.acts.append((self.loop.time(), replica.name))

    def acts_of(self, replica: Replica, since: float = 0) -> list[float]:
        return [at for at, name in self.acts if name == replica.name and at >= since]

    async def lease(self, namespace: str = NAMESPACE) -> Lease:
        return await lease_of(self.client, namespace)

    async def namespace(self, name: str) -> None:
        await self.client.create(NAMESPACES, {"metadata": {"name": name}})

    async def patch(self, body: dict[str, Any], namespace: str = NAMESPACE) -> None:
        await self.client.patch(LEASES, NAME, body, namespace=namespace)

    async def delete(self, namespace: str = NAMESPACE) -> None:
        lease = await self.lease(namespace)
        await self.client.delete(LEASES, NAME, uid=lease.uid, namespace=namespace)

    async def empty_lease(self) -> None:
        """No replica has held it yet: it is taken at once."""
        await self.client.create(LEASES, {"metadata": {"name": NAME}}, NAMESPACE)

    async def end(self) -> None:
        for karpenter in self.karpenters:
            karpenter.stop()
        for replica in self.replicas:
            replica.die()
        tasks = [replica.task for replica in self.replicas]
        for end in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(end, Exception):
                raise end
