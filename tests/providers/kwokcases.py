"""How tales about the KWOK cloud are told, and what happens in them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tenure.errors import Unavailable
from tenure.ports.transport import Request, Response, Stream, Transport
from tenure.providers.kwok.cloud import KwokCloud
from tests.providers.benches import StoreBench

Json = dict[str, Any]
HELD = {"metadata": {"finalizers": ["karpenter.sh/termination"]}}
RELEASED: Json = {"metadata": {"finalizers": []}}


def tell(tale: Callable[[StoreBench, KwokCloud], Awaitable[None]]) -> None:
    bench = StoreBench()

    async def told() -> None:
        async with bench.kwok() as cloud:
            await tale(bench, cloud)

    bench.run(told())


async def the_node(bench: StoreBench) -> Json:
    (node,) = await bench.nodes()
    return node


def in_kwok(**metadata: Any) -> Json:
    """A Node that another program has made."""
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata}


class Deaf:
    """Everything is carried out; after the first answers none is heard any more."""

    def __init__(self, inner: Transport, *, after: int) -> None:
        self._inner = inner
        self._left = after

    async def request(self, request: Request) -> Response:
        answer = await self._inner.request(request)
        self._left -= 1
        if self._left < 0:
            raise Unavailable("no answer")
        return answer

    async def stream(self, request: Request) -> Stream | Response:
        return await self._inner.stream(request)
