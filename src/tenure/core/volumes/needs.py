"""What the persistent volumes of a pod ask of its node.

For each PersistentVolumeClaim that the pod names, and for each generic ephemeral volume:

1. bound to a PersistentVolume: the node satisfies one term of the volume's node affinity. A term
   that names a host is read without the host where the volume is a directory or disk of a node
   that may be replaced (``local``, ``hostPath``), as Karpenter does;
2. not bound, StorageClass with ``WaitForFirstConsumer``: the node satisfies one term of the class's
   ``allowedTopologies``. Where the class provisions nothing (``kubernetes.io/no-provisioner``, or the
   claim's class is ``""``), the node reaches one of the free volumes that match;
3. not bound, ``Immediate``: the pod waits for the volume, and so does its node.

A claim or class that is missing, a claim that is being deleted, has lost its volume, or is
``ReadWriteOncePod`` and in use, is a fact about the pod: no node can run it now. Of the waiting pods
of one owner that share such a claim, the first may use it.

The claim of an ephemeral volume is deleted with its pod. A pod that runs and is to move gets a new
one, so for such a pod only the StorageClass counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, Final

import msgspec

from tenure.core.volumes.available import free_volumes
from tenure.core.volumes.shared import NOTHING_SHARED, Shared
from tenure.core.volumes.storage import ONE_POD, Storage, class_of
from tenure.core.volumes.topology import ANYWHERE, Alternatives, affinity_of, allowed_by
from tenure.errors import SpecError
from tenure.model.api.meta import controller_of
from tenure.model.api.pod import Pod, Volume
from tenure.model.api.resource import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    Resource,
)
from tenure.model.api.workload import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
)
from tenure.model.matching.requirements import Requirements
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.model.values.quantity import UNIT
from tenure.packing.demand.facts import (
    NoVolumeMatches,
    StorageClassMissing,
    VolumeClaimDeleting,
    VolumeClaimLost,
    VolumeClaimMissing,
    VolumeFact,
    VolumeInUse,
    VolumeNotBound,
    VolumesUnlisted,
    VolumeUnreadable,
)
from tenure.packing.demand.requests import ALTERNATIVES_MAX
from tenure.packing.demand.volumes import VolumeAnswer, VolumeNeeds, attachable, attachable_once

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
_WAITS: Final = "WaitForFirstConsumer"


class _Use(msgspec.Struct, frozen=True):
    """One claim of the pod: from where it can be used, and the driver that attaches it."""

    alternatives: Alternatives = ANYWHERE
    driver: str = ""


class _Unusable(Exception):
    def __init__(self, fact: VolumeFact) -> None:
        super().__init__(str(fact))
        self.fact = fact


def volume_needs(
    pods: Iterable[Pod], storage: Storage, shared: Shared = NOTHING_SHARED
) -> dict[str, VolumeAnswer]:
    """By UID, of the pods that have persistent volumes."""
    using = [pod for pod in pods if pod.spec.volumes and pod.volume_claims]
    answers = {pod.uid: needs_of(pod, storage, shared) for pod in using}
    return answers | _after_another(using, answers, storage)


def _after_another(
    pods: Iterable[Pod], answers: Mapping[str, VolumeAnswer], storage: Storage
) -> dict[str, VolumeFact]:
    """By UID, of waiting pods that want a claim for one pod alone: the first of their owner wants it, too.

    Only one of them will ever be bound, and they are alike: where the first fits nowhere, none does.
    """
    found: dict[str, VolumeFact] = {}
    first: dict[tuple[str, str], Pod] = {}
    for pod in sorted(pods, key=lambda pod: (pod.created_at, pod.uid)):
        owner = controller_of(pod.metadata)
        if owner is None or pod.spec.node_name or not isinstance(answers[pod.uid], VolumeNeeds):
            continue
        for key in sorted(f"{pod.namespace}/{name}" for name in pod.volume_claims):
            if (claim := storage.claims.get(key)) and ONE_POD in claim.spec.access_modes:
                other = first.setdefault((owner.uid, key), pod)
                if other is not pod:
                    found.setdefault(pod.uid, VolumeInUse(key, other.key, waits=True))
    return found


def needs_of(pod: Pod, storage: Storage, shared: Shared = NOTHING_SHARED) -> VolumeAnswer:
    uses: dict[str, _Use] = {}
    try:
        for volume in pod.spec.volumes:
            if (name := _claim_name(pod, volume)) and name not in uses:
                uses[name] = _use(pod, volume, f"{pod.namespace}/{name}", storage)
    except _Unusable as unusable:
        return unusable.fact
    attached: dict[str, int] = {}
    for name, use in uses.items():
        if use.driver and f"{pod.namespace}/{name}" in shared.get(use.driver, ()):
            attached[attachable_once(use.driver)] = UNIT
        elif use.driver:
            resource = attachable(use.driver)
            attached[resource] = attached.get(resource, 0) + UNIT
    alternatives = _all_of([use.alternatives for use in uses.values()])
    return VolumeNeeds(alternatives, tuple(sorted(attached.items())))


def _claim_name(pod: Pod, volume: Volume) -> str:
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.name}-{volume.name}" if volume.ephemeral is not None else ""


def _all_of(each: Iterable[Alternatives]) -> Alternatives:
    """One alternative of every volume; those that exclude each other are left to who asks a node."""
    combined = (_intersection(chosen) for chosen in product(*(dict.fromkeys(one) for one in each)))
    distinct: dict[Requirements, None] = {}
    for one in combined:
        distinct[one] = None
        if len(distinct) >= ALTERNATIVES_MAX:
            break
    return tuple(distinct) or ANYWHERE


def _intersection(chosen: Iterable[Requirements]) -> Requirements:
    wanted = Requirements()
    for one in chosen:
        wanted = wanted.intersect(one)
    return wanted


def _use(pod: Pod, volume: Volume, key: str, storage: Storage) -> _Use:
    if volume.ephemeral is not None and pod.spec.node_name:
        return _unbound(key, _template(volume.ephemeral, key), storage)
    _listed(PERSISTENT_VOLUME_CLAIMS, key, storage)
    claim = storage.claims.get(key)
    if claim is None:
        raise _Unusable(VolumeClaimMissing(key, ephemeral=volume.ephemeral is not None))
    if is_unreadable(claim):
        raise _Unusable(VolumeUnreadable(key, "the PersistentVolumeClaim cannot be read"))
    if claim.deleting and not pod.spec.node_name:
        raise _Unusable(VolumeClaimDeleting(key))
    _in_use_by_another(pod, claim, key, storage)
    if not claim.spec.volume_name:
        return _unbound(key, claim.spec, storage)
    return _bound(claim, key, storage)


def _template(ephemeral: Mapping[str, Any], key: str) -> PersistentVolumeClaimSpec:
    template = ephemeral.get("volumeClaimTemplate")
    written = template.get("spec") if isinstance(template, Mapping) else None
    try:
        return msgspec.convert(written or {}, PersistentVolumeClaimSpec)
    except msgspec.ValidationError as error:
        raise _Unusable(VolumeUnreadable(key, f"volumeClaimTemplate: {error}")) from error


def _in_use_by_another(pod: Pod, claim: PersistentVolumeClaim, key: str, storage: Storage) -> None:
    if ONE_POD in claim.spec.access_modes:
        for other in storage.users.get(key, ()):
            if other.uid != pod.uid:
                raise _Unusable(VolumeInUse(key, other.key))


def _bound(claim: PersistentVolumeClaim, key: str, storage: Storage) -> _Use:
    _listed(PERSISTENT_VOLUMES, key, storage)
    name = claim.spec.volume_name
    volume = storage.volumes.get(name)
    if volume is None:
        raise _Unusable(VolumeClaimLost(key, name))
    return _Use(_reachable(volume, key, storage), volume.spec.csi.driver if volume.spec.csi else "")


def _reachable(volume: PersistentVolume, key: str, storage: Storage) -> Alternatives:
    if is_unreadable(volume):
        problem = f"PersistentVolume {volume.name} cannot be read"
        raise _Unusable(VolumeUnreadable(key, problem))
    try:
        return affinity_of(volume, storage.hosts)
    except SpecError as error:
        problem = f"PersistentVolume {volume.name}: {error}"
        raise _Unusable(VolumeUnreadable(key, problem)) from error


def _unbound(key: str, spec: PersistentVolumeClaimSpec, storage: Storage) -> _Use:
    if spec.storage_class_name == "":
        return _existing(key, spec, "", storage)
    _listed(STORAGE_CLASSES, key, storage)
    found = class_of(spec, storage)
    if found is None:
        raise _Unusable(StorageClassMissing(key, spec.storage_class_name or ""))
    if is_unreadable(found):
        raise _Unusable(VolumeUnreadable(key, f"StorageClass {found.name} cannot be read"))
    if found.provisioner == NO_PROVISIONER:
        return _existing(key, spec, found.name, storage)
    if found.volume_binding_mode != _WAITS:
        raise _Unusable(VolumeNotBound(key, found.name))
    return _Use(allowed_by(found), found.provisioner)


def _existing(
    key: str, spec: PersistentVolumeClaimSpec, storage_class: str, storage: Storage
) -> _Use:
    """A volume that exists and is free; which one is decided when the pod has its node."""
    _listed(PERSISTENT_VOLUMES, key, storage)
    found = free_volumes(storage.volumes.values(), key, spec, storage_class)
    if not found:
        raise _Unusable(NoVolumeMatches(key, storage_class))
    reachable = [one for volume in found for one in _reachable(volume, key, storage)]
    drivers = {volume.spec.csi.driver if volume.spec.csi else "" for volume in found}
    return _Use(tuple(dict.fromkeys(reachable)), drivers.pop() if len(drivers) == 1 else "")


def _listed(resource: Resource, key: str, storage: Storage) -> None:
    if problem := storage.unlisted.get(resource.kind):
        raise _Unusable(VolumesUnlisted(key, resource.kind, problem))
