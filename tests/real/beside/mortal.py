"""A Tenure that is killed right after a write: what the API server has carried out stays, and nothing follows.

It is ``tenure run``, with one difference: when so many of its writes are answered, it ends as with ``kill -9``.
The Lease's and events are not counted: no decision reads them.
"""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Final

from tenure.cli.main import main as tenure
from tenure.kube.client.http import HttpTransport
from tenure.ports.transport import Request, Response

#: The variable of the environment that says after how many writes.
WRITES: Final = "TESTBED_WRITES"
READS: Final = ("GET", "HEAD")
NOT_COUNTED: Final = ("/leases", "/events")


def main() -> None:
    left = int(os.environ.pop(WRITES))
    sent, one_by_one = HttpTransport.request, asyncio.Lock()

    async def request(self: HttpTransport, request: Request) -> Response:
        nonlocal left
        if not _counts(request):
            return await sent(self, request)
        async with one_by_one:  # Otherwise others would be on their way, and be carried out.
            answer = await sent(self, request)
            left -= 200 <= answer.status < 300
            if left <= 0:
                os.write(1, f"killed after {request.method} {request.path}\n".encode())
                os.kill(os.getpid(), signal.SIGKILL)
        return answer

    HttpTransport.request = request  # type: ignore[method-assign]
    tenure()


def _counts(request: Request) -> bool:
    return request.method not in READS and not any(part in request.path for part in NOT_COUNTED)
