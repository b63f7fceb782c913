"""What the gates have to know of a pool's breaker and of failure domains (``core/gates``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from tenure.core.facts import Fact
from tenure.core.gates.gates import GateFacts
from tenure.core.health.breaker import Breaker
from tenure.core.health.domains import Probe
from tenure.core.health.facts import CircuitBreakerOpen
from tenure.core.health.health import Health, HealthView, Member, examine, limit_of
from tenure.core.health.outage import domains_of
from tenure.core.windows.windows import windows_change_at
from tenure.model.settings import Settings


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
            broken=self._view.broken,
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
