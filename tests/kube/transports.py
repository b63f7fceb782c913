"""Small transports for stories about the client and the informers, told in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

import msgspec

from tenure.errors import Unavailable
from tenure.ports.transport import Request, Response, Stream
from tenure.sim.virtual.loop import run_virtually

json = msgspec.json.encode


def in_time(story: Callable[[], Awaitable[None]]) -> None:
    """Tell a story on a virtual loop of its own."""

    async def tell() -> None:
        await story()

    run_virtually(tell())


class Scripted:
    """Answers each request with the next of its answers, the last one again and again.

    Keeps the requests, and when they came.
    """

    def __init__(self, *answers: Response | Exception) -> None:
        self._answers = list(answers)
        self.requests: list[Request] = []
        self.asked_at: list[float] = []

    async def request(self, request: Request) -> Response:
        self.requests.append(request)
        self.asked_at.append(asyncio.get_running_loop().time())
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def stream(self, request: Request) -> Stream | Response:
        return await self.request(request)

    def body(self) -> Any:
        return msgspec.json.decode(self.requests[-1].body)


class Silent:
    """Takes every request and never answers."""

    async def request(self, request: Request) -> Response:
        await asyncio.Event().wait()
        raise AssertionError("no test sets it")

    async def stream(self, request: Request) -> Stream | Response:
        return await self.request(request)


class Lines:
    """A stream of prepared lines that then ends, breaks or stays open without a word."""

    def __init__(self, lines: Iterable[bytes] = (), *, then: str = "ends") -> None:
        self._lines = list(lines)
        self._then = then
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for line in self._lines:
            yield line
        if self._then == "breaks":
            raise Unavailable("connection reset")
        if self._then == "stays":
            await asyncio.Event().wait()

    async def close(self) -> None:
        self.closed = True


class Played:
    """One list for ever, and one stream after the other; the last one again and again."""

    def __init__(self, listed: Response, *streams: Lines | Response) -> None:
        self._listed = listed
        self._streams = list(streams)
        self.lists = 0
        self.watched_from: list[str] = []
        self.opened_at: list[float] = []

    async def request(self, request: Request) -> Response:
        self.lists += 1
        return self._listed

    async def stream(self, request: Request) -> Stream | Response:
        self.watched_from.append(request.query["resourceVersion"])
        self.opened_at.append(asyncio.get_running_loop().time())
        return self._streams.pop(0) if len(self._streams) > 1 else self._streams[0]


def answered(body: Any, status: int = 200, **headers: str) -> Response:
    raw = body if isinstance(body, bytes) else json(body)
    return Response(status=status, body=raw, headers=headers)


def refused(code: int, reason: str = "", **details: Any) -> Response:
    return answered(status_of(code, reason, **details), code)


def status_of(code: int, reason: str = "", **details: Any) -> dict[str, Any]:
    return {
        "kind": "Status",
        "message": f"said {reason}",
        "reason": reason,
        "code": code,
        "details": details,
    }


def a_list(*items: dict[str, Any], version: str = "5", continue_: str = "") -> Response:
    return answered(
        {"metadata": {"resourceVersion": version, "continue": continue_}, "items": items}
    )


def a_line(type_: str, obj: Any) -> bytes:
    return json({"type": type_, "object": obj})


def a_pool(name: str, version: int, uid: str = "", **more: Any) -> dict[str, Any]:
    """As the wire has it: enough of a NodePool to be read."""
    metadata = {"name": name, "uid": uid or f"uid-of-{name}", "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": {"template": {"spec": {}}}, **more}
