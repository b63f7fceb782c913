"""A look at the embedded cluster through the api that a real one has, in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from tenure.cli.cluster.question import Question
from tenure.cli.cluster.read import ClusterReading, read
from tenure.ports.cloud import Cloud
from tenure.ports.provider import Option, Surroundings
from tenure.ports.transport import Request, Response, Stream, Transport
from tenure.providers.kwok.nodeclass import KWOK_KIND, KWOK_NODE_CLASSES
from tenure.providers.kwok.repairs import kwok_statements
from tenure.runtime.readonly import LookOnlyTransport
from tenure.sim.apiserver.api import Api
from tenure.sim.apiserver.transport import InProcessTransport
from tenure.sim.world import World


class TheCloudOf:
    """A provider of a world's cloud."""

    name = "embedded"
    node_classes = (KWOK_NODE_CLASSES,)
    kinds = (KWOK_KIND,)
    repair_statements = kwok_statements()
    options: tuple[Option, ...] = ()
    namespace = "tenure-kwok"

    def __init__(self, world: World) -> None:
        self._world = world
        self.surroundings: list[Surroundings] = []

    @asynccontextmanager
    async def open(self, surroundings: Surroundings) -> AsyncIterator[Cloud]:
        self.surroundings.append(surroundings)
        yield self._world.cloud


class Lacking:
    """A api behind which some paths are answered otherwise; remembers what was asked."""

    def __init__(self, transport: Transport, answers: Mapping[str, Response]) -> None:
        self._transport = transport
        self._answers = answers
        self.methods: set[str] = set()

    async def request(self, request: Request) -> Response:
        self.methods.add(request.method)
        for path, response in self._answers.items():
            if path in request.path:
                return response
        return await self._transport.request(request)

    async def stream(self, request: Request) -> Stream | Response:
        raise AssertionError("a look does not watch")


def a_transport(world: World, answers: Mapping[str, Response] | None = None) -> Lacking:
    hello = Response(status=200, body=b'{"gitVersion": "v1.36.3"}')  # The store has only objects.
    return Lacking(InProcessTransport(Api(world.store)), {"/version": hello, **(answers or {})})


def seen(
    world: World,
    answers: Mapping[str, Response] | None = None,
    about: Question | None = None,
) -> tuple[ClusterReading, Lacking]:
    """What a look shows, and the api through which it went."""
    api = a_transport(world, answers)
    sights: list[ClusterReading] = []

    async def story() -> None:
        transport, clock = LookOnlyTransport(api), world.environment.clock
        settings = world.options.settings
        sights.append(await read(transport, settings, TheCloudOf(world), clock, about))

    world.loop.run_until_complete(story())
    return sights[0], api
