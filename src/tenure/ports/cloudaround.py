"""A cloud around another one: passes everything on, for those who change one thing about it."""

from __future__ import annotations

from tenure.model.api.meta import ApiObject
from tenure.model.api.resource import Resource
from tenure.model.cloud.instance import Instance, LaunchRequest
from tenure.model.cloud.offering import InstanceType
from tenure.model.cloud.repairs import RepairStatement
from tenure.ports.cloud import Cloud


class CloudAround:
    """Implements ``Cloud``."""

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
        return await self._cloud.launch(request)

    async def terminate(self, provider_id: str) -> None:
        await self._cloud.terminate(provider_id)

    async def reboot(self, provider_id: str, operation_id: str) -> None:
        await self._cloud.reboot(provider_id, operation_id)

    async def get(self, provider_id: str) -> Instance:
        return await self._cloud.get(provider_id)

    async def list_instances(self, cluster: str) -> tuple[Instance, ...]:
        return await self._cloud.list_instances(cluster)
