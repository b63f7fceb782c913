"""What has begun when the forecast begins: nodes that come up, and disruptions under way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

import msgspec

from tenure.core.forecast.launches import usual
from tenure.core.gates.fleet import FleetNode, fleet_of
from tenure.core.marks.command import commands_under_way
from tenure.core.marks.ownership import is_ours
from tenure.core.marks.starts import label_keys
from tenure.core.terminate.facts.termination import PodsBlocked
from tenure.core.terminate.podtimes import never_ends
from tenure.core.terminate.schedule import Timetable, timetable
from tenure.model.api.meta import later
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot


class Joins(msgspec.Struct, frozen=True):
    """A new node of the pool is initialized."""

    pool: str
    labels: Mapping[str, str]


class Gone(msgspec.Struct, frozen=True):
    """The instance of a disrupted node terminates."""

    pool: str
    labels: Mapping[str, str]


class Begun:
    def __init__(
        self,
        snapshot: Snapshot,
        settings: Settings,
        now: datetime,
        launches: Mapping[str, timedelta],
        drains_for: timedelta,
    ) -> None:
        self._snapshot, self._settings, self._now = snapshot, settings, now
        self._launches, self._drains_for = launches, drains_for
        #: Nodes whose drain has no end, by claim.
        self.endless: list[str] = []
        #: Claims that are not initialized yet.
        self.coming: list[str] = []

    def joins(self) -> Iterator[tuple[datetime, Joins]]:
        """Claims that are not initialized yet."""
        for _, claim in sorted(self._snapshot.new_claims().items()):
            pool = self._snapshot.pools.get(claim.pool_name)
            if pool is not None and _comes_up(claim, self._snapshot):
                labels = counted_labels(pool, claim.labels)
                self.coming.append(claim.name)
                yield self._up_at(claim), Joins(pool.name, labels)

    def _up_at(self, claim: NodeClaim) -> datetime:
        launch = usual(claim.pool_name, self._launches)
        return max(later(claim.created_at, launch), self._now)

    def ends(self) -> Iterator[tuple[datetime, Gone]]:
        """Of the disruptions under way."""
        waits: dict[str, datetime] = {}
        for command in commands_under_way(self._snapshot):
            news = [one for _, one in command.replacements if one and not one.initialized]
            ready = max(map(self._up_at, news), default=self._now)
            waits[command.claim.name] = later(ready, self._drains_for)
        for pool in sorted(self._snapshot.pools):
            for claim, node in self._leaving(pool):
                at = self._terminates_at(claim, node) if claim.deleting else waits.get(claim.name)
                if at is not None:
                    yield at, Gone(pool, node.labels)

    def _leaving(self, pool: str) -> Iterator[tuple[NodeClaim, FleetNode]]:
        by_name = {node.name: node for node in fleet_of(pool, self._snapshot).nodes}
        for _, claim in sorted(self._snapshot.claims_of_pool(pool).items()):
            node = by_name.get(claim.status.node_name)
            if node is not None and node.leaving:
                yield claim, node

    def _terminates_at(self, claim: NodeClaim, node: FleetNode) -> datetime | None:
        """None: its drain has no end."""
        found, now = self._snapshot.nodes.get(node.name), self._now
        if found is None:
            return now
        table = timetable(found, self._snapshot, self._settings, now)
        if _is_endless(table):
            self.endless.append(claim.name)
            return None
        began = claim.metadata.deletion_timestamp or now
        usually = later(began, self._drains_for)
        if usually > now:
            return usually
        # It takes longer than usual.
        return max(table.ends_by or later(now, self._drains_for), now)


def _is_endless(table: Timetable) -> bool:
    """A PDB that allows nothing at the moment only paces the drain."""
    lasting = (one for one in table.endless if isinstance(one, PodsBlocked))
    return table.ends_by is None and any(never_ends(one.why) for one in lasting)


def counted_labels(pool: NodePool, labels: Mapping[str, str]) -> Mapping[str, str]:
    """Those that budgets of the pool ask for."""
    return {key: labels[key] for key in label_keys(pool) if key in labels}


def _comes_up(claim: NodeClaim, snapshot: Snapshot) -> bool:
    return not claim.deleting and not claim.rebooting and is_ours(claim, snapshot)
