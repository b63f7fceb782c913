"""Decide which pending pods get a new node, and which node that is.

Every pod that needs capacity gets one verdict, and so does every claim to be created:

1. its Node is terminating, but the pod is protected for a while: it stays for now;
2. it fits a node that has been in service for half a minute, and the scheduler still does not
   bind it there: Tenure and the scheduler disagree, and the verdict quotes the scheduler;
3. it is nominated to a node in flight (``nominations``), or fits a node that exists or is in
   flight: nominated there;
4. the cloud has not listed its offerings for a pool yet, right after a start: it waits;
5. it fits a node as soon as the pods that terminate there are gone, within seconds (``vacating``): it waits for that;
6. no node fits it: why not, pool by pool; or the API server refused a claim for it alone;
7. it needs a new node, but its owner's launch breaker is open (``launchbreaker``);
   or its pool backs off, because new nodes do not come up in time (``pool.backoff``);
8. it needs a new node, but pods are still arriving: the batch waits (``batch``), so that
   pods that arrive together share nodes; or it is one of the few that full nodes leave over
   (``remainders``), and shares a node with the next batch;
9. it needs a new node: the claim is created, and the pod is nominated to it.

New claims avoid a zone in an outage, in which most nodes are unhealthy (``domains``), unless only
that zone fits their pods.

Packing is one pure function of the snapshot. With very many pods it takes seconds, and is done in steps, between which the
cluster may change: then each claim is compared with the cluster by now before it is created (``confirming``). Only these depend on time: the batch, whether pods are
still arriving, the scheduler's half minute, the ends of protections and of grace periods, offerings and node
classes that are excluded for a while, and zones that are avoided.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.decider import Progress
from tenure.core.decision import Blocker, Concern, Create, Patch, Subject, Verdict
from tenure.core.facts import Fact
from tenure.core.health.domains import DomainState
from tenure.core.launchbreaker.breaker import Limited, held_back, limiting_launches, remembered
from tenure.core.launchbreaker.history import History, launch_history, served_launches
from tenure.core.nominated import named
from tenure.core.protect.protection import CREATION
from tenure.core.provision.batch import ARRIVING_FEE, Batch, arriving_until, last_created
from tenure.core.provision.confirming import Confirmed, Instant, confirming
from tenure.core.provision.demand import Demand, may_need_capacity, pods_to_schedule
from tenure.core.provision.facts import (
    Batched,
    CapacityTaken,
    DaemonSetsTooLarge,
    Fits,
    LaunchServed,
    NeededForPods,
    NeedsNewClaim,
    NodeReplaced,
    NodeTerminating,
    PlannedAnew,
    PoolClosed,
    ProtectedUntil,
    RoomComing,
    SchedulerDisagrees,
    StaysWithNode,
    ZoneAvoided,
    ZoneNotAvoided,
)
from tenure.core.provision.knownnodes import in_service_since, reading_nodes
from tenure.core.provision.newclaim import note_served
from tenure.core.provision.nominations import SCHEDULER_TAKES
from tenure.core.provision.placement import (
    CLUSTER,
    STORAGE,
    Capacity,
    NewClaim,
    affects_capacity,
    capacity_in,
    claim_refused,
    observes_capacity,
)
from tenure.core.provision.remainders import (
    nodes_by_price,
    thin_claims,
    without_remainders,
    without_thin,
)
from tenure.core.provision.vacating import Vacating, left_lately, room_since
from tenure.core.reasons import Reason
from tenure.core.writes import subject_of
from tenure.model.api.meta import earlier, later
from tenure.model.api.names import ZONE
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, NODES, PODS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.packing.demand.alike import can_change_places
from tenure.packing.demand.steps import Steps, at_once, some_at_a_time
from tenure.packing.facts import Why
from tenure.packing.result import Packing, PlannedClaim

#: From when a plan was begun to the next, where that is due as soon as the plan has ended.
AT_ONCE: Final = timedelta(microseconds=1)
#: Pods that are told in one step.
PODS_TOLD: Final = 250


class ProvisionView(msgspec.Struct, frozen=True):
    #: None if no pod needs capacity.
    capacity: Capacity | None
    #: Since when the scheduler can use a node; only nodes that it can use now.
    in_service: Mapping[str, datetime]
    #: When claims were last created for pods, if we know.
    decided_at: datetime | None = None
    #: When a controller of the pods last created one, tried by the scheduler or not.
    created_at: datetime | None = None
    #: The results of earlier launches for the same owners.
    history: History = History()
    #: Claims on which a pod has ended by itself, with the annotation that records it.
    served: tuple[tuple[NodeClaim, str], ...] = ()
    #: Names of Nodes that are being rebooted.
    rebooting: frozenset[str] = frozenset()
    #: By the name of a Node: when a pod last left it.
    left_at: Mapping[str, datetime] = {}

    def arriving_until(self, settings: Settings) -> datetime | None:
        demands = self.capacity.demands if self.capacity is not None else ()
        return arriving_until(demands, settings, self.decided_at, self.created_at)


class ProvisionDecider:
    concern = Concern.PROVISIONING

    def __init__(self, protection_clock: str = CREATION) -> None:
        self._protection_clock = protection_clock

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return (CLUSTER,)

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        return (CLUSTER,) if affects_capacity(change, snapshot) else ()

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return (CLUSTER,) if observes_capacity(subject) else ()

    def preparing(self, snapshot: Snapshot, key: str) -> Iterator[None]:
        if may_need_capacity(snapshot):
            yield from reading_nodes(snapshot)

    def view(self, snapshot: Snapshot, key: str) -> ProvisionView | None:
        demands = pods_to_schedule(snapshot, self._protection_clock)
        history = launch_history(snapshot, (one.pod for one in demands))
        served = served_launches(snapshot)
        if not demands:
            # The usual case, and it must stay cheap: no capacity is computed.
            return (
                ProvisionView(None, {}, history=history, served=served)
                if history or served
                else None
            )
        return ProvisionView(
            capacity_in(snapshot, demands),
            in_service_since(snapshot),
            snapshot.observations.pods_decided_at,
            last_created(demands, snapshot),
            history,
            served,
            frozenset(claim.node_name for claim in snapshot.rebooting_claims().values()),
            left_lately(demands, snapshot),
        )

    def decide(self, view: ProvisionView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        *_, found = self.deciding(view, settings, now, Progress())
        assert found is not None, "the last step gives all"
        return found

    def deciding(
        self, view: ProvisionView, settings: Settings, now: datetime, progress: Progress
    ) -> Iterator[Sequence[Verdict] | None]:
        """Very many pods take seconds: steps of a few milliseconds. Pods are told before claims are created, and
        all claims are created in one turn, because what is being created cannot be seen by the rest. Telling them
        takes turns as well: so the last step compares the claims once more."""
        progress.confirms = True  # Before the first step.
        return self._deciding(view, settings, now, progress)

    def _deciding(
        self, view: ProvisionView, settings: Settings, now: datetime, progress: Progress
    ) -> Iterator[Sequence[Verdict] | None]:
        served = [_served(claim, text) for claim, text in view.served]
        if view.capacity is None:
            yield [*remembered(view.history, settings, now), *served]
            return
        answer = yield from self._answering(view, view.capacity, settings, now, progress)
        yield from answer.preparing()
        for some in some_at_a_time(answer.demands, PODS_TOLD):
            progress.said += map(answer.about, some)
            yield None
        about_pods = progress.said
        if progress.view_now is not None and answer.claims:
            compared = _comparing(answer.packing, view, progress.view_now(), settings, now)
            about_pods = answer.corrected(about_pods, *at_once(compared))
        yield [
            *answer.about_claims(),
            *answer.left_out(),
            *about_pods,
            *answer.about_pools,
            *served,
        ]

    def _answering(
        self,
        view: ProvisionView,
        capacity: Capacity,
        settings: Settings,
        now: datetime,
        progress: Progress,
    ) -> Steps[_Answer]:
        zones = capacity.zones.at(settings, now)
        until = view.arriving_until(settings)
        none = frozenset(one.pod.uid for one in capacity.demands if one.only_fitting)
        fee_times = ARRIVING_FEE if until is not None and now < until else 1
        vacating = Vacating(capacity, zones, settings, now)
        yield
        limited = yield from limiting_launches(
            view.history,
            lambda no_claim: vacating.packing(no_claim | none, fee_times),
            settings,
            now,
        )
        yield
        confirmed, capacity = yield from _confirmed(
            limited.packing, view, capacity, settings, now, progress
        )
        packing, waiting = capacity.one_at_a_time(confirmed.packing, now)
        remain: dict[str, datetime] = {}
        if until is not None and now < until:
            packing, left = without_remainders(
                packing,
                capacity.demands,
                view.decided_at,
                earlier(now, 2 * settings.batch_max),
                nodes_by_price(capacity.nodes, capacity.templates) if packing.claims else {},
            )
            thin = thin_claims(packing, capacity.templates, settings.node_fee_cpus)
            packing, more = without_thin(
                packing,
                capacity.demands,
                view.decided_at,
                earlier(now, 2 * settings.batch_max),
                thin,
            )
            remain = dict.fromkeys(left | more, until)
        instants = *limited.instants, *vacating.instants
        limited = msgspec.structs.replace(limited, packing=packing, instants=instants)
        yield
        soon = vacating.soon
        return _Answer(
            view, capacity, limited, waiting, remain, soon, confirmed.anew, zones, settings, now
        )


def _confirmed(
    packing: Packing,
    view: ProvisionView,
    capacity: Capacity,
    settings: Settings,
    now: datetime,
    progress: Progress,
) -> Steps[tuple[Confirmed, Capacity]]:
    """What of a packing holds by now, and the pods that it is about."""
    if progress.view_now is None:
        return Confirmed(packing, frozenset()), capacity
    latest: ProvisionView | None = progress.view_now()
    yield
    confirmed, there = yield from _comparing(packing, view, latest, settings, now)
    names = latest.capacity.claim_names if latest is not None and latest.capacity else None
    return confirmed, msgspec.structs.replace(
        capacity,
        demands=tuple(one for one in capacity.demands if one.pod.uid in there),
        claim_names=capacity.claim_names if names is None else names,
    )


def _comparing(
    packing: Packing,
    view: ProvisionView,
    latest: ProvisionView | None,
    settings: Settings,
    now: datetime,
) -> Steps[tuple[Confirmed, frozenset[str]]]:
    """In steps: what holds of a packing on the latest view, and the UIDs of the pods that still need capacity."""
    by_now = _instant(latest, packing, settings, now) if latest is not None else None
    yield
    then = _instant(view, packing, settings, now)
    assert then is not None, "it has pods"
    confirmed = yield from confirming(packing, then, by_now)
    demands = by_now.capacity.demands if by_now is not None else ()
    return confirmed, frozenset(one.pod.uid for one in demands)


def _instant(
    view: ProvisionView, packing: Packing, settings: Settings, now: datetime
) -> Instant | None:
    if view.capacity is None:
        return None
    zones = view.capacity.zones.at(settings, now)
    stopped = held_back(view.history, packing, settings, now)
    return Instant(
        capacity=view.capacity, outages=frozenset(zones.zones_in_outage()), stopped=stopped
    )


def _served(claim: NodeClaim, text: str) -> Verdict:
    return Verdict(
        concern=Concern.PROVISIONING,
        subject=subject_of(claim),
        reason=Reason.LAUNCH_SERVED,
        facts=(LaunchServed(),),
        action=note_served(claim, text),
    )


def decides_on_pods(verdict: Verdict) -> bool:
    """Whether carrying it out closes a batch: a claim is created for its pods."""
    return verdict.concern is Concern.PROVISIONING and isinstance(verdict.action, Create)


def may_wait(change: Change) -> bool:
    """Pods and Nodes change by the hundred; a claim that was created or removed is urgent."""
    old, new = change.old, change.new
    if change.resource == NODE_CLAIMS:
        return old is not None and new is not None
    if isinstance(old, NodePool) and isinstance(new, NodePool):
        return msgspec.structs.replace(old, metadata=new.metadata, status=new.status) == new and (
            (old.labels, old.annotations, old.deleting)
            == (new.labels, new.annotations, new.deleting)
        )
    return change.resource in (PODS, NODES, *STORAGE)


def is_arrival(change: Change) -> bool:
    """A pod waits for a node: the batch that it belongs to does not close now (``batch``)."""
    old, new = change.old, change.new
    arrives = isinstance(new, Pod) and new.unschedulable
    return arrives and not (isinstance(old, Pod) and old.unschedulable)


class _Answer:
    """The verdicts of one packing."""

    def __init__(
        self,
        view: ProvisionView,
        capacity: Capacity,
        limited: Limited,
        waiting: Mapping[str, str],
        remain: Mapping[str, datetime],
        soon: Mapping[str, RoomComing],
        anew: frozenset[str],
        zones: DomainState,
        settings: Settings,
        now: datetime,
    ) -> None:
        self._capacity, self._in_service = capacity, view.in_service
        self._left_at = view.left_at
        self._rebooting = view.rebooting
        self._packing, self._now = limited.packing, now
        #: By pod UID: the launch breaker that keeps it from a new node.
        self._breakers = limited.pods
        #: By pod UID: the pool that backs off, and tries another node first.
        self._waiting = waiting
        #: By pod UID: until when it waits for others to share a node with.
        self._remain = remain
        #: By pod UID: the room that it waits for.
        self._soon = soon
        #: UIDs of pods whose claim does not hold any more.
        self._anew = anew
        #: By the UIDs of its pods: the verdict on each new claim.
        self.claims: dict[tuple[str, ...], Verdict] = {}
        self.about_pools = limited.verdicts
        #: Pools that have a verdict from the launch breakers: a subject has one verdict.
        self._told = {verdict.subject.name for verdict in limited.verdicts}
        self._zones_in_outage = zones.zones_in_outage()
        until = view.arriving_until(settings)
        closes_at = self._batch(settings).closes_at(view.decided_at, settings, until)
        #: When the batch that is still open closes.
        self._gathers_until = closes_at if closes_at is not None and now < closes_at else None
        self._nominates = settings.nominate_pods
        unbound = [demand.pod for demand in capacity.demands if not demand.leaves]
        #: It does not matter which pod gets which node.
        self._interchangeable = can_change_places(unbound, capacity.derived)
        #: By pod UID: the new claim.
        self._needs: dict[str, NeedsNewClaim] = {}
        instants = [
            *capacity.instants(zones),
            *filter(None, (closes_at, until)),
            *filter(None, map(self._patience_ends, capacity.demands)),
            *limited.instants,
        ]
        self._changes_at = min((at for at in instants if at > now), default=None)

    @property
    def demands(self) -> tuple[Demand, ...]:
        return self._capacity.demands

    @property
    def packing(self) -> Packing:
        return self._packing

    def preparing(self) -> Steps[None]:
        """In steps: the claims, and which pods they are for."""
        if not self._gathers_until and not self._capacity.unlisted:
            yield from self._claiming(self._packing.claims)

    def about_claims(self) -> list[Verdict]:
        """In the order of the packing."""
        found = (self.claims.get(one.pods) for one in self._packing.claims)
        return [one for one in found if one is not None]

    def corrected(
        self, told: Sequence[Verdict], confirmed: Confirmed, there: frozenset[str]
    ) -> list[Verdict]:
        """What is told of the pods by now, where some claims do not hold any more, or not for all of their pods.

        ``told``: before that; ``there``: UIDs of the pods that still need capacity.
        """
        self._packing, self._anew = confirmed.packing, self._anew | confirmed.anew
        for uid in confirmed.anew:
            self._needs.pop(uid, None)
        smaller = [one for one in confirmed.packing.claims if one.pods not in self.claims]
        at_once(self._claiming(smaller))
        again = confirmed.anew.union(*(one.pods for one in smaller))
        return [
            self.about(demand) if demand.pod.uid in again else before
            for demand, before in zip(self.demands, told, strict=True)
            if demand.pod.uid in there
        ]

    def left_out(self) -> list[Verdict]:
        """Pools whose new nodes reserve nothing for DaemonSets that fit no instance type."""
        pools = self._capacity.pools
        return [
            Verdict(
                concern=Concern.PROVISIONING,
                subject=Subject.of(NODE_POOLS.kind, pools[pool]),
                reason=Reason.DAEMON_SETS_TOO_LARGE,
                facts=(DaemonSetsTooLarge(daemons),),
                recheck_at=self._changes_at,
            )
            for pool, daemons in sorted(self._packing.left_out.items())
            if pool not in self._told
        ]

    def _batch(self, settings: Settings) -> Batch:
        needed = {uid for planned in self._packing.claims for uid in planned.pods}
        if not needed:
            return Batch()
        demands, placed = self._capacity.demands, self._packing.placed
        dry_until = max(self._capacity.dry.values(), default=None)
        return Batch(
            needing=[d for d in demands if d.pod.uid in needed],
            coming=[
                d for d in demands if (on := placed.get(d.pod.uid)) and on not in self._in_service
            ],
            sold_out_at=None if dry_until is None else earlier(dry_until, settings.offering_dry),
        )

    def _claiming(self, planned: Sequence[PlannedClaim]) -> Steps[None]:
        pods = [demand.pod for demand in self._capacity.demands]
        reserved = self._nominates and not self._interchangeable
        taken = self._capacity.claim_names.union(one.subject.name for one in self.claims.values())
        capacity = msgspec.structs.replace(self._capacity, claim_names=taken)
        for new in (yield from capacity.making_claims(planned, pods, reserved=reserved)):
            self._needs |= dict.fromkeys(new.planned.pods, NeedsNewClaim(new.name, new.fit))
            self.claims[new.planned.pods] = self._needed(new)

    def _needed(self, new: NewClaim) -> Verdict:
        return Verdict(
            concern=Concern.PROVISIONING,
            subject=Subject(NODE_CLAIMS.kind, new.name),
            reason=Reason.NEEDED_FOR_PODS,
            facts=(NeededForPods(len(new.planned.pods)), new.fit, *self._avoided(new)),
            action=new.create,
            recheck_at=self._changes_at,
        )

    def _avoided(self, new: NewClaim) -> Iterator[Fact]:
        """Which zones it avoids, or cannot avoid, and why."""
        allowed = new.planned.requirements.allowed(ZONE)
        offered = new.template.requirements.allowed(ZONE)
        for zone, outage in sorted(self._zones_in_outage.items()):
            if allowed.has(zone):
                yield ZoneNotAvoided(zone, outage)
            elif offered.has(zone):
                yield ZoneAvoided(zone, outage)

    def about(self, demand: Demand) -> Verdict:
        reason, *facts = self._placed(demand)
        if demand.leaves:
            why = NodeReplaced if demand.replaced else NodeTerminating
            facts.insert(0, why(demand.leaves))
        return Verdict(
            concern=Concern.PROVISIONING,
            subject=Subject.of(PODS.kind, demand.pod),
            reason=reason,
            facts=tuple(facts),
            blockers=self._limits_reached(demand) if reason is Reason.FAILED_SCHEDULING else (),
            action=self._reserves(demand, reason),
            recheck_at=later(self._now, AT_ONCE) if PlannedAnew() in facts else self._changes_at,
        )

    def _reserves(self, demand: Demand, reason: Reason) -> Patch | None:
        """Names the Node that the pod is placed on, until the scheduler should have bound it there.

        The name of a Node that was launched for the pod stays until another claim is created for it.
        """
        if demand.leaves or self._interchangeable:
            return None
        uid, written = demand.pod.uid, demand.pod.status.nominated_node_name
        placed = self._packing.placed.get(uid, "") if reason is Reason.NOMINATED else ""
        node = placed if placed in self._in_service or placed == written else ""
        launched = self._capacity.nominations.get(uid)
        stays = uid not in self._needs and launched is not None and launched.holds(self._now)
        if self._nominates and (node == written or (not node and stays)):
            return None
        return named(demand.pod, node if self._nominates else "") if node or written else None

    def _limits_reached(self, demand: Demand) -> tuple[Blocker, ...]:
        """The pools that would take the pod if their limits allowed one more node."""
        unplaced = self._packing.unplaced.get(demand.pod.uid)
        return tuple(
            Blocker(subject=Subject(NODE_POOLS.kind, one.pool), fact=one.cause)
            for one in (unplaced.refusals if unplaced is not None else ())
            if one.why is Why.LIMIT_REACHED
        )

    def _placed(self, demand: Demand) -> tuple[Reason, *tuple[Fact, ...]]:
        """Where the pod is placed, or why it is not."""
        if not demand.needs_capacity(self._now):
            return Reason.STAYS_FOR_NOW, ProtectedUntil(demand.since)
        uid, packing, capacity = demand.pod.uid, self._packing, self._capacity
        if uid in packing.placed:
            target, patience_ends = (
                capacity.target(packing.placed[uid]),
                self._patience_ends(demand),
            )
            if patience_ends is None or self._now < patience_ends:
                rebooting = packing.placed[uid] in self._rebooting
                return Reason.NOMINATED, Fits(target, rebooting)
            disagrees = SchedulerDisagrees(target, demand.since, demand.said)
            return Reason.SCHEDULER_DISAGREES, disagrees
        if uid in packing.displaced:
            nomination = capacity.nominations[uid]
            target = capacity.target(packing.displaced[uid])
            return Reason.BATCHING, CapacityTaken(target, nomination.waits_until)
        if (state := self._breakers.get(uid)) is not None:
            return Reason.LAUNCH_BREAKER_OPEN, state.fact
        if uid in packing.no_claim and (refusal := capacity.refused.get(uid)) is not None:
            return Reason.FAILED_SCHEDULING, *claim_refused(refusal)
        if uid in packing.no_claim and demand.only_fitting:
            return Reason.STAYS_FOR_NOW, StaysWithNode(demand.leaves)
        if uid in packing.no_claim and (coming := self._soon.get(uid)) is not None:
            return Reason.ROOM_SOON, coming
        if (unknown := capacity.unknown) is not None:
            return Reason.AWAITING_TYPES, unknown
        if uid in packing.unplaced:
            return Reason.FAILED_SCHEDULING, *capacity.why(packing.unplaced[uid], self._now)
        if uid in self._anew:
            return Reason.BATCHING, PlannedAnew()
        if (pool := self._waiting.get(uid)) is not None:
            return Reason.FAILED_SCHEDULING, PoolClosed(pool, capacity.of_no_use(pool, self._now))
        if self._gathers_until is not None:
            return Reason.BATCHING, Batched(self._gathers_until)
        if (until := self._remain.get(uid)) is not None:
            return Reason.BATCHING, Batched(until)
        return Reason.NOMINATED, self._needs[uid]

    def _patience_ends(self, demand: Demand) -> datetime | None:
        """When the scheduler should have bound a pod that fits a node in service."""
        node = self._packing.placed.get(demand.pod.uid, "")
        usable = self._in_service.get(node)
        if usable is None or demand.leaves:
            return None
        fits_since = max(usable, demand.since, room_since(demand, self._left_at.get(node)))
        return later(fits_since, SCHEDULER_TAKES)
