"""The page's HTTP interface: GET only, the built files, and what is known of the cluster as JSON.

What is of the cluster is behind the guard; the files are not, for they say nothing of it. No answer has a CORS header.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from tenure.dashboard.web.feed import STREAMS_MAX, Feed, encoded
from tenure.dashboard.web.files import File, Files
from tenure.dashboard.web.guards import BEARER, Guard, Refused, check_site
from tenure.dashboard.web.once import Once
from tenure.dashboard.web.source import NotNow, NotThere, Source
from tenure.dashboard.web.stream import answer_stream
from tenure.kube.listener import Limits, Listener

LIMITS: Final = Limits(
    connections=128, requests=STREAMS_MAX + 16, idle=60.0, request=None, answer=30.0
)
#: Seconds for an answer that is no stream.
ANSWER_MAX: Final = 30.0
WHY_KEPT, WHY_PATIENCE, WHY_KEYS, WHY_UNDER_WAY = 3.0, 20.0, 64, 8
#: Seconds of the reader's, or of the cluster's where that runs faster, but no fewer than the second.
CALENDAR_KEPT, CALENDAR_LEAST, CALENDAR_PATIENCE = 60.0, 5.0, 25.0
HISTORY_KEPT, HISTORY_PATIENCE = 2.0, 15.0
ENTRIES_MAX: Final = 500
SUBJECT_MAX: Final = 600

_CSP: Final = "; ".join(
    (
        *("default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:"),
        *("connect-src 'self'", "font-src 'self'", "base-uri 'none'", "form-action 'none'"),
        "frame-ancestors 'none'",
    )
)
HEADERS: Final = {
    "Content-Security-Policy": _CSP,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    # Else its versions, to programs without a token, too.
    "Server": "Tenure",
}
_JSON: Final = "application/json"

_Answer = Callable[[web.BaseRequest], Awaitable[bytes]]


class PageServer:
    """For as long as the block lasts."""

    def __init__(
        self,
        source: Source,
        files: Files,
        guard: Guard,
        *,
        speed: float = 1.0,
        failed: Callable[[Exception], object],
    ) -> None:
        """``speed``: loop seconds per real second; limits are meant in real ones."""
        self._source, self._files, self._guard = source, files, guard
        self._speed, self._failed = speed, failed
        self.feed = Feed(source, speed=speed, failed=failed)
        self._why = Once(
            source.why,
            fresh=WHY_KEPT * speed,
            patience=WHY_PATIENCE * speed,
            keys=WHY_KEYS,
            under_way=WHY_UNDER_WAY,
        )
        self._calendar = Once(
            lambda _: source.calendar(),
            fresh=min(CALENDAR_KEPT * speed, max(CALENDAR_KEPT, CALENDAR_LEAST * speed)),
            patience=CALENDAR_PATIENCE * speed,
        )
        self._history = Once(
            lambda _: self.feed.history(),
            fresh=HISTORY_KEPT * speed,
            patience=HISTORY_PATIENCE * speed,
        )
        self._answers: dict[str, _Answer] = {
            "/api/fleet": lambda _: self.feed.frame(),
            "/api/history": lambda _: self._history.get(),
            "/api/calendar": lambda _: self._calendar.get(),
            "/api/why": self._why_of,
            "/api/entries": self._entries,
        }
        self._listener = Listener(self._handle, LIMITS, speed=speed, cancels=True)
        self._feeding: asyncio.Task[None] | None = None

    async def open(self, host: str, port: int) -> int:
        """The port. Raises ``OSError``."""
        bound = await self._listener.open(host, port)
        self._feeding = asyncio.create_task(self.feed.run())
        return bound

    async def close(self) -> None:
        if self._feeding is not None:
            self._feeding.cancel()
            await asyncio.gather(self._feeding, return_exceptions=True)
        await self._listener.close()
        await self._why.close()
        await self._calendar.close()
        await self._history.close()
        self._source.close()

    # -- answers -------------------------------------------------------------------------

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._answered(request)
        except Refused as refused:
            headers = {"WWW-Authenticate": "Bearer"} if refused.status == 401 else {}
            return _error(refused.status, refused.sentence, headers)
        except NotThere as error:
            return _error(404, str(error))
        except NotNow as error:
            return _error(503, str(error), {"Retry-After": "2"})
        except (ConnectionError, asyncio.CancelledError):
            raise
        except TimeoutError:
            return _error(503, "the answer took too long; try again", {"Retry-After": "2"})
        except Exception as error:  # noqa: BLE001  # a fault of ours ends this answer alone
            self._failed(error)
            return _error(500, "a fault of Tenure: its log says which")

    async def _answered(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method not in ("GET", "HEAD"):
            return _error(405, "the page only reads: GET", {"Allow": "GET, HEAD"})
        self._guard.check_host(request)
        path = request.path
        if not path.startswith("/api/"):
            check_site(request, navigates=True)
            return self._file(request, path)
        check_site(request, navigates=False)
        if path == "/api/about" and not self._has_token(request):
            return _json(encoded({"authentication": BEARER}))
        async with asyncio.timeout(ANSWER_MAX * self._speed):
            await self._guard.check(request)
            if path == "/api/about":
                return _json(encoded(self._source.about()))
            if path != "/api/stream":
                return _json(await self._api(request, path))
        if request.method == "HEAD":
            return _error(405, "the stream is read by GET", {"Allow": "GET"})
        return await answer_stream(request, self.feed, self._guard, HEADERS, self._speed)

    def _has_token(self, request: web.BaseRequest) -> bool:
        return self._guard.authentication != BEARER or "Authorization" in request.headers

    async def _api(self, request: web.BaseRequest, path: str) -> bytes:
        answer = self._answers.get(path)
        if answer is None:
            raise NotThere("there is no such page")
        return await answer(request)

    async def _why_of(self, request: web.BaseRequest) -> bytes:
        subject = request.query.get("subject", "")
        if not subject or len(subject) > SUBJECT_MAX:
            raise Refused(400, "subject is missing or too long: subject=NodeClaim/general-4nv74")
        return await self._why.get(subject)

    async def _entries(self, request: web.BaseRequest) -> bytes:
        subject, limit = request.query.get("subject", ""), request.query.get("limit", "")
        if limit and not (limit.isascii() and limit.isdigit() and len(limit) < 9):
            raise Refused(400, f"limit is no number from 1 to {ENTRIES_MAX}")
        most = min(int(limit or ENTRIES_MAX), ENTRIES_MAX)
        entries, _ = self._source.entries(0)
        found = [one for one in entries if not subject or one.subject == subject]
        return encoded(found[-most:] if most else [])

    def _file(self, request: web.BaseRequest, path: str) -> web.Response:
        file = self._files.get(path)
        if file is None:
            raise NotThere("there is no such page")
        headers = {**HEADERS, "Cache-Control": "no-cache", "ETag": file.tag}
        if request.headers.get("If-None-Match") == file.tag:
            return web.Response(status=304, headers=headers)
        return web.Response(body=file.body, headers={**headers, "Content-Type": file.type})


def _json(body: bytes) -> web.Response:
    return web.Response(body=body, headers={**HEADERS, "Content-Type": _JSON})


def _error(status: int, sentence: str, more: dict[str, str] | None = None) -> web.Response:
    headers = {**HEADERS, "Content-Type": _JSON, **(more or {})}
    return web.Response(status=status, body=encoded({"error": sentence}), headers=headers)


#: For tests, and for a source tree whose page is not built.
PLACEHOLDER: Final[Files] = {
    "/": File(b"<!doctype html><title>Tenure</title>", "text/html; charset=utf-8", '"0"')
}
