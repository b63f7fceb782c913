"""Read only: nothing that changes something leaves the process.

``tenure explain`` and ``tenure plan`` evaluate with the production deciders, on the rights of
the user, who may well be an administrator. So it is made impossible that they act.
"""

from __future__ import annotations

from typing import Final

from tenure.errors import NotLeader
from tenure.kube.client.fence import READS
from tenure.model.cloud.instance import Instance, LaunchRequest
from tenure.model.cloud.notice import Notice
from tenure.ports.cloudaround import CloudAround
from tenure.ports.transport import Request, Response, Stream, Transport

_WHY: Final = "this only looks, and changes nothing"


class LookOnlyTransport:
    """Passes reads on; everything else is refused before any server is reached."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def request(self, request: Request) -> Response:
        if request.method not in READS:
            raise NotLeader(f"{request.method} {request.path}: {_WHY}")
        return await self._transport.request(request)

    async def stream(self, request: Request) -> Stream | Response:
        return await self._transport.stream(request)


class LookOnlyCloud(CloudAround):
    """Is asked, and never told."""

    async def launch(self, request: LaunchRequest) -> Instance:
        raise NotLeader(f"launch for NodeClaim {request.claim_name}: {_WHY}")

    async def terminate(self, provider_id: str) -> None:
        raise NotLeader(f"end of {provider_id}: {_WHY}")

    async def reboot(self, provider_id: str, operation_id: str) -> None:
        raise NotLeader(f"reboot of {provider_id}: {_WHY}")

    async def acknowledge(self, notice: Notice) -> None:
        raise NotLeader(f"acknowledgement of a notice on {notice.provider_id}: {_WHY}")
