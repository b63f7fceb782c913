"""The store over HTTPS on loopback, for clients with the token.

In this order: who asks (401) · what is the same for every cluster (health, discovery, schemas) ·
in which form an answer is wanted (406) · the body (413, 415) · then a watch or a request to the
same API that is used in process. A fault of ours is a 500 for that request and no other.
"""

from __future__ import annotations

import asyncio
import hmac
import math
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

import msgspec
from aiohttp import web

from tenure.errors import ApiError
from tenure.kube.certs import Pair, load_into
from tenure.kube.listener import Limits, Listener, read_body
from tenure.parse.limits import BODY
from tenure.ports.clock import Clock
from tenure.ports.transport import APPLY_PATCH, JSON, Request, Response
from tenure.sim.apiserver.api import Api
from tenure.sim.apiserver.httpdate import HttpDate
from tenure.sim.apiserver.objects.numbers import is_number
from tenure.sim.apiserver.store.watch import Watch
from tenure.sim.serve.answers import AGGREGATED, Form, Presenter, refusal, understood, wanted
from tenure.sim.serve.offer.discovery import Discovery
from tenure.sim.serve.offer.offered import Offers
from tenure.sim.serve.reviews import ANSWERS

HOST: Final = "127.0.0.1"
#: Bodies as a real server's; a watch keeps a connection for as long as it wants. Times are real
#: seconds; the loop's own may run faster.
LIMITS: Final = Limits(
    connections=512, body_size=BODY.size, handshake=20.0, idle=75.0, body=30.0, request=None
)
#: A client that reads nothing of its watch or answer for so long has left.
SILENT_READER_MAX: Final = 60.0
_TRUE: Final = ("true", "1", "True")
_WRITES: Final = ("POST", "PUT", "PATCH")
_HEALTH: Final = ("/healthz", "/livez", "/readyz")
#: kubectl looks here, in protobuf, for a kind that is not in the newer documents. An empty document
#: says that it is not here either; without one kubectl would complain of the document instead.
_OLD_SCHEMAS: Final = "/openapi/v2"
_NO_OLD_SCHEMAS: Final = Response(
    status=200,
    headers={"Content-Type": "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"},
)


class ApiHandler:
    """Answers HTTP requests with an ``Api``."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        token: str,
        *,
        speed: float = 1.0,
        report: Callable[[str], object],
        more: Mapping[str, Callable[[], bytes]] | None = None,
    ) -> None:
        """``report`` is told of faults, one line each. ``more``: by path, what no other API server answers."""
        self._api = api
        self._more = more or {}
        self._clock = clock
        self._date = HttpDate(clock)
        self._report = report
        self._expected = f"Bearer {token}".encode()
        self._speed = speed
        self._offers = Offers(api)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        answer = await self._handle(request)
        if not answer.prepared:
            answer.headers["Date"] = self._date.now()  # The cluster's time, whatever its speed.
        return answer

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._answered(request)
        except web.HTTPException:
            raise
        except ApiError as error:
            return _http(refusal(error))
        except Exception as error:  # noqa: BLE001  # One bad request must not end the others.
            self._report(f"a fault of ours at {request.method} {request.path}: {error!r}")
            return _http(refusal(ApiError(f"a fault of the embedded cluster: {error!r}")))

    async def _answered(self, request: web.BaseRequest) -> web.StreamResponse:
        given = request.headers.get("Authorization", "").encode()
        if not hmac.compare_digest(given, self._expected):
            raise ApiError("Unauthorized", status=401, reason="Unauthorized")
        path = request.path if request.path == "/" else request.path.rstrip("/")
        if request.method == "GET" and (fixed := self._fixed(path, request)) is not None:
            return _http(fixed)
        if request.method == "POST" and (about_itself := ANSWERS.get(path)) is not None:
            return _http(Response(status=201, body=about_itself, headers={"Content-Type": JSON}))
        asked = await self._read(request, path)
        target = self._api.routes.route(path)
        if target is None:
            # What is nowhere is not found, whatever was sent there or is wanted back.
            return _http(self._api.handle(asked))
        kind = self._api.kind_of(target.resource)
        presenter = Presenter(asked, wanted(request.headers.get("Accept", "")), target, kind)
        if asked.method == "GET" and asked.query.get("watch") in _TRUE:
            watch = self._api.watch(self._in_its_own_seconds(asked))
            if isinstance(watch, Watch):
                return await self._stream(request, watch, presenter)
            return _http(watch)
        response = self._api.handle(understood(asked))
        return _http(presenter.answer(response, self._clock.now()))

    async def _read(self, request: web.BaseRequest, path: str) -> Request:
        try:
            body = await read_body(request, LIMITS.body * self._speed)
        except web.HTTPRequestEntityTooLarge as error:
            message = f"the body of the request is larger than {LIMITS.body_size} bytes"
            raise ApiError(message, status=413, reason="RequestEntityTooLarge") from error
        except web.HTTPRequestTimeout as error:
            message = f"the body of the request did not come within {LIMITS.body:.0f} s"
            raise ApiError(message, status=408, reason="Timeout") from error
        content_type = request.headers.get("Content-Type", JSON).partition(";")[0].strip() or JSON
        query = dict(request.query)
        if (
            request.method in _WRITES
            and content_type != APPLY_PATCH
            and "fieldManager" not in query
        ):
            # A client that does not say who it is, is called by the name of its program.
            query["fieldManager"] = request.headers.get("User-Agent", "").partition("/")[0][:128]
        return Request(
            method=request.method, path=path, query=query, body=body, content_type=content_type
        )

    def _fixed(self, path: str, request: web.BaseRequest) -> Response | None:
        if path in _HEALTH:
            return Response(status=200, body=b"ok", headers={"Content-Type": "text/plain"})
        if path in ("/api", "/apis"):
            form = wanted(request.headers.get("Accept", ""), (AGGREGATED,))
            if form.as_:
                return _aggregated(self._offers.now().discovery, path, form)
        if path == _OLD_SCHEMAS:
            return _NO_OLD_SCHEMAS
        if (tell := self._more.get(path)) is not None:
            return Response(status=200, body=tell(), headers={"Content-Type": JSON})
        body = self._offers.now().document(path)
        if body is None:
            return None
        return Response(status=200, body=body, headers={"Content-Type": JSON})

    def _in_its_own_seconds(self, asked: Request) -> Request:
        """A client means its own seconds, whatever the cluster's are."""
        seconds = asked.query.get("timeoutSeconds", "")
        if not is_number(seconds):
            return asked
        paced = str(math.ceil(int(seconds) * self._speed))
        return msgspec.structs.replace(asked, query={**asked.query, "timeoutSeconds": paced})

    async def _stream(
        self, request: web.BaseRequest, watch: Watch, presenter: Presenter
    ) -> web.StreamResponse:
        """Send lines as they come, until either side ends it."""
        answer = web.StreamResponse(headers={"Content-Type": JSON})
        try:
            await answer.prepare(request)
            async for first in watch:
                # What has come in the meantime goes out in the same piece.
                lines = presenter.lines([first, *watch.drain()], self._clock.now())
                async with asyncio.timeout(SILENT_READER_MAX * self._speed):
                    await answer.write(b"".join(lines))
            await answer.write_eof()
        except (ConnectionError, TimeoutError):
            pass  # The watcher has closed its connection.
        finally:
            await watch.close()
        return answer


def _aggregated(discovery: Discovery, path: str, form: Form) -> Response:
    version = form.version or "v2"
    kind = f"{JSON};g=apidiscovery.k8s.io;v={version};as={AGGREGATED}"
    headers = {"Content-Type": kind, "Vary": "Accept"}
    return Response(status=200, body=discovery.aggregated(path, version), headers=headers)


def _http(response: Response) -> web.Response:
    headers: Mapping[str, str] = {"Cache-Control": "no-cache, private", **response.headers}
    return web.Response(status=response.status, body=response.body, headers=headers)


@asynccontextmanager
async def serving(
    handler: ApiHandler, pair: Pair, *, port: int = 0, speed: float = 1.0, limits: Limits = LIMITS
) -> AsyncIterator[int]:
    """Serve for as long as the block lasts; yields the port. Raises ``OSError`` if it is taken.

    ``speed`` is the loop's: the library's time-outs are meant in real seconds.
    """
    listener = Listener(handler.handle, limits, tls=_tls(pair), speed=speed, cancels=True)
    bound = await listener.open(HOST, port)
    try:
        yield bound
    finally:
        await listener.close()


def _tls(pair: Pair) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    load_into(context, pair)
    return context
