"""The cloud of a cluster that ``tenure up`` serves, as another process sees it.

Its instance types are known, so plans name the right ones. Its instances live in the process that
serves the cluster, and no other process can ask for them. Without this, the provider of real
clusters would be asked, would know none of the instances, and they would count as lost.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, NoReturn

from tenure.errors import ProviderError
from tenure.model.api.meta import ApiObject
from tenure.model.api.nodeclass import NodeClass
from tenure.model.cloud.drift import Drift
from tenure.model.cloud.instance import Instance, LaunchRequest
from tenure.model.cloud.notice import Notice
from tenure.model.cloud.offering import InstanceType
from tenure.model.cloud.repairs import RepairStatement
from tenure.ports.cloud import Cloud
from tenure.ports.provider import Option, Surroundings
from tenure.providers.kwok.nodeclass import KWOK_KIND, KWOK_NODE_CLASSES
from tenure.providers.kwok.repairs import kwok_statements
from tenure.sim.cloud.catalogue import instance_types, select

LEADER: Final = "tenure up, which serves this cluster"
_ONLY_THERE: Final = "only tenure up, which serves this cluster, knows them"


class EmbeddedCloud:
    name: Final = "embedded"
    node_classes: Final = (KWOK_NODE_CLASSES,)
    repair_statements: Final[tuple[RepairStatement, ...]] = kwok_statements()
    kinds: Final = (KWOK_KIND,)
    options: Final[tuple[Option, ...]] = ()
    namespace: Final = ""

    @asynccontextmanager
    async def open(self, surroundings: Surroundings) -> AsyncIterator[Cloud]:
        yield self

    async def instance_types(self, node_class: ApiObject) -> tuple[InstanceType, ...]:
        """Of a cluster that no scenario changed."""
        return instance_types(select(), seed=0)

    async def launch(self, request: LaunchRequest) -> Instance:
        _refuse()

    async def terminate(self, provider_id: str) -> None:
        _refuse()

    async def reboot(self, provider_id: str, operation_id: str) -> None:
        _refuse()

    async def get(self, provider_id: str) -> Instance:
        _refuse()

    async def list_instances(self, cluster: str) -> tuple[Instance, ...]:
        _refuse()

    async def drift(self, provider_id: str, node_class: NodeClass) -> Drift | None:
        _refuse()

    async def current_image(self, node_class: NodeClass) -> str:
        _refuse()

    def notices(self, cluster: str) -> AsyncIterator[Notice]:
        _refuse()

    async def acknowledge(self, notice: Notice) -> None:
        _refuse()


def _refuse() -> NoReturn:
    raise ProviderError(_ONLY_THERE)
