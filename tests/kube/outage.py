"""Two writes in a network that is down, and what comes through when it is back.

Run in a network namespace of its own, whose loopback this program may take down. The one who writes
to ``/patient`` lets the kernel repeat itself for as long as it likes; the other one is as we are. Both
give up waiting soon. Prints the paths that were heard after the outage.
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
from contextlib import suppress
from datetime import timedelta
from typing import Final

from tenure.errors import Unavailable
from tenure.kube.client.credentials import FixedCredentials, Identity
from tenure.kube.client.http import HttpTransport, Limits
from tenure.kube.client.kubeconfig import Access
from tenure.ports.transport import Request

GET_FLAGS, SET_FLAGS, UP = 0x8913, 0x8914, 1
#: Seconds.
OUTAGE: Final = 3.0
PATIENCE: Final = {"/patient": timedelta(minutes=10), "/ours": timedelta(seconds=1)}


def loopback(*, up: bool) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = fcntl.ioctl(any_socket, GET_FLAGS, struct.pack("16sh", b"lo", 0))
        flags = struct.unpack("16sh", asked[:18])[1]
        wanted = flags | UP if up else flags & ~UP
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sh", b"lo", wanted))


async def write(transport: HttpTransport, path: str) -> None:
    with suppress(TimeoutError, Unavailable):
        async with asyncio.timeout(2):
            await transport.request(Request(method="PATCH", path=path, body=b"{}"))


async def connect(transport: HttpTransport, path: str) -> None:
    """So that there is a connection; on a busy machine the first answer may come too late."""
    while True:
        with suppress(Unavailable):
            await transport.request(Request(method="GET", path=path))
            return


async def main() -> None:
    heard: list[str] = []
    patient = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                method, path = data.decode().split()[:2]
                if method == "PATCH":
                    heard.append(path)
                    if path == "/patient":
                        patient.set()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        writer.close()

    loopback(up=True)
    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    access = Access(server=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    transports = {
        path: HttpTransport(access, FixedCredentials(Identity()), limits=Limits(answer=patience))
        for path, patience in PATIENCE.items()
    }
    for path, transport in transports.items():
        await connect(transport, path)
    loopback(up=False)
    await asyncio.gather(*(write(transport, path) for path, transport in transports.items()))
    await asyncio.sleep(OUTAGE)
    loopback(up=True)
    await patient.wait()
    await asyncio.sleep(1)
    print(*heard)  # noqa: T201  # this is its answer


if __name__ == "__main__":
    asyncio.run(main())
