"""The storage objects that placement depends on, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from tenure.core.volumes.topology import is_on_a_host
from tenure.model.api.names import HOSTNAME
from tenure.model.api.pod import Pod
from tenure.model.api.resource import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
)
from tenure.model.api.workload import (
    CsiNode,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    StorageClass,
)
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_unreadable

ONE_POD: Final = "ReadWriteOncePod"
_DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_KINDS: Final = (PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES)


class Attached(msgspec.Struct, frozen=True):
    """A volume that a CSI driver has attached to a node, or is about to."""

    driver: str
    #: The PersistentVolume; of an inline volume, the VolumeAttachment.
    volume: str


class Storage(msgspec.Struct, frozen=True, kw_only=True):
    #: By ``namespace/name``.
    claims: Mapping[str, PersistentVolumeClaim] = {}
    volumes: Mapping[str, PersistentVolume] = {}
    classes: Mapping[str, StorageClass] = {}
    #: By the name of their Node.
    csi_nodes: Mapping[str, CsiNode] = {}
    #: By the name of a Node.
    attached: Mapping[str, tuple[Attached, ...]] = {}
    #: By claim that only one pod may use: the unfinished pods with a node that do.
    users: Mapping[str, tuple[Pod, ...]] = {}
    #: Hostnames of all Nodes, where a volume is the directory of one.
    hosts: frozenset[str] = frozenset()
    #: By kind: why the API server does not list it.
    unlisted: Mapping[str, str] = {}
    #: By instance type: how many volumes a node of it can attach, by driver.
    type_limits: Mapping[str, Mapping[str, int]] = {}


def storage_in(snapshot: Snapshot) -> Storage:
    types = snapshot.observations.instance_types.values()
    return msgspec.structs.replace(
        snapshot.once(_objects_in),
        type_limits={
            kind.name: kind.volume_limits for each in types for kind in each if kind.volume_limits
        },
    )


def class_of(spec: PersistentVolumeClaimSpec, storage: Storage) -> StorageClass | None:
    """The class of a claim; where it names none, the default."""
    if spec.storage_class_name is not None:
        return storage.classes.get(spec.storage_class_name)
    marked = (
        one
        for one in storage.classes.values()
        if any(one.annotations.get(key) == "true" for key in _DEFAULT_CLASS)
    )
    # Of several the newest counts, and of those of one second the first by name, as in the API server.
    by_name = sorted(marked, key=lambda one: one.name)
    return max(by_name, key=lambda one: one.created_at, default=None)


def _objects_in(snapshot: Snapshot) -> Storage:
    unlisted = {kind.kind: why for kind in _KINDS if (why := snapshot.unlisted(kind))}
    claims = dict(snapshot.volume_claims)
    classes = dict(snapshot.storage_classes)
    if not claims:
        return Storage(classes=classes, unlisted=unlisted, csi_nodes=dict(snapshot.csi_nodes))
    return Storage(
        claims=claims,
        volumes=dict(snapshot.persistent_volumes),
        classes=classes,
        csi_nodes=dict(snapshot.csi_nodes),
        attached=_attached_in(snapshot),
        users=_users_in(claims, snapshot),
        hosts=_hosts_in(snapshot),
        unlisted=unlisted,
    )


def _hosts_in(snapshot: Snapshot) -> frozenset[str]:
    volumes = snapshot.persistent_volumes.values()
    if not any(not is_unreadable(one) and is_on_a_host(one) for one in volumes):
        return frozenset()  # Nearly always.
    return frozenset(node.labels.get(HOSTNAME, name) for name, node in snapshot.nodes.items())


def _attached_in(snapshot: Snapshot) -> dict[str, tuple[Attached, ...]]:
    found: dict[str, list[Attached]] = {}
    for _, one in sorted(snapshot.attachments.items()):
        if not is_unreadable(one):
            volume = one.spec.source.persistent_volume_name or one.name
            found.setdefault(one.spec.node_name, []).append(Attached(one.spec.attacher, volume))
    return {node: tuple(attached) for node, attached in found.items()}


def _users_in(
    claims: Mapping[str, PersistentVolumeClaim], snapshot: Snapshot
) -> dict[str, tuple[Pod, ...]]:
    exclusive = {key for key, claim in claims.items() if ONE_POD in claim.spec.access_modes}
    if not exclusive:
        return {}  # Nearly always: no pod need be looked at.
    found: dict[str, list[Pod]] = {}
    for _, pod in sorted(snapshot.claiming_pods().items()):
        for name in pod.volume_claims:
            if (key := f"{pod.namespace}/{name}") in exclusive:
                found.setdefault(key, []).append(pod)
    return {key: tuple(pods) for key, pods in found.items()}
