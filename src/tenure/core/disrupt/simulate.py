"""Where the pods of a node would go if it went, and which new nodes that takes.

The same packing as for pending pods, but everybody keeps what is his. In this order:

1. whoever is being replaced, or drained after that, has the places that were launched for him;
2. then come pods that wait, and pods of other nodes that leave: where those need new nodes they
   get them first, which takes seconds; those whose launch breaker is open may wait for an hour,
   and nobody waits for them;
3. what is left is for the node in question: rooms that are there, the ones that were launched for
   it, and new ones.

A room that is not initialized yet may be taken by others, or never come: unless it was launched
for it, the node does not go before it is there, and one that takes too long is not counted on.

The node that goes takes nobody. Its own size is free again under its pool's limits, unless pods
wait for just that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from tenure.core.claim.ownership import room_of
from tenure.core.disrupt.command import commands_under_way, replacement_marks
from tenure.core.health.domains import Look
from tenure.core.health.readiness import initialized_until
from tenure.core.launchbreaker.breaker import without_claims
from tenure.core.launchbreaker.history import History, remembered_launches
from tenure.core.pool.lookup import capacity_of
from tenure.core.provision.demand import is_reschedulable, pods_to_place
from tenure.core.provision.nodecache import Rooms
from tenure.core.provision.placement import NewClaim, Places, places_in
from tenure.core.repair.domains import DomainState
from tenure.core.repair.readiness import initialized_until
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.packing.demand.problem import ExistingNode, PoolTemplate
from tenure.packing.pack import pack
from tenure.packing.result import Packing, Why


class LeavingNode(msgspec.Struct, frozen=True):
    """A node that goes, or would: whom it leaves without a place, and what was launched for him."""

    claim: NodeClaim
    node: Node
    pods: tuple[Pod, ...]
    #: Names of nodes; of claims that have none yet.
    own: tuple[str, ...] = ()


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    claims: tuple[NewClaim, ...] = ()
    #: Why there is none; empty when there is one.
    why: str = ""
    #: Whether that passes by itself, soon.
    passing: bool = False
    #: When the same question may have another answer although nothing happens.
    changes_at: datetime | None = None


class Simulation(msgspec.Struct, frozen=True, kw_only=True):
    """What every command depends on."""

    places: Places
    #: Everybody who is being replaced.
    leaving: tuple[LeavingNode, ...]
    #: By the name of a node that is Ready and not initialized: from when on it is not counted on.
    late_at: Mapping[str, datetime]
    #: Names of nodes that are not initialized.
    coming: frozenset[str]
    #: What earlier launches for the pods that wait came to.
    history: History = History()

    def plan(
        self,
        leaving: LeavingNode,
        settings: Settings,
        now: datetime,
        *,
        credit: bool = True,
        reservations: Reservations | None = None,
    ) -> Plan:
        """``credit``: what goes makes room under its pool's limits.

        ``reservations``: shared by all plans of one look, so that it is worked out once for all.
        """
        if not leaving.pods:
            return Plan()  # Nobody has to move.
        zones = self.places.zones.at(settings, now)
        _, breakers_change = without_claims(self.history, settings, now)
        instants = [*self.places.instants(zones), *self.late_at.values(), *breakers_change]
        changes_at = min((at for at in instants if at > now), default=None)
        if unknown := self.places.unknown:
            return Plan(why=unknown, passing=True, changes_at=changes_at)
        reservations = reservations or Reservations()
        table, left = reservations.without(self, leaving, zones, settings, now)
        before = self._seated(table, left, leaving, zones, settings, now)
        if before.claims:
            why = "pods that wait get their nodes first"
            return Plan(why=why, passing=True, changes_at=changes_at)
        templates: Sequence[PoolTemplate] = self.places.templates
        if credit and not _waits_for_room(before, leaving.claim.pool_name):
            templates = _credited(templates, leaving)
        problem = self.places.problem(leaving.pods, zones, settings, now)
        found = pack(
            msgspec.structs.replace(problem, nodes=table.nodes(), templates=tuple(templates))
        )
        plan = self._told(leaving, found)
        return msgspec.structs.replace(plan, changes_at=changes_at)

    def _told(self, leaving: LeavingNode, found: Packing) -> Plan:
        for pod in leaving.pods:
            if (unplaced := found.unplaced.get(pod.uid)) is not None:
                return Plan(why=f"there is no place for its pod {pod.key}: {unplaced.message}")
        for pod in leaving.pods:
            if pod.uid in found.no_claim:
                why = refusal_text(self.places.refused[pod.uid])
                return Plan(why=f"there is no place for its pod {pod.key}: {why}")
        if found.claims:
            marks = replacement_marks(leaving.claim)
            return Plan(claims=tuple(self.places.new_claims(found.claims, leaving.pods, marks)))
        awaited = sorted((set(found.placed.values()) & self.coming) - set(leaving.own))
        if awaited:
            why = f"its pods fit {', '.join(awaited)}, which is not initialized yet"
            return Plan(why=why, passing=True)
        return Plan()

    def seat_own(
        self,
        table: _Table,
        other: LeavingNode,
        zones: DomainState,
        settings: Settings,
        now: datetime,
    ) -> list[Pod]:
        """Its pods take the places that were launched for them; those for whom there is none."""
        problem = self.places.problem(other.pods, zones, settings, now)
        own = msgspec.structs.replace(problem, nodes=table.nodes(other.own), templates=())
        seated = pack(own).placed if other.own else {}
        table.seat(seated, other.pods)
        return [pod for pod in other.pods if pod.uid not in seated]

    def empty_table(self, now: datetime) -> _Table:
        table = _Table(self.places.nodes)
        table.close(*(name for name, at in self.late_at.items() if at <= now))
        return table

    def _seated(
        self,
        table: _Table,
        left: Iterable[Pod],
        leaving: LeavingNode,
        zones: DomainState,
        settings: Settings,
        now: datetime,
    ) -> Packing:
        """Everybody else has his place; what is still missing is in the answer."""
        others = (one for one in self.leaving if one.claim.uid != leaving.claim.uid)
        known = {pod.uid for one in (*others, leaving) for pod in one.pods}
        demands = [demand for demand in self.places.demands if demand.pod.uid not in known]
        first = [*left, *(demand.pod for demand in demands if demand.needs_place(now))]
        # Pods whose launch breaker is open wait for long: nobody else waits for them.
        no_claim, _ = without_claims(self.history, settings, now)
        problem = self.places.problem(first, zones, settings, now, no_claim)
        packing = pack(msgspec.structs.replace(problem, nodes=table.nodes()))
        table.seat(packing.placed, first)
        # Those that stay for now come later, and count where there is room for them.
        second = [demand.pod for demand in demands if not demand.needs_place(now)]
        if second:
            problem = self.places.problem(second, zones, settings, now)
            stay = msgspec.structs.replace(problem, nodes=table.nodes(), templates=())
            table.seat(pack(stay).placed, second)
        return packing


class Reservations:
    """Pods of nodes being replaced are seated on their replacements: worked out once for many plans.

    Nearly always nodes that are replaced have nothing to do with each other. Then a table without
    one of them is the table of all, with the few nodes that concern it as they were before.
    """

    def __init__(self) -> None:
        self._empty: _Table | None = None
        self._full: _Table | None = None
        self._left: dict[str, list[Pod]] = {}
        #: How many of those who are replaced each node concerns.
        self._concerned: Counter[str] = Counter()

    def without(
        self,
        simulation: Simulation,
        leaving: LeavingNode,
        zones: DomainState,
        settings: Settings,
        now: datetime,
    ) -> tuple[_Table, list[Pod]]:
        """The table at which all others sit, and their pods that do not; its node takes no pods."""
        if self._full is None or self._empty is None:
            self._empty, self._full = simulation.empty_table(now), simulation.empty_table(now)
            for one in simulation.leaving:
                self._left[one.claim.uid] = simulation.seat_own(
                    self._full, one, zones, settings, now
                )
                self._concerned.update(_concerned(one))
        own = next((one for one in simulation.leaving if one.claim.uid == leaving.claim.uid), None)
        names_of_own = _concerned(own) if own is not None else set()
        others = Counter(names_of_own)
        if any(self._concerned[name] > others[name] for name in {leaving.node.name, *names_of_own}):
            return self._slowly(simulation, leaving, zones, settings, now)
        table = self._full.copy()
        table.restore(names_of_own, self._empty)
        table.close(leaving.node.name)
        left = (pods for uid, pods in self._left.items() if uid != leaving.claim.uid)
        return table, [pod for pods in left for pod in pods]

    def _slowly(
        self,
        simulation: Simulation,
        leaving: LeavingNode,
        zones: DomainState,
        settings: Settings,
        now: datetime,
    ) -> tuple[_Table, list[Pod]]:
        table = simulation.empty_table(now)
        table.close(leaving.node.name)
        left: list[Pod] = []
        for other in simulation.leaving:
            if other.claim.uid != leaving.claim.uid:
                left += simulation.seat_own(table, other, zones, settings, now)
        return table, left


def _concerned(leaving: LeavingNode) -> set[str]:
    return {leaving.node.name, *leaving.own, *(pod.spec.node_name for pod in leaving.pods)}


class _Table:
    """All rooms while one after the other takes his seat."""

    def __init__(self, nodes: Iterable[ExistingNode]) -> None:
        self._nodes = {node.name: node for node in nodes}

    def copy(self) -> _Table:
        return _Table(self._nodes.values())

    def restore(self, names: Iterable[str], former: _Table) -> None:
        """These nodes are again as they were at another table."""
        for name in names:
            if name in self._nodes:
                self._nodes[name] = former._nodes[name]

    def nodes(self, only: Iterable[str] | None = None) -> tuple[ExistingNode, ...]:
        if only is None:
            return tuple(self._nodes.values())
        return tuple(self._nodes[name] for name in only if name in self._nodes)

    def close(self, *gone: str) -> None:
        """They take nobody; who runs there counts until he has moved."""
        for name in gone:
            if name in self._nodes:
                self._nodes[name] = msgspec.structs.replace(self._nodes[name], closed=True)

    def seat(self, placed: Mapping[str, str], pods: Iterable[Pod]) -> None:
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


def simulation_in(snapshot: Snapshot, rooms: Rooms, protection_clock: str) -> Simulation:
    demands = pods_to_place(snapshot, protection_clock)
    new = [claim for claim in snapshot.claims.values() if not claim.initialized]
    late = {room_of(claim, snapshot): initialized_until(claim) for claim in new}
    return Simulation(
        places=places_in(snapshot, demands, rooms),
        leaving=tuple(_leaving_nodes(snapshot)),
        late_at={name: at for name, at in sorted(late.items()) if at is not None},
        coming=frozenset(late),
        history=remembered_launches(snapshot, demands),
    )


def _leaving_nodes(snapshot: Snapshot) -> Iterable[LeavingNode]:
    for command in commands_under_way(snapshot):
        if command.node is not None:
            pods = snapshot.pods_on(command.node.name).values()
            own = [room_of(one, snapshot) for _, one in command.replacements if one is not None]
            yield leaving_node(command.claim, command.node, pods, own)


def leaving_node(
    claim: NodeClaim, node: Node, pods: Iterable[Pod], own: Iterable[str] = ()
) -> LeavingNode:
    moving = sorted(filter(is_reschedulable, pods), key=lambda pod: pod.uid)
    return LeavingNode(claim, node, tuple(moving), tuple(own))


def _waits_for_room(packing: Packing, pool: str) -> bool:
    """Whether somebody waits for room under the pool's limits."""
    return any(
        refusal.pool == pool and refusal.why is Why.LIMIT_REACHED
        for unplaced in packing.unplaced.values()
        for refusal in unplaced.refusals
    )


def _credited(templates: Sequence[PoolTemplate], leaving: LeavingNode) -> list[PoolTemplate]:
    """What goes makes room under its pool's limits."""
    back = capacity_of(leaving.claim, leaving.node)
    return [
        msgspec.structs.replace(
            template,
            remaining={name: left + back.get(name, 0) for name, left in template.remaining.items()},
        )
        if template.pool == leaving.claim.pool_name and template.remaining is not None
        else template
        for template in templates
    ]
