"""A transport to the API server whose watches can be made late, or be held back. Calls are not.

It speaks for one account, and plainly: who comes through it needs no certificate.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from tenure.kube.client.credentials import credentials_for
from tenure.kube.client.http import HttpStream, HttpTransport, Limits
from tenure.kube.client.kubeconfig import load_access
from tenure.model.api.resource import Resource
from tenure.ports.transport import JSON, Request
from tenure.runtime.clock.system import SystemClock
from tests.real.cluster import ANSWER

#: Of an answer's headers, what a client goes by.
HEADERS = ("Content-Type", "Retry-After")


class SlowWatches:
    def __init__(self, server: HttpTransport) -> None:
        self._server = server
        self._flows = asyncio.Event()
        self._flows.set()
        #: Paths of the watches that are held back; empty: all of them.
        self._held: frozenset[str] = frozenset()
        #: Seconds by which everything that a watch tells is late.
        self.late_by = 0.0
        #: Lines that watches have passed on.
        self.lines = 0

    def stop_watches(self, *only: Resource) -> None:
        """Nothing comes through any watch, or through those of these kinds, and none of them ends."""
        self._held = frozenset(resource.path() for resource in only)
        self._flows.clear()

    def let_go(self) -> None:
        self._flows.set()

    async def serve(self, asked: web.Request) -> web.StreamResponse:
        request = Request(
            method=asked.method,
            path=asked.path,
            query=dict(asked.query),
            body=await asked.read(),
            content_type=asked.headers.get("Content-Type", JSON),
        )
        if "watch" in request.query:
            answer = await self._server.stream(request)
            if isinstance(answer, HttpStream):
                return await self._pass_on(asked, answer)
        else:
            answer = await self._server.request(request)
        headers = {name: answer.headers[name] for name in HEADERS if name in answer.headers}
        return web.Response(status=answer.status, body=answer.body, headers=headers)

    async def _pass_on(self, asked: web.Request, stream: HttpStream) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": JSON})
        await response.prepare(asked)
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        reading = asyncio.create_task(_read(stream, queue))
        loop = asyncio.get_running_loop()
        try:
            while True:
                heard_at, line = await queue.get()
                await asyncio.sleep(heard_at + self.late_by - loop.time())
                if not self._held or asked.path in self._held:
                    await self._flows.wait()
                if not line:
                    return response
                self.lines += 1
                await response.write(line)
        except ConnectionResetError:
            return response  # The client has closed its connection.
        finally:
            reading.cancel()
            await stream.close()


async def _read(stream: HttpStream, queue: asyncio.Queue[tuple[float, bytes]]) -> None:
    """Until its end, which is an empty line."""
    loop = asyncio.get_running_loop()
    try:
        async for line in stream:
            queue.put_nowait((loop.time(), line))
    finally:
        queue.put_nowait((loop.time(), b""))


@asynccontextmanager
async def slow_watches(kubeconfig: Path, folder: Path) -> AsyncIterator[tuple[SlowWatches, Path]]:
    """The transport, and the kubeconfig of who goes through it, for as long as the block lasts."""
    access = load_access(kubeconfig)
    credentials, limits = credentials_for(access, SystemClock()), Limits(answer=ANSWER)
    async with HttpTransport(access, credentials, limits=limits) as server:
        transport = SlowWatches(server)
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/{path:.*}", transport.serve)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            (address,) = runner.addresses
            yield transport, _kubeconfig(folder, address[1])
        finally:
            transport.let_go()
            await runner.cleanup()


def _kubeconfig(folder: Path, port: int) -> Path:
    document = {
        "current-context": "transport",
        "contexts": [{"name": "transport", "context": {"cluster": "transport"}}],
        "clusters": [{"name": "transport", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
    }
    path = folder / "transport.kubeconfig"
    path.write_text(json.dumps(document))
    return path
