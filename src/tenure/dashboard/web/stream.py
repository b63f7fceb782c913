"""One reader's stream of server-sent events: what all share, a comment now and then, and an end if its token ends."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from aiohttp import web

from tenure.dashboard.web.feed import Feed
from tenure.dashboard.web.guards import Guard, Refused
from tenure.dashboard.web.source import NotNow
from tenure.dashboard.web.subscribers import Subscriber

#: Seconds between two comments, for one message to be taken, and between two looks at the token.
COMMENT_EVERY: Final = 10.0
WRITE_MAX: Final = 15.0
CHECK_EVERY: Final = 60.0
#: Looks in a row that the API server does not answer: then the stream ends. Its reader comes back by itself.
UNANSWERED_MAX: Final = 2
_COMMENT: Final = b": alive\n\n"


async def answer_stream(
    request: web.BaseRequest, feed: Feed, guard: Guard, headers: Mapping[str, str], speed: float
) -> web.StreamResponse:
    subscriber = await feed.subscribe()
    try:
        response = web.StreamResponse(headers={**headers, "Content-Type": "text/event-stream"})
        await response.prepare(request)
        loop = asyncio.get_running_loop()
        checked_at, unanswered = loop.time(), 0
        while message := await _next(subscriber, COMMENT_EVERY * speed):
            if not await _written(response, message, WRITE_MAX * speed):
                subscriber.lost = True
                break
            if loop.time() - checked_at >= CHECK_EVERY * speed:
                checked_at = loop.time()
                may = await _still_may(request, guard)
                unanswered = unanswered + 1 if may is None else 0
                if may is False or unanswered >= UNANSWERED_MAX:
                    break
        if subscriber.lost and request.transport is not None:
            request.transport.abort()  # What still waits to be written would keep its reader waiting.
        return response
    finally:
        feed.subscribers.remove(subscriber)


async def _next(subscriber: Subscriber, seconds: float) -> bytes:
    """Empty: it is lost."""
    try:
        async with asyncio.timeout(seconds):
            return await subscriber.take()
    except TimeoutError:
        return _COMMENT


async def _written(response: web.StreamResponse, message: bytes, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await response.write(message)
    except (TimeoutError, ConnectionError):
        return False
    return True


async def _still_may(request: web.BaseRequest, guard: Guard) -> bool | None:
    """None: the API server does not say."""
    try:
        await guard.check(request)
    except Refused:
        return False
    except NotNow:
        return None
    return True
