"""Reviews over HTTPS. Whoever reaches the port can ask, so everything has a bound.

Time: for a handshake, for the headers, for a body, for a connection that says nothing. Number and
size: of connections, of bodies, of reviews that are judged at once. They are judged beside the
loop, so that nobody who asks much keeps a leader from renewing its Lease. What goes over a bound
gets an error or is cut off, which API servers take for a yes.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable
from typing import Final

import msgspec
from aiohttp import web

from tenure.ports.transport import JSON

#: Where API servers send their reviews.
PATH: Final = "/validate"
_SECONDS_TO_LEAVE: Final = 1.0

Answer = Callable[[bytes], bytes]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds."""

    #: Bytes. A review has an object twice, and ours are a few kilobytes.
    review: int = 2**20
    #: An API server keeps a few; the bodies of all of them fit into memory.
    connections: int = 64
    #: Reviews that are judged at once.
    judged: int = 2
    handshake: float = 5.0
    body: float = 5.0
    #: Also for headers. Longer than an API server keeps a connection that it does not use: then
    #: it is he who hangs up, and never while he is asking.
    idle: float = 120.0


_USUAL: Final = Limits()


class ReviewServer:
    def __init__(self, answer: Answer, tls: ssl.SSLContext, limits: Limits = _USUAL) -> None:
        """``answer`` is called in threads."""
        self._limits = limits
        self._answer = answer
        self._tls = tls
        self._places = asyncio.Semaphore(limits.judged)
        self._runner: web.AppRunner | None = None
        self._listening: asyncio.Server | None = None

    async def open(self, host: str, port: int) -> None:
        """An empty host is everywhere. Raises ``OSError``."""
        app = web.Application(client_max_size=self._limits.review)
        app.router.add_post(PATH, self._reviewed)
        runner = web.AppRunner(
            app,
            access_log=None,
            shutdown_timeout=_SECONDS_TO_LEAVE,
            keepalive_timeout=self._limits.idle,
            lingering_time=_SECONDS_TO_LEAVE,
            auto_decompress=False,
        )
        await runner.setup()
        try:
            self._listening = await asyncio.get_running_loop().create_server(
                lambda: self._admitted(runner),
                sock=_socket(host, port),
                ssl=self._tls,
                ssl_handshake_timeout=self._limits.handshake,
                ssl_shutdown_timeout=_SECONDS_TO_LEAVE,
            )
        except OSError:
            await runner.cleanup()
            raise
        self._runner = runner

    @property
    def port(self) -> int | None:
        """Where it listens, if it does."""
        if self._listening is None:
            return None
        port: int = self._listening.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        if self._runner is not None:
            assert self._runner.server is not None, "it was set up"
            still_open = [handler.transport for handler in self._runner.server.connections]
            await self._runner.cleanup()
            self._runner = None
            # Who has his answer need not be waited for until he says farewell, too.
            for transport in filter(None, still_open):
                transport.abort()
            await asyncio.sleep(0)

    async def _reviewed(self, request: web.Request) -> web.Response:
        if request.content_type != JSON:
            raise web.HTTPUnsupportedMediaType(text=f"a review is {JSON}\n")
        try:
            async with asyncio.timeout(self._limits.body):
                body = await request.read()
        except TimeoutError:
            raise web.HTTPRequestTimeout(text="the body did not come in time\n") from None
        except ConnectionError:
            raise web.HTTPBadRequest from None  # He has left, and nobody reads this.
        async with self._places:
            answer = await asyncio.to_thread(self._answer, body)
        return web.Response(body=answer, content_type=JSON)

    def _admitted(self, runner: web.AppRunner) -> asyncio.BaseProtocol:
        assert runner.server is not None, "it was set up"
        if len(runner.server.connections) >= self._limits.connections:
            return _Refused()
        return runner.server()


class _Refused(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport), "it is TCP"
        transport.abort()


def _socket(host: str, port: int) -> socket.socket:
    if host:
        return socket.create_server((host, port))
    try:
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) in (errno.EADDRINUSE, errno.EACCES):
            raise
        return socket.create_server(("", port))  # A machine without IPv6.
