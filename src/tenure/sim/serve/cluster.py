"""An embedded cluster with Tenure in it, served: the world on a paced loop behind a door.

The cluster's clock begins at the real now and keeps to it at speed 1. A fault in an actor is
told and the cluster goes on, as a cluster does when one of its controllers stumbles; only the
end of Tenure itself ends it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from tenure.kube.certs import issue, make_authority
from tenure.sim.api import Api
from tenure.sim.serve.http import HOST, Door, serving
from tenure.sim.serve.pace import PacedLoop
from tenure.sim.serve.welcome import WELCOME
from tenure.sim.tree import Obj
from tenure.sim.world import World, WorldOptions

#: Longer than anybody leaves it running; authority and token end with the process anyway.
_VALID: Final = timedelta(days=365)


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """What a client needs to get in."""

    server: str
    ca: str
    token: str

    def __repr__(self) -> str:
        return f"Access({self.server})"  # Secrets do not belong in a log.


class ServedCluster:
    def __init__(
        self,
        options: WorldOptions | None = None,
        *,
        speed: float = 1.0,
        objects: Iterable[Obj] = WELCOME,
        report: Callable[[str], object],
    ) -> None:
        """``report`` is told of faults, one line each. Begins at the real now."""
        now = datetime.now(UTC)
        options = msgspec.structs.replace(options or WorldOptions(), epoch=now)
        self._loop = PacedLoop(speed)
        self.world = World(options, loop=self._loop)
        self._report = report
        self._loop.set_exception_handler(self._on_fault)
        for manifest in objects:
            self.world.apply(manifest)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.world.close()

    @property
    def loop(self) -> PacedLoop:
        return self._loop

    @asynccontextmanager
    async def served(self, port: int = 0) -> AsyncIterator[Access]:
        """Serve it for as long as the block lasts. Raises ``OSError`` when the port is taken."""
        now, speed = self.world.now, self._loop.speed
        authority = make_authority("tenure up", now=now, valid=_VALID)
        pair = issue(authority, HOST, dns=("localhost",), ips=(HOST,), now=now, valid=_VALID)
        token = secrets.token_urlsafe(32)
        # Not the witnessed API that Tenure uses: what people do is not held against it.
        api, clock = Api(self.world.store), self.world.environment.clock
        door = Door(api, clock, token, speed=speed, report=self._report)
        async with serving(door, pair, port=port, speed=speed) as address:
            self.world.start()
            try:
                yield Access(server=address.url, ca=authority.cert, token=token)
            finally:
                self.world.store.end_watches()

    def _on_fault(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, ConnectionError | TimeoutError):
            return  # A client that hung up; no fault of anybody's.
        what = f"{type(error).__name__}: {error}" if error else context.get("message", "unknown")
        self._report(f"a fault of ours: {what}")
