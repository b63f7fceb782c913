"""Reserved capacity: how many instances of it the claims that there are leave.

The provider says how many instances the cluster may have of an offering. A claim that is launched counts
for the one that it got; one that is on its way counts for each that it may still get, as in Karpenter. One that
is being terminated counts until it is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

import msgspec

from tenure.errors import SpecError
from tenure.model.api.names import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.cloud.offering import InstanceType, OfferingKey
from tenure.model.matching.requirements import Requirements
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.model.values.same import Same

_Types = Same[tuple[InstanceType, ...]]


def without_used(types: tuple[InstanceType, ...], snapshot: Snapshot) -> tuple[InstanceType, ...]:
    """The types with what is left of their reserved offerings; the same object where none is reserved."""
    if not (sold := _counted(Same(types))):
        return types
    used: dict[OfferingKey, int] = {}
    for claim in snapshot.claims.values():
        for key in _used(claim, sold):
            used[key] = used.get(key, 0) + 1
    return _left(Same(types), tuple(sorted(used.items())))


@lru_cache(16)
def _counted(types: _Types) -> Mapping[OfferingKey, int]:
    return {
        (kind.name, one.zone, one.capacity_type): one.instances
        for kind in types.value
        for one in kind.offerings
        if one.instances is not None
    }


def _used(claim: NodeClaim, sold: Mapping[OfferingKey, int]) -> Iterator[OfferingKey]:
    labels = claim.labels
    if claim.launched:
        key = labels.get(INSTANCE_TYPE, ""), labels.get(ZONE, ""), labels.get(CAPACITY_TYPE, "")
        if key in sold:
            yield key
        return
    wanted = None if is_unreadable(claim) else requirements_of(claim)
    if wanted is None or wanted.allowed(CAPACITY_TYPE).complement:
        return
    allowed = [wanted.allowed(key) for key in (INSTANCE_TYPE, ZONE, CAPACITY_TYPE)]
    for key in sold:
        if all(one.has(value) for one, value in zip(allowed, key, strict=True)):
            yield key


def requirements_of(claim: NodeClaim) -> Requirements | None:
    """What may be launched for it; None where that cannot be read."""
    try:
        return Requirements.from_wire(claim.spec.requirements)
    except SpecError:
        return None  # The claim's own verdict says so; nothing is launched for it.


@lru_cache(64)
def _left(types: _Types, used: tuple[tuple[OfferingKey, int], ...]) -> tuple[InstanceType, ...]:
    """One object for equal usage: packing keeps what it found out about it."""
    taken = dict(used)
    return tuple(
        msgspec.structs.replace(
            kind,
            offerings=tuple(
                one
                if one.instances is None
                else msgspec.structs.replace(
                    one,
                    instances=max(
                        0, one.instances - taken.get((kind.name, one.zone, one.capacity_type), 0)
                    ),
                )
                for one in kind.offerings
            ),
        )
        for kind in types.value
    )
