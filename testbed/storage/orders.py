"""What a storage driver does next, from what it sees: a pure function.

* a Node without a CSINode gets one, with the number of volumes that its label ``testbed/volumes``
  says, and is said to have its volumes attached by kube-controller-manager. Then its startup taint
  ``testbed/storage-not-ready``, where its pool has one, is taken off: as with drivers of public
  clouds, no pod is bound before the limit is known;
* a claim that kube-controller-manager hands over gets a volume: in the zone of the node that the scheduler has
  selected, or else in one of those that its class allows, or that the cloud has;
* a volume that its claim has released is deleted;
* a VolumeAttachment is attached at once, and detached at once when it is being deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from zlib import crc32

import msgspec

from tenure.model.api.names import ZONE
from tenure.model.api.resource import (
    CSI_NODES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    Resource,
)
from tenure.providers.kwok.catalogue import ZONES

Json = dict[str, Any]
DRIVER: Final = "disks.testbed.tenure.dev"
WATCHED: Final = (
    NODES,
    CSI_NODES,
    STORAGE_CLASSES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    VOLUME_ATTACHMENTS,
)
#: A label of a Node: how many volumes it attaches.
VOLUMES_LABEL: Final = "testbed/volumes"
VOLUMES_MAX: Final = 25
#: A startup taint of pools whose pods must not come before the driver.
NOT_READY: Final = "testbed/storage-not-ready"
#: Written by a kubelet: kube-controller-manager attaches for it.
ATTACHED_FOR: Final = "volumes.kubernetes.io/controller-managed-attach-detach"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
#: As long as it is there, the volume is attached.
FINALIZER: Final = "external-attacher/disks-testbed-tenure-dev"


class Seen:
    """The objects of each watched kind, by namespace and name."""

    def __init__(self) -> None:
        self.by_kind: dict[Resource, dict[tuple[str, str], Json]] = {kind: {} for kind in WATCHED}

    def all(self, kind: Resource) -> Iterator[Json]:
        yield from self.by_kind[kind].values()

    def find(self, kind: Resource, name: str) -> Json | None:
        """One that is in no namespace."""
        return self.by_kind[kind].get(("", name))


class Order(msgspec.Struct, frozen=True):
    """One write. ``uid``: delete that one; ``body`` of a patch is a merge patch."""

    verb: str
    kind: Resource
    name: str
    namespace: str = ""
    body: Mapping[str, Any] = {}
    subresource: str = ""
    uid: str = ""


def orders(seen: Seen) -> Iterator[Order]:
    """Each is harmless when it is carried out twice."""
    for node in seen.all(NODES):
        yield from _agent(node, seen)
    for claim in seen.all(PERSISTENT_VOLUME_CLAIMS):
        yield from _provision(claim, seen)
    in_use = {a["spec"]["source"].get("persistentVolumeName") for a in seen.all(VOLUME_ATTACHMENTS)}
    for volume in seen.all(PERSISTENT_VOLUMES):
        if volume["metadata"]["name"] not in in_use:
            yield from _reclaim(volume)
    for attachment in seen.all(VOLUME_ATTACHMENTS):
        yield from _attach(attachment)


def _agent(node: Json, seen: Seen) -> Iterator[Order]:
    metadata, name = node["metadata"], node["metadata"]["name"]
    if "deletionTimestamp" in metadata:
        return
    if ATTACHED_FOR not in metadata.get("annotations", {}):
        patch = {"metadata": {"annotations": {ATTACHED_FOR: "true"}}}
        yield Order("patch", NODES, name, body=patch)
    csi_node = seen.find(CSI_NODES, name)
    if csi_node is None:
        yield Order("create", CSI_NODES, name, body=_csi_node(node))
        return
    taints = node["spec"].get("taints", [])
    left = [taint for taint in taints if taint["key"] != NOT_READY]
    if left != taints:
        version = {"resourceVersion": metadata["resourceVersion"]}
        yield Order("patch", NODES, name, body={"metadata": version, "spec": {"taints": left}})


def _csi_node(node: Json) -> Json:
    name, uid = node["metadata"]["name"], node["metadata"]["uid"]
    count = int(node["metadata"].get("labels", {}).get(VOLUMES_LABEL, VOLUMES_MAX))
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
    driver = {
        "name": DRIVER,
        "nodeID": name,
        "topologyKeys": [ZONE],
        "allocatable": {"count": count},
    }
    return {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": {"drivers": [driver]}}


def _provision(claim: Json, seen: Seen) -> Iterator[Order]:
    metadata, spec = claim["metadata"], claim["spec"]
    annotations = metadata.get("annotations", {})
    storage_class = seen.find(STORAGE_CLASSES, spec.get("storageClassName", ""))
    if (
        annotations.get(PROVISIONER) != DRIVER
        or spec.get("volumeName")
        or storage_class is None
        or "deletionTimestamp" in metadata
    ):
        return
    selected = annotations.get(SELECTED_NODE)
    node = seen.find(NODES, selected) if selected else None
    if selected and node is None:
        # It is gone: the scheduler selects another.
        patch = {"metadata": {"annotations": {SELECTED_NODE: None}}}
        where = metadata["namespace"]
        yield Order("patch", PERSISTENT_VOLUME_CLAIMS, metadata["name"], where, patch)
        return
    if node is None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer":
        return
    volume = _volume(claim, storage_class, _zone(claim, storage_class, node))
    yield Order("create", PERSISTENT_VOLUMES, volume["metadata"]["name"], body=volume)


def _zone(claim: Json, storage_class: Json, node: Json | None) -> str:
    if node is not None:
        zone: str = node["metadata"]["labels"][ZONE]
        return zone
    zones = _allowed(storage_class) or ZONES
    return zones[crc32(claim["metadata"]["name"].encode()) % len(zones)]


def _allowed(storage_class: Json) -> Sequence[str]:
    return [
        zone
        for term in storage_class.get("allowedTopologies", ())
        for one in term["matchLabelExpressions"]
        if one["key"] == ZONE
        for zone in one["values"]
    ]


def _volume(claim: Json, storage_class: Json, zone: str) -> Json:
    metadata, spec = claim["metadata"], claim["spec"]
    name = f"pvc-{metadata['uid']}"
    here = {"key": ZONE, "operator": "In", "values": [zone]}
    owner = {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}
    identity = {key: metadata[key] for key in ("namespace", "name", "uid")}
    return {
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: DRIVER}},
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "claimRef": {**owner, **identity},
            "csi": {"driver": DRIVER, "volumeHandle": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
            "storageClassName": storage_class["metadata"]["name"],
        },
    }


def _reclaim(volume: Json) -> Iterator[Order]:
    metadata = volume["metadata"]
    if (
        metadata.get("annotations", {}).get(PROVISIONED_BY) == DRIVER
        and volume.get("status", {}).get("phase") == "Released"
        and volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
        and "deletionTimestamp" not in metadata
    ):
        yield Order("delete", PERSISTENT_VOLUMES, metadata["name"], uid=metadata["uid"])


def _attach(attachment: Json) -> Iterator[Order]:
    metadata = attachment["metadata"]
    if attachment["spec"]["attacher"] != DRIVER:
        return
    held = metadata.get("finalizers", [])
    kept: list[str] | None = None
    if "deletionTimestamp" in metadata:
        kept = [one for one in held if one != FINALIZER]
    elif FINALIZER not in held:
        kept = [*held, FINALIZER]
    elif not attachment.get("status", {}).get("attached"):
        done = {"status": {"attached": True}}
        yield Order("patch", VOLUME_ATTACHMENTS, metadata["name"], body=done, subresource="status")
    if kept is not None and kept != held:
        version = {"resourceVersion": metadata["resourceVersion"]}
        patch = {"metadata": {"finalizers": kept, **version}}
        yield Order("patch", VOLUME_ATTACHMENTS, metadata["name"], body=patch)
