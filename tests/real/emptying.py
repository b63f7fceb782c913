"""Takes everything out of a cluster that a story can have put in, finalizers or not.

Order: what makes pods, then pods, then volumes, then what makes nodes, then nodes. So that no controller creates
again what is gone.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import msgspec

from tenure.errors import Conflict, NotFound
from tenure.kube.client.client import Client
from tenure.model.api import resource as r
from tenure.providers.kwok import images
from tenure.providers.kwok import labels as kwok
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES
from testbed.controlplane import ControlPlane
from testbed.karpenter import STAYS
from tests.real.cluster import LOOK_EVERY, PATIENCE, patient

ORDER: Final = (
    (r.DEPLOYMENTS, r.STATEFUL_SETS, r.DAEMON_SETS, r.JOBS),
    (r.REPLICA_SETS,),
    (r.PODS, r.POD_DISRUPTION_BUDGETS),
    (r.VOLUME_ATTACHMENTS, r.PERSISTENT_VOLUME_CLAIMS),
    (r.PERSISTENT_VOLUMES, r.STORAGE_CLASSES, r.PRIORITY_CLASSES),
    (
        r.NODE_POOLS,
        r.NODE_CLAIMS,
        r.MAINTENANCE_WINDOWS,
        r.NODE_POOL_POLICIES,
        KWOK_NODE_CLASSES,
    ),
    (r.CONFIG_MAPS,),
    (r.NODES,),
)
#: Marks a ConfigMap in which the kwok provider keeps a Node that registers later, and the one with the
#: list of its images; others stay.
OUR_CONFIG_MAPS: Final = (kwok.REGISTERS_AT.encode(), f'"name":"{images.NAME}"'.encode())


def empty(plane: ControlPlane) -> None:
    """Returns when it is empty."""
    asyncio.run(asyncio.wait_for(_empty(plane.kubeconfig), PATIENCE))


async def _empty(kubeconfig: Path) -> None:
    async with patient(kubeconfig) as client:
        for together in ORDER:
            while left := [
                (resource, msgspec.json.decode(item)["metadata"])
                for resource in together
                for item in (await client.list_all(resource))[0]
                if _is_of_a_story(resource, bytes(item))
            ]:
                await asyncio.gather(*(_remove(client, *each) for each in left))
                await asyncio.sleep(LOOK_EVERY)


def _is_of_a_story(resource: r.Resource, item: bytes) -> bool:
    if f'"{STAYS}"'.encode() in item:
        return False
    if resource == r.PRIORITY_CLASSES:
        return b'"name":"system-' not in item
    return resource != r.CONFIG_MAPS or any(mark in item for mark in OUR_CONFIG_MAPS)


async def _remove(client: Client, resource: r.Resource, metadata: dict[str, Any]) -> None:
    name, namespace, uid = metadata["name"], metadata.get("namespace", ""), metadata["uid"]
    try:
        await client.delete(resource, name, namespace=namespace, uid=uid, grace_period_seconds=0)
        if metadata.get("finalizers"):
            no_finalizers: dict[str, Any] = {"metadata": {"uid": uid, "finalizers": None}}
            await client.patch(resource, name, no_finalizers, namespace=namespace)
    except (NotFound, Conflict):
        return  # Gone, or another one by now: the next look will tell.
