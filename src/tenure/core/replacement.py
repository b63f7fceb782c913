"""Where the pods of a node would go if it went, and which new nodes that takes.

The same packing as for pending pods, over everything that needs a place by then: pods that wait,
pods of nodes that are leaving or being replaced, and those of the node in question. That node
takes nobody, and does not count against its pool's limits: for the time of the exchange the pool
may have one node more.

Pods that wait come first: where one of them would share a new node with a pod of ours, we wait
until it has got its own, which takes seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from tenure.core.claims import is_replaced
from tenure.core.demand import is_reschedulable, pods_to_place
from tenure.core.domains import Look
from tenure.core.places import NewClaim, Places, places_in
from tenure.core.pools import capacity_of
from tenure.core.rooms import Rooms
from tenure.model import names
from tenure.model.node import Node
from tenure.model.nodeclaim import NodeClaim
from tenure.model.pod import Pod
from tenure.model.settings import Settings
from tenure.model.snapshot import Snapshot
from tenure.packing.pack import pack
from tenure.packing.problem import ExistingNode, PoolTemplate, Problem


class Exchange(msgspec.Struct, frozen=True):
    """A node that would go, and whom it would leave without a place."""

    claim: NodeClaim
    node: Node
    pods: tuple[Pod, ...]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    claims: tuple[NewClaim, ...] = ()
    #: Why there is none; empty when there is one.
    why: str = ""
    #: Whether that passes by itself, soon.
    passing: bool = False
    #: When the same question may have another answer although nothing happens.
    changes_at: datetime | None = None


class Exchanges(msgspec.Struct, frozen=True):
    """What every exchange depends on."""

    places: Places
    #: Pods of nodes that are being replaced: they will need a place, too.
    moving: tuple[Pod, ...]

    def plan(self, exchange: Exchange, settings: Settings, now: datetime) -> Plan:
        zones = self.places.zones.at(settings, now)
        changes_at = min((at for at in self.places.instants(zones) if at > now), default=None)
        if unknown := self.places.unknown:
            return Plan(why=unknown, passing=True, changes_at=changes_at)
        packing = pack(self._problem(exchange, zones, now))
        ours = {pod.uid for pod in exchange.pods}
        for pod in exchange.pods:
            if (unplaced := packing.unplaced.get(pod.uid)) is not None:
                why = f"there is no place for its pod {pod.key}: {unplaced.message}"
                return Plan(why=why, changes_at=changes_at)
        needed = [planned for planned in packing.claims if ours & set(planned.pods)]
        if any(set(planned.pods) - ours for planned in needed):
            return Plan(why="pods that wait get their nodes first", passing=True)
        claims = self.places.new_claims(needed, {names.REPLACES: exchange.claim.uid})
        return Plan(claims=tuple(claims), changes_at=changes_at)

    def _problem(self, exchange: Exchange, zones: Look, now: datetime) -> Problem:
        everybody = (*self.places.waiting(now), *self.moving, *exchange.pods)
        pods = {pod.uid: pod for pod in everybody}
        return msgspec.structs.replace(
            self.places.problem(pods.values(), zones, now),
            nodes=tuple(_without(self.places.nodes, exchange.node)),
            templates=tuple(_credited(self.places.templates, exchange)),
        )


def exchanges_in(snapshot: Snapshot, rooms: Rooms, protection_clock: str) -> Exchanges:
    demands = pods_to_place(snapshot, protection_clock)
    return Exchanges(places_in(snapshot, demands, rooms), tuple(_moving(snapshot)))


def _credited(templates: Sequence[PoolTemplate], exchange: Exchange) -> list[PoolTemplate]:
    """What goes makes room under its pool's limits."""
    back = capacity_of(exchange.claim, exchange.node)
    return [
        msgspec.structs.replace(
            template,
            remaining={name: left + back.get(name, 0) for name, left in template.remaining.items()},
        )
        if template.pool == exchange.claim.pool_name and template.remaining is not None
        else template
        for template in templates
    ]


def _moving(snapshot: Snapshot) -> list[Pod]:
    found: list[Pod] = []
    for claim in snapshot.claims.values():
        if is_replaced(claim) and not claim.deleting:
            for name in snapshot.nodes_with_provider(claim.provider_id):
                found += filter(is_reschedulable, snapshot.pods_on(name).values())
    return sorted(found, key=lambda pod: pod.uid)


def _without(nodes: tuple[ExistingNode, ...], gone: Node) -> list[ExistingNode]:
    """The node takes nobody; who runs there counts until he has moved."""
    return [
        msgspec.structs.replace(node, closed=True) if node.name == gone.name else node
        for node in nodes
    ]
