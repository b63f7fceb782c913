"""For whoever only looks: nothing that changes something leaves the process.

``tenure explain`` and ``tenure plan`` judge with the production deciders, on the rights of
whoever asks, who may well be an administrator. So that they cannot act is not left to care.
"""

from __future__ import annotations

from typing import Final

from tenure.errors import NotLeader
from tenure.kube.fence import READS
from tenure.model.instance import Instance, LaunchRequest
from tenure.model.meta import ApiObject
from tenure.model.offering import InstanceType
from tenure.model.repairs import RepairStatement
from tenure.model.resource import Resource
from tenure.ports.cloud import Cloud
from tenure.ports.transport import Request, Response, Stream, Transport

_WHY: Final = "this only looks, and changes nothing"


class LookOnlyTransport:
    """Passes reads on; everything else is refused before anybody is reached."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def request(self, request: Request) -> Response:
        if request.method not in READS:
            raise NotLeader(f"{request.method} {request.path}: {_WHY}")
        return await self._transport.request(request)

    async def stream(self, request: Request) -> Stream | Response:
        return await self._transport.stream(request)


class LookOnlyCloud:
    """Is asked, and never told."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    @property
    def name(self) -> str:
        return self._cloud.name

    @property
    def node_classes(self) -> tuple[Resource, ...]:
        return self._cloud.node_classes

    @property
    def repair_statements(self) -> tuple[RepairStatement, ...]:
        return self._cloud.repair_statements

    async def instance_types(self, node_class: ApiObject) -> tuple[InstanceType, ...]:
        return await self._cloud.instance_types(node_class)

    async def launch(self, request: LaunchRequest) -> Instance:
        raise NotLeader(f"launch for NodeClaim {request.claim_name}: {_WHY}")

    async def terminate(self, provider_id: str) -> None:
        raise NotLeader(f"end of {provider_id}: {_WHY}")

    async def get(self, provider_id: str) -> Instance:
        return await self._cloud.get(provider_id)

    async def list_instances(self, cluster: str) -> tuple[Instance, ...]:
        return await self._cloud.list_instances(cluster)
