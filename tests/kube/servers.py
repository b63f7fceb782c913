"""A small HTTPS server on loopback, for stories about the transport."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from testbed.keys import Authority, Pair

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(
    handler: Handler, pair: Pair | None = None, client_authority: Path | None = None
) -> AsyncIterator[int]:
    """A server for as long as the block lasts; yields its port. Plain HTTP without a pair."""
    # A handler ends when its client leaves, so that no story waits for one that never ends.
    server = web.Server(handler, access_log=None, handler_cancellation=True)  # type: ignore[arg-type]  # it is given web.Request, whatever its signature says
    runner = web.ServerRunner(server, shutdown_timeout=1)
    await runner.setup()
    context = _context(pair, client_authority) if pair else None
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    port: int = runner.addresses[0][1]
    try:
        yield port
    finally:
        await runner.cleanup()


def _context(pair: Pair, client_authority: Path | None) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.cert, pair.key)
    if client_authority:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client_authority)
    return context


class Pki:
    """An authority, a server for 127.0.0.1, one under another name, and a client certificate."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder)
        self.here = self.authority.server("here", "IP:127.0.0.1")
        self.named = self.authority.server("named", "DNS:kubernetes.default.svc")
        self.me = self.authority.client("me", "team")
        self.stranger = Authority(folder / "stranger", "a-stranger")
