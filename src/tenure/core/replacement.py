"""Where the pods of a node would go if it went, and which new nodes that takes.

The same packing as for pending pods, over everything that needs a place by then: pods that wait,
pods of nodes that are leaving or being replaced, and those of the node in question. That node
takes nobody, and does not count against its pool's limits: for the time of the exchange the pool
may have one node more.

Pods that wait come first: where one of them would share a new node with a pod of ours, we wait
until it has got its own, which takes seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from tenure.core.decision import Create
from tenure.core.demand import Demand, is_reschedulable, pods_to_place
from tenure.core.domains import NOTHING, Domains, Look
from tenure.core.newclaim import claim_manifest, claim_name
from tenure.core.outbreaks import domains_in
from tenure.core.pools import capacity_of
from tenure.core.replacing import is_replaced
from tenure.core.rooms import Rooms
from tenure.core.supply import closed_nodes, daemons, nodes_with_room, open_pools, unlisted_pools
from tenure.model import names
from tenure.model.node import Node
from tenure.model.nodeclaim import NodeClaim
from tenure.model.nodepool import NodePool
from tenure.model.offering import OfferingKey, format_price
from tenure.model.pod import Pod
from tenure.model.resource import NODE_CLAIMS
from tenure.model.settings import Settings
from tenure.model.snapshot import Snapshot
from tenure.packing.pack import pack
from tenure.packing.problem import Daemon, ExistingNode, PoolTemplate, Problem
from tenure.packing.result import Packing, PlannedClaim


class Exchange(msgspec.Struct, frozen=True):
    """A node that would go, and whom it would leave without a place."""

    claim: NodeClaim
    node: Node
    pods: tuple[Pod, ...]


class NewClaim(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    #: For a sentence.
    described: str
    create: Create


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    claims: tuple[NewClaim, ...] = ()
    #: Why there is none; empty when there is one.
    why: str = ""
    #: Whether that passes by itself, soon.
    passing: bool = False
    #: When the same question may have another answer although nothing happens.
    changes_at: datetime | None = None


class Market(msgspec.Struct, frozen=True, kw_only=True):
    """All room there is and all that could be had."""

    demands: tuple[Demand, ...]
    #: Of nodes that are being replaced: they will need a place, too.
    moving: tuple[Pod, ...]
    nodes: tuple[ExistingNode, ...]
    templates: tuple[PoolTemplate, ...]
    unlisted: tuple[str, ...]
    daemons: tuple[Daemon, ...]
    dry: Mapping[OfferingKey, datetime]
    pools: Mapping[str, NodePool]
    claim_names: frozenset[str]
    #: Zones in which many nodes are sick: new claims keep out of them.
    zones: Domains = NOTHING

    def plan(self, exchange: Exchange, settings: Settings, now: datetime) -> Plan:
        zones = self.zones.at(settings, now)
        changes_at = self._changes_at(zones, now)
        if self.unlisted:
            why = f"the cloud is being asked what it offers for {', '.join(self.unlisted)}"
            return Plan(why=why, passing=True, changes_at=changes_at)
        packing = self._packed(exchange, zones, now)
        ours = {pod.uid for pod in exchange.pods}
        for pod in exchange.pods:
            if (unplaced := packing.unplaced.get(pod.uid)) is not None:
                why = f"there is no place for its pod {pod.key}: {unplaced.message}"
                return Plan(why=why, changes_at=changes_at)
        needed = [planned for planned in packing.claims if ours & set(planned.pods)]
        if any(set(planned.pods) - ours for planned in needed):
            return Plan(why="pods that wait get their nodes first", passing=True)
        return Plan(claims=tuple(self._new(needed, exchange.claim)), changes_at=changes_at)

    def _packed(self, exchange: Exchange, zones: Look, now: datetime) -> Packing:
        waiting = [demand.pod for demand in self.demands if demand.needs_place(now)]
        pods = {pod.uid: pod for pod in (*waiting, *self.moving, *exchange.pods)}
        return pack(
            Problem(
                pods=tuple(pods.values()),
                nodes=tuple(_without(self.nodes, exchange.node)),
                templates=tuple(self._credited(exchange)),
                daemons=self.daemons,
                dry=frozenset(key for key, until in self.dry.items() if until > now),
                avoid=frozenset(zones.held_zones()),
            )
        )

    def _credited(self, exchange: Exchange) -> list[PoolTemplate]:
        """What goes makes room under its pool's limits."""
        back = capacity_of(exchange.claim, exchange.node)
        return [
            msgspec.structs.replace(
                template,
                remaining={
                    name: left + back.get(name, 0) for name, left in template.remaining.items()
                },
            )
            if template.pool == exchange.claim.pool_name and template.remaining is not None
            else template
            for template in self.templates
        ]

    def _new(self, needed: list[PlannedClaim], replaced: NodeClaim) -> list[NewClaim]:
        taken, found = set(self.claim_names), []
        for planned in needed:
            name = claim_name(planned, taken)
            taken.add(name)
            (template,) = (t for t in self.templates if t.pool == planned.pool)
            body = claim_manifest(planned, self.pools[planned.pool], name, template.instance_types)
            body["metadata"]["annotations"][names.REPLACES] = replaced.uid
            described = (
                f"{planned.instance_type} in {planned.zone}, {planned.capacity_type}, "
                f"{format_price(planned.price)}"
            )
            create = Create(resource=NODE_CLAIMS, name=name, body=body)
            found.append(NewClaim(name=name, described=described, create=create))
        return found

    def _changes_at(self, zones: Look, now: datetime) -> datetime | None:
        instants = [*self.dry.values(), *(one.since for one in self.demands if one.leaves)]
        instants += [zones.changes_at] if zones.changes_at is not None else []
        return min((at for at in instants if at > now), default=None)


def market_of(snapshot: Snapshot, rooms: Rooms, protection_clock: str) -> Market:
    templates, _ = open_pools(snapshot)
    return Market(
        demands=tuple(pods_to_place(snapshot, protection_clock)),
        moving=tuple(_moving(snapshot)),
        nodes=(*nodes_with_room(snapshot, rooms), *closed_nodes(snapshot)),
        templates=tuple(templates),
        unlisted=unlisted_pools(templates, snapshot),
        daemons=tuple(daemons(snapshot)),
        dry=dict(snapshot.observations.dry_offerings),
        pools=dict(snapshot.pools),
        claim_names=frozenset(snapshot.claims),
        zones=domains_in(snapshot).zones(),
    )


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
