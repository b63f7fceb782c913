"""No provider: beside Karpenter no cloud is ever called.

Each call that would change something is refused here as well, behind the deciders and the guard.

What counts as unhealthy there is what Karpenter's providers state in common: a Node that is not Ready, for
30m. Beside it stand the conditions of its KWOK provider, which no other cloud has.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import timedelta
from typing import Final, NoReturn

from tenure.errors import Misconfigured
from tenure.model.api.meta import ApiObject
from tenure.model.api.nodeclass import NodeClass
from tenure.model.api.resource import Resource
from tenure.model.cloud.drift import Drift
from tenure.model.cloud.instance import Instance, LaunchRequest
from tenure.model.cloud.notice import Notice
from tenure.model.cloud.offering import InstanceType
from tenure.model.cloud.repairs import RepairStatement
from tenure.ports.cloud import Cloud, no_notices
from tenure.ports.provider import Option, Surroundings
from tenure.providers.kwok.repairs import kwok_statements
from tenure.schema.structure.crd import CustomKind

_NAME: Final = "none"
#: For a pool that has a repair block, and no policy for the condition there.
_STATEMENTS: Final = kwok_statements(timedelta(minutes=30))


class NoCloud:
    """Implements ``ports.cloud.Cloud``: it has nothing, and does nothing."""

    name: str = _NAME
    node_classes: tuple[Resource, ...] = ()
    repair_statements: tuple[RepairStatement, ...] = _STATEMENTS

    async def instance_types(self, node_class: ApiObject) -> tuple[InstanceType, ...]:
        return ()

    async def launch(self, request: LaunchRequest) -> Instance:
        _refuse(f"launch for NodeClaim {request.claim_name}")

    async def terminate(self, provider_id: str) -> None:
        _refuse(f"termination of instance {provider_id}")

    async def reboot(self, provider_id: str, operation_id: str) -> None:
        _refuse(f"reboot of instance {provider_id}")

    async def get(self, provider_id: str) -> Instance:
        _refuse(f"read of instance {provider_id}")

    async def list_instances(self, cluster: str) -> tuple[Instance, ...]:
        return ()

    async def drift(self, provider_id: str, node_class: NodeClass) -> Drift | None:
        return None

    async def current_image(self, node_class: NodeClass) -> str:
        return ""

    def notices(self, cluster: str) -> AsyncIterator[Notice]:
        return no_notices()

    async def acknowledge(self, notice: Notice) -> None:
        _refuse(f"acknowledgement of a notice on {notice.provider_id}")


class NoProvider:
    """Implements ``ports.provider.Provider``."""

    name: str = _NAME
    node_classes: tuple[Resource, ...] = ()
    kinds: tuple[CustomKind, ...] = ()
    repair_statements: tuple[RepairStatement, ...] = _STATEMENTS
    options: tuple[Option, ...] = ()
    namespace: str = ""

    def open(self, surroundings: Surroundings) -> AbstractAsyncContextManager[Cloud]:
        return nullcontext(NoCloud())


NO_PROVIDER: Final = NoProvider()


def _refuse(call: str) -> NoReturn:
    raise Misconfigured(f"{call}: no cloud is called beside Karpenter")
