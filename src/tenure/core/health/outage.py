"""Which nodes of all pools are unhealthy at the same time, and what they share.

The consequences are in ``domains``. A node counts here as in the circuit breaker of its own pool. A
booting node is listed with the instant from which it will count, and a healthy node with the instant
of its recovery, if other nodes of its domain are unhealthy.

Nearly always no node is unhealthy, and that is known at once. Otherwise only nodes are examined that
may be unhealthy or have changed since their boot, and the nodes of a domain are counted only as far
as needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

import msgspec

from tenure.core.health.domains import (
    IMAGE,
    NOTHING,
    SETTLES,
    TYPE,
    ZONE,
    AffectedDomain,
    Domains,
    PoolHealth,
    Probe,
    UnhealthyNode,
    is_outage,
)
from tenure.core.health.facts import Domain
from tenure.core.health.health import examine, limit_of, unusable
from tenure.core.health.poolcount import count_nodes
from tenure.core.health.rules import Rules, rules_of, unhealthy_conditions
from tenure.core.marks.ownership import is_our_node, is_ours
from tenure.core.protect.protection import protection_on
from tenure.model.api import names
from tenure.model.api.meta import BEGINNING, FOR_EVER, later, read_instant
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.cloud.repairs import RepairAction
from tenure.model.snapshot.derived import Derivation
from tenure.model.snapshot.snapshot import Snapshot


class _Located(msgspec.Struct, frozen=True):
    """An unhealthy node with its objects."""

    unhealthy_node: UnhealthyNode
    claim: NodeClaim
    node: Node


def domains_in(snapshot: Snapshot) -> Domains:
    """What the breakers of domains depend on; ``NOTHING`` if no outage is possible."""
    return snapshot.once(_surveyed)


def unhealthy_nodes_in(snapshot: Snapshot) -> tuple[UnhealthyNode, ...]:
    """All nodes that are unhealthy, or will count as unhealthy, with or without a pool."""
    return snapshot.once(_all_unhealthy)


def pool_health_of(pool: str, snapshot: Snapshot) -> PoolHealth:
    """A pool as its own breaker counts it."""
    return _pool_health(pool, unhealthy_nodes_in(snapshot), snapshot)


def _pool_health(
    pool: str, unhealthy_nodes: Iterable[UnhealthyNode], snapshot: Snapshot
) -> PoolHealth:
    return PoolHealth(
        tuple(unhealthy_node for unhealthy_node in unhealthy_nodes if unhealthy_node.pool == pool),
        count_nodes(pool, rules_of(pool, snapshot), snapshot),
        limit_of(snapshot.pools.get(pool)),
    )


def _all_unhealthy(snapshot: Snapshot) -> tuple[UnhealthyNode, ...]:
    return tuple(one.unhealthy_node for one in _Survey(snapshot).located())


def _surveyed(snapshot: Snapshot) -> Domains:
    return _Survey(snapshot).domains()


class _Survey:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._rules: dict[str, Rules] = {}
        self._broken: dict[str, bool] = {}

    def domains(self) -> Domains:
        located = list(self.located())
        if not located:
            return NOTHING
        shared: dict[Domain, list[_Located]] = {}
        for one in (*located, *self._recovered(min(one.unhealthy_node.since for one in located))):
            for domain in domains_of(one.claim, one.node):
                shared.setdefault(domain, []).append(one)
        probes = tuple(self._probes())
        found = (
            self._affected_domain(domain, there, probes) for domain, there in sorted(shared.items())
        )
        affected = tuple(
            affected_domain for affected_domain in found if affected_domain is not None
        )
        if not affected:
            return NOTHING
        pools = sorted({p.pool for o in affected for p in o.unhealthy_nodes if p.pool})
        return Domains(
            affected=affected,
            # Also of pools without nodes there: their last node may have been the probe.
            probes=probes,
            pool_health={
                pool: _pool_health(pool, [b.unhealthy_node for b in located], self._snapshot)
                for pool in pools
            },
        )

    # -- which are unhealthy -------------------------------------------------------------------

    def located(self) -> Iterator[_Located]:
        snapshot = self._snapshot
        for _, node in sorted(snapshot.suspect_nodes().items()):
            claim = snapshot.claim_of(node)
            if claim is None or not claim.registered or not is_ours(claim, snapshot):
                continue
            if len(snapshot.nodes_with_provider(claim.provider_id)) == 1:
                asked = self._of_pool(claim), self._is_broken(claim.pool_name)
                unhealthy_node = snapshot.derived.of(_UNHEALTHY_NODE, node, claim, *asked)
                if unhealthy_node is not None:
                    yield _Located(unhealthy_node, claim, node)

    def _of_pool(self, claim: NodeClaim) -> Rules:
        pool = claim.pool_name
        if pool not in self._rules:
            self._rules[pool] = rules_of(pool, self._snapshot)
        return self._rules[pool]

    def _is_broken(self, pool: str) -> bool:
        """Whether nothing of the pool is repaired: its ``repair`` block is invalid, or, beside Karpenter, it
        has none."""
        if pool not in self._broken:
            found = self._snapshot.pools.get(pool)
            unasked = found is not None and found.spec.repair is None
            unasked = unasked and self._snapshot.beside_karpenter
            self._broken[pool] = unasked or bool(unusable(found))
        return self._broken[pool]

    # -- what they share ---------------------------------------------------------------

    def _recovered(self, begin: datetime) -> Iterator[_Located]:
        """Nodes that recovered recently enough to count with those unhealthy since ``begin``."""
        snapshot = self._snapshot
        for _, node in sorted(snapshot.changed_nodes().items()):
            if not _is_late(node.changed_at, begin):
                continue
            claim = snapshot.claim_of(node)
            if claim is not None and is_ours(claim, snapshot):
                recovered_at = self._recovered_at(claim, node)
                if recovered_at is not None and _is_late(recovered_at, begin):
                    name, pool = claim.name, claim.pool_name
                    unhealthy_node = UnhealthyNode(
                        claim=name, pool=pool, since=recovered_at, recovered_at=recovered_at
                    )
                    yield _Located(unhealthy_node, claim, node)

    def _recovered_at(self, claim: NodeClaim, node: Node) -> datetime | None:
        """Its last recovery; None if it has been healthy since its boot, or is unhealthy now."""
        initialized = claim.condition("Initialized")
        if initialized is None or initialized.status != "True":
            return None
        up_at = initialized.last_transition_time or BEGINNING
        rules = self._of_pool(claim)
        if unhealthy_conditions(node, rules):
            return None
        watched = {"Ready", *(type_ for type_, _ in rules.watched)}
        ends = (c.last_transition_time for c in node.status.conditions if c.type in watched)
        return max((at for at in ends if at is not None and at > up_at), default=None)

    def _affected_domain(
        self, domain: Domain, located: list[_Located], probes: Iterable[Probe]
    ) -> AffectedDomain | None:
        """None if there is no outage, and will be none unless an object changes."""
        departed = [one for one in probes if domain.mark in one.domains and self._has_left(one)]
        counted = [*(one.unhealthy_node for one in located), *map(_departed, departed)]
        unhealthy_nodes = sorted(counted, key=lambda unhealthy_node: unhealthy_node.claim)
        if not is_outage(unhealthy_nodes, 0) or all(
            p.recovered_at is not None for p in unhealthy_nodes
        ):
            return None
        total = stand_ins = 0
        for node in nodes_in(domain, self._snapshot):
            if not is_our_node(node, self._snapshot):
                continue
            if any(self._stands_in(node, probe) for probe in departed):
                stand_ins += 1
                continue
            total += 1
            if not is_outage(unhealthy_nodes, total):
                return None  # Enough healthy nodes: the rest need not be counted.
        return AffectedDomain(domain, total, tuple(unhealthy_nodes), stand_ins)

    # -- which is the probe ------------------------------------------------------------------

    def _probes(self) -> Iterator[Probe]:
        for name, pool in sorted(self._snapshot.pools.items()):
            if (probe := _recorded(name, pool)) is not None:
                yield msgspec.structs.replace(probe, answered=self._is_answered(probe))

    def _is_answered(self, probe: Probe) -> bool:
        if probe.at is None or self._probe(probe) is not None:
            return False
        made = self._snapshot.claims_of_pool(probe.pool).values()
        return any(claim.initialized and _is_since(probe, claim) for claim in made)

    def _probe(self, probe: Probe) -> NodeClaim | None:
        """Its claim, as long as that exists; a newer claim may have the same name."""
        claim = self._snapshot.claims.get(probe.claim)
        return None if claim is None or _is_since(probe, claim) else claim

    def _has_left(self, probe: Probe) -> bool:
        """Whether it is gone, and its replacement is not initialized."""
        if probe.at is None or probe.answered:
            return False
        claim = self._probe(probe)
        return claim is None or not self._snapshot.nodes_with_provider(claim.provider_id)

    def _stands_in(self, node: Node, probe: Probe) -> bool:
        """Whether it may be the replacement of the probe, or one of several."""
        claim = self._snapshot.claim_of(node)
        if claim is None or claim.pool_name != probe.pool or claim.initialized:
            return False
        return _is_since(probe, claim)


def _examined(node: Node, claim: NodeClaim, rules: Rules, broken: bool) -> UnhealthyNode | None:
    """As the circuit breaker of its own pool counts it; ``broken``: that pool repairs nothing."""
    health = examine(claim, node, rules)
    found = [unhealthy for unhealthy in health.unhealthy if unhealthy.counts]
    boot, before_ready = health.boot, health.before_ready
    if not before_ready and not found:
        return None
    repairs = (i for i in found if not (rules.beside and i.action is RepairAction.REBOOT))
    repaired_at = min((i.due_at for i in repairs if i.due_at is not None), default=None)
    since = min((unhealthy.since for unhealthy in found), default=BEGINNING)
    if boot is not None and before_ready:
        since = min(boot.due_at, *health.due()) if found else boot.due_at
    if claim.rebooting or broken:
        repaired_at = None
    timed_out_at = boot.due_at if boot is not None and boot.acts else None
    free_at = _free_at(claim, node)
    return UnhealthyNode(
        claim=claim.name,
        pool=claim.pool_name,
        since=since,
        booting=before_ready,
        repaired_at=_no_sooner(repaired_at, free_at),
        timed_out_at=_no_sooner(timed_out_at, free_at),
    )


#: As its pool's circuit breaker counts a Node; None if it does not.
_UNHEALTHY_NODE: Final = Derivation("unhealthy node", _examined)


def domains_of(claim: NodeClaim, node: Node) -> Iterator[Domain]:
    shared = (
        (ZONE, node.labels.get(names.ZONE, "")),
        (IMAGE, claim.status.image_id),
        (TYPE, node.labels.get(names.INSTANCE_TYPE, "")),
    )
    return (Domain(kind, value) for kind, value in shared if value)


def nodes_in(domain: Domain, snapshot: Snapshot) -> Iterator[Node]:
    if domain.kind == ZONE:
        yield from snapshot.nodes_in_zone(domain.value).values()
    elif domain.kind == TYPE:
        yield from snapshot.nodes_of_type(domain.value).values()
    else:
        for claim in snapshot.claims_of_image(domain.value).values():
            yield from snapshot.nodes_with_provider(claim.provider_id).values()


def _recorded(name: str, pool: NodePool) -> Probe | None:
    """The later of the two where the mode has changed: beside Karpenter its key is another. One that cannot
    be read counts."""
    keys = (names.REPAIR_PROBE, names.PROBE_BESIDE)
    found = [read_permit(name, pool.annotations[key]) for key in keys if key in pool.annotations]
    return max(found, key=lambda one: one.at or FOR_EVER, default=None)


def read_permit(pool: str, written: str) -> Probe:
    """``DOMAIN[,DOMAIN…] CLAIM INSTANT``; anything else is an invalid record."""
    try:
        domains, claim, instant = written.split(" ")
    except ValueError:
        return Probe(pool=pool)
    if (at := read_instant(instant)) is None:
        return Probe(pool=pool)
    return Probe(pool=pool, claim=claim, domains=tuple(domains.split(",")), at=at)


def _departed(probe: Probe) -> UnhealthyNode:
    """A probe that is gone, as the node that has been unhealthy longest."""
    return UnhealthyNode(
        claim=probe.claim, pool=probe.pool, since=BEGINNING, left_until=probe.ends_at
    )


def _is_since(probe: Probe, claim: NodeClaim) -> bool:
    """Whether the claim was made since the probe was chosen."""
    return probe.at is not None and claim.created_at >= probe.at.replace(microsecond=0)


def _free_at(claim: NodeClaim, node: Node) -> datetime:
    """When no veto blocks it; for ever where one does, or it terminates already."""
    if claim.deleting or node.deleting:
        return FOR_EVER
    vetoes = (protection_on(thing, names.DO_NOT_REPAIR) for thing in (node, claim))
    return max((veto.until for veto in vetoes if veto is not None), default=BEGINNING)


def _no_sooner(at: datetime | None, than: datetime) -> datetime | None:
    return None if at is None or than == FOR_EVER else max(at, than)


def _is_late(at: datetime | None, begin: datetime) -> bool:
    """Whether a recovery at ``at`` may still count for a node unhealthy since ``begin``."""
    return at is not None and later(at, SETTLES) > begin
