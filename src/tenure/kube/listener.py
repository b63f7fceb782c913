"""A port that answers HTTP, with a bound on everything that a client can take.

Time: for a TLS handshake, for headers and between two requests, for a body, for a request, for
its answer's last byte. Number: of connections and of requests under way. Size: of
a body, a line, a header. What is no HTTP gets 400, and is one line in the log. A client over a bound gets an error or is cut off.

Connections that wait for a request do not keep others out: where all places are taken, the one
that was opened first gives way. So a client that opens many and says nothing cannot keep the
kubelet's probes, Prometheus or an API server away.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from aiohttp import web

from tenure.kube.badrequests import BadRequests, Reader

_SECONDS_TO_LEAVE: Final = 1.0
#: By so much aiohttp's own timer, which closes politely, comes before ours, which aborts.
_IDLE_SLACK: Final = 1.0

Handle = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds; None is no limit."""

    connections: int
    #: Requests under way at once; more get 503.
    requests: int | None = None
    #: Bytes of a body; more gets 413.
    body_size: int = 0
    handshake: float = 5.0
    #: Between two requests, and from a connection's first byte to the end of the headers.
    idle: float = 120.0
    #: From a request's headers to the end of its body; late ones get 408.
    body: float = 5.0
    #: From a request's headers to its answer; then the connection is cut off.
    request: float | None = 30.0
    #: From the first byte of an answer to its last; then the connection is cut off.
    answer: float = 30.0


class _Server(web.Server):
    """aiohttp's, which says when a connection has ended, and reads requests by our rules."""

    def __init__(
        self,
        handle: Handle,
        ended: Callable[[web.RequestHandler], None],
        bad_requests: BadRequests,
        **more: Any,
    ) -> None:
        super().__init__(handle, **more)
        self._ended, self._bad_requests = ended, bad_requests

    def __call__(self) -> web.RequestHandler:
        reader = Reader(self, loop=asyncio.get_running_loop(), **self._kwargs)
        reader.bad_requests = self._bad_requests
        return reader

    def connection_lost(
        self, handler: web.RequestHandler, exc: BaseException | None = None
    ) -> None:
        self._ended(handler)
        super().connection_lost(handler, exc)


class Listener:
    def __init__(
        self,
        handle: Handle,
        limits: Limits,
        *,
        tls: ssl.SSLContext | None = None,
        speed: float = 1.0,
        cancels: bool = False,
    ) -> None:
        """``handle`` answers; it may raise ``web.HTTPException``, and ends early where the client
        leaves if it ``cancels``. ``speed`` is the loop's: limits are meant in real seconds."""
        self._handle = handle
        self._limits = limits
        self._tls = tls
        self._speed = speed
        self._cancels = cancels
        self._server: _Server | None = None
        self._socket: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        #: By handler, in the order in which they were accepted: the task that opens each.
        self._connections: dict[web.RequestHandler, asyncio.Task[None]] = {}
        self._busy: set[object] = set()
        #: When each connection without a request under way is cut off. aiohttp has such a timer,
        #: too, but only while it waits for data: not where it has stopped reading.
        self._idle: dict[web.RequestHandler, asyncio.TimerHandle] = {}

    async def open(self, host: str, port: int) -> int:
        """The port. An empty host is everywhere, port 0 any free one. Raises ``OSError``."""
        listening = _socket(host, port)
        listening.setblocking(False)
        self._socket = listening
        self._server = _Server(
            self._answer,
            self._forget,
            BadRequests(self._speed),
            request_factory=self._request,
            access_log=None,
            handler_cancellation=self._cancels,
            keepalive_timeout=self._limits.idle * self._speed,
            lingering_time=_SECONDS_TO_LEAVE * self._speed,
            auto_decompress=False,
        )
        self._accepting = asyncio.create_task(self._accept(self._server, listening))
        return int(listening.getsockname()[1])

    @property
    def port(self) -> int | None:
        """Where it listens, if it does."""
        return self.address[1] if self.address is not None else None

    @property
    def address(self) -> tuple[str, int] | None:
        """Interface and port, if it listens."""
        if self._socket is None:
            return None
        host, port, *_ = self._socket.getsockname()
        return host, port

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._connections)

    async def close(self) -> None:
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.gather(self._accepting, return_exceptions=True)
            self._accepting = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        opening = list(self._connections.values())
        still_open = [handler.transport for handler in self._connections]
        if self._server is not None:
            await self._server.shutdown(timeout=_SECONDS_TO_LEAVE * self._speed)
            self._server = None
        # A client that has its answer need not be waited for until it closes, too.
        for transport in filter(None, still_open):
            transport.abort()
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)
        await asyncio.sleep(0)

    # -- connections ----------------------------------------------------------------------

    async def _accept(self, server: _Server, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(listening)
            except ConnectionError:
                continue  # The client left before it was accepted.
            except OSError:  # No file is left for it: the next one may come when others end.
                await asyncio.sleep(_SECONDS_TO_LEAVE * self._speed)
                continue
            if len(self._connections) >= self._limits.connections and not self._make_place():
                accepted.close()
                continue
            handler = server()
            self._wait_for_request(handler)
            self._connections[handler] = asyncio.create_task(self._opened(handler, accepted))
            await asyncio.sleep(0)  # So that it begins, and owns its socket, before the next.

    async def _opened(self, handler: web.RequestHandler, accepted: socket.socket) -> None:
        tls: dict[str, Any] = {}
        if self._tls is not None:
            tls["ssl"] = self._tls
            tls["ssl_handshake_timeout"] = self._limits.handshake * self._speed
            tls["ssl_shutdown_timeout"] = _SECONDS_TO_LEAVE * self._speed
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(lambda: handler, accepted, **tls)
        except OSError:  # A handshake that failed or took too long: TLS errors are among them.
            self._forget(handler)
        except BaseException:
            self._forget(handler)
            raise

    def _wait_for_request(self, handler: web.RequestHandler) -> None:
        loop = asyncio.get_running_loop()
        seconds = (self._limits.idle + _IDLE_SLACK) * self._speed
        self._idle[handler] = loop.call_later(seconds, self._cut_off, handler)

    def _stop_waiting(self, handler: web.RequestHandler) -> None:
        if (timer := self._idle.pop(handler, None)) is not None:
            timer.cancel()

    def _forget(self, handler: web.RequestHandler) -> None:
        self._stop_waiting(handler)
        self._connections.pop(handler, None)

    def _cut_off(self, handler: web.RequestHandler) -> None:
        self._stop_waiting(handler)
        opening = self._connections.pop(handler)
        if handler.transport is not None:
            handler.transport.abort()
        else:
            opening.cancel()

    def _make_place(self) -> bool:
        """The connection that was accepted first and has no request under way gives way."""
        for handler in self._connections:
            if handler.transport is None or handler.transport not in self._busy:
                self._cut_off(handler)
                return True
        return False

    # -- requests -------------------------------------------------------------------------

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if self._limits.requests is not None and len(self._busy) >= self._limits.requests:
            text = f"{self._limits.requests} requests are under way; try again\n"
            raise web.HTTPServiceUnavailable(text=text, headers={"Retry-After": "1"})
        transport, handler = request.transport, request.protocol
        self._busy.add(transport)
        self._stop_waiting(handler)
        limit = self._limits.request
        response: web.StreamResponse = web.Response(status=503)
        try:
            async with asyncio.timeout(None if limit is None else limit * self._speed):
                response = await self._handle(request)
            # Here and not after the return, so that a reader who stops reading is timed, too.
            async with asyncio.timeout(self._limits.answer * self._speed):
                await response.prepare(request)
                await response.write_eof()
        except (TimeoutError, ConnectionError):
            if transport is not None:
                transport.abort()  # What aiohttp still wants to write goes nowhere, in silence.
        finally:
            self._busy.discard(transport)
            if handler in self._connections:
                self._wait_for_request(handler)
        return response

    def _request(
        self, message: Any, payload: Any, protocol: Any, writer: Any, task: Any
    ) -> web.BaseRequest:
        """What aiohttp makes of a request, with our limit for its body."""
        loop = asyncio.get_running_loop()
        size = self._limits.body_size
        return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=size)


async def read_body(request: web.BaseRequest, seconds: float) -> bytes:
    """The body, within that time of the loop. Raises 408 and 413."""
    try:
        async with asyncio.timeout(seconds):
            return await request.read()
    except TimeoutError:
        raise web.HTTPRequestTimeout(text="the body did not come in time\n") from None
    except ConnectionError:
        raise web.HTTPBadRequest from None  # The client has left: there is no reader for this.


def _socket(host: str, port: int) -> socket.socket:
    if host and host != "::":
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    try:
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) in (errno.EADDRINUSE, errno.EACCES):
            raise
        return socket.create_server(("", port))  # A machine without IPv6.
