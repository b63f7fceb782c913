"""What the gates have to know of a pool's breaker and of failure domains (``core/gates``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from tenure.core.facts import Fact
from tenure.core.gates.gatefacts import GateFacts
from tenure.core.gates.reasons import REPAIR_TRAITS
from tenure.core.health.breaker import Breaker
from tenure.core.health.domains import Domains, PoolHealth, Probe
from tenure.core.health.facts import CircuitBreakerOpen
from tenure.core.health.health import Health, HealthView, Member, examine, limit_of, unusable
from tenure.core.health.outage import domains_in, domains_of, pool_health_of
from tenure.core.windows.windows import REPAIR_ACTIONS, Windows, windows_change_at, windows_naming
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot


class Breakers:
    """The breaker of one pool and those of its failure domains, at one instant."""

    def __init__(
        self,
        view: HealthView,
        found: Sequence[tuple[Member, Health]],
        settings: Settings,
        now: datetime,
    ) -> None:
        self._view = view
        self._breaker = _breaker(view, found, now)
        self._domains = view.domains.at(settings, now)
        #: When another node stops booting and counts, or a domain or a window changes.
        self.changes_at = min(
            [
                *(at for _, health in found for at in _counts_from(health, now)),
                *(one.since for one in view.others if one.booting and one.since > now),
                *_instants(windows_change_at(view.windows, now)),
                *_instants(self._domains.changes_at),
            ],
            default=None,
        )

    def facts(self, member: Member) -> GateFacts:
        """What the gates have to know of one claim."""
        outage = self._outage(member) if self.probe(member) is None else ()
        pool = self._view.pool
        return GateFacts(
            claim=member.claim,
            node=member.node,
            pool=pool,
            windows=self._view.windows,
            traits=REPAIR_TRAITS,
            broken=self._view.broken,
            left=self._view.left,
            outage=outage,
            breaker=breaker_open(pool.name if pool is not None else "", self._breaker),
            breakers_change_at=self.changes_at,
        )

    def probe(self, member: Member) -> Probe | None:
        """It is the probe of a failure domain: it is repaired in spite of the outage."""
        probe = self._domains.probe(member.claim.name)
        return probe if probe is not None and self._outage(member) else None

    def next_probe(self, pool: str) -> Probe | None:
        """The node of the pool that is to be probed next."""
        return self._domains.next_probe(pool)

    def _outage(self, member: Member) -> tuple[Fact, ...]:
        if member.node is None:
            return ()
        return self._domains.outage_of(domains_of(member.claim, member.node))


def _instants(at: datetime | None) -> list[datetime]:
    return [at] if at is not None else []


def breaker_open(pool: str, found: Breaker) -> CircuitBreakerOpen | None:
    if not found.tripped:
        return None
    return CircuitBreakerOpen(
        pool=pool,
        unhealthy=found.unhealthy,
        total=found.total,
        allowed=found.allowed,
        max_unhealthy=str(found.limit),
    )


class PoolBreakers(msgspec.Struct, frozen=True, kw_only=True):
    """What the gates of repair depend on, for any claim of a pool."""

    pool: NodePool | None
    #: None where there is nothing to say of any claim.
    view: HealthView | None
    health: PoolHealth
    domains: Domains
    #: Maintenance windows that name ``Repair``.
    windows: Windows = ()

    def facts(
        self, claim: NodeClaim, node: Node | None, settings: Settings, now: datetime
    ) -> GateFacts:
        """Also of a claim that the view leaves out, because it is healthy: nothing fails open."""
        if self.view is not None:
            for member in self.view.members:
                if member.claim.uid == claim.uid:
                    return breakers_of(self.view, settings, now).facts(member)
        domains = self.domains.at(settings, now)
        instants = [one.since for one in self.health.unhealthy_nodes if one.booting]
        instants += _instants(domains.changes_at)
        instants += _instants(windows_change_at(self.windows, now))
        return GateFacts(
            claim=claim,
            node=node,
            pool=self.pool,
            windows=self.windows,
            traits=REPAIR_TRAITS,
            broken=unusable(self.pool),
            left=self.view.left if self.view is not None else None,
            outage=domains.outage_of(domains_of(claim, node)) if node is not None else (),
            breaker=breaker_open(claim.pool_name, self.health.breaker(now)),
            breakers_change_at=min((at for at in instants if at > now), default=None),
        )


def pool_breakers(name: str, view: HealthView | None, snapshot: Snapshot) -> PoolBreakers:
    """``view``: in which the claims of the pool are evaluated."""
    return PoolBreakers(
        pool=snapshot.pools.get(name),
        view=view,
        health=pool_health_of(name, snapshot),
        domains=domains_in(snapshot),
        windows=windows_naming(REPAIR_ACTIONS, snapshot),
    )


def breakers_of(view: HealthView, settings: Settings, now: datetime) -> Breakers:
    found = [(one, examine(one.claim, one.node, view.rules)) for one in view.members]
    return Breakers(view, found, settings, now)


def _counts_from(health: Health, now: datetime) -> Iterator[datetime]:
    """When a node that boots begins to count, if nothing changes."""
    if health.boot is not None and health.booting_at(now):
        yield from (at for at in (health.boot.due_at, *health.due()) if at > now)


def _breaker(view: HealthView, found: Sequence[tuple[Member, Health]], now: datetime) -> Breaker:
    unhealthy = sum(
        member.claim.registered and member.node is not None and health.unhealthy_at(now)
        for member, health in found
    )
    unhealthy += sum(other.unhealthy_at(now) for other in view.others)
    return view.count.breaker(unhealthy, limit_of(view.pool))
