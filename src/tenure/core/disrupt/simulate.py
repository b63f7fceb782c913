"""Where the pods of a node would be scheduled if it terminated, and which new nodes that takes.

The same packing as for pending pods. Capacity is given out in this order:

1. pods of a node that is being replaced, or drained after that, get what was launched for them;
2. then pending pods, and pods of other terminating nodes: where those need new nodes they get them
   first, which takes seconds; pods whose launch breaker is open may be pending for an hour, and no
   command waits for them, nor for a pod that has been pending for two minutes, nor for pods that stay
   with a node that is consolidated where they fit nowhere else;
3. what is left is for the node in question: existing nodes, those that were launched for it, and
   new ones.

A node that is not initialized yet may be taken by other pods, or never come up: unless it was
launched for this command, the command waits for it, and one that takes too long is not counted on.

The terminating node takes no pods. Its capacity is free again under its pool's limits, unless pods
are pending for just that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.disrupt.facts.candidates import (
    CapacityNotInitialized,
    PendingPodsFirst,
    PendingPodsFit,
    PlannedOnto,
    PodFitsNowhere,
)
from tenure.core.disrupt.launchtimes import launch_times
from tenure.core.facts import Fact
from tenure.core.gates.gatefacts import LaunchTime
from tenure.core.health.domains import DomainState
from tenure.core.health.readiness import initialized_until
from tenure.core.launchbreaker.breaker import without_claims
from tenure.core.launchbreaker.history import History, remembered_launches
from tenure.core.marks.command import commands_under_way, replacement_marks
from tenure.core.marks.ownership import room_of
from tenure.core.pool.lookup import capacity_of
from tenure.core.provision.demand import Demand, is_reschedulable, pods_to_schedule
from tenure.core.provision.placement import Capacity, NewClaim, capacity_in, claim_refused
from tenure.core.provision.vacating import Vacating, vacating, vacating_instants
from tenure.model.api.meta import later
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.packing.consolidate.question import PoolTotals
from tenure.packing.demand.problem import ExistingNode, PoolTemplate
from tenure.packing.demand.steps import Steps
from tenure.packing.existing import PODS_MAX
from tenure.packing.facts import Why
from tenure.packing.nowhere import Nowhere
from tenure.packing.pack import packing
from tenure.packing.result import Packing, Unplaced
from tenure.packing.unspread import Unspread

#: Pending pods get their claims in seconds. For one that has none after so long, no command waits.
WAITED_FOR: Final = timedelta(minutes=2)


class LeavingNode(msgspec.Struct, frozen=True):
    """A node that terminates, or would: its reschedulable pods, and what was launched for them."""

    claim: NodeClaim
    node: Node
    pods: tuple[Pod, ...]
    #: Names of Nodes; of claims that have no Node yet.
    own: tuple[str, ...] = ()
    #: The other pods that run there: those of DaemonSets, for example.
    staying: tuple[Pod, ...] = ()


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    claims: tuple[NewClaim, ...] = ()
    #: Why there is none; None when there is one.
    why: Fact | None = None
    #: Whether that passes by itself, soon.
    passing: bool = False
    #: When the same question may have another answer although nothing happens.
    changes_at: datetime | None = None
    #: Names of the existing nodes that its pods fit on.
    counts_on: frozenset[str] = frozenset()
    #: Replacements that exist already.
    came: tuple[NodeClaim, ...] = ()
    #: Why nothing is launched although pods have to go somewhere; None: they fit, or there are claims.
    without: Fact | None = None


class Simulation(msgspec.Struct, frozen=True, kw_only=True):
    """What every command depends on."""

    capacity: Capacity
    #: All nodes that are being replaced.
    leaving: tuple[LeavingNode, ...]
    #: By the name of a node that is Ready and not initialized: from when on it is not counted on.
    late_at: Mapping[str, datetime]
    #: By the name of a node that is not initialized: when it was launched.
    coming: Mapping[str, datetime]
    #: What earlier launches for the pods that wait came to.
    history: History = History()
    #: By pool: how long its new nodes take until they are initialized.
    launch_times: Mapping[str, timedelta] = {}
    #: By the name of a node: until when it is within the ``consolidateAfter`` of its own pool.
    settling: Mapping[str, datetime] = {}
    #: Names of nodes that go because they are empty: consolidation moves no pods onto them.
    going_empty: frozenset[str] = frozenset()
    #: Of the pools with ``consolidationPolicy: Balanced`` that have candidates for consolidation.
    balanced: Mapping[str, PoolTotals] = {}

    def launches(self, plan: Plan, came: Iterable[NodeClaim]) -> tuple[LaunchTime, ...]:
        """The new nodes that a command waits for: those of the plan, and those that exist."""
        times = self.launch_times
        pools: list[tuple[str, datetime | None]] = [(one.planned.pool, None) for one in plan.claims]
        pools += [(one.pool_name, one.created_at) for one in came if not one.initialized]
        return tuple(LaunchTime(pool, times[pool], at) for pool, at in pools if pool in times)

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
        """In steps: one plan for all of these nodes, as if they terminated together.

        ``credit``: the capacity of the terminating nodes is free under their pools' limits.
        ``reservations``: shared by all plans of one pass. ``avoid``: names of nodes that their pods are
        not to be moved onto.
        """
        if not any(one.pods for one in leaving):
            return Plan()  # No reschedulable pods.
        zones = self.capacity.zones.at(settings, now)
        _, breakers_change = without_claims(self.history, settings, now)
        instants = [*self.capacity.instants(zones), *self.late_at.values(), *breakers_change]
        changes_at = min((at for at in instants if at > now), default=None)
        if unknown := self.capacity.unknown:
            return Plan(why=unknown, passing=True, changes_at=changes_at)
        reservations = reservations or Reservations()
        ends = yield from reservations.vacating(self, now)
        changes_at = min((at for at in (changes_at, *ends) if at is not None), default=None)
        why = yield from self._nowhere(leaving, zones, settings, now, credit, reservations, avoid)
        if why is not None:
            return Plan(why=why, changes_at=changes_at)
        if (yield from reservations.need_new_nodes(self, zones, settings, now)):
            return self._pending_first(changes_at, now)
        bins, left = yield from reservations.without(self, leaving, zones, settings, now)
        before = yield from self._assigned(bins, left, leaving, zones, settings, now)
        if before.claims:
            return self._pending_first(changes_at, now)
        bins.close(*avoid)
        templates: Sequence[PoolTemplate] = self.capacity.templates_at(now)
        for one in leaving:
            if credit and not waits_for_limits(before, one.claim.pool_name):
                templates = _credited(templates, one)
        nodes, pods = bins.nodes(), pods_of(leaving)
        problem = self.capacity.problem(
            pods, zones, settings, now, nodes=nodes, templates=templates
        )
        if known := (yield from reservations.unspread.first(problem, nodes)):
            return Plan(why=self._fits_nowhere(*known, now), changes_at=changes_at)
        found = yield from packing(problem)
        reservations.unspread.learn(problem, found)
        plan = self._told(leaving, found, now)
        return msgspec.structs.replace(plan, changes_at=changes_at)

    def _pending_first(self, changes_at: datetime | None, now: datetime) -> Plan:
        ends = (later(one.since, WAITED_FOR) for one in self.capacity.demands)
        at = min((at for at in (*ends, changes_at) if at and at > now), default=None)
        return Plan(why=PendingPodsFirst(), passing=True, changes_at=at)

    def _nowhere(
        self,
        leaving: Sequence[LeavingNode],
        zones: DomainState,
        settings: Settings,
        now: datetime,
        credit: bool,
        reservations: Reservations,
        avoid: Collection[str],
    ) -> Steps[PodFitsNowhere | None]:
        """A pod that fits nowhere whatever becomes of all others; None: the packing has to say."""
        templates: Sequence[PoolTemplate] = self.capacity.templates_at(now)
        for one in leaving if credit else ():
            templates = _credited(templates, one)
        pods = pods_of(leaving)
        problem = self.capacity.problem(pods, zones, settings, now, nodes=(), templates=templates)
        late = (name for name, at in self.late_at.items() if at <= now)
        without = {*(one.node.name for one in leaving), *late, *reservations.given_up, *avoid}
        found = yield from reservations.nowhere.first(problem, self.capacity.nodes, without)
        return None if found is None else self._fits_nowhere(*found, now)

    def _fits_nowhere(self, pod: Pod, unplaced: Unplaced, now: datetime) -> PodFitsNowhere:
        return PodFitsNowhere(pod.key, self.capacity.why(unplaced, now))

    def plan_empty(
        self, name: str, settings: Settings, now: datetime, reservations: Reservations
    ) -> Steps[Plan]:
        """In steps, for a node without reschedulable pods: one that pending pods fit on stays."""
        zones = self.capacity.zones.at(settings, now)
        waiting = self.capacity.waiting(now)
        instants = self.capacity.instants(zones) if self.capacity.demands else []
        changes_at = min((at for at in instants if at > now), default=None)
        if name in reservations.counted_on:
            return Plan(why=PlannedOnto(name), passing=True, changes_at=changes_at)
        moving = any(one.pods for one in self.leaving)
        if not (waiting or moving) or self.capacity.unknown is not None:
            return Plan(changes_at=changes_at)
        expected = yield from reservations.expected(self, zones, settings, now)
        soon = reservations.vacated_by
        changes_at = min((at for at in (changes_at, soon) if at is not None), default=None)
        if name in expected:
            return Plan(why=PendingPodsFit(name), passing=True, changes_at=changes_at)
        return Plan(changes_at=changes_at)

    def _told(self, leaving: Sequence[LeavingNode], found: Packing, now: datetime) -> Plan:
        pods = pods_of(leaving)
        for pod in pods:
            if (unplaced := found.unplaced.get(pod.uid)) is not None:
                return Plan(why=self._fits_nowhere(pod, unplaced, now))
        for pod in pods:
            if pod.uid in found.no_claim:
                why = claim_refused(self.capacity.refused[pod.uid])
                return Plan(why=PodFitsNowhere(pod.key, why))
        counts_on = frozenset(found.placed.values())
        if found.claims:
            marks = replacement_marks(one.claim for one in leaving)
            new = self.capacity.new_claims(found.claims, pods, marks)
            return Plan(claims=tuple(new), counts_on=counts_on)
        own = {name for one in leaving for name in one.own}
        awaited = sorted((counts_on & self.coming.keys()) - own)
        if awaited:
            return Plan(why=CapacityNotInitialized(tuple(awaited)), passing=True)
        return Plan(counts_on=counts_on)

    def assign_own(
        self,
        bins: _Bins,
        others: Sequence[LeavingNode],
        zones: DomainState,
        settings: Settings,
        now: datetime,
    ) -> Steps[list[Pod]]:
        """Pods of nodes with the same replacements are assigned to these; returns those that do not fit."""
        pods, own = pods_of(others), others[0].own
        if not own:
            return pods
        nodes = bins.nodes(own)
        problem = self.capacity.problem(pods, zones, settings, now, nodes=nodes, templates=())
        assigned = (yield from packing(problem)).placed
        bins.assign(assigned, pods)
        return [pod for pod in pods if pod.uid not in assigned]

    def settled(
        self, settings: Settings, now: datetime
    ) -> Steps[tuple[tuple[ExistingNode, ...], Packing]]:
        """In steps: all nodes, with every pod that waits for capacity where it fits; nodes that leave are closed.

        And which new nodes these pods need.
        """
        zones = self.capacity.zones.at(settings, now)
        bins, left = yield from Reservations().without(self, (), zones, settings, now)
        found = yield from self._assigned(bins, left, (), zones, settings, now)
        bins.close(*(one.node.name for one in self.leaving))
        return bins.nodes(), found

    def empty_bins(self, now: datetime) -> _Bins:
        bins = _Bins(self.capacity.nodes)
        bins.close(*(name for name, at in self.late_at.items() if at <= now))
        return bins

    def _assigned(
        self,
        bins: _Bins,
        left: Iterable[Pod],
        leaving: Sequence[LeavingNode],
        zones: DomainState,
        settings: Settings,
        now: datetime,
    ) -> Steps[Packing]:
        """Assigns all other pods; the answer says which new nodes they need."""
        demands = self.waiting_beside(leaving)
        first = [*left, *(demand.pod for demand in demands if demand.needs_capacity(now))]
        found = yield from self.pack_waiting(first, bins, demands, zones, settings, now)
        bins.assign(found.placed, first)
        # Those that stay for now come later, and count where they fit.
        second = [demand.pod for demand in demands if not demand.needs_capacity(now)]
        if second:
            stay = self.capacity.problem(
                second, zones, settings, now, nodes=bins.nodes(), templates=()
            )
            bins.assign((yield from packing(stay)).placed, second)
        return found

    def waiting_beside(self, leaving: Sequence[LeavingNode]) -> list[Demand]:
        """The pods that need capacity, and are not of a node that is being replaced, or of these."""
        known = {pod.uid for pod in pods_of((*others_than(leaving, self.leaving), *leaving))}
        return [demand for demand in self.capacity.demands if demand.pod.uid not in known]

    def pack_waiting(
        self,
        pods: Sequence[Pod],
        bins: _Bins,
        demands: Iterable[Demand],
        zones: DomainState,
        settings: Settings,
        now: datetime,
    ) -> Steps[Packing]:
        """Where pods go that get capacity before others, and which new nodes they need.

        Pods whose launch breaker is open, or whose claim is never created, are pending for long; for pods that stay with
        a node that is consolidated, and for those for which others leave room in a moment, nothing is launched at all: no
        command waits for them.
        """
        if not pods:  # A packing reads every node, and mostly no pod is pending.
            return Packing(placed={}, claims=(), unplaced={})
        no_claim, _ = without_claims(self.history, settings, now)
        no_claim |= {one.pod.uid for one in demands if later(one.since, WAITED_FOR) <= now}
        no_claim |= {one.pod.uid for one in self.capacity.demands if one.only_fitting}
        nodes = bins.nodes()
        problem = self.capacity.problem(pods, zones, settings, now, no_claim, nodes=nodes)
        found = yield from packing(problem)
        if not found.claims:
            return found
        soon = yield from Vacating(self.capacity, zones, settings, now).coming(found, nodes)
        if any(not soon.keys() >= set(claim.pods) for claim in found.claims):
            return found
        return msgspec.structs.replace(found, claims=(), no_claim=found.no_claim | soon.keys())


class Reservations:
    """Pods of nodes being replaced are assigned to their replacements: worked out once for many plans.

    Nearly always nodes that are replaced have nothing to do with each other. Then the bins without
    one of them are the bins of all, with the few nodes that concern it as they were before.
    """

    def __init__(self) -> None:
        self._empty: _Bins | None = None
        self._full: _Bins | None = None
        self._left: dict[str, list[Pod]] = {}
        #: How many replaced nodes each node concerns.
        self._concerned: Counter[str] = Counter()
        #: Whether pods that wait need new nodes, whichever node goes.
        self._need_new_nodes: bool | None = None
        #: Nodes that pods fit on which wait for capacity.
        self._expected: frozenset[str] | None = None
        #: When pods are gone that leave room for others.
        self._vacating: tuple[datetime, ...] | None = None
        #: When the first of the pods that they wait for is gone.
        self.vacated_by: datetime | None = None
        #: Pods that fit nowhere by themselves.
        self.nowhere = Nowhere()
        #: Pods that their spread keeps from every node.
        self.unspread = Unspread()
        #: Of this pass: nodes that terminate or reboot without a plan of where their pods go.
        self.given_up: set[str] = set()
        #: By commands of this pass: nodes that their pods were planned onto.
        self.counted_on: set[str] = set()

    def vacating(self, simulation: Simulation, now: datetime) -> Steps[tuple[datetime, ...]]:
        """When pods are gone that leave room for others that wait, or these wait for them no more."""
        if self._vacating is None:
            capacity = simulation.capacity
            self._vacating = yield from vacating_instants(capacity.nodes, capacity.demands, now)
        return self._vacating

    def need_new_nodes(
        self, simulation: Simulation, zones: DomainState, settings: Settings, now: datetime
    ) -> Steps[bool]:
        """Whether pods that wait need new nodes even if no node goes: then they get these first, whichever would go.

        Of thousands of pods that is asked once for all candidates.
        """
        if self._need_new_nodes is None:
            demands = simulation.waiting_beside(())
            waiting = [one.pod for one in demands if one.needs_capacity(now)]
            if len(waiting) <= PODS_MAX:
                self._need_new_nodes = False  # Each plan asks the index.
            else:
                full, _ = yield from self._assign_all(simulation, zones, settings, now)
                first = simulation.pack_waiting(waiting, full, demands, zones, settings, now)
                self._need_new_nodes = bool((yield from first).claims)
        return self._need_new_nodes

    def expected(
        self, simulation: Simulation, zones: DomainState, settings: Settings, now: datetime
    ) -> Steps[frozenset[str]]:
        """Names of the nodes that the scheduler may bind pods to which wait for capacity, by now or in a moment."""
        if self._expected is None:
            full, _ = yield from self._assign_all(simulation, zones, settings, now)
            known = {pod.uid for one in simulation.leaving for pod in one.pods}
            waiting = [pod for pod in simulation.capacity.waiting(now) if pod.uid not in known]
            waiting += [pod for pods in self._left.values() for pod in pods]
            capacity = simulation.capacity
            vacated = yield from vacating(full.nodes(), capacity.demands, now, capacity.preempted)
            problem = simulation.capacity.problem(
                waiting, zones, settings, now, nodes=vacated.nodes
            )
            placed = (yield from packing(problem)).placed
            self._expected = frozenset(placed.values())
            self.vacated_by = min(vacated.by.values(), default=None)
        return self._expected

    def _assign_all(
        self, simulation: Simulation, zones: DomainState, settings: Settings, now: datetime
    ) -> Steps[tuple[_Bins, _Bins]]:
        """The bins with the pods of all nodes that are being replaced, and without."""
        if self._full is None or self._empty is None:
            full = simulation.empty_bins(now)
            for group in grouped(simulation.leaving):
                left = yield from simulation.assign_own(full, group, zones, settings, now)
                for one in group:
                    self._left[one.claim.uid] = _among(one.pods, left)
                    self._concerned.update(_concerned(one))
            self._empty, self._full = simulation.empty_bins(now), full
        return self._full, self._empty

    def without(
        self,
        simulation: Simulation,
        leaving: Sequence[LeavingNode],
        zones: DomainState,
        settings: Settings,
        now: datetime,
    ) -> Steps[tuple[_Bins, list[Pod]]]:
        """The bins with all other pods assigned, and the pods that do not fit; its nodes take no pods."""
        full, empty = yield from self._assign_all(simulation, zones, settings, now)
        uids = {one.claim.uid for one in leaving}
        own: Counter[str] = Counter()
        for one in simulation.leaving:
            if one.claim.uid in uids:
                own.update(_concerned(one))
        names = {one.node.name for one in leaving}
        if any(self._concerned[name] > own[name] for name in names | own.keys()):
            return (yield from self._slowly(simulation, leaving, zones, settings, now))
        bins = full.copy()
        bins.restore(own, empty)
        bins.close(*names, *self.given_up)
        left = (pods for uid, pods in self._left.items() if uid not in uids)
        return bins, [pod for pods in left for pod in pods]

    def _slowly(
        self,
        simulation: Simulation,
        leaving: Sequence[LeavingNode],
        zones: DomainState,
        settings: Settings,
        now: datetime,
    ) -> Steps[tuple[_Bins, list[Pod]]]:
        bins = simulation.empty_bins(now)
        bins.close(*(one.node.name for one in leaving), *self.given_up)
        left: list[Pod] = []
        for group in grouped(others_than(leaving, simulation.leaving)):
            left += yield from simulation.assign_own(bins, group, zones, settings, now)
        return bins, left


def pods_of(leaving: Iterable[LeavingNode]) -> list[Pod]:
    return [pod for one in leaving for pod in one.pods]


def others_than(some: Iterable[LeavingNode], leaving: Iterable[LeavingNode]) -> list[LeavingNode]:
    uids = {one.claim.uid for one in some}
    return [one for one in leaving if one.claim.uid not in uids]


def grouped(leaving: Iterable[LeavingNode]) -> list[list[LeavingNode]]:
    """Nodes that have the same replacements, together."""
    found: dict[tuple[str, ...], list[LeavingNode]] = {}
    for one in leaving:
        found.setdefault(one.own or (one.claim.uid,), []).append(one)
    return list(found.values())


def _among(pods: Iterable[Pod], some: Iterable[Pod]) -> list[Pod]:
    uids = {pod.uid for pod in some}
    return [pod for pod in pods if pod.uid in uids]


def _concerned(leaving: LeavingNode) -> set[str]:
    return {leaving.node.name, *leaving.own, *(pod.spec.node_name for pod in leaving.pods)}


class _Bins:
    """All nodes, while pods are assigned to them."""

    def __init__(self, nodes: Iterable[ExistingNode]) -> None:
        self._nodes = {node.name: node for node in nodes}

    def copy(self) -> _Bins:
        return _Bins(self._nodes.values())

    def restore(self, names: Iterable[str], former: _Bins) -> None:
        """These nodes are again as they were in other bins."""
        for name in names:
            if name in self._nodes:
                self._nodes[name] = former._nodes[name]

    def nodes(self, only: Iterable[str] | None = None) -> tuple[ExistingNode, ...]:
        if only is None:
            return tuple(self._nodes.values())
        return tuple(self._nodes[name] for name in only if name in self._nodes)

    def close(self, *gone: str) -> None:
        """Unschedulable, but running pods still count towards topology until they are evicted."""
        for name in gone:
            if name in self._nodes:
                self._nodes[name] = msgspec.structs.replace(self._nodes[name], closed=True)

    def assign(self, placed: Mapping[str, str], pods: Iterable[Pod]) -> None:
        """``placed``: node names by pod UID."""
        for pod in pods:
            if pod.uid in placed:
                self._leave(pod)
                name = placed[pod.uid]
                self._nodes[name] = self._nodes[name].with_pod(pod)

    def _leave(self, pod: Pod) -> None:
        old = self._nodes.get(pod.spec.node_name)
        if old is not None:
            kept = tuple(other for other in old.pods if other.uid != pod.uid)
            self._nodes[old.name] = msgspec.structs.replace(old, pods=kept)


def simulation_in(snapshot: Snapshot, protection_clock: str) -> Simulation:
    demands = pods_to_schedule(snapshot, protection_clock)
    new = [claim for claim in snapshot.claims.values() if not claim.initialized]
    coming = {room_of(claim, snapshot): claim for claim in new}
    late = {name: initialized_until(claim) for name, claim in coming.items()}
    return Simulation(
        capacity=capacity_in(snapshot, demands),
        leaving=tuple(_leaving_nodes(snapshot)),
        late_at={name: at for name, at in sorted(late.items()) if at is not None},
        coming={name: coming[name].created_at for name in sorted(coming)},
        history=remembered_launches(snapshot, (one.pod for one in demands)),
        launch_times=launch_times(snapshot),
    )


def _leaving_nodes(snapshot: Snapshot) -> Iterable[LeavingNode]:
    for command in snapshot.once(commands_under_way):
        if command.node is not None:
            pods = snapshot.pods_on(command.node.name).values()
            own = [room_of(one, snapshot) for _, one in command.replacements if one is not None]
            yield leaving_node(command.claim, command.node, pods, own)


def leaving_node(
    claim: NodeClaim, node: Node, pods: Iterable[Pod], own: Iterable[str] = ()
) -> LeavingNode:
    there = sorted((pod for pod in pods if not pod.finished), key=lambda pod: pod.uid)
    moving = tuple(filter(is_reschedulable, there))
    staying = tuple(pod for pod in there if not is_reschedulable(pod))
    return LeavingNode(claim, node, moving, tuple(own), staying)


def waits_for_limits(packing: Packing, pool: str) -> bool:
    """Whether a pod is pending because of the pool's limits."""
    return any(
        refusal.pool == pool and refusal.why is Why.LIMIT_REACHED
        for unplaced in packing.unplaced.values()
        for refusal in unplaced.refusals
    )


def _credited(templates: Sequence[PoolTemplate], leaving: LeavingNode) -> list[PoolTemplate]:
    """The capacity of the terminating node is free under its pool's limits."""
    back = capacity_of(leaving.claim, leaving.node.capacity)
    return [
        msgspec.structs.replace(
            template,
            remaining={name: left + back.get(name, 0) for name, left in template.remaining.items()},
        )
        if template.pool == leaving.claim.pool_name and template.remaining is not None
        else template
        for template in templates
    ]
