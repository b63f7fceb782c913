"""A snapshot of just these objects, as a decider of the kwok provider sees it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tenure.core.poolpolicy.govern import govern, govern_beside
from tenure.model.api.meta import ApiObject
from tenure.model.api.nodeclass import NodeClass
from tenure.model.api.resource import Resource
from tenure.model.snapshot.kinds import TYPES
from tenure.model.snapshot.observations import Observations
from tenure.model.snapshot.snapshot import EVERY_CLASS, Snapshot, Tables
from tenure.model.snapshot.unreadable import type_of
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES

#: (group, kind) of the node classes that the kwok provider serves.
SERVED: Final = frozenset({KWOK_NODE_CLASSES.group_kind})
#: The kind that each type of object is of.
RESOURCE_OF: Final[dict[type[ApiObject], Resource]] = {
    **{type_: resource for resource, type_ in TYPES.items()},
    NodeClass: KWOK_NODE_CLASSES,
}


def governed_tables(*, beside: bool = False) -> Tables:
    """As the informers fill them: policies are put into pools and claims. ``beside``: Karpenter."""
    return Tables(govern=govern_beside if beside else govern)


def snapshot_with(
    *items: ApiObject,
    observations: Observations | None = None,
    ours: frozenset[tuple[str, str]] = SERVED,
    unlisted: Mapping[Resource, str] = MappingProxyType({}),
) -> Snapshot:
    """``unlisted``: kinds that the API server does not list, and why."""
    tables = governed_tables(beside=ours is EVERY_CLASS)
    for resource, why in unlisted.items():
        tables.list_failed(resource, why)
    for item in items:
        tables.put(RESOURCE_OF[type_of(item)], item)
    return Snapshot(tables, observations, ours=ours)
