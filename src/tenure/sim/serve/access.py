"""Serves the API, and gives a client what it needs: address, authority, token.

Both are made anew each time and live in this process only; a client without them is refused.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from tenure.kube.certs import issue, make_authority
from tenure.ports.clock import Clock
from tenure.sim.apiserver.api import Api
from tenure.sim.serve.http import HOST, ApiHandler, serving

#: Longer than it is left running.
_VALID: Final = timedelta(days=365)


class Access(msgspec.Struct, frozen=True, kw_only=True):
    server: str
    ca: str
    token: str

    def __repr__(self) -> str:
        return f"Access({self.server})"  # Secrets do not belong in a log.


@asynccontextmanager
async def opened(
    api: Api,
    clock: Clock,
    *,
    port: int = 0,
    speed: float = 1.0,
    report: Callable[[str], object],
    more: Mapping[str, Callable[[], bytes]] | None = None,
) -> AsyncIterator[Access]:
    """Serve the API for as long as the block lasts. Raises ``OSError`` when the port is taken."""
    # Clients check certificates by the real time, whatever the cluster's may be.
    now = datetime.now(UTC)
    authority = make_authority("tenure up", now=now, valid=_VALID)
    pair = issue(authority, HOST, dns=("localhost",), ips=(HOST,), now=now, valid=_VALID)
    token = secrets.token_urlsafe(32)
    handler = ApiHandler(api, clock, token, speed=speed, report=report, more=more)
    async with serving(handler, pair, port=port, speed=speed) as bound:
        yield Access(server=f"https://{HOST}:{bound}", ca=authority.cert, token=token)
