"""What we need from a cloud. Few methods; errors from our tree say what to do next.

Any call may be repeated, be made by another process than the one before, and be given up half
way: by a crash, or because it takes too long. ``docs/providers.md`` explains it to authors of
providers, ``tenure.providers.contract`` tests it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol

from tenure.model.api.meta import ApiObject
from tenure.model.api.nodeclass import NodeClass
from tenure.model.api.resource import Resource
from tenure.model.cloud.drift import Drift
from tenure.model.cloud.instance import Instance, LaunchRequest
from tenure.model.cloud.notice import Notice
from tenure.model.cloud.offering import InstanceType
from tenure.model.cloud.repairs import RepairStatement


class Cloud(Protocol):
    @property
    def name(self) -> str:
        """Short, for logs and metrics."""
        ...

    @property
    def node_classes(self) -> tuple[Resource, ...]:
        """The kinds of node classes this provider serves: watched, and they make things *ours*."""
        ...

    @property
    def repair_statements(self) -> tuple[RepairStatement, ...]:
        """Which conditions of its nodes mean unhealthy, and what to do then; empty: only the
        policies of pools count."""
        ...

    async def instance_types(self, node_class: ApiObject) -> tuple[InstanceType, ...]:
        """Every type the class may launch, those without a free offering included."""
        ...

    async def launch(self, request: LaunchRequest) -> Instance:
        """Start an instance, or return the one that already runs for this claim UID.

        Raises ``OutOfCapacity`` (naming the dry offerings), ``Throttled``,
        ``Misconfigured`` or another ``ProviderError``.
        """
        ...

    async def terminate(self, provider_id: str) -> None:
        """Begin to terminate an instance; repeatable. Raises ``InstanceGone`` once it is gone."""
        ...

    async def reboot(self, provider_id: str, operation_id: str) -> None:
        """Restart an instance in place; returns once that is accepted, not when it is up again.

        The same ``operation_id`` reboots once, however often it is asked for. Raises
        ``RebootNotSupported``, ``RebootFailed`` or ``InstanceGone``, which are final, or another
        ``ProviderError``, after which it is asked for again.
        """
        ...

    async def get(self, provider_id: str) -> Instance:
        """Raises ``InstanceGone`` when there is no such instance (any more)."""
        ...

    async def list_instances(self, cluster: str) -> tuple[Instance, ...]:
        """Every instance tagged with this cluster, terminating ones included."""
        ...

    async def drift(self, provider_id: str, node_class: NodeClass) -> Drift | None:
        """How an instance differs from what its node class asks for now; None: it does not.

        Raises ``InstanceGone`` when there is no such instance (any more).
        """
        ...

    async def current_image(self, node_class: NodeClass) -> str:
        """The image that a new instance of the class starts from now; empty where there is none.

        Asked each minute for each class, so it should be cheap. Where it differs from the last answer,
        ``drift`` is asked again for every instance of the class.
        """
        ...

    def notices(self, cluster: str) -> AsyncIterator[Notice]:
        """What the cloud announces about instances of this cluster, pushed as it is announced.

        Lasts until it is closed, or raises a ``ProviderError``. A notice may come twice. What is
        not acknowledged comes again: at the latest when the stream is opened anew.
        """
        ...

    async def acknowledge(self, notice: Notice) -> None:
        """The cluster holds what the notice says, or it concerns none of ours: it need not come again.

        Repeatable; a notice that is not known (any more) is nothing wrong.
        """
        ...


async def no_notices() -> AsyncIterator[Notice]:
    """``notices`` of a cloud that announces nothing."""
    await asyncio.Event().wait()
    yield NotImplemented  # Makes it a generator; never reached.
