"""A cloud whose every call returns in time, with an error of ours if it fails.

Providers are plugins over SDKs of third parties. What escapes from them becomes a
``ProviderError`` that names the call, so that one bad answer is asked for again later like any
other, and never ends the loop; a call that hangs is given up. Giving up is safe: launches are
idempotent by claim UID, terminations by instance, reboots by operation.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable
from datetime import timedelta
from typing import Final, TypeVar

from tenure.errors import ProviderError, TenureError, shown
from tenure.model.api.meta import ApiObject
from tenure.model.api.nodeclass import NodeClass
from tenure.model.cloud.drift import Drift
from tenure.model.cloud.instance import Instance, LaunchRequest
from tenure.model.cloud.notice import Notice
from tenure.model.cloud.offering import InstanceType
from tenure.ports.cloud import Cloud
from tenure.ports.cloudaround import CloudAround
from tenure.schema.semantics.statements import statement_problems

#: Longer than any cloud's own time-out, shorter than users wait before they ask what is wrong.
CALL_MAX: Final = timedelta(seconds=60)

#: As long as the API lets the reason of a condition be.
_REASON: Final = re.compile("[A-Z][A-Za-z0-9]{0,1023}")

_Answer = TypeVar("_Answer")


class BoundedCloud(CloudAround):
    """Implements ``ports.cloud.Cloud`` around another one."""

    def __init__(self, cloud: Cloud) -> None:
        """Raises ``SpecError`` where the cloud's repair statements contradict each other."""
        super().__init__(cloud)
        for problem in statement_problems(cloud.repair_statements):
            raise problem

    async def instance_types(self, node_class: ApiObject) -> tuple[InstanceType, ...]:
        what = f"instance types of node class {node_class.name}"
        return await self._bounded(what, self._cloud.instance_types(node_class))

    async def launch(self, request: LaunchRequest) -> Instance:
        what = f"launch for NodeClaim {request.claim_name}"
        return await self._bounded(what, self._cloud.launch(request))

    async def terminate(self, provider_id: str) -> None:
        what = f"termination of instance {provider_id}"
        await self._bounded(what, self._cloud.terminate(provider_id))

    async def reboot(self, provider_id: str, operation_id: str) -> None:
        what = f"reboot of instance {provider_id}"
        await self._bounded(what, self._cloud.reboot(provider_id, operation_id))

    async def get(self, provider_id: str) -> Instance:
        return await self._bounded(f"read of instance {provider_id}", self._cloud.get(provider_id))

    async def list_instances(self, cluster: str) -> tuple[Instance, ...]:
        return await self._bounded("list of instances", self._cloud.list_instances(cluster))

    async def drift(self, provider_id: str, node_class: NodeClass) -> Drift | None:
        what = f"drift of instance {provider_id}"
        drift = await self._bounded(what, self._cloud.drift(provider_id, node_class))
        if drift is not None and not _REASON.fullmatch(drift.reason):
            # The API server would refuse the condition, again and again.
            why = (
                f"got {shown(drift.reason)!r} as the reason, expected CamelCase such as ImageDrift"
            )
            raise ProviderError(f"{self.name}: {what}: {why}")
        return drift

    async def current_image(self, node_class: NodeClass) -> str:
        what = f"current image of node class {node_class.name}"
        return await self._bounded(what, self._cloud.current_image(node_class))

    async def notices(self, cluster: str) -> AsyncIterator[Notice]:
        """Waiting has no limit: most instances are never interrupted."""
        try:
            async for notice in self._cloud.notices(cluster):
                yield notice
        except TenureError:
            raise
        except Exception as error:  # Whatever an SDK raises.
            raise ProviderError(f"{self.name}: notices: {_first_line(error)}") from error
        raise ProviderError(f"{self.name}: notices: the stream has ended")

    async def acknowledge(self, notice: Notice) -> None:
        what = f"acknowledgement of a notice on instance {shown(notice.provider_id)}"
        await self._bounded(what, self._cloud.acknowledge(notice))

    async def _bounded(self, what: str, call: Awaitable[_Answer]) -> _Answer:
        try:
            async with asyncio.timeout(CALL_MAX.total_seconds()) as patience:
                return await call
        except TenureError:
            raise
        except TimeoutError as error:
            seconds = CALL_MAX.total_seconds()
            why = f"no answer within {seconds:.0f} s" if patience.expired() else "it timed out"
            raise ProviderError(f"{self.name}: {what}: {why}") from error
        except Exception as error:  # Whatever an SDK raises.
            raise ProviderError(f"{self.name}: {what}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
