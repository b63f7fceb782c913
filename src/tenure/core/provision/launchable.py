"""Whether a pool can launch a node at all, whatever pod waits."""

from __future__ import annotations

from tenure.core.facts import Fact
from tenure.core.provision.facts import (
    NodeClassRefused,
    PoolMatchesNoType,
    PoolStatic,
    PoolWithoutOfferings,
)
from tenure.core.provision.supply import closed_because, open_pools, unlisted_pools
from tenure.model.api.nodepool import NodePool
from tenure.model.snapshot.snapshot import Snapshot
from tenure.packing.demand.classes import Units
from tenure.packing.offers.catalogue import Catalogue


def launches_nothing(pool: NodePool, snapshot: Snapshot) -> Fact | None:
    """Why not, where the verdict on the pool does not say it; None where it can, or is not known."""
    why = closed_because(pool, snapshot)
    if why is not None:
        return why if isinstance(why, PoolStatic | NodeClassRefused) else None
    (template,) = (one for one in open_pools(snapshot)[0] if one.pool == pool.name)
    if unlisted_pools([template], snapshot):
        return None
    catalogue = Catalogue(template, daemons=(), units=Units(), dry=frozenset(), least={})
    whole, ref = catalogue.whole, pool.node_class_ref
    if not whole.types:
        return PoolMatchesNoType(len(template.instance_types), f"{ref.kind} {ref.name}")
    if any(whole.allows(one) for place in whole.places for one in catalogue.offers_at(place)):
        return None
    return PoolWithoutOfferings()
