"""The smallest change that would place a pending pod: computed when a user asks, never by the loop."""

from __future__ import annotations

from datetime import datetime

from tenure.core.protect.protection import CREATION
from tenure.core.provision.demand import pods_to_schedule
from tenure.core.provision.placement import NO_POOL_MATTERS, capacity_in
from tenure.model.api.pod import Pod
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.packing.advice.advise import smallest_changes
from tenure.packing.advice.facts import Change, NoSingleChange
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
