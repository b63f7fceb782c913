"""A snapshot of just these objects, as a decider of the kwok provider sees it."""

from __future__ import annotations

from typing import Final

from tenure.model.api.kinds import TYPES
from tenure.model.api.meta import ApiObject
from tenure.model.api.resource import KWOK_NODE_CLASSES
from tenure.model.snapshot.observations import Observations
from tenure.model.snapshot.snapshot import Snapshot, Tables
from tenure.model.snapshot.unreadable import type_of

#: (group, kind) of the node classes that the kwok provider serves.
SERVED: Final = frozenset({KWOK_NODE_CLASSES.group_kind})
_RESOURCE_OF: Final = {type_: resource for resource, type_ in TYPES.items()}


def snapshot_with(
    *items: ApiObject,
    observations: Observations | None = None,
    ours: frozenset[tuple[str, str]] = SERVED,
) -> Snapshot:
    tables = Tables()
    for item in items:
        tables.put(_RESOURCE_OF[type_of(item)], item)
    return Snapshot(tables, observations, ours=ours)
