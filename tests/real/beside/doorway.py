"""The way of Karpenter to the API server, on which it is killed right after one of its writes.

What the API server has carried out stays, and nothing follows: Karpenter gets no answer any more, nothing that it
sends goes on, and then it is killed with ``kill -9``. As in ``mortal``, writes go one by one; the Lease's and events do not count.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from tests.real.beside.mortal import NOT_COUNTED, READS

_AT_ONCE: Final = 1 << 16
_LONGEST_HEAD: Final = 1 << 20
_HEAD_ENDS: Final = b"\r\n\r\n"


class Doorway:
    """Plain HTTP on this side, Karpenter's certificate on the other."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        #: For Karpenter.
        self.kubeconfig = folder / "doorway.kubeconfig"
        #: Every write that was carried out while they were counted.
        self.writes: list[str] = []
        #: Which of them Karpenter did not survive; the first is 1.
        self.killed_at: list[int] = []
        self.shut = asyncio.Event()
        self._left: float | None = None
        self._one_by_one = asyncio.Lock()
        self._open: set[asyncio.StreamWriter] = set()
        told = json.loads(kubeconfig.read_text())
        self._server = urlsplit(told["clusters"][0]["cluster"]["server"])
        self._tls = _identity(told, folder)

    def count(self, left: float | None) -> None:
        """From now on, and after so many Karpenter is dead. ``None``: no more."""
        self._left = left

    def let_in(self) -> None:
        """Karpenter is dead: another life may come."""
        for each in self._open:
            each.close()
        self._open.clear()
        self.shut.clear()

    @asynccontextmanager
    async def served(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_LONGEST_HEAD)
        _, port = server.sockets[0].getsockname()
        self.kubeconfig.write_text(json.dumps(_plain(f"http://127.0.0.1:{port}")))
        try:
            yield
        finally:
            server.close()
            self.let_in()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            there, back = await asyncio.open_connection(
                self._server.hostname, self._server.port, ssl=self._tls
            )
            self._open |= {writer, back}
            asked: list[_Write] = []
            answers = asyncio.create_task(self._answers(there, writer, asked))
            try:
                await self._requests(reader, back, asked)
            finally:
                answers.cancel()
                back.close()
                writer.close()
                self._open -= {writer, back}

    async def _requests(
        self, reader: asyncio.StreamReader, back: asyncio.StreamWriter, asked: list[_Write]
    ) -> None:
        while True:
            head = await reader.readuntil(_HEAD_ENDS)
            data = head + await reader.readexactly(_length(head))
            method, path, *_ = head.split(b"\r\n", 1)[0].decode().split()
            if self._left is None or not _counts(method, path):
                await self._pass(back, data)
                continue
            async with (
                self._one_by_one
            ):  # Otherwise others would be on their way, and be carried out.
                write = _Write(f"{method} {path.partition('?')[0]}")
                asked.append(write)
                await self._pass(back, data)
                await write.answered.wait()

    async def _pass(self, back: asyncio.StreamWriter, data: bytes) -> None:
        if self.shut.is_set():
            raise ConnectionAbortedError
        back.write(data)
        await back.drain()

    async def _answers(
        self, there: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: list[_Write]
    ) -> None:
        """Karpenter waits for each answer: what comes after a write was passed on is the answer to it."""
        try:
            while data := await there.read(_AT_ONCE):
                if asked:
                    self._answered(asked.pop(), int(data.split(b" ", 2)[1]))
                if self.shut.is_set():
                    return
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()
            for write in asked:  # The connection broke.
                write.answered.set()

    def _answered(self, write: _Write, status: int) -> None:
        if self._left is not None and 200 <= status < 300:
            self.writes.append(write.what)
            self._left -= 1
            if self._left <= 0:
                self.killed_at.append(len(self.writes))
                self._left = None
                self.shut.set()
        write.answered.set()


class _Write:
    def __init__(self, what: str) -> None:
        self.what = what
        self.answered = asyncio.Event()


def _counts(method: str, path: str) -> bool:
    return method not in READS and not any(part in path for part in NOT_COUNTED)


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        assert name.lower() != b"transfer-encoding", "a body of unknown length"
        if name.lower() == b"content-length":
            return int(value)
    return 0


def _identity(told: dict[str, Any], folder: Path) -> ssl.SSLContext:
    parts = {**told["clusters"][0]["cluster"], **told["users"][0]["user"]}
    for name in ("client-certificate", "client-key"):
        (folder / name).write_bytes(base64.b64decode(parts[f"{name}-data"]))
    authority = base64.b64decode(parts["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    context.load_cert_chain(folder / "client-certificate", folder / "client-key")
    return context


def _plain(server: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "doorway",
        "contexts": [{"name": "doorway", "context": {"cluster": "doorway", "user": ""}}],
        "clusters": [{"name": "doorway", "cluster": {"server": server}}],
    }
