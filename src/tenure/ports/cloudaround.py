"""A cloud around another one: passes every call on, so that a subclass changes only some."""

from __future__ import annotations

from collections.abc import AsyncIterator

from tenure.model.api.meta import ApiObject
from tenure.model.api.nodeclass import NodeClass
from tenure.model.api.resource import Resource
from tenure.model.cloud.drift import Drift
from tenure.model.cloud.instance import Instance, LaunchRequest
from tenure.model.cloud.notice import Notice
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

    async def drift(self, provider_id: str, node_class: NodeClass) -> Drift | None:
        return await self._cloud.drift(provider_id, node_class)

    async def current_image(self, node_class: NodeClass) -> str:
        return await self._cloud.current_image(node_class)

    def notices(self, cluster: str) -> AsyncIterator[Notice]:
        return self._cloud.notices(cluster)

    async def acknowledge(self, notice: Notice) -> None:
        await self._cloud.acknowledge(notice)
