"""Where pods of a node go beside Karpenter: to one new node like it.

No cloud is asked here, so no instance types are known, and nothing is packed: one replacement for each node,
like for like (``likeness``). Karpenter chooses the instance type, and where pods do not fit after all it launches
more, as for every node that is drained. A replacement stays within the limits of its pool while the node
that it replaces is still there.

A pool with ``spec.replicas`` gets none: Karpenter launches a node for each that leaves, and a claim of ours would be one
too many, for which it would delete another. Where its feature gate ``StaticCapacity`` is off it launches none, so such a
node stays.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from tenure.core.beside.karpenter import Karpenter, launches_replicas
from tenure.core.beside.replacing.facts import (
    LikeForLike,
    LimitInTheWay,
    PodsCameSince,
    ReplicasLaunched,
    ReplicasNotLaunched,
)
from tenure.core.beside.replacing.likeness import Likeness, likeness, requests_of
from tenure.core.beside.replacing.newclaim import replacement_manifest
from tenure.core.decision import Create
from tenure.core.disrupt.launchtimes import launch_times
from tenure.core.disrupt.simulate import LeavingNode, Plan, Reservations, Simulation
from tenure.core.facts import Fact
from tenure.core.gates.facts import ClaimWithoutPool
from tenure.core.health.outage import domains_in
from tenure.core.pool.lookup import capacity_of, usage_of
from tenure.core.provision.newclaim import claim_name
from tenure.core.provision.placement import Capacity, NewClaim
from tenure.errors import SpecError
from tenure.model.api.nodepool import NodePool
from tenure.model.api.resource import NODE_CLAIMS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.values.quantity import (
    format_quantity,
    format_resources,
    maximum,
    parse_resources,
    subtract,
)
from tenure.packing.demand.problem import PoolTemplate
from tenure.packing.demand.steps import Steps
from tenure.packing.result import PlannedClaim


class Replacement(NewClaim, frozen=True, kw_only=True):
    """A claim that Karpenter launches."""

    like: LikeForLike

    @property
    def told(self) -> Fact:
        return self.like


class LikeForLikeSimulation(Simulation, frozen=True, kw_only=True):
    #: By pool with limits: what they leave.
    remaining: Mapping[str, Mapping[str, int]] = {}
    #: Whether Karpenter launches nodes of pools with ``spec.replicas``; None: that is not known.
    launches_replicas: bool | None = False

    def plan(
        self,
        leaving: Sequence[LeavingNode],
        settings: Settings,
        now: datetime,
        *,
        credit: bool = True,
        reservations: Reservations | None = None,
        avoid: Collection[str] = (),
    ) -> Steps[Plan]:
        """``credit``: else it is about to terminate, and its replacements should be there."""
        needy = [one for one in leaving if one.pods and not one.own]
        if not needy:
            return Plan(counts_on=frozenset(name for one in leaving for name in one.own))
        if all(self._is_static(one) for one in needy):
            return self._by_karpenter(needy[0].claim.pool_name)
        if not credit:
            return Plan(why=PodsCameSince(needy[0].node.name))
        yield
        state = self.capacity.zones.at(settings, now)
        outage, found = frozenset(state.zones_in_outage()), list[NewClaim]()
        for one in needy:
            new = self._replacement(one, outage, {new.name for new in found})
            if isinstance(new, Fact):
                return Plan(why=new, changes_at=state.changes_at)
            found.append(new)
        return Plan(claims=tuple(found), changes_at=state.changes_at)

    def plan_empty(
        self, name: str, settings: Settings, now: datetime, reservations: Reservations
    ) -> Steps[Plan]:
        """Whether pending pods would fit there is Karpenter's to know."""
        yield
        return Plan()

    def _is_static(self, leaving: LeavingNode) -> bool:
        pool = self.capacity.pools.get(leaving.claim.pool_name)
        return pool is not None and pool.static

    def _by_karpenter(self, pool: str) -> Plan:
        if self.launches_replicas:
            return Plan(without=ReplicasLaunched(pool))
        return Plan(why=ReplicasNotLaunched(pool, known=self.launches_replicas is not None))

    def _replacement(
        self, leaving: LeavingNode, outage: Collection[str], taken: Collection[str]
    ) -> Replacement | Fact:
        claim, pool = leaving.claim, self.capacity.pools.get(leaving.claim.pool_name)
        if pool is None:
            return ClaimWithoutPool(claim.name)
        like = likeness(leaving, pool, outage)
        if isinstance(like, Fact):
            return like
        requests = requests_of(claim, (*leaving.pods, *leaving.staying))
        if (over := self._over(leaving, pool, requests)) is not None:
            return over
        planned = _planned(pool, like, requests)
        name = claim_name(planned, {*self.capacity.claim_names, *taken}, claim.uid)
        body = replacement_manifest(name, claim, pool, planned, like)
        asks = format_resources(requests)
        return Replacement(
            planned=planned,
            template=PoolTemplate(pool=pool.name),
            create=Create(resource=NODE_CLAIMS, name=name, body=body),
            like=LikeForLike(
                claim=claim.name,
                pool=pool.name,
                zone=like.zone,
                requests=tuple((key, asks[key]) for key in ("cpu", "memory") if key in asks),
                template_only=like.template_only,
            ),
        )

    def _over(
        self, leaving: LeavingNode, pool: NodePool, requests: Mapping[str, int]
    ) -> Fact | None:
        """A limit that a node as large as this one would exceed."""
        needs = maximum(capacity_of(leaving.claim, leaving.node.capacity), requests)
        for resource, left in sorted(self.remaining.get(pool.name, {}).items()):
            if needs.get(resource, 0) > left:
                shown = (format_quantity(max(amount, 0)) for amount in (left, needs[resource]))
                return LimitInTheWay(pool.name, resource, *shown)
        return None


def _planned(pool: NodePool, like: Likeness, requests: Mapping[str, int]) -> PlannedClaim:
    """Without an offering: Karpenter chooses it."""
    return PlannedClaim(
        pool=pool.name,
        requirements=like.requirements,
        instance_types=(),
        requests=dict(requests),
        pods=(),
        price=0,
        instance_type="",
        zone=like.zone,
        capacity_type="",
    )


def like_for_like_in(snapshot: Snapshot, karpenter: Karpenter) -> LikeForLikeSimulation:
    capacity = Capacity(
        demands=(),
        nodes=(),
        templates=(),
        closed={},
        unlisted=(),
        back_offs={},
        daemons=(),
        dry={},
        nominations={},
        pools=dict(snapshot.pools),
        claim_names=frozenset(snapshot.claims),
        zones=domains_in(snapshot).zones(),
    )
    return LikeForLikeSimulation(
        capacity=capacity,
        leaving=(),
        late_at={},
        coming={},
        launch_times=launch_times(snapshot),
        launches_replicas=launches_replicas(karpenter),
        remaining={name: left for name in snapshot.pools if (left := _remaining(name, snapshot))},
    )


def _remaining(name: str, snapshot: Snapshot) -> dict[str, int] | None:
    pool = snapshot.pools[name]
    if not pool.spec.limits:
        return None
    try:
        limits = parse_resources(pool.spec.limits, "spec.limits")
    except SpecError:
        return None  # Such a pool is unreadable: none of its nodes is a candidate.
    used = usage_of(name, snapshot)
    return subtract(limits, {resource: used.get(resource, 0) for resource in limits})
