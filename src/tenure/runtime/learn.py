"""What changes and finished actions teach: observations, metrics, which types to ask for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from tenure.core.decision import Subject, Verdict
from tenure.core.launchbreaker.owners import owner_of
from tenure.core.launchbreaker.pastlaunch import has_used_its_node
from tenure.core.provision.decider import decides_on_pods
from tenure.kube.cache.cache import Cache
from tenure.model.api.meta import ApiObject
from tenure.model.api.nodeclaim import NodeClaim, NodeClassRef
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, NODES
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.runtime.cloud.drifts import DriftWatch
from tenure.runtime.cloud.inventory import Inventory
from tenure.runtime.cloud.notices import NoticeWatch
from tenure.runtime.cloud.registrations import claim_registered, given_up
from tenure.runtime.observe.store import ObservationStore
from tenure.runtime.telemetry.events import EventRecorder
from tenure.runtime.telemetry.metrics import Metrics


class Learner:
    def __init__(
        self,
        *,
        cache: Cache,
        observations: ObservationStore,
        inventory: Inventory,
        drifts: DriftWatch,
        notices: NoticeWatch,
        metrics: Metrics,
        events: EventRecorder,
        snapshot: Callable[[], Snapshot],
        node_classes: frozenset[tuple[str, str]],
    ) -> None:
        self._cache = cache
        self._observations = observations
        self._inventory = inventory
        self._drifts = drifts
        self._notices = notices
        self._metrics = metrics
        self._events = events
        self._snapshot = snapshot
        self._node_classes = node_classes

    def changed(self, change: Change, now: datetime) -> None:
        launches = self._observations.launches
        self._metrics.changed(change, now)
        if (registered := claim_registered(change)) is not None:
            self._arrived(registered)
        if _concerns_types(change, self._node_classes):
            self._inventory.node_classes_changed()
            self._drifts.node_classes_changed()
        if change.resource == NODE_CLAIMS:
            self._notices.claims_changed()
        if isinstance(change.old, NodeClaim) and change.new is None:
            termination = self._observations.instances.terminations.get(change.old.uid)
            launches.departed(change.old, termination, now)
        if isinstance(change.new, NodeClaim):
            launches.claim_seen(change.new)
        if isinstance(change.new, Pod) and has_used_its_node(change.new):
            self._served(change.new)
        if change.new is None and change.old is not None:
            self._events.forget(Subject.of(change.resource.kind, change.old))

    def done(self, verdict: Verdict, claim: NodeClaim | None, now: datetime) -> None:
        """The verdict's action has been carried out."""
        if claim is not None and (failure := given_up(verdict)):
            self._arrived(claim, failure)
        if decides_on_pods(verdict):
            # Not before: a creation that failed is retried at once, it does not close the batch.
            self._observations.pods.decided(now)

    def _served(self, pod: Pod) -> None:
        node = self._cache.tables.table(NODES).get(pod.spec.node_name)
        if node is not None and (claim := self._snapshot().claim_of(node)) is not None:
            self._observations.launches.served(claim, owner_of(pod))

    def _arrived(self, claim: NodeClaim, failure: str = "") -> None:
        pool = self._cache.tables.table(NODE_POOLS).get(claim.pool_name)
        if pool is not None:
            self._observations.pools.arrived(pool, claim.name, failure)


def _concerns_types(change: Change, node_classes: frozenset[tuple[str, str]]) -> bool:
    """Whether other instance types may be wanted now: another class in use, or another spec."""
    old, new = change.old, change.new
    if change.resource == NODE_POOLS:
        return _class_of(old) != _class_of(new)
    if change.resource.group_kind in node_classes:
        return old is None or new is None or old.metadata.generation != new.metadata.generation
    return False


def _class_of(pool: ApiObject | None) -> NodeClassRef | None:
    return pool.spec.template.spec.node_class_ref if isinstance(pool, NodePool) else None
