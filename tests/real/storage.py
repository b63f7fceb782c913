"""StatefulSets with volumes on the test bed, whose storage driver is ``testbed/storage``."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tenure.model.api.names import INSTANCE_TYPE, ZONE
from tenure.model.api.resource import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    VOLUME_ATTACHMENTS,
    Resource,
)
from testbed.storage.orders import DRIVER, NOT_READY
from tests.builders import Manifest, a_pool, a_requirement, a_stateful_set
from tests.real.users import Json, Users

#: No pod is bound to a node before its CSINode is there, as with drivers of public clouds.
WAITS_FOR_DRIVER: Final = {"startupTaints": [{"key": NOT_READY, "effect": "NoSchedule"}]}


def a_class(name: str, *zones: str, mode: str = "WaitForFirstConsumer") -> Manifest:
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass"}
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}]
    topologies = {"allowedTopologies": allowed} if zones else {}
    rest = {"provisioner": DRIVER, "volumeBindingMode": mode, **topologies}
    return {**kind, "metadata": {"name": name}, **rest}


def a_database(storage_class: str, *, replicas: int = 3, **spec: Any) -> Manifest:
    database = a_stateful_set(replicas=replicas, storage="1Gi", **spec)
    (template,) = database["spec"]["volumeClaimTemplates"]
    template["spec"]["storageClassName"] = storage_class
    return database


def a_storage_pool(type_: str, *, labels: dict[str, str] | None = None, **spec: Any) -> Manifest:
    pool = a_pool(
        requirements=[a_requirement(INSTANCE_TYPE, type_)], template=WAITS_FOR_DRIVER, **spec
    )
    if labels:
        pool["spec"]["template"]["metadata"] = {"labels": labels}
    return pool


class Place(msgspec.Struct, frozen=True):
    """Where a pod runs, and with which volume."""

    node: str
    zone: str
    volume: str


async def places(users: Users) -> dict[str, Place]:
    """Of each pod with a volume; each is in the zone of its volume."""
    found = {}
    for pod in await users.all(PODS):
        name, node_name = pod["metadata"]["name"], pod["spec"]["nodeName"]
        node = await _get(users, NODES, node_name)
        claim = await _get(users, PERSISTENT_VOLUME_CLAIMS, f"data-{name}", users.namespace)
        volume = await _get(users, PERSISTENT_VOLUMES, claim["spec"]["volumeName"])
        zone = node["metadata"]["labels"][ZONE]
        assert _zone(volume) == zone, f"{name} is in {zone}, and its volume is not"
        found[name] = Place(node_name, zone, volume["metadata"]["name"])
    return found


async def attached(users: Users, wanted: dict[str, Place]) -> list[Json]:
    """Until exactly the volumes of these places are attached, each to the node of its pod."""
    pairs = sorted((place.volume, place.node) for place in wanted.values())

    def holds(attachments: list[Json]) -> bool:
        done = all(each.get("status", {}).get("attached") for each in attachments)
        return done and sorted(map(_pair, attachments)) == pairs

    return await users.until(VOLUME_ATTACHMENTS, holds, f"attached as {pairs}")


def _pair(attachment: Json) -> tuple[str, str]:
    spec = attachment["spec"]
    return spec["source"]["persistentVolumeName"], spec["nodeName"]


def _zone(volume: Json) -> str:
    (term,) = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    ((zone,),) = (one["values"] for one in term["matchExpressions"])
    return str(zone)


async def _get(users: Users, resource: Resource, name: str, namespace: str = "") -> Json:
    found: Json = msgspec.json.decode(await users.client.get(resource, name, namespace))
    return found
