"""What is worked out when a user asks, and never by the loop.

The smallest change that would place a pending pod; and why a pool can launch no node, whatever pod waits.
"""

from __future__ import annotations

from datetime import datetime

from tenure.core.facts import Fact
from tenure.core.protect.protection import CREATION
from tenure.core.provision.demand import pods_to_schedule
from tenure.core.provision.facts import (
    NodeClassRefused,
    PoolMatchesNoType,
    PoolStatic,
    PoolWithoutOfferings,
)
from tenure.core.provision.placement import NO_POOL_MATTERS, capacity_in
from tenure.core.provision.supply import closed_because, open_pools, unlisted_pools
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import Pod
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.packing.advice.advise import smallest_changes
from tenure.packing.advice.facts import Change, NoSingleChange
from tenure.packing.demand.classes import Units
from tenure.packing.offers.catalogue import Catalogue
from tenure.packing.pack import pack


def advice_for(
    pod: Pod, snapshot: Snapshot, settings: Settings, now: datetime, clock: str = CREATION
) -> tuple[Change | NoSingleChange, ...]:
    """The smallest change first; none for a pod that has a place, or whose own spec is the reason."""
    demands = pods_to_schedule(snapshot, clock)
    waiting = {demand.pod.uid for demand in demands if demand.needs_capacity(now)}
    if pod.uid not in waiting:
        return ()
    capacity = capacity_in(snapshot, demands)
    if capacity.unlisted:
        return ()
    zones = capacity.zones.at(settings, now)
    problem = capacity.problem(capacity.waiting(now), zones, settings, now)
    unplaced = pack(problem).unplaced.get(pod.uid)
    if unplaced is None or unplaced.why in NO_POOL_MATTERS:
        return ()
    return smallest_changes(problem, pod.uid)


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
