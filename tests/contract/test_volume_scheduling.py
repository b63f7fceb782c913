"""Where pods with persistent volumes go, and what those are told that wait, embedded and real."""

from __future__ import annotations

from typing import Any

from tenure.model.api.resource import (
    CSI_NODES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
)
from tests.contract.backends import Json
from tests.contract.clusters import Cluster

DRIVER = "disk.example.com"
PLACE = "example.com/place"


async def a_claim(cluster: Cluster, name: str, **spec: Any) -> None:
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    given = {"metadata": {"name": name}, "spec": {"storageClassName": "", **wanted, **spec}}
    await cluster.created(PERSISTENT_VOLUME_CLAIMS, given)


async def a_disk(cluster: Cluster, name: str, place: str = "", **spec: Any) -> None:
    """A claim with its volume, which can be used from nodes of that place."""
    unique = cluster.unique(name)
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": [at(place)]}}} if place else {}
    volume = {
        "capacity": {"storage": "1Gi"},
        "accessModes": spec.get("accessModes", ["ReadWriteOnce"]),
        "csi": {"driver": DRIVER, "volumeHandle": unique},
        "claimRef": {"namespace": cluster.namespace, "name": name},
        **affinity,
    }
    await cluster.created(PERSISTENT_VOLUMES, {"metadata": {"name": unique}, "spec": volume})
    await a_claim(cluster, name, **spec)
    await cluster.until_status(PERSISTENT_VOLUME_CLAIMS, name, phase="Bound")


def at(place: str) -> Json:
    return {"matchExpressions": [{"key": PLACE, "operator": "In", "values": [place]}]}


async def a_pod(cluster: Cluster, name: str, *claims: str) -> None:
    volumes = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims]
    template = cluster.template(name, volumes=volumes)
    metadata = {"name": name, **template["metadata"]}
    await cluster.created(PODS, {"metadata": metadata, "spec": template["spec"]})


async def until_told(cluster: Cluster, pod: str, words: str) -> None:
    async def told() -> bool:
        body = (await cluster.get(PODS, pod)).body
        conditions = body["status"].get("conditions", [])
        return any(words in one.get("message", "") for one in conditions)

    await cluster.until(told, f"pod {pod} is told: {words}")


async def until_on(cluster: Cluster, pod: str, node: str) -> None:
    async def there() -> bool:
        return bool((await cluster.get(PODS, pod)).body["spec"].get("nodeName") == node)

    await cluster.until(there, f"pod {pod} is on {node}")


async def test_a_missing_claim_is_named(cluster: Cluster) -> None:
    await cluster.node("a")
    await a_pod(cluster, "db", "data")
    await until_told(cluster, "db", 'nodes are available: persistentvolumeclaim "data" not found.')


async def test_a_claim_that_waits_for_no_pod_must_have_its_volume(cluster: Cluster) -> None:
    node = await cluster.node("a")
    await a_claim(cluster, "waiting", storageClassName="missing")
    await a_pod(cluster, "db", "waiting", "data")
    await a_disk(cluster, "data")
    words = "nodes are available: pod has unbound immediate PersistentVolumeClaims."
    await until_told(cluster, "db", words)
    await a_pod(cluster, "other", "data")
    await until_on(cluster, "other", node)


async def test_a_pod_waits_for_a_node_that_its_volume_reaches(cluster: Cluster) -> None:
    first, second = await cluster.node("a"), await cluster.node("b")
    await a_disk(cluster, "data", "here")
    await a_pod(cluster, "db", "data")
    await until_told(cluster, "db", "2 node(s) didn't match PersistentVolume's node affinity")
    await cluster.patch(NODES, second, {"metadata": {"labels": {PLACE: "here"}}})
    await until_on(cluster, "db", second)
    assert first != second


async def test_a_class_makes_no_volume_where_it_may_not(cluster: Cluster) -> None:
    await cluster.node("a")
    name = cluster.unique("narrow")
    allowed = [{"matchLabelExpressions": [{"key": PLACE, "values": ["there"]}]}]
    await cluster.created(
        STORAGE_CLASSES,
        {
            "metadata": {"name": name},
            "provisioner": DRIVER,
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": allowed,
        },
    )
    await a_claim(cluster, "data", storageClassName=name)
    await a_pod(cluster, "db", "data")
    await until_told(cluster, "db", "1 node(s) didn't find available persistent volumes to bind")


async def test_a_node_attaches_as_many_volumes_as_its_driver_says(cluster: Cluster) -> None:
    node = await cluster.node("a")
    driver = {"name": DRIVER, "nodeID": node, "allocatable": {"count": 1}}
    await cluster.created(CSI_NODES, {"metadata": {"name": node}, "spec": {"drivers": [driver]}})
    for name in ("one", "two"):
        await a_disk(cluster, name)
    await a_pod(cluster, "first", "one")
    await until_on(cluster, "first", node)
    await a_pod(cluster, "second", "two")
    await until_told(cluster, "second", "1 node(s) exceed max volume count")
    await a_pod(cluster, "third", "one")
    await until_on(cluster, "third", node)


async def test_a_claim_for_one_pod_is_free_when_that_pod_is_gone(cluster: Cluster) -> None:
    node = await cluster.node("a")
    await a_disk(cluster, "data", accessModes=["ReadWriteOncePod"])
    await a_pod(cluster, "first", "data")
    await until_on(cluster, "first", node)
    await a_pod(cluster, "second", "data")
    await until_told(
        cluster, "second", "ReadWriteOncePod access mode already in-use by another pod"
    )
    await cluster.delete(PODS, "first", gracePeriodSeconds=1)
    await until_on(cluster, "second", node)
