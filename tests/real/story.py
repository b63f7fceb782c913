"""Tenure on a real control plane, for as long as a story lasts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from random import Random
from typing import Any, Final

import msgspec

from tenure.core.decision import Verdict
from tenure.core.reasons import Reason
from tenure.errors import AlreadyExists, TenureError, Unavailable
from tenure.kube.client.client import Client
from tenure.model.api.resource import DEPLOYMENTS, NAMESPACES, NODE_CLAIMS, NODES, PODS, Resource
from tenure.model.settings import Settings
from tenure.ports.outcome import Outcome
from tenure.ports.provider import Surroundings
from tenure.providers.kwok.catalogue import built_in_types
from tenure.providers.kwok.cloud import KwokCloud
from tenure.runtime.clock.system import SystemClock
from tenure.runtime.controller import Controller
from tenure.sim.apiserver.objects.kinds import BY_KIND
from testbed.controlplane import ControlPlane
from tests.builders import Manifest
from tests.real.account import PROVIDER_NAMESPACE, account
from tests.real.cluster import PATIENCE as PATIENCE
from tests.real.cluster import admits_pods, connected, patient

Json = dict[str, Any]
LOOK_EVERY: Final = 0.1


class Recorder:
    """A journal that remembers the reasons, and when claims were decided upon."""

    def __init__(self) -> None:
        self.reasons: set[Reason] = set()
        #: By the claim's name; claims of one decision have the same instant.
        self.created_at: dict[str, datetime] = {}

    def decided(self, now: datetime, verdict: Verdict) -> None:
        self.reasons.add(verdict.reason)
        if verdict.reason is Reason.NEEDED_FOR_PODS:
            self.created_at.setdefault(verdict.subject.name, now)

    def acted(self, now: datetime, verdict: Verdict, outcome: Outcome) -> None:
        """What came of it is seen in the cluster."""


class Story:
    def __init__(self, client: Client, namespace: str, cluster: str) -> None:
        self.client = client
        self.cluster = cluster
        self.namespace = namespace
        self.recorder = Recorder()
        self.errors: list[TenureError] = []
        self.cloud: KwokCloud

    @property
    def faults(self) -> list[TenureError]:
        """What went wrong, but for answers that a busy machine gives too late: they are asked again."""
        return [error for error in self.errors if not isinstance(error, Unavailable)]

    async def apply(self, *manifests: Manifest) -> None:
        for manifest in manifests:
            resource = BY_KIND[manifest["apiVersion"], manifest["kind"]]
            await self.client.create(resource, manifest, self.namespace)

    async def all(self, resource: Resource) -> list[Json]:
        items, _ = await self.client.list_all(resource, self.namespace)
        return [msgspec.json.decode(item) for item in items]

    async def claims(self) -> list[Json]:
        return await self.all(NODE_CLAIMS)

    async def instances(self) -> set[str]:
        """The provider ids of all that run."""
        return {each.provider_id for each in await self.cloud.list_instances(self.cluster)}

    async def scale_to_zero(self, deployment: str) -> None:
        """The empty claims are deleted by hand: sooner than emptiness would."""
        patch = {"spec": {"replicas": 0}}
        await self.client.patch(DEPLOYMENTS, deployment, patch, namespace=self.namespace)
        await self.until(PODS, lambda pods: not pods, "empty")
        for claim in await self.claims():
            metadata = claim["metadata"]
            await self.client.delete(NODE_CLAIMS, metadata["name"], uid=metadata["uid"])
        await self.until(NODE_CLAIMS, lambda claims: not claims, "without claims")
        assert await self.all(NODES) == []
        assert await self.instances() == set()

    async def until(
        self, resource: Resource, holds: Callable[[list[Json]], bool], what: str
    ) -> list[Json]:
        """Look until it holds; what was there then comes back."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not holds(objects := await self.all(resource)):
                    await asyncio.sleep(LOOK_EVERY)
        except TimeoutError:
            raise AssertionError(f"not {what} within {PATIENCE:.0f} s: {self.errors}") from None
        return objects


@asynccontextmanager
async def tenure_at_work(
    plane: ControlPlane, namespace: str, *types: str, settings: Settings
) -> AsyncIterator[Story]:
    """With these types to buy, or with all that there are."""
    async with patient(plane.kubeconfig) as client, connected(account(plane)) as transport:
        namespace_ = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        with suppress(AlreadyExists):
            await client.create(NAMESPACES, namespace_)
        await admits_pods(plane, client, namespace)
        story = Story(client, namespace, settings.cluster_name)
        surroundings = Surroundings(
            api=Client(transport),
            clock=SystemClock(),
            cluster=settings.cluster_name,
            namespace=PROVIDER_NAMESPACE,
            report=story.errors.append,
        )
        offered = [kind for kind in built_in_types() if not types or kind.name in types]
        async with KwokCloud(surroundings, tuple(offered)) as story.cloud:
            controller = Controller(
                transport=transport,
                cloud=story.cloud,
                clock=SystemClock(),
                journal=story.recorder,
                settings=settings,
                random=Random(1),
                report=story.errors.append,
            )
            async with _running(controller):
                yield story


@asynccontextmanager
async def _running(controller: Controller) -> AsyncIterator[None]:
    running = asyncio.create_task(controller.run())
    try:
        yield
        assert not running.done(), "Tenure has ended by itself"
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


def names(objects: Iterable[Json]) -> list[str]:
    return sorted(each["metadata"]["name"] for each in objects)
