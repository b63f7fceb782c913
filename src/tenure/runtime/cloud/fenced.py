"""A cloud behind the fence: it is called only while we may act.

Reads are, too: what a replica learns that may not act is of no use, and a cloud counts calls.
The fence is asked in the step that calls the provider. What lies between that and the
provider's own bytes is the provider's; a launch is idempotent by the claim's UID and an
end by the instance's id, a reboot by its operation's id, so one that arrives late does nothing that was not decided.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from tenure.errors import NotLeader
from tenure.model.api.meta import ApiObject
from tenure.model.api.nodeclass import NodeClass
from tenure.model.cloud.drift import Drift
from tenure.model.cloud.instance import Instance, LaunchRequest
from tenure.model.cloud.notice import Notice
from tenure.model.cloud.offering import InstanceType
from tenure.ports.cloud import Cloud
from tenure.ports.cloudaround import CloudAround
from tenure.ports.fence import Fence


class FencedCloud(CloudAround):
    def __init__(self, cloud: Cloud, fence: Fence) -> None:
        super().__init__(cloud)
        self._fence = fence

    async def instance_types(self, node_class: ApiObject) -> tuple[InstanceType, ...]:
        self._check(f"instance types of {node_class.name}")
        return await self._cloud.instance_types(node_class)

    async def launch(self, request: LaunchRequest) -> Instance:
        self._check(f"launch for NodeClaim {request.claim_name}")
        return await self._cloud.launch(request)

    async def terminate(self, provider_id: str) -> None:
        self._check(f"end of {provider_id}")
        await self._cloud.terminate(provider_id)

    async def reboot(self, provider_id: str, operation_id: str) -> None:
        self._check(f"reboot of {provider_id}")
        await self._cloud.reboot(provider_id, operation_id)

    async def get(self, provider_id: str) -> Instance:
        self._check(f"look at {provider_id}")
        return await self._cloud.get(provider_id)

    async def list_instances(self, cluster: str) -> tuple[Instance, ...]:
        self._check("list of instances")
        return await self._cloud.list_instances(cluster)

    async def drift(self, provider_id: str, node_class: NodeClass) -> Drift | None:
        self._check(f"drift of {provider_id}")
        return await self._cloud.drift(provider_id, node_class)

    async def current_image(self, node_class: NodeClass) -> str:
        self._check(f"current image of {node_class.name}")
        return await self._cloud.current_image(node_class)

    async def notices(self, cluster: str) -> AsyncIterator[Notice]:
        self._check("notices")
        async for notice in self._cloud.notices(cluster):
            self._check("notices")  # What arrives after the Lease is another replica's.
            yield notice

    async def acknowledge(self, notice: Notice) -> None:
        self._check(f"acknowledgement of a notice on {notice.provider_id}")
        await self._cloud.acknowledge(notice)

    def _check(self, what: str) -> None:
        if why := self._fence.closed():
            raise NotLeader(f"{what}: {why}")
