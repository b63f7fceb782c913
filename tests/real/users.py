"""What people do to a cluster while Tenure runs in it, and what they see there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec

from tenure.kube.client.client import Client
from tenure.model.api.resource import DEPLOYMENTS, NAMESPACES, Resource
from tenure.sim.apiserver.objects.kinds import BY_KIND
from testbed.controlplane import ControlPlane
from tests.builders import Manifest
from tests.real.cluster import PATIENCE as PATIENCE
from tests.real.cluster import admits_pods, patient

Json = dict[str, Any]
LOOK_EVERY: Final = 0.1


class Users:
    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    async def apply(self, *manifests: Manifest) -> None:
        for manifest in manifests:
            resource = BY_KIND[manifest["apiVersion"], manifest["kind"]]
            await self.client.create(resource, manifest, self.namespace)

    async def scale(self, deployment: str, replicas: int) -> None:
        patch = {"spec": {"replicas": replicas}}
        await self.client.patch(DEPLOYMENTS, deployment, patch, namespace=self.namespace)

    async def delete(self, resource: Resource, *objects: Json) -> None:
        for each in objects:
            metadata = each["metadata"]
            where = metadata.get("namespace", "")
            await self.client.delete(
                resource, metadata["name"], uid=metadata["uid"], namespace=where
            )

    async def all(self, resource: Resource) -> list[Json]:
        where = self.namespace if resource.namespaced else ""
        items, _ = await self.client.list_all(resource, where)
        return [msgspec.json.decode(item) for item in items]

    async def until(
        self, resource: Resource, holds: Callable[[list[Json]], bool], what: str
    ) -> list[Json]:
        """Look until it holds; what was there then comes back."""
        objects: list[Json] = []
        try:
            async with asyncio.timeout(PATIENCE):
                while not holds(objects := await self.all(resource)):
                    await asyncio.sleep(LOOK_EVERY)
        except TimeoutError:
            raise AssertionError(
                f"{resource}: not {what} within {PATIENCE:.0f} s: {_brief(objects)}"
            ) from None
        return objects


@asynccontextmanager
async def users_at(plane: ControlPlane, namespace: str) -> AsyncIterator[Users]:
    """Administrators, who come with a namespace of their own."""
    async with patient(plane.kubeconfig) as client:
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        await client.create(NAMESPACES, manifest)
        await admits_pods(plane, client, namespace)
        yield Users(client, namespace)


def names(objects: Iterable[Json]) -> list[str]:
    return sorted(each["metadata"]["name"] for each in objects)


def running(pods: Iterable[Json]) -> list[Json]:
    return [
        pod
        for pod in pods
        if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
    ]


def is_true(condition: str) -> Callable[[Json], bool]:
    def holds(thing: Json) -> bool:
        conditions = thing.get("status", {}).get("conditions", [])
        return any(c["type"] == condition and c["status"] == "True" for c in conditions)

    return holds


def _brief(objects: list[Json]) -> list[tuple[str, Json]]:
    return [(each["metadata"]["name"], each.get("status", {})) for each in objects[:3]]
