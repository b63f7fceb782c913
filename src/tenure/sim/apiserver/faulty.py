"""A transport with bad days: slow, refusing, or losing the answer to what it carried out.

Every fault is drawn from a random stream of its own at the moment of the request, as
the switch says then. A lost answer is the hardest of the three: the write has happened
and its author must find out.
"""

from __future__ import annotations

import asyncio
from random import Random

from tenure.errors import Unavailable
from tenure.ports.transport import Request, Response, Stream, Transport
from tenure.sim.virtual.faults import FaultSwitch, drawn, strikes


class FaultyTransport:
    def __init__(self, inner: Transport, faults: FaultSwitch, random: Random) -> None:
        self._inner = inner
        self._faults = faults
        self._random = random

    async def request(self, request: Request) -> Response:
        await self._before()
        response = await self._inner.request(request)
        if strikes(self._faults.current.api_lost_answer_rate, self._random):
            raise Unavailable(f"the answer to {request.method} {request.path} was lost")
        return response

    async def stream(self, request: Request) -> Stream | Response:
        await self._before()
        return await self._inner.stream(request)

    async def _before(self) -> None:
        faults = self._faults.current
        if faults.api_latency:
            await asyncio.sleep(drawn(faults.api_latency, self._random).total_seconds())
        if strikes(faults.api_error_rate, self._random):
            raise Unavailable("the API server does not answer")
