"""What becomes of claims, volumes and attachments, embedded and real.

The bed has no storage driver: its volumes are made by hand, and ``attach`` says that a driver has
done its work. How long a driver takes, pods that wait for it, and what is forced after six
minutes is told of the embedded cluster alone (``tests/sim/test_volumes.py``).
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

from tenure.model.api.resource import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    VOLUME_ATTACHMENTS,
)
from tests.contract.backends import Json
from tests.contract.clusters import Cluster

DRIVER = "disk.example.com"
#: Seconds in which nothing may happen, where nothing is to happen.
QUIET = 3.0


async def a_claim(cluster: Cluster, name: str = "data", **spec: Any) -> Json:
    given = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "",
        **spec,
    }
    return await cluster.created(
        PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": name}, "spec": given}
    )


async def a_volume(cluster: Cluster, size: str = "1Gi", name: str = "pv", **spec: Any) -> str:
    """A volume of a driver's, kept for this test's claim; its name."""
    unique = cluster.unique(name)
    given = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": DRIVER, "volumeHandle": unique},
        "claimRef": {"namespace": cluster.namespace, "name": "data"},
        **spec,
    }
    await cluster.created(PERSISTENT_VOLUMES, {"metadata": {"name": unique}, "spec": given})
    return unique


async def bound(cluster: Cluster) -> Json:
    await cluster.until_status(PERSISTENT_VOLUME_CLAIMS, "data", phase="Bound")
    return (await cluster.get(PERSISTENT_VOLUME_CLAIMS, "data")).body


async def a_pod(cluster: Cluster, name: str, node: str) -> None:
    """A pod with the claim, bound as the scheduler would."""
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    template = cluster.template(name, volumes=[volume], nodeName=node)
    metadata = {"name": name, **template["metadata"]}
    await cluster.created(PODS, {"metadata": metadata, "spec": template["spec"]})


async def attachments(cluster: Cluster, volume: str) -> list[Json]:
    """The attachments of a volume, oldest first."""
    found = (await cluster.list(VOLUME_ATTACHMENTS)).body["items"]
    return [va for va in found if va["spec"]["source"]["persistentVolumeName"] == volume]


async def test_a_claim_is_bound_to_the_volume_that_is_kept_for_it(cluster: Cluster) -> None:
    volume = await a_volume(cluster)
    created = await a_claim(cluster)
    claim = await bound(cluster)
    assert claim["spec"]["volumeName"] == volume
    assert claim["status"]["capacity"] == {"storage": "1Gi"}
    found = (await cluster.get(PERSISTENT_VOLUMES, volume)).body
    assert found["spec"]["claimRef"]["uid"] == created["metadata"]["uid"]
    assert found["status"]["phase"] == "Bound"


async def test_a_claim_of_a_class_that_is_missing_waits(cluster: Cluster) -> None:
    await a_claim(cluster, "waiting", storageClassName="missing")
    await a_volume(cluster)
    await a_claim(cluster)
    await bound(cluster)
    claim = (await cluster.get(PERSISTENT_VOLUME_CLAIMS, "waiting")).body
    assert claim["status"]["phase"] == "Pending", "a later one was bound"


async def test_a_bound_pod_gets_its_volume_attached_to_its_node(cluster: Cluster) -> None:
    volume, node = await a_volume(cluster), await cluster.node("a")
    await a_claim(cluster)
    await bound(cluster)
    await a_pod(cluster, "db", node)
    (attachment,) = await cluster.until(lambda: attachments(cluster, volume), "it is asked for")
    assert attachment["spec"]["nodeName"] == node
    assert attachment["spec"]["attacher"] == DRIVER
    name = hashlib.sha256(f"{volume}{DRIVER}{node}".encode()).hexdigest()
    assert attachment["metadata"]["name"] == f"csi-{name}"


async def test_a_volume_for_one_node_is_not_attached_to_a_second(cluster: Cluster) -> None:
    volume = await a_volume(cluster)
    first, second = await cluster.node("a"), await cluster.node("b")
    await a_claim(cluster)
    await bound(cluster)
    await a_pod(cluster, "one", first)
    (attachment,) = await cluster.until(lambda: attachments(cluster, volume), "it is asked for")
    await cluster.attach(attachment["metadata"]["name"])
    await a_pod(cluster, "two", second)
    await asyncio.sleep(QUIET)
    assert [va["spec"]["nodeName"] for va in await attachments(cluster, volume)] == [first]


async def test_a_claim_in_use_stays_until_its_pod_is_gone(cluster: Cluster) -> None:
    volume, node = await a_volume(cluster), await cluster.node("a")
    await a_claim(cluster)
    await bound(cluster)
    await a_pod(cluster, "db", node)
    await cluster.delete(PERSISTENT_VOLUME_CLAIMS, "data")
    await asyncio.sleep(QUIET)
    claim = (await cluster.get(PERSISTENT_VOLUME_CLAIMS, "data")).body
    assert "deletionTimestamp" in claim["metadata"]
    await cluster.delete(PODS, "db", gracePeriodSeconds=1)
    await cluster.gone(PERSISTENT_VOLUME_CLAIMS, "data")
    await cluster.until_status(PERSISTENT_VOLUMES, volume, phase="Released")


async def test_an_ephemeral_volume_has_a_claim_that_goes_with_its_pod(cluster: Cluster) -> None:
    node = await cluster.node("a")
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    template = {"spec": {**claim, "storageClassName": "missing"}}
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}
    spec = cluster.template("db", volumes=[volume], nodeName=node)["spec"]
    pod = await cluster.created(PODS, {"metadata": {"name": "db"}, "spec": spec})

    async def claimed() -> Json | None:
        answer = await cluster.get(PERSISTENT_VOLUME_CLAIMS, "db-scratch")
        return answer.body if answer.status == 200 else None

    made = await cluster.until(claimed, "the pod has its claim")
    assert made["metadata"]["ownerReferences"][0]["uid"] == pod["metadata"]["uid"]
    await cluster.delete(PODS, "db", gracePeriodSeconds=1)
    await cluster.gone(PERSISTENT_VOLUME_CLAIMS, "db-scratch")


async def test_a_volume_is_detached_when_its_pod_is_gone_and_moves_on(cluster: Cluster) -> None:
    volume = await a_volume(cluster)
    first, second = await cluster.node("a"), await cluster.node("b")
    await a_claim(cluster)
    await bound(cluster)
    await a_pod(cluster, "one", first)
    (attachment,) = await cluster.until(lambda: attachments(cluster, volume), "it is asked for")
    await cluster.attach(attachment["metadata"]["name"])
    await a_pod(cluster, "two", second)
    await cluster.delete(PODS, "one", gracePeriodSeconds=1)
    await cluster.gone(PODS, "one")
    # A kubelet says in its Node's status what it has mounted; this is its next word.
    await cluster.patch(NODES, first, {"metadata": {"annotations": {"example.com/beat": "1"}}})

    async def moved() -> bool:
        found = await attachments(cluster, volume)
        return [va["spec"]["nodeName"] for va in found] == [second]

    await cluster.until(moved, "it is attached to the other node")
