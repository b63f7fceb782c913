"""The store as a transport: what production code uses inside a simulation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tenure.ports.transport import Request, Response
from tenure.sim.apiserver.api import Api
from tenure.sim.apiserver.httpdate import HttpDate
from tenure.sim.apiserver.store.watch import Watch

#: Called before each request reaches the store. It may wait (latency), raise
#: ``errors.Unavailable`` (no answer came back), or return an answer of its own.
Before = Callable[[Request], Awaitable[Response | None]]


class InProcessTransport:
    def __init__(self, api: Api, before: Before | None = None) -> None:
        self._api = api
        self._date = HttpDate(api.clock)
        self.before = before

    async def request(self, request: Request) -> Response:
        if self.before is not None and (answer := await self.before(request)) is not None:
            return answer
        answer = self._api.handle(request)
        return Response(
            status=answer.status,
            body=answer.body,
            headers={**answer.headers, "Date": self._date.now()},
        )

    async def stream(self, request: Request) -> Watch | Response:
        if self.before is not None and (answer := await self.before(request)) is not None:
            return answer
        return self._api.watch(request)
