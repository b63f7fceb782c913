"""The transport to a real API server: HTTPS, one connection pool, watches as byte lines.

A request that no answer came back for is ``Unavailable``; whether it was carried out is
then unknown, and the caller must find out. A 401 asks the credentials once more.
Nothing else is repeated here, except that the HTTP library sends a GET or DELETE again
when the server had closed the idle connection it took; our deletions name a UID, and the
fence is asked again.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from datetime import timedelta
from types import TracebackType
from typing import Final, Self

import aiohttp
import msgspec
from aiohttp.http_exceptions import LineTooLong

from tenure.errors import SpecError, Unavailable
from tenure.kube.client.credentials import Credentials, Identity
from tenure.kube.client.fence import READS, fenced_requests, impatient_socket
from tenure.kube.client.gather import Gathering, Lines
from tenure.kube.client.keyfile import as_file
from tenure.kube.client.kubeconfig import Access
from tenure.ports.fence import OPEN, Fence
from tenure.ports.transport import Request, Response

#: Connections at once; a watch keeps one for itself.
CONNECTIONS_MAX: Final = 100


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How long and how much we wait for."""

    #: An answer that takes longer is no answer; the lease's arithmetic counts on this bound.
    answer: timedelta = timedelta(seconds=5)
    #: A list of tens of thousands of objects takes its time.
    list_page: timedelta = timedelta(seconds=60)
    #: Bookmarks come every minute; a watch that is silent for longer is dead.
    watch_silence: timedelta = timedelta(minutes=5)
    #: After each read of a watch: a burst of changes is read ten times a second, not line by line.
    gather: timedelta = timedelta(milliseconds=100)
    #: Bytes. One object may be 1.5 MB, and a watch sends it in one line.
    line: int = 2**22


_USUAL: Final = Limits()


#: aiohttp's own timer takes back one cancellation more than it has made when it goes off after a
#: pause of the process, and so swallows that of the caller: a task that was told to end goes on.
_NO_TIMER: Final = aiohttp.ClientTimeout(total=None)


class HttpTransport:
    def __init__(
        self,
        access: Access,
        credentials: Credentials,
        *,
        user_agent: str = "tenure",
        limits: Limits = _USUAL,
        fence: Fence | None = None,
    ) -> None:
        """Behind a fence, a call that changes something needs a body: see ``kube.fence``.

        A Lease is renewed through a transport of its own, without a fence: it is what opens
        one, and it must not wait for a connection behind the others.
        """
        self._access = access
        self._credentials = credentials
        self._user_agent = user_agent
        self._limits = limits
        self._fence = fence
        self._session: aiohttp.ClientSession | None = None
        self._closed = False
        #: By certificate: a token may rotate without a new handshake.
        self._tls: tuple[str, ssl.SSLContext] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        self._closed = True
        if self._session is not None:
            await self._session.close()
            await asyncio.sleep(0)  # A connection that was hung up is closed by the loop.
            self._session = None

    async def request(self, request: Request) -> Response:
        if self._fence is not None and request.method not in READS:
            assert request.body, "without a body the fence is not asked"
        limit = self._limits.list_page if _is_list(request) else self._limits.answer
        try:
            async with asyncio.timeout(limit.total_seconds()):
                return await _whole(await self._send(request, _NO_TIMER))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _no_answer(request, error) from error

    async def stream(self, request: Request) -> HttpStream | Response:
        timeout = aiohttp.ClientTimeout(
            total=None,
            sock_connect=self._limits.answer.total_seconds(),
            sock_read=self._limits.watch_silence.total_seconds(),
        )
        try:
            answer = await self._send(request, timeout)
            if answer.status == 200:
                return HttpStream(answer, request, self._limits)
            return await _whole(answer)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _no_answer(request, error) from error

    async def _send(
        self, request: Request, timeout: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        identity = await self._credentials.identity()
        answer = await self._send_as(identity, request, timeout)
        if answer.status != 401:
            return answer
        # A token may have rotated. A request that was refused was not carried out.
        answer.release()
        self._credentials.rejected(identity)
        return await self._send_as(await self._credentials.identity(), request, timeout)

    async def _send_as(
        self, identity: Identity, request: Request, timeout: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        headers = {"Accept": "application/json", "User-Agent": self._user_agent}
        if identity.token:
            if not (identity.token.isascii() and identity.token.isprintable()):
                raise Unavailable("the token has characters that no header can carry")
            headers["Authorization"] = f"Bearer {identity.token}"
        if request.body:
            headers["Content-Type"] = request.content_type
        return await self._connected().request(
            request.method,
            self._access.server + request.path,
            params=dict(request.query),
            data=request.body or None,
            headers=headers,
            timeout=timeout,
            ssl=self._tls_for(identity),
            server_hostname=self._access.tls_server_name or None,
            allow_redirects=False,
        )

    def _connected(self) -> aiohttp.ClientSession:
        if self._closed:
            raise Unavailable("the transport is closed")
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=CONNECTIONS_MAX,
                    socket_factory=lambda address: impatient_socket(address, self._limits.answer),
                ),
                request_class=fenced_requests(self._fence or OPEN),
            )
        return self._session

    def _tls_for(self, identity: Identity) -> ssl.SSLContext | bool:
        if not self._access.server.startswith("https://"):
            return True
        if self._tls is None or self._tls[0] != identity.client_cert:
            self._tls = (identity.client_cert, _tls_context(self._access, identity))
        return self._tls[1]


class HttpStream:
    """A watch that is open: lines until either side ends it."""

    def __init__(self, answer: aiohttp.ClientResponse, request: Request, limits: Limits) -> None:
        self._answer = answer
        self._request = request
        self._limits = limits
        self._closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        lines, connection = Lines(self._limits.line), self._answer.connection
        gathering = Gathering(connection and connection.transport, self._limits.gather)
        try:
            while data := await self._answer.content.readany():
                for line in lines.of(data):
                    yield line
                if not lines.rest:
                    await gathering.after(len(data))
            if lines.rest:
                yield lines.rest
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if not self._closed:
                raise _no_answer(self._request, error) from error
        except LineTooLong:
            raise Unavailable(
                f"{self._request.method} {self._request.path}: "
                f"a line longer than {self._limits.line} bytes"
            ) from None
        finally:
            self._hang_up()

    async def close(self) -> None:
        self._closed = True
        self._hang_up()

    def _hang_up(self) -> None:
        """At once: a goodbye in TLS waits for the server's, and ours is in mid-sentence."""
        if (connection := self._answer.connection) is not None and connection.transport:
            connection.transport.abort()
        self._answer.close()


async def _whole(answer: aiohttp.ClientResponse) -> Response:
    async with answer:
        body = await answer.read()
    return Response(status=answer.status, body=body, headers=dict(answer.headers))


def _is_list(request: Request) -> bool:
    return request.method == "GET" and "limit" in request.query


def _no_answer(request: Request, error: BaseException) -> Unavailable:
    return Unavailable(f"{request.method} {request.path}: {_what_happened(error)}")


def _what_happened(error: BaseException) -> str:
    """The HTTP library's own sentences name its objects and their addresses in memory."""
    match error:
        case TimeoutError():
            return "timed out"
        case aiohttp.ClientConnectorCertificateError():
            cause = str(error.certificate_error)
        case aiohttp.ClientConnectorError() if isinstance(error.os_error, ssl.SSLError):
            cause = str(error.os_error)
        case aiohttp.ClientConnectorError():
            code = error.os_error.errno or 0
            cause = os.strerror(code) if code > 0 else error.os_error.strerror or "no reason given"
        case aiohttp.ClientPayloadError():
            return "the connection ended in the middle of the answer"
        case _:
            return str(error) or type(error).__name__
    return f"Cannot connect to host {error.host}:{error.port}: {cause}"


def _tls_context(access: Access, identity: Identity) -> ssl.SSLContext:
    """Verified, always, unless the kubeconfig says in so many words not to."""
    try:
        context = ssl.create_default_context(cadata=access.ca or None)
        # From Python 3.13 the default; but many a cluster's own authority lacks the
        # extensions that it asks for, and no other client of Kubernetes wants them.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if access.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if identity.client_cert:
            _load_certificate(context, identity)
    except (ssl.SSLError, ValueError) as error:
        why = getattr(error, "reason", None) or "not PEM"
        raise SpecError("kubeconfig", "(not shown)", f"usable certificates ({why})") from None
    return context


def _load_certificate(context: ssl.SSLContext, identity: Identity) -> None:
    with as_file(f"{identity.client_cert}\n{identity.client_key}\n".encode()) as path:
        # A key under a password would ask for it on the terminal, and wait.
        context.load_cert_chain(path, password="")
