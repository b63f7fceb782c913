"""A Tenure that is killed right after a write: what the API server has carried out stays, and nothing follows.

It is ``tenure run``, with one difference: when so many of its writes are answered, it ends as with ``kill -9``.
The Lease's and events are not counted: no decision reads them.
"""

from __future__ import annotations

import os
import signal
from typing import Final

from tenure.cli.main import main as tenure
from tenure.kube.client.http import HttpTransport
from tenure.ports.transport import Request, Response

#: The variable of the environment that says how many writes it survives, and one that says so in the log.
WRITES: Final = "TESTBED_WRITES"
_READS: Final = ("GET", "HEAD")
_NOT_COUNTED: Final = ("/leases", "/events")


def main() -> None:
    left = int(os.environ.pop(WRITES))
    sent = HttpTransport.request

    async def request(self: HttpTransport, request: Request) -> Response:
        nonlocal left
        answer = await sent(self, request)
        if _counts(request) and 200 <= answer.status < 300:
            left -= 1
            if left <= 0:
                os.write(1, f"killed after {request.method} {request.path}\n".encode())
                os.kill(os.getpid(), signal.SIGKILL)
        return answer

    HttpTransport.request = request  # type: ignore[method-assign]
    tenure()


def _counts(request: Request) -> bool:
    return request.method not in _READS and not any(part in request.path for part in _NOT_COUNTED)
