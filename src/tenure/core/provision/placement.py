"""All existing capacity and all that could be launched: the input for placing pods.

Provisioning uses it for pending pods, disruption for the pods of a candidate. Both must find the
same nodes at the same price, so both use this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

import msgspec

from tenure.core.decision import Create, Subject
from tenure.core.facts import Fact, RetriedAt
from tenure.core.gates.reasons import CONSOLIDATING
from tenure.core.health.domains import NOTHING, Domains, DomainState
from tenure.core.health.outage import domains_in
from tenure.core.marks.undone import Undoing, undoing
from tenure.core.nominated import preempted_nodes
from tenure.core.pool.backoff import BackOff, back_off_of
from tenure.core.pool.facts import NodesOfNoUse
from tenure.core.pool.lookup import node_class_of
from tenure.core.provision.daemons.daemonpods import daemons
from tenure.core.provision.demand import Demand
from tenure.core.provision.facts import (
    CheapestFit,
    ClaimRefused,
    Closed,
    NamedPoolsMissing,
    NamespacesUnlisted,
    PoolClosed,
    Target,
    TypesAwaited,
)
from tenure.core.provision.knownnodes import closed_nodes, nodes_with_capacity
from tenure.core.provision.newclaim import claim_manifest, claim_name
from tenure.core.provision.nominations import Nomination, nominations_in
from tenure.core.provision.supply import open_pools, unlisted_pools
from tenure.core.terminate.pdb import changes_what_it_bars
from tenure.core.volumes.limits import drivers_asked, with_attachable
from tenure.core.volumes.needs import volume_needs
from tenure.core.volumes.shared import keeping_free, shared_claims
from tenure.core.volumes.storage import Storage, storage_in
from tenure.model.api.meta import ApiObject
from tenure.model.api.names import REPLACES
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import Pod
from tenure.model.api.resource import (
    CSI_NODES,
    DAEMON_SETS,
    LIMIT_RANGES,
    NAMESPACES,
    NODE_CLAIMS,
    NODE_POOLS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
)
from tenure.model.cloud.offering import OfferingKey
from tenure.model.settings import Settings
from tenure.model.snapshot.derived import NOTHING_KEPT, Derived
from tenure.model.snapshot.observations import ClaimRefusal
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.packing.demand.problem import Daemon, ExistingNode, PoolTemplate, Problem
from tenure.packing.demand.steps import Steps, at_once
from tenure.packing.facts import Why
from tenure.packing.result import Packing, PlannedClaim, Unplaced

#: Placement has one key, the whole cluster: all pods compete for the same capacity.
CLUSTER: Final = "cluster"

#: How many pools a message names.
NAMED: Final = 3
#: Among so many a similar name is looked for: to compare spellings takes long.
_COMPARED: Final = 256

#: Claims that are written in one step.
CLAIMS_A_STEP: Final = 10

#: What is observed about the pods that are placed together.
BATCH: Final = Subject("Batch", CLUSTER)

#: The pod itself is the reason, whichever pools there are.
NO_POOL_MATTERS: Final = frozenset(
    {Why.CONSTRAINT_NOT_MODELLED, Why.UNREADABLE, Why.VOLUME_UNUSABLE}
)

#: Where volumes can be used, and how many more a node can attach.
STORAGE: Final = frozenset(
    {PERSISTENT_VOLUMES, PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES, CSI_NODES, VOLUME_ATTACHMENTS}
)
_WATCHED: Final = STORAGE | {PODS, NODES, NODE_CLAIMS, NODE_POOLS, DAEMON_SETS, LIMIT_RANGES}


def affects_capacity(change: Change, snapshot: Snapshot) -> bool:
    """Whether the change may affect the capacity, or the pods that need it."""
    kind = (change.resource.group, change.resource.kind)
    if change.resource == POD_DISRUPTION_BUDGETS:
        return changes_what_it_bars(change.old, change.new)
    if change.resource == NAMESPACES:
        return _labels(change.old) != _labels(change.new)
    return change.resource in _WATCHED or kind in snapshot.ours


def _labels(item: ApiObject | None) -> Mapping[str, str] | None:
    return item.labels if item is not None else None


def observes_capacity(subject: Subject) -> bool:
    """Whether an observation may affect placement; those of evictions and terminations do not."""
    return subject.kind in ("NodeClass", NODE_CLAIMS.kind, BATCH.kind)


def claim_refused(refusal: ClaimRefusal) -> tuple[Fact, ...]:
    """The facts for the pod."""
    refused = ClaimRefused(refusal.claim, refusal.message)
    return (refused, RetriedAt(refusal.retry_at)) if refusal.retry_at else (refused,)


class NewClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that would have to be created, under the name that it would have."""

    planned: PlannedClaim
    template: PoolTemplate
    create: Create

    @property
    def name(self) -> str:
        return self.create.name

    @property
    def subject(self) -> Subject:
        return Subject(NODE_CLAIMS.kind, self.name)

    @property
    def fit(self) -> CheapestFit:
        planned = self.planned
        return CheapestFit(
            planned.instance_type, planned.zone, planned.capacity_type, planned.price
        )

    @property
    def told(self) -> Fact:
        """What is launched, for users."""
        return self.fit


class Capacity(msgspec.Struct, frozen=True, kw_only=True):
    demands: tuple[Demand, ...]
    nodes: tuple[ExistingNode, ...]
    templates: tuple[PoolTemplate, ...]
    #: Pools that launch nothing, and why.
    closed: Mapping[str, Closed]
    #: Pools whose instance types are not known yet: nothing is decided without them.
    unlisted: tuple[str, ...]
    #: By pool: those whose new nodes were of no use, several in a row.
    back_offs: Mapping[str, BackOff]
    daemons: tuple[Daemon, ...]
    dry: Mapping[OfferingKey, datetime]
    #: By pod UID: pods that are nominated to a node in flight.
    nominations: Mapping[str, Nomination]
    pools: Mapping[str, NodePool]
    claim_names: frozenset[str]
    #: By pod UID: the API server refused a claim for it.
    refused: Mapping[str, ClaimRefusal] = {}
    #: Zones in which many nodes are unhealthy: new claims avoid them.
    zones: Domains = NOTHING
    #: What persistent volumes depend on.
    storage: Storage = Storage()
    #: Labels of namespaces by name; None: they cannot be listed.
    namespaces: Mapping[str, Mapping[str, str]] | None = None
    #: Why they cannot be listed.
    namespaces_unlisted: str = ""
    #: Names of Nodes where pods terminate because the scheduler makes room for a pod.
    preempted: frozenset[str] = frozenset()
    #: Which new claims undo consolidation; None: none does.
    undoing: Undoing | None = None
    #: What was read of the pods: it does not change the result.
    derived: Derived = NOTHING_KEPT

    @property
    def unknown(self) -> TypesAwaited | None:
        """Which information is still missing; None when everything is known."""
        return TypesAwaited(self.unlisted) if self.unlisted else None

    def target(self, name: str) -> Target:
        """A node of a packing, as users find it."""
        return Target(NODE_CLAIMS.kind if name in self.claim_names else NODES.kind, name)

    def waiting(self, now: datetime) -> list[Pod]:
        return [demand.pod for demand in self.demands if demand.needs_capacity(now)]

    def problem(
        self,
        pods: Iterable[Pod],
        zones: DomainState,
        settings: Settings,
        now: datetime,
        no_claim: frozenset[str] = frozenset(),
        fee_times: int = 1,
        *,
        nodes: Iterable[ExistingNode] | None = None,
        templates: Iterable[PoolTemplate] | None = None,
    ) -> Problem:
        """``nodes``, ``templates``: others than all."""
        pods = tuple(pods)
        shared = shared_claims(pods, self.storage)
        volumes = volume_needs(pods, self.storage, shared)
        drivers = drivers_asked(volumes.values())
        offered = self.templates_at(now) if templates is None else tuple(templates)
        nodes = self.nodes if nodes is None else nodes
        return Problem(
            pods=pods,
            nodes=(given := with_attachable(nodes, drivers, self.storage, shared)),
            all_nodes=len(given) == len(self.nodes) and not drivers,
            templates=keeping_free(offered, shared),
            daemons=self.daemons,
            dry=frozenset(key for key, until in self.dry.items() if until > now),
            avoid=frozenset(zones.zones_in_outage()),
            nominated={uid: one.node for uid, one in self.nominations.items() if one.holds(now)},
            binding=frozenset(one.node for one in self.nominations.values() if one.is_binding(now)),
            no_claim=no_claim | self._refused_until(now),
            apart=frozenset(self.refused),
            volumes=volumes,
            node_fee_cpus=fee_times * settings.node_fee_cpus,
            preferences=settings.preference_policy == "Respect",
            min_values=settings.min_values_policy == "Strict",
            namespaces=self.namespaces,
            derived=self.derived,
        )

    def templates_at(self, now: datetime) -> tuple[PoolTemplate, ...]:
        """Pools that may launch now."""
        if not self.back_offs:
            return self.templates
        return tuple(one for one in self.templates if not self._backs_off(one.pool, now))

    def closed_at(self, now: datetime) -> dict[str, Closed]:
        names = [pool for pool in self.back_offs if self._backs_off(pool, now)]
        return {**self.closed, **{pool: self.of_no_use(pool, now) for pool in names}}

    def why(self, unplaced: Unplaced, now: datetime) -> tuple[Fact, ...]:
        """Why the pod fits nowhere, with the pools that launch nothing and those that do not exist."""
        if unplaced.why is Why.CONSTRAINT_NOT_MODELLED and self.namespaces_unlisted:
            return (*unplaced.facts, NamespacesUnlisted(self.namespaces_unlisted))
        if unplaced.why in NO_POOL_MATTERS:
            return unplaced.facts
        closed = self.closed_at(now)
        if (named := unplaced.named) is None:
            return (*unplaced.facts, *(PoolClosed(*each) for each in closed.items()))
        pools = frozenset(closed).union(template.pool for template in self.templates)
        return (
            *unplaced.facts,
            *(PoolClosed(pool, why) for pool, why in closed.items() if pool in named),
            *missing_pools(named, pools),
        )

    def of_no_use(self, pool: str, now: datetime) -> NodesOfNoUse:
        return self.back_offs[pool].at(now).fact(self.pools[pool])

    def _backs_off(self, pool: str, now: datetime) -> bool:
        back_off = self._open_at(pool, now)
        return back_off is not None and back_off.holds(now)

    def _open_at(self, pool: str, now: datetime) -> BackOff | None:
        back_off = self.back_offs.get(pool)
        open_ = back_off.at(now) if back_off is not None else None
        return open_ if open_ is not None and open_.is_open else None

    def one_at_a_time(self, packing: Packing, now: datetime) -> tuple[Packing, dict[str, str]]:
        """Without all claims but one of each pool that backs off; by pod UID, that pool."""
        kept: list[PlannedClaim] = []
        waiting: dict[str, str] = {}
        for planned in packing.claims:
            pool = planned.pool
            if any(one.pool == pool for one in kept) and self._open_at(pool, now) is not None:
                waiting |= dict.fromkeys(planned.pods, pool)
            else:
                kept.append(planned)
        return msgspec.structs.replace(packing, claims=tuple(kept)), waiting

    def _refused_until(self, now: datetime) -> frozenset[str]:
        """Pods for which the API server refused even a separate claim, until the next retry."""
        return frozenset(
            uid for uid, one in self.refused.items() if one.retry_at and one.retry_at > now
        )

    def new_claims(
        self,
        needed: Sequence[PlannedClaim],
        pods: Iterable[Pod],
        marks: Mapping[str, str] = MappingProxyType({}),
        *,
        reserved: bool = False,
    ) -> list[NewClaim]:
        """``pods``: those that they are for, and perhaps others; ``marks``: more annotations.

        ``reserved``: their nodes take pods once these are named (``core.opening``).
        """
        return at_once(self.making_claims(needed, pods, marks, reserved=reserved))

    def making_claims(
        self,
        needed: Sequence[PlannedClaim],
        pods: Iterable[Pod],
        marks: Mapping[str, str] = MappingProxyType({}),
        *,
        reserved: bool = False,
    ) -> Steps[list[NewClaim]]:
        """The same in steps."""
        by_uid = {pod.uid: pod for pod in pods}
        taken, found = set(self.claim_names), []
        for number, planned in enumerate(needed, start=1):
            if not number % CLAIMS_A_STEP:
                yield
            name = claim_name(planned, taken, marks.get(REPLACES, ""))
            taken.add(name)
            (template,) = (t for t in self.templates if t.pool == planned.pool)
            pool = self.pools[planned.pool]
            types = template.instance_types
            body: dict[str, Any] = claim_manifest(
                planned, pool, name, types, by_uid, reserved=reserved
            )
            body["metadata"]["annotations"] |= marks
            if self.undoing is not None and REPLACES not in marks:
                undone = self.undoing.mark(planned.pool, (by_uid[uid] for uid in planned.pods))
                body["metadata"]["annotations"] |= undone
            create = Create(resource=NODE_CLAIMS, name=name, body=body)
            found.append(NewClaim(planned=planned, template=template, create=create))
        return found

    def instants(self, zones: DomainState) -> list[datetime]:
        """When the result may change although no object does."""
        return [
            *self.dry.values(),
            *(one.lapses_at for one in self.nominations.values() if one.lapses_at is not None),
            *(at for one in self.nominations.values() if (at := one.waits_until) is not None),
            *(demand.since for demand in self.demands if demand.leaves),
            *(one.retry_at for one in self.refused.values() if one.retry_at is not None),
            *(at for one in self.back_offs.values() for at in one.instants()),
            *([zones.changes_at] if zones.changes_at is not None else []),
        ]


def capacity_in(snapshot: Snapshot, demands: Iterable[Demand]) -> Capacity:
    """``demands``: the pods that need capacity, or soon will."""
    templates, closed = open_pools(snapshot)
    demands = tuple(demands)
    return Capacity(
        demands=demands,
        nodes=(*nodes_with_capacity(snapshot), *closed_nodes(snapshot)),
        templates=tuple(templates),
        closed=closed,
        unlisted=unlisted_pools(templates, snapshot),
        back_offs=_back_offs(templates, snapshot),
        daemons=tuple(daemons(snapshot)),
        dry=dict(snapshot.observations.dry_offerings),
        nominations=nominations_in(snapshot, demands),
        pools=dict(snapshot.pools),
        claim_names=frozenset(snapshot.claims),
        refused=dict(snapshot.observations.refused_claims),
        zones=domains_in(snapshot).zones(),
        storage=storage_in(snapshot),
        namespaces=_namespaces(snapshot),
        namespaces_unlisted=snapshot.unlisted(NAMESPACES),
        preempted=preempted_nodes(snapshot),
        undoing=undoing(snapshot, CONSOLIDATING),
        derived=snapshot.derived,
    )


def _namespaces(snapshot: Snapshot) -> dict[str, Mapping[str, str]] | None:
    if snapshot.unlisted(NAMESPACES):
        return None
    return {name: namespace.labels for name, namespace in snapshot.namespaces.items()}


def _back_offs(templates: Iterable[PoolTemplate], snapshot: Snapshot) -> dict[str, BackOff]:
    found = {}
    for template in templates:
        pool, claims = snapshot.pools[template.pool], snapshot.claims_of_pool(template.pool)
        back_off = back_off_of(pool, claims.values(), node_class_of(pool, snapshot))
        if back_off.is_open:
            found[pool.name] = back_off
    return found


@lru_cache(256)
def missing_pools(named: tuple[str, ...], pools: frozenset[str]) -> tuple[NamedPoolsMissing, ...]:
    """Those that a pod names and that do not exist: at most one fact. Kept: thousands of pods may name the same pool."""
    missing = [name for name in named if name not in pools]
    if not missing:
        return ()
    first = tuple(missing[:NAMED])
    similar = _similar(first, sorted(pools)[:_COMPARED])
    return (NamedPoolsMissing(first, len(missing) - len(first), similar),)


def _similar(missing: Iterable[str], pools: Sequence[str]) -> str:
    for name in missing:
        if close := get_close_matches(name, pools, n=1):
            return close[0]
    return ""
