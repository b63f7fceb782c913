"""Volumes that several pods use on one node: they are attached once, and count once.

Packing adds up what pods ask for, so a volume of many pods cannot be a number of each of them. Instead
one place for each such volume is kept free on every node that could attach it, and its pods take none:
however many of them come together, the node's limit holds.

A place that is kept is lost where the volume does not come. So only the volumes with the most pods are
counted like that: at most half of the smallest limit, and so few that the pod with the most volumes still
has room. Of the others each pod counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

import msgspec

from tenure.core.volumes.storage import Storage, class_of
from tenure.model.api.pod import Pod
from tenure.model.api.workload import PersistentVolumeClaim
from tenure.model.cloud.offering import InstanceType
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.model.values.same import Same
from tenure.packing.demand.problem import PoolTemplate

#: Access modes with which pods of several nodes, and of one, use a volume together.
_TOGETHER: Final = frozenset({"ReadWriteMany", "ReadOnlyMany"})

#: By driver: the claims that count once, by ``namespace/name``.
Shared = Mapping[str, frozenset[str]]
NOTHING_SHARED: Final[Shared] = MappingProxyType({})
_Limits = tuple[tuple[str, int], ...]
_Types = Same[tuple[InstanceType, ...]]


def shared_claims(pods: Iterable[Pod], storage: Storage) -> Shared:
    """Of these pods. Empty where no driver has a limit: then nothing is counted."""
    with_volumes = [pod for pod in pods if pod.spec.volumes]
    users = Counter(key for pod in with_volumes for key in _together(pod, storage))
    if not users:
        return {}  # Nearly always.
    most = _most(storage, max(len(pod.volume_claims) for pod in with_volumes))
    attached = {one.volume for each in storage.attached.values() for one in each}
    found: dict[str, set[str]] = {}
    for key, count in sorted(users.items(), key=lambda one: (-one[1], one[0])):
        if count == 1 and storage.claims[key].spec.volume_name not in attached:
            continue  # A place is worth as much as its pod.
        driver = _driver(storage.claims[key], storage)
        if len(known := found.setdefault(driver, set())) < most.get(driver, 0):
            known.add(key)
    return {driver: frozenset(keys) for driver, keys in found.items() if keys}


def volumes_of(keys: Iterable[str], storage: Storage) -> set[str]:
    """Names of their volumes; of a claim that has none yet, the claim's."""
    return {storage.claims[key].spec.volume_name or key for key in keys}


def keeping_free(templates: Iterable[PoolTemplate], shared: Shared) -> tuple[PoolTemplate, ...]:
    """With instance types that have a place less for each volume that counts once."""
    kept = tuple(sorted((driver, len(keys)) for driver, keys in shared.items()))
    if not kept:
        return tuple(templates)
    return tuple(
        msgspec.structs.replace(one, instance_types=_with_fewer(Same(one.instance_types), kept))
        for one in templates
    )


def _together(pod: Pod, storage: Storage) -> Iterator[str]:
    for name in pod.volume_claims:
        claim = storage.claims.get(key := f"{pod.namespace}/{name}")
        if claim is None or is_unreadable(claim):
            continue
        if not _TOGETHER.isdisjoint(claim.spec.access_modes):
            yield key


def _driver(claim: PersistentVolumeClaim, storage: Storage) -> str:
    """Empty where it is not known, or nothing is attached."""
    volume = storage.volumes.get(claim.spec.volume_name)
    if volume is not None and not is_unreadable(volume):
        return volume.spec.csi.driver if volume.spec.csi else ""
    named = class_of(claim.spec, storage)
    return named.provisioner if named is not None and not is_unreadable(named) else ""


def _most(storage: Storage, of_one_pod: int) -> dict[str, int]:
    """By driver: of how many volumes each may be counted once. ``of_one_pod``: the most that one has."""
    limits: dict[str, int] = {}
    for each in storage.type_limits.values():
        for driver, limit in each.items():
            limits[driver] = min(limit, limits.get(driver, limit))
    for node in storage.csi_nodes.values():
        for one in () if is_unreadable(node) else node.spec.drivers:
            count = one.allocatable.count if one.allocatable is not None else None
            if count is not None:
                limits[one.name] = min(count, limits.get(one.name, count))
    return {driver: min(limit // 2, limit - of_one_pod) for driver, limit in limits.items()}


@lru_cache(16)
def _with_fewer(given: _Types, kept: _Limits) -> tuple[InstanceType, ...]:
    """Kept for as long as the provider's answer is."""
    return tuple(_fewer(one, kept) for one in given.value)


def _fewer(type_: InstanceType, kept: _Limits) -> InstanceType:
    limits = dict(type_.volume_limits)
    for driver, count in kept:
        if driver in limits:
            limits[driver] = max(0, limits[driver] - count)
    return msgspec.structs.replace(type_, volume_limits=limits)
