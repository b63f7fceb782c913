"""Volumes follow their pods: a node that is empty waits until they are detached, or for its deadline.

These volumes are not those of the test bed's own driver (``testbed/storage``): the controller manager
asks for each to be attached and detached, as it does everywhere, and what an attacher would do is done by hand.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

from tenure.model.api.resource import NODE_CLAIMS, NODES, VOLUME_ATTACHMENTS
from testbed.controlplane import ControlPlane
from tests.builders import Manifest, a_pod
from tests.real.deadlines import Leaving, a_place, in_place, tell
from tests.real.users import Json, names

DRIVER: Final = "disks.example.com"
#: As long as it stands there, the disk is attached.
FINALIZER: Final = "external-attacher/disks-example-com"

#: A kubelet's word that the controller manager attaches for it.
ATTACHED_FOR: Final = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}


def a_disk(name: str, namespace: str) -> list[Manifest]:
    """A volume and the claim that it is meant for."""
    common = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "",
    }
    volume = {
        **common,
        "capacity": {"storage": "1Gi"},
        "claimRef": {"name": name, "namespace": namespace},
        "csi": {"driver": DRIVER, "volumeHandle": name},
        "persistentVolumeReclaimPolicy": "Retain",
    }
    claim = {**common, "volumeName": name, "resources": {"requests": {"storage": "1Gi"}}}
    return [
        {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        for kind, spec in (("PersistentVolume", volume), ("PersistentVolumeClaim", claim))
    ]


def a_pod_with(disk: str, **spec: Any) -> Manifest:
    pod = a_pod(f"with-{disk}", terminationGracePeriodSeconds=5, **spec)
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": disk}}
    pod["spec"]["volumes"] = [volume]
    return pod


def test_an_empty_node_waits_for_its_volumes_but_not_beyond_its_deadline(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(leaving: Leaving) -> None:
        # Other pods come first, so that the nodes say who attaches before a volume is to be attached.
        await leaving.settle(
            a_place("patient", "1h"),
            a_pod("first", **in_place("patient")),
            a_place("bounded", "25s"),
            a_pod("second", **in_place("bounded")),
            pods=2,
        )
        for node in await leaving.users.all(NODES):
            await leaving.patch(NODES, node, annotations=ATTACHED_FOR)
        where = leaving.users.namespace
        await leaving.users.apply(
            *a_disk("red", where),
            *a_disk("blue", where),
            a_pod_with("red", **in_place("patient")),
            a_pod_with("blue", **in_place("bounded")),
        )
        await leaving.scene.all_run(4)
        await asyncio.gather(detached_in_time(leaving), never_detached(leaving))

    tell(cluster, tmp_path, "volumes", story)


async def detached_in_time(leaving: Leaving) -> None:
    attachment = await attached(leaving, "red")
    pod = await leaving.pod("with-red")
    claim, deadline = await leaving.leave("patient")
    await leaving.seen.gone(pod)
    name, node = attachment["metadata"]["name"], claim["status"]["nodeName"]
    await leaving.event(
        "AwaitingVolumeDetachment", node, f"{name} (red)", f"until {deadline:%Y-%m-%dT%H:%M:%SZ}"
    )
    waits = await volumes_of(leaving, claim, "Unknown")
    assert waits["reason"] == "AwaitingVolumeDetachment"
    assert name in waits["message"]
    assert names([claim])[0] in names(await leaving.users.all(NODE_CLAIMS))
    await detach(leaving, attachment)
    await leaving.seen.node_gone(claim)
    await leaving.scene.until_gone(claim)


async def never_detached(leaving: Leaving) -> None:
    attachment = await attached(leaving, "blue")
    claim, deadline = await leaving.leave("bounded")
    node = claim["status"]["nodeName"]
    await leaving.event("AwaitingVolumeDetachment", node, attachment["metadata"]["name"])
    life = await leaving.seen.node_gone(claim)
    assert life.gone >= deadline
    await leaving.scene.until_gone(claim)
    assert attachment["metadata"]["name"] in names(await leaving.users.all(VOLUME_ATTACHMENTS))
    said = await leaving.event("TerminationGracePeriodElapsed", names([claim])[0])
    assert attachment["metadata"]["name"] in said["message"]


async def attached(leaving: Leaving, volume: str) -> Json:
    """Until the controller manager wants it; then what an attacher does."""

    def of_volume(attachments: list[Json]) -> list[Json]:
        return [
            each for each in attachments if each["spec"]["source"]["persistentVolumeName"] == volume
        ]

    wanted = await leaving.users.until(
        VOLUME_ATTACHMENTS, lambda now: bool(of_volume(now)), f"asked for {volume}"
    )
    (attachment,) = of_volume(wanted)
    await leaving.patch(VOLUME_ATTACHMENTS, attachment, finalizers=[FINALIZER])
    await leaving.users.client.patch(
        VOLUME_ATTACHMENTS,
        attachment["metadata"]["name"],
        {"status": {"attached": True}},
        subresource="status",
    )
    return attachment


async def detach(leaving: Leaving, attachment: Json) -> None:
    """When the controller manager wants it, for the pod is gone, an attacher lets it go."""
    name = attachment["metadata"]["name"]
    await leaving.users.until(
        VOLUME_ATTACHMENTS,
        lambda now: any("deletionTimestamp" in a["metadata"] for a in now if names([a]) == [name]),
        "to be detached",
    )
    await leaving.patch(VOLUME_ATTACHMENTS, attachment, finalizers=None)


async def volumes_of(leaving: Leaving, claim: Json, status: str) -> Json:
    """Until the claim says so of its volumes; the condition."""

    def conditions(claims: list[Json]) -> list[Json]:
        return [
            condition
            for each in claims
            if names([each]) == names([claim])
            for condition in each["status"]["conditions"]
            if (condition["type"], condition["status"]) == ("VolumesDetached", status)
        ]

    claims = await leaving.users.until(
        NODE_CLAIMS, lambda now: bool(conditions(now)), f"VolumesDetached={status}"
    )
    (condition,) = conditions(claims)
    return condition
