"""Reviews over HTTPS. Any client that reaches the port can ask, so everything has a bound.

``kube.listener`` bounds connections, bodies and times; here are the numbers, and a bound on reviews
that are answered at once. They are answered beside the loop, so that many of them do not keep a leader
from renewing its Lease. What goes over a bound gets an error or is cut off, which API servers take
for a yes.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Final

from aiohttp import web

from tenure.kube.listener import Limits, Listener, read_body
from tenure.ports.transport import JSON

#: Where API servers send their reviews.
PATH: Final = "/validate"
#: Reviews that are answered at once.
REVIEWS_MAX: Final = 2
#: Body: a review has an object twice, and ours are a few kilobytes. More would let a client that is no
#: API server keep the processor busy for seconds with one request. Idle: longer than an API server
#: keeps a connection that it does not use, so that it never finds one closed while it asks.
LIMITS: Final = Limits(connections=64, body_size=2**18, idle=120.0)

Answer = Callable[[bytes], bytes]


class ReviewServer:
    def __init__(self, answer: Answer, tls: ssl.SSLContext, limits: Limits = LIMITS) -> None:
        """``answer`` is called in threads."""
        self._answer = answer
        self._limits = limits
        self._places = asyncio.Semaphore(REVIEWS_MAX)
        self._listener = Listener(self._reviewed, limits, tls=tls)

    async def open(self, host: str, port: int) -> None:
        """An empty host is everywhere. Raises ``OSError``."""
        await self._listener.open(host, port)

    @property
    def port(self) -> int | None:
        """Where it listens, if it does."""
        return self._listener.port

    async def close(self) -> None:
        await self._listener.close()

    async def _reviewed(self, request: web.BaseRequest) -> web.Response:
        if request.path != PATH:
            raise web.HTTPNotFound
        if request.method != "POST":
            raise web.HTTPMethodNotAllowed(request.method, ["POST"])
        if request.content_type != JSON:
            raise web.HTTPUnsupportedMediaType(text=f"a review is {JSON}\n")
        body = await read_body(request, self._limits.body)
        async with self._places:
            answer = await asyncio.to_thread(self._answer, body)
        return web.Response(body=answer, content_type=JSON)
