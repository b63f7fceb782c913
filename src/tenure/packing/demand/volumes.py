"""What a pod's persistent volumes ask of its node, in the terms of packing.

A volume that is reachable from some nodes only is a list of requirement alternatives, of which the
node must satisfy one. A volume that must be attached takes one unit of a resource of its CSI driver,
``attachable-volumes-csi-<driver>``. Nodes and instance types without a known limit attach any number.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from tenure.model.matching.requirements import Requirements
from tenure.model.values.quantity import UNIT
from tenure.packing.demand.facts import VolumeFact

ATTACHABLE: Final = "attachable-volumes-csi-"
_ONCE: Final = "/once"
#: Where no limit is known. A pod cannot have nearly as many volumes.
UNLIMITED: Final = (1 << 20) * UNIT


class VolumeNeeds(msgspec.Struct, frozen=True, cache_hash=True):
    """What the volumes of one pod ask of its node."""

    #: The node satisfies one of these.
    alternatives: tuple[Requirements, ...] = (Requirements(),)
    #: By resource: what must be attached, in nano-units, sorted.
    attached: tuple[tuple[str, int], ...] = ()


#: Of a pod with volumes: what these ask for, or why no node can run it now.
VolumeAnswer = VolumeNeeds | VolumeFact

NO_ANSWERS: Final[Mapping[str, VolumeAnswer]] = MappingProxyType({})


def attachable(driver: str) -> str:
    """The resource that volumes of the driver take."""
    return ATTACHABLE + driver


def attachable_once(driver: str) -> str:
    """The resource of pods whose volumes of the driver have a place on each node that has any of it."""
    return ATTACHABLE + driver + _ONCE


def driver_of(resource: str) -> str:
    return resource.removeprefix(ATTACHABLE).removesuffix(_ONCE)


def is_attachable(resource: str) -> bool:
    return resource.startswith(ATTACHABLE)


def amount_of(amounts: Mapping[str, int], resource: str) -> int:
    """How much there is of it: what can be attached has no limit unless one is known."""
    amount = amounts.get(resource)
    if amount is None:
        return UNLIMITED if is_attachable(resource) else 0
    return amount
