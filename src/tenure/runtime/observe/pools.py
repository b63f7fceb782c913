"""Pools: how the last few new nodes of each fared."""

from __future__ import annotations

from tenure.core.decision import Subject
from tenure.core.pool.registrations import REMEMBERED, generations_of
from tenure.model.api.nodepool import NodePool
from tenure.model.api.resource import NODE_POOLS
from tenure.model.snapshot.observations import Arrival
from tenure.runtime.observe.noted import Noted


class PoolObservations:
    """By pool UID."""

    def __init__(self, noted: Noted) -> None:
        self._noted = noted
        self.arrivals: dict[str, tuple[Arrival, ...]] = {}

    def arrived(self, pool: NodePool, claim: str, failure: str = "") -> None:
        """A Node of the pool has registered, or its claim was deleted because it did not."""
        known = self.arrivals.get(pool.uid, ())
        newest = Arrival(claim=claim, failure=failure, generations=generations_of(pool))
        self.arrivals[pool.uid] = (*known, newest)[-REMEMBERED:]
        self._noted.note(Subject.of(NODE_POOLS.kind, pool))

    def forget(self, uid: str) -> None:
        self.arrivals.pop(uid, None)
