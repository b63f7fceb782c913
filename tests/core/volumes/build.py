"""Small makers for storage objects: say only what the test is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tenure.model.api.names import ZONE
from tenure.model.api.pod import Pod
from tenure.model.api.workload import (
    CsiNode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from tests.packing.build import a_pod

DRIVER = "disk.example.com"


def a_storage_class(
    name: str = "standard",
    *,
    waits: bool = True,
    zones: Sequence[str] = (),
    provisioner: str = DRIVER,
    default: bool = False,
    created: str = "2030-01-01T00:00:00Z",
) -> StorageClass:
    mark = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    topologies = [{"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}]
    return msgspec.convert(
        {
            "metadata": {"name": name, "annotations": mark, "creationTimestamp": created},
            "provisioner": provisioner,
            "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate",
            "allowedTopologies": topologies if zones else [],
        },
        StorageClass,
    )


def a_volume_claim(
    name: str = "data",
    *,
    volume: str = "",
    storage_class: str | None = "standard",
    modes: Sequence[str] = ("ReadWriteOnce",),
    size: str = "1Gi",
    deleted: str | None = None,
    **spec: Any,
) -> PersistentVolumeClaim:
    metadata = {"name": name, "namespace": "default", "uid": name, "deletionTimestamp": deleted}
    written = {
        "volumeName": volume,
        "storageClassName": storage_class,
        "accessModes": list(modes),
        "resources": {"requests": {"storage": size}},
        **spec,
    }
    return msgspec.convert({"metadata": metadata, "spec": written}, PersistentVolumeClaim)


def a_volume(
    name: str = "pv-1",
    *,
    zones: Sequence[str] = (),
    terms: Sequence[Sequence[Mapping[str, Any]]] = (),
    driver: str = DRIVER,
    storage_class: str = "standard",
    claim: Mapping[str, str] | None = None,
    modes: Sequence[str] = ("ReadWriteOnce",),
    size: str = "10Gi",
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> PersistentVolume:
    """``zones``: from which it can be reached; ``terms``: other match expressions."""
    if zones:
        terms = [[{"key": ZONE, "operator": "In", "values": list(zones)}]]
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": t} for t in terms]}}
    written: dict[str, Any] = {
        "storageClassName": storage_class,
        "accessModes": list(modes),
        "capacity": {"storage": size},
        **({"nodeAffinity": affinity} if terms else {}),
        **({"csi": {"driver": driver, "volumeHandle": name}} if driver else {}),
        **({"claimRef": dict(claim)} if claim else {}),
        **spec,
    }
    metadata = {"name": name, "labels": dict(labels or {})}
    return msgspec.convert({"metadata": metadata, "spec": written}, PersistentVolume)


def an_attachment(volume: str, node: str, driver: str = DRIVER) -> VolumeAttachment:
    spec = {"attacher": driver, "nodeName": node, "source": {"persistentVolumeName": volume}}
    return msgspec.convert(
        {"metadata": {"name": f"{volume}-{node}"}, "spec": spec}, VolumeAttachment
    )


def a_csi_node(name: str, count: int | None, driver: str = DRIVER) -> CsiNode:
    allocatable = {} if count is None else {"allocatable": {"count": count}}
    drivers = [{"name": driver, "nodeID": name, **allocatable}]
    return msgspec.convert({"metadata": {"name": name}, "spec": {"drivers": drivers}}, CsiNode)


def using(*claims: str, uid: str = "p", **fields: Any) -> Pod:
    """A pod with these claims."""
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    return a_pod(uid, volumes=volumes, **fields)


def with_scratch(storage_class: str | None = "standard", **fields: Any) -> Pod:
    """A pod with a generic ephemeral volume ``scratch``."""
    spec: dict[str, Any] = {"accessModes": ["ReadWriteOnce"]}
    if storage_class is not None:
        spec["storageClassName"] = storage_class
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}
    return a_pod(volumes=[volume], **fields)
