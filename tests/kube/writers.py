"""A process that writes as fast as it can, for as long as its fence is open.

Each line on standard input is an instant on the clock that counts suspension: until then
the fence is open. When every writer has been refused, it says so and reads the next line.
"""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime, timedelta
from typing import Final

from tenure.errors import NotLeader
from tenure.kube.client.credentials import FixedCredentials, Identity
from tenure.kube.client.fence import LeaseFence
from tenure.kube.client.http import HttpTransport, Limits
from tenure.kube.client.kubeconfig import Access
from tenure.ports.transport import Request

WRITE = Request(method="PATCH", path="/api/v1/nodes/a", body=b"{}")
#: A pause is no time-out, however long it is on a busy machine.
PATIENT: Final = Limits(answer=timedelta(minutes=5))


async def main(port: int, writers: int) -> None:
    fence = LeaseFence()
    access = Access(server=f"http://127.0.0.1:{port}")
    nothing = FixedCredentials(Identity())
    async with HttpTransport(access, nothing, fence=fence, limits=PATIENT) as transport:
        _say("ready")
        while line := await asyncio.to_thread(sys.stdin.readline):
            fence.open_until(float(line), datetime.now(UTC))
            refused = sum(await asyncio.gather(*(_write(transport) for _ in range(writers))))
            _say(f"refused {refused}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def _write(transport: HttpTransport) -> int:
    while True:
        try:
            await transport.request(WRITE)
        except NotLeader:
            return 1


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
