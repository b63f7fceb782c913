"""The observation store: what the executor and the inventory learned that no object says.

It is the mutable side of ``Observations``, with one recorder for each topic. Every entry may be lost
at any moment without harm; entries about objects that are gone are forgotten, so that memory does
not grow with the age of the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta

from tenure.core.decision import Subject
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, PODS
from tenure.model.cloud.repairs import RepairStatement
from tenure.model.snapshot.observations import Observations
from tenure.model.snapshot.snapshot import Change
from tenure.runtime.observe.consolidation import ConsolidationObservations
from tenure.runtime.observe.instances import InstanceObservations
from tenure.runtime.observe.launches import LaunchObservations
from tenure.runtime.observe.nodeclasses import NodeClassObservations
from tenure.runtime.observe.noted import Noted
from tenure.runtime.observe.notices import NoticeObservations
from tenure.runtime.observe.pods import PodObservations
from tenure.runtime.observe.pools import PoolObservations
from tenure.runtime.observe.refusals import RefusedClaims, RefusedStarts


class ObservationStore:
    def __init__(
        self,
        wake: Callable[[], None] = lambda: None,
        *,
        repair_statements: tuple[RepairStatement, ...] = (),
    ) -> None:
        self.repair_statements = repair_statements
        self.noted = Noted(wake)
        self.launches = LaunchObservations(self.noted)
        self.instances = InstanceObservations(self.noted)
        self.notices = NoticeObservations(self.noted)
        self.pods = PodObservations(self.noted)
        self.refused_claims = RefusedClaims(self.noted)
        self.refused_starts = RefusedStarts(self.noted)
        self.pools = PoolObservations(self.noted)
        self.node_classes = NodeClassObservations(self.noted)
        self.consolidation = ConsolidationObservations(self.noted)

    def current(self) -> Observations:
        """A view of the live maps, for the length of a turn."""
        launches, instances, pods = self.launches, self.instances, self.pods
        return Observations(
            repair_statements=self.repair_statements,
            instances=launches.launched_instances,
            launch_failures=launches.failures,
            departed_claims=launches.departed_claims,
            served_claims=launches.served_claims,
            terminations=instances.terminations,
            inspections=instances.inspections,
            reboots=instances.reboots,
            drifts=instances.drifts,
            interruptions=self.notices.interruptions,
            recommendations=self.notices.recommendations,
            orphans=instances.orphans,
            vanished=instances.vanished,
            evictions=pods.evictions,
            failed_deletions=pods.failed_deletions,
            waiting_seen=pods.waiting_seen,
            created_seen=pods.created_seen,
            pods_left=self.consolidation.pods_left,
            pods_decided_at=pods.decided_at,
            refused_claims=self.refused_claims.by_pod,
            refused_starts=self.refused_starts.by_uid,
            arrivals=self.pools.arrivals,
            dry_offerings=self.node_classes.dry_offerings,
            instance_types=self.node_classes.instance_types,
            refused_classes=self.node_classes.refusals,
            consolidation=self.consolidation.plan,
        )

    def take_observed(self) -> list[Subject]:
        """The subjects of what is new since the last call."""
        return self.noted.take()

    def clock_stepped(self, step: timedelta) -> None:
        """The wall clock was set: what we learned was learned as long ago as before."""
        self.launches.clock_stepped(step)
        self.instances.clock_stepped(step)
        self.pods.clock_stepped(step)
        self.refused_claims.clock_stepped(step)
        self.refused_starts.clock_stepped(step)
        self.node_classes.clock_stepped(step)
        self.consolidation.clock_stepped(step)

    def forget(self, changes: Iterable[Change]) -> None:
        """Drop what is known about objects that are gone, and of pods that wait no longer."""
        waiting = self.pods.waiting_seen
        for change in changes:
            if change.old is None:
                continue
            uid = change.old.uid
            if not (isinstance(change.new, Pod) and change.new.unschedulable):
                waiting.pop(uid, None)
            self.refused_claims.changed(change.old, change.new)
            if change.new is not None:
                continue
            self.refused_starts.forget(uid)
            if change.resource == NODE_CLAIMS:
                self.launches.forget_claim(uid)
                self.instances.forget_claim(uid)
                self.notices.forget_claim(uid)
            elif change.resource == PODS:
                self.pods.forget(uid)
            elif change.resource == NODE_POOLS:
                self.pools.forget(uid)
