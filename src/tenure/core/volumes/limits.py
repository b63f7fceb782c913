"""How many more volumes a node can attach, by CSI driver.

The limit is what the CSINode publishes. Until the driver is published there, it is what the instance
type states; a driver that is published without a count has no limit. A volume counts once, however
many pods use it: those of the pods on the node, and those that are attached to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from tenure.core.volumes.shared import NOTHING_SHARED, Shared, volumes_of
from tenure.core.volumes.storage import Storage
from tenure.model.api.names import INSTANCE_TYPE
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.model.values.quantity import UNIT
from tenure.packing.demand.problem import ExistingNode
from tenure.packing.demand.volumes import (
    VolumeAnswer,
    VolumeNeeds,
    attachable,
    attachable_once,
    driver_of,
)


def drivers_asked(needs: Iterable[VolumeAnswer]) -> frozenset[str]:
    """The drivers that pods with these needs ask to attach volumes."""
    return frozenset(
        driver_of(resource)
        for one in needs
        if isinstance(one, VolumeNeeds)
        for resource, _ in one.attached
    )


def with_attachable(
    nodes: Iterable[ExistingNode],
    drivers: Collection[str],
    storage: Storage,
    shared: Shared = NOTHING_SHARED,
) -> tuple[ExistingNode, ...]:
    """The nodes with what is left of these drivers; where there is no limit, as they are."""
    if not drivers:
        return tuple(nodes)
    once = {driver: volumes_of(keys, storage) for driver, keys in shared.items()}
    return tuple(_limited(node, drivers, storage, once) for node in nodes)


def _limited(
    node: ExistingNode,
    drivers: Collection[str],
    storage: Storage,
    once: Mapping[str, Collection[str]],
) -> ExistingNode:
    """``once``: by driver, volumes that have a place on each node that they are not attached to."""
    limits = _limits(node, drivers, storage)
    if not limits:
        return node
    left: dict[str, int] = {}
    for driver, limit in limits.items():
        places = limit - len(_attached(node, driver, storage).union(once.get(driver, ())))
        left[attachable(driver)] = max(0, places) * UNIT
        if places < 0:
            left[attachable_once(driver)] = 0
    return msgspec.structs.replace(node, available={**node.available, **left})


def _limits(node: ExistingNode, drivers: Collection[str], storage: Storage) -> dict[str, int]:
    stated = storage.type_limits.get(node.labels.get(INSTANCE_TYPE, ""), {})
    limits = {driver: stated[driver] for driver in drivers if driver in stated}
    csi_node = storage.csi_nodes.get(node.name)
    if csi_node is None or is_unreadable(csi_node):
        return limits
    for driver in csi_node.spec.drivers:
        if driver.name in drivers:
            count = driver.allocatable.count if driver.allocatable is not None else None
            limits.pop(driver.name, None)
            if count is not None:
                limits[driver.name] = count
    return limits


def _attached(node: ExistingNode, driver: str, storage: Storage) -> set[str]:
    """Names of volumes: those that are attached, and those that claims of its pods are bound to."""
    attached = storage.attached.get(node.name, ())
    found = {one.volume for one in attached if one.driver == driver}
    for pod in node.pods:
        for name in pod.volume_claims if pod.spec.volumes else ():
            claim = storage.claims.get(f"{pod.namespace}/{name}")
            volume = storage.volumes.get(claim.spec.volume_name) if claim else None
            if volume is not None and volume.spec.csi and volume.spec.csi.driver == driver:
                found.add(volume.name)
    return found
