"""What has begun when the forecast begins: nodes that come up, and disruptions under way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.forecast.allowances import is_taken
from tenure.core.forecast.launches import usual
from tenure.core.gates.fleet import FleetNode, fleet_of
from tenure.core.marks.command import Command, commands_under_way
from tenure.core.marks.ownership import is_ours
from tenure.core.marks.reboot import bound_of, is_issued, issued_at, requested_at
from tenure.core.marks.starts import label_keys
from tenure.core.reboot.steps import RECOVERY_MAX
from tenure.core.terminate.facts.termination import PodsBlocked
from tenure.core.terminate.podtimes import never_ends
from tenure.core.terminate.schedule import Timetable, timetable
from tenure.errors import SpecError
from tenure.model.api.meta import later
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot

#: It was initialized, and nothing says when it is Ready again.
_NOT_READY: Final = "not Ready"


class Joins(msgspec.Struct, frozen=True):
    """A new node of the pool is initialized."""

    pool: str
    labels: Mapping[str, str]


class Gone(msgspec.Struct, frozen=True):
    """The instance of a disrupted node terminates."""

    pool: str
    labels: Mapping[str, str]


class Back(msgspec.Struct, frozen=True):
    """A node is not disrupted any more, and stays: its command is rolled back, or it has rebooted."""

    pool: str
    labels: Mapping[str, str]


class Kept(msgspec.Struct, frozen=True):
    """A node uses the budgets of its pool, and no end of that is known."""

    pool: str
    labels: Mapping[str, str]
    node: str
    why: str


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
        #: Nodes that use budgets with no known end. Filled by ``ends``, as is ``endless``.
        self.kept: list[Kept] = []

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

    def ends(self) -> Iterator[tuple[datetime, Gone | Back]]:
        """Of all that uses budgets now; what has no known end is in ``kept``."""
        commands = {one.claim.name: one for one in commands_under_way(self._snapshot)}
        for pool in sorted(self._snapshot.pools):
            for node in fleet_of(pool, self._snapshot).nodes:
                if not is_taken(node):
                    continue
                claim = self._claim_of(node, pool)
                ends = self._end(claim, node, commands.get(claim.name)) if claim else "not known"
                if isinstance(ends, str):
                    self.kept.append(Kept(pool, node.labels, node.name, ends))
                else:
                    at, stays = ends
                    yield at, (Back if stays else Gone)(pool, node.labels)

    def _claim_of(self, node: FleetNode, pool: str) -> NodeClaim | None:
        """Of two claims of one instance the one that is being deleted."""
        found = self._snapshot.nodes.get(node.name)
        claims = self._snapshot.claims_with_provider(found.spec.provider_id) if found else {}
        own = (claims[name] for name in sorted(claims) if claims[name].pool_name == pool)
        return min(own, key=lambda one: not one.deleting, default=None)

    def _end(
        self, claim: NodeClaim, node: FleetNode, command: Command | None
    ) -> tuple[datetime, bool] | str:
        """When the node no longer uses budgets, and whether it stays; or why that is not known."""
        if node.terminating:
            at = self._terminates_at(claim, node)
            return (at, False) if at is not None else "draining"
        if command is not None:
            return self._commanded(node, command)
        if node.leaving:
            # Only the taint is left of a command, which Tenure takes off.
            if not self._settings.beside_karpenter:
                return self._rolled_back(node)
            launch = usual(claim.pool_name, self._launches)
            return later(later(self._now, launch), self._drains_for), False
        if node.rebooting:
            at = self._rebooted_at(claim, node)
            return (at, True) if at is not None else "draining before its reboot"
        return _NOT_READY

    def _rolled_back(self, node: FleetNode) -> tuple[datetime, bool] | str:
        return (self._now, True) if node.ready else _NOT_READY

    def _commanded(self, node: FleetNode, command: Command) -> tuple[datetime, bool] | str:
        if any(one is None or one.deleting for _, one in command.replacements):
            return self._rolled_back(node)
        news = [one for _, one in command.replacements if one and not one.initialized]
        ready = max(map(self._up_at, news), default=self._now)
        return later(ready, self._drains_for), False

    def _rebooted_at(self, claim: NodeClaim, node: FleetNode) -> datetime | None:
        """At the latest; None: its drain has no end."""
        if is_issued(claim):
            return max(later(issued_at(claim), RECOVERY_MAX), self._now)
        try:
            bound = bound_of(claim)
        except SpecError:
            return self._now  # It is called off.
        if bound is None:
            found = self._snapshot.nodes.get(node.name)
            if found and _is_endless(timetable(found, self._snapshot, self._settings, self._now)):
                return None
            bound = self._drains_for
        drained = later(requested_at(claim), max(bound, self._drains_for))
        return later(max(drained, self._now), RECOVERY_MAX)

    def _terminates_at(self, claim: NodeClaim, node: FleetNode) -> datetime | None:
        """None: its drain has no end."""
        found, now = self._snapshot.nodes.get(node.name), self._now
        if found is None:
            return now
        table = timetable(found, self._snapshot, self._settings, now)
        if _is_endless(table):
            self.endless.append(claim.name)
            return None
        began = claim.metadata.deletion_timestamp or found.metadata.deletion_timestamp or now
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
