"""What is no HTTP: answered with 400 in one line that repeats nothing of it, and told to the log now and then.

aiohttp logs a traceback for each, and its answer quotes what was sent.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from aiohttp import web
from aiohttp.client_exceptions import ClientPayloadError
from aiohttp.http_exceptions import HttpProcessingError

#: Seconds between two lines in the log.
TOLD_EVERY: Final = 10.0
ANSWER: Final = "the request cannot be read as HTTP/1.1\n"
_LOG: Final = logging.getLogger(__name__)


class BadRequests:
    """Of one port: counts them, and tells of them at most every ten seconds."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._untold = 0
        self._told_at: float | None = None

    def came(self, remote: str | None, why: BaseException | None) -> None:
        now = asyncio.get_running_loop().time()
        if self._told_at is not None and now - self._told_at < TOLD_EVERY * self._speed:
            self._untold += 1
            return
        more = f", and {self._untold} more before" if self._untold else ""
        self._told_at, self._untold = now, 0
        kind = type(why).__name__
        _LOG.warning("a request from %s cannot be read as HTTP (%s)%s", remote, kind, more)


class Reader(web.RequestHandler):
    """Reads the requests of one connection."""

    # aiohttp's class has slots, and makes each of these from the keywords of its server.
    __slots__ = ("bad_requests",)

    bad_requests: BadRequests

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if status >= 500 and not is_unreadable(exc):
            return super().handle_error(request, status, exc, message)
        self.bad_requests.came(request.remote, exc)
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has begun")
        headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
        response = web.Response(status=400, text=ANSWER, headers=headers)
        response.force_close()
        return response

    def log_exception(self, *args: Any, **more: Any) -> None:
        """Also of a body that is not as its headers say, once the answer is given."""
        error = more.get("exc_info")
        if isinstance(error, BaseException) and is_unreadable(error):
            name = self.transport.get_extra_info("peername") if self.transport else None
            self.bad_requests.came(name[0] if name else None, error)
        else:
            super().log_exception(*args, **more)


def is_unreadable(error: BaseException | None) -> bool:
    return isinstance(error, HttpProcessingError | ClientPayloadError)
