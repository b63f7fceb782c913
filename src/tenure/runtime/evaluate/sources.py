"""Where objects that fail alike come from: an owner, a namespace.

One mistake in a template makes as many bad objects as there are replicas, and a user who may write
into a namespace can create any number of them. Neither makes it a fault of ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tenure.core.launchbreaker.owners import owner_of
from tenure.model.api.meta import ApiObject
from tenure.model.api.pod import Pod
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.runtime.evaluate.blame import Place

#: With more owners of one namespace, all that is there is set aside.
OWNERS_MAX: Final = 2


def source_of(place: Place) -> str:
    """The namespace; of an object without one, the object."""
    namespace, slash, _ = place.key.partition("/")
    return namespace if slash else place.key


def widened(
    suspect: Place, alike: Mapping[Place, ApiObject | None], snapshot: Snapshot
) -> list[Place] | None:
    """The objects to set aside for a failure of ``suspect``; None where owners differ and
    none of the kind would be left.

    ``alike``: those that were set aside for the same line, as they were.
    """
    objects = snapshot.objects(suspect.resource)
    source, owner = source_of(suspect), _owner(suspect, objects.get(suspect.key))
    near = [_owner(place, item) for place, item in alike.items() if source_of(place) == source]
    others = {
        Place(suspect.resource, key): item
        for key, item in objects.items()
        if key != suspect.key and not is_unreadable(item)
    }
    there = [place for place in others if source_of(place) == source]
    if len({*near, owner}) > OWNERS_MAX:
        return [suspect, *there] if len(there) < len(others) else None
    if owner in near:
        return [suspect, *(place for place in there if _owner(place, others[place]) == owner)]
    return [suspect]


def _owner(place: Place, item: ApiObject | None) -> str:
    if not isinstance(item, Pod):
        return place.key
    try:
        return owner_of(item)
    except Exception:  # noqa: BLE001  # not even that can be read of it
        return place.key
