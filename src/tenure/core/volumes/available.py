"""Which PersistentVolumes are free for a claim that no provisioner serves."""

from __future__ import annotations

from collections.abc import Iterable

from tenure.errors import SpecError
from tenure.model.api.workload import PersistentVolume, PersistentVolumeClaimSpec
from tenure.model.matching.selectors import matches
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.model.values.quantity import parse_quantity

_SIZE = "storage"


def free_volumes(
    volumes: Iterable[PersistentVolume],
    claim: str,
    spec: PersistentVolumeClaimSpec,
    storage_class: str,
) -> list[PersistentVolume]:
    """Those that the claim, ``namespace/name``, may be bound to, by name."""
    return sorted(
        (
            volume
            for volume in volumes
            if not is_unreadable(volume)
            and not volume.deleting
            and volume.spec.storage_class_name == storage_class
            and _is_free(volume, claim)
            and set(spec.access_modes) <= set(volume.spec.access_modes)
            and (spec.selector is None or matches(spec.selector, volume.labels))
            and _is_large_enough(volume, spec)
        ),
        key=lambda volume: volume.name,
    )


def _is_free(volume: PersistentVolume, claim: str) -> bool:
    """It belongs to no claim, or is reserved for this one."""
    ref = volume.spec.claim_ref
    return ref is None or (not ref.uid and f"{ref.namespace}/{ref.name}" == claim)


def _is_large_enough(volume: PersistentVolume, spec: PersistentVolumeClaimSpec) -> bool:
    wanted = spec.resources.requests.get(_SIZE)
    if wanted is None:
        return True
    try:
        return parse_quantity(volume.spec.capacity.get(_SIZE, "0")) >= parse_quantity(wanted)
    except SpecError:
        return False
