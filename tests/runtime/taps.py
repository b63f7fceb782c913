"""Between Tenure and its API or cloud: keeps what goes through, and may spoil it.

A tap changes nothing until a story says so: ``spoil`` answers in the server's place,
``lose`` lets a call be carried out and loses its answer, ``freeze`` stops everything that
leaves the process, which is what a crash looks like from outside.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import msgspec

from tenure.errors import ProviderError, Unavailable
from tenure.model.api.meta import ApiObject
from tenure.model.api.nodeclass import NodeClass
from tenure.model.api.resource import Resource
from tenure.model.cloud.drift import Drift
from tenure.model.cloud.instance import Instance, LaunchRequest
from tenure.model.cloud.notice import Notice
from tenure.model.cloud.offering import InstanceType
from tenure.ports.cloud import Cloud
from tenure.ports.transport import Request, Response, Stream, Transport
from tenure.sim.world import World

Spoiler = Callable[[str, str], Any]
T = TypeVar("T")


class Call(msgspec.Struct, frozen=True):
    """One call that changes something: when, which verb, on what."""

    at: float
    verb: str
    what: str
    body: Any = None


class Tap:
    """What the API's and the cloud's tap have in common."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        #: (verb, what) → an answer or an error to give instead, or None to let it through.
        self.spoil: Spoiler = lambda verb, what: None
        self.lose: Callable[[str, str], bool] = lambda verb, what: False
        self.under_way: Counter[str] = Counter()
        self.most_at_once: Counter[str] = Counter()
        self._frozen = False

    def detour(self, way: Callable[[Any], T]) -> T:
        """Put something between the tap and what is behind it."""
        found = way(vars(self)["_inner"])
        vars(self)["_inner"] = found
        return found

    def freeze(self) -> None:
        self._frozen = True

    def thaw(self) -> None:
        self._frozen = False

    @property
    def frozen(self) -> bool:
        return self._frozen

    def of(self, verb: str, what: str = "") -> list[Call]:
        return [call for call in self.calls if call.verb == verb and what in call.what]

    def times(self, verb: str, what: str = "") -> list[float]:
        return [call.at for call in self.of(verb, what)]

    async def _gate(self) -> None:
        while self._frozen:
            await asyncio.Event().wait()

    def _enter(self, verb: str, what: str, target: str, body: Any = None) -> None:
        self.calls.append(Call(asyncio.get_running_loop().time(), verb, what, body))
        for name in (target, ""):  # The empty name counts them all.
            self.under_way[name] += 1
            self.most_at_once[name] = max(self.most_at_once[name], self.under_way[name])

    def _leave(self, target: str) -> None:
        self.under_way[target] -= 1
        self.under_way[""] -= 1


class ApiTap(Tap):
    """A transport. ``what`` is the path; verbs are HTTP's, and EVICT."""

    def __init__(self, inner: Transport) -> None:
        super().__init__()
        self._inner = inner
        #: (verb, target) → seconds that pass before a call that changes something is carried out.
        self.slow: Callable[[str, str], float] = lambda verb, target: 0.0
        #: Seconds by which each kind's watch is late; None: it says nothing at all.
        self.lag: dict[Resource, float | None] = {}
        #: What was read, watches left out.
        self.reads: list[Request] = []

    async def request(self, request: Request) -> Response:
        await self._gate()
        verb = "EVICT" if request.path.endswith("/eviction") else request.method
        if verb == "GET":
            self.reads.append(request)
            return await self._answer(verb, request)
        body: Any = msgspec.json.decode(request.body) if request.body else {}
        target = request.path.removesuffix("/status")
        if verb == "POST":
            target += f"/{body['metadata']['name']}"
        self._enter(verb, request.path, target, body)
        try:
            await asyncio.sleep(self.slow(verb, target))
            return await self._answer(verb, request)
        finally:
            self._leave(target)

    async def _answer(self, verb: str, request: Request) -> Response:
        instead = self.spoil(verb, request.path)
        if isinstance(instead, Exception):
            raise instead
        if instead is not None:
            assert isinstance(instead, Response)
            return instead
        response = await self._inner.request(request)
        await self._gate()
        if self.lose(verb, request.path):
            raise Unavailable(f"the answer to {request.method} {request.path} was lost")
        return response

    async def stream(self, request: Request) -> Stream | Response:
        await self._gate()
        if isinstance(instead := self.spoil("WATCH", request.path), Exception):
            raise instead
        stream = await self._inner.stream(request)
        return stream if isinstance(stream, Response) else _Late(stream, request.path, self)


class _Late:
    """A stream that a tap may hold back."""

    def __init__(self, inner: Stream, path: str, tap: ApiTap) -> None:
        self._inner, self._path, self._tap = inner, path, tap

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for line in self._inner:
            seconds = self._lag()
            if seconds is None or self._tap.frozen:
                await asyncio.Event().wait()
            elif seconds:
                await asyncio.sleep(seconds)
            yield line

    def _lag(self) -> float | None:
        lags = (lag for kind, lag in self._tap.lag.items() if kind.path() == self._path)
        return next(lags, 0.0)

    async def close(self) -> None:
        await self._inner.close()


class CloudTap(Tap):
    """A cloud. ``what`` is the claim's UID of a launch, the provider id of an end."""

    def __init__(self, inner: Cloud) -> None:
        super().__init__()
        self._inner = inner
        self.name = inner.name
        self.node_classes = inner.node_classes
        self.repair_statements = inner.repair_statements
        #: Calls that change nothing: about drift, with the provider id, and images, with the class.
        self.questions: list[Call] = []

    async def instance_types(self, node_class: ApiObject) -> tuple[InstanceType, ...]:
        await self._gate()
        if (error := self.spoil("types", node_class.name)) is not None:
            raise error
        return await self._inner.instance_types(node_class)

    async def launch(self, request: LaunchRequest) -> Instance:
        call = self._inner.launch(request)
        instance: Instance = await self._through("launch", request.claim_uid, call)
        return instance

    async def terminate(self, provider_id: str) -> None:
        await self._through("terminate", provider_id, self._inner.terminate(provider_id))

    async def reboot(self, provider_id: str, operation_id: str) -> None:
        await self._through("reboot", provider_id, self._inner.reboot(provider_id, operation_id))

    async def get(self, provider_id: str) -> Instance:
        instance: Instance = await self._through("get", provider_id, self._inner.get(provider_id))
        return instance

    async def list_instances(self, cluster: str) -> tuple[Instance, ...]:
        await self._gate()
        if (error := self.spoil("list", cluster)) is not None:
            raise error
        return await self._inner.list_instances(cluster)

    async def drift(self, provider_id: str, node_class: NodeClass) -> Drift | None:
        await self._gate()
        self._question("drift", provider_id)
        if (error := self.spoil("drift", provider_id)) is not None:
            raise error
        return await self._inner.drift(provider_id, node_class)

    async def current_image(self, node_class: NodeClass) -> str:
        await self._gate()
        self._question("image", node_class.name)
        if (error := self.spoil("image", node_class.name)) is not None:
            raise error
        return await self._inner.current_image(node_class)

    async def notices(self, cluster: str) -> AsyncIterator[Notice]:
        async for notice in self._inner.notices(cluster):
            await self._gate()
            yield notice

    async def acknowledge(self, notice: Notice) -> None:
        await self._through("acknowledge", notice.provider_id, self._inner.acknowledge(notice))

    def _question(self, verb: str, what: str) -> None:
        self.questions.append(Call(asyncio.get_running_loop().time(), verb, what))

    async def _through(self, verb: str, what: str, call: Any) -> Any:
        try:
            await self._gate()
            self._enter(verb, what, what)
            try:
                if (error := self.spoil(verb, what)) is not None:
                    raise error
                answer = await call
                await self._gate()
            finally:
                self._leave(what)
        finally:
            call.close()
        if self.lose(verb, what):
            raise ProviderError(f"the answer to {verb} {what} was lost")
        return answer


def tapped(world: World) -> tuple[ApiTap, CloudTap]:
    """Put taps between this world and its Tenure, which has not started yet."""
    api, cloud = ApiTap(world.transport), CloudTap(world.cloud)
    world.transport, world.cloud_api = api, cloud
    world.crash()
    return api, cloud
