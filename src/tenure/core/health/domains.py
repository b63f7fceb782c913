"""The breaker of a failure domain: many unhealthy nodes that share a zone, an image or a type.

A domain is in outage while three or more unhealthy nodes, of two or more pools, are more than half
of all our nodes there: new nodes would fare no better. While it lasts:

1. nothing is repaired in it, nor terminated for a time-out that counts;
2. except for one *probe* at a time, the first ten minutes after it began. The next comes once
   the probe is gone and a claim that its pool made since is initialized, else half an hour later;
3. a probe that is gone counts as unhealthy until then, and its replacement not at all: its own
   termination must not end the outage;
4. nodes that have just recovered still count for a while, so that those which come back last are
   not repaired the moment half of the others have. In that time there are no probes.

*Since when* is derived from the cluster: the earliest instant by which enough of the nodes that are
unhealthy now had become so. The last probe is recorded on its pool (``Probe``) before anything is
done to the node: after a crash in between, repair resumes with the same node.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from typing import Final

import msgspec

from tenure.core.facts import Fact
from tenure.core.health.breaker import Breaker
from tenure.core.health.facts import Domain, FirstProbe, OneProbe, Outage, ProbeUnderWay
from tenure.core.health.poolcount import PoolCount
from tenure.model.api.meta import FOR_EVER, later
from tenure.model.settings import Settings
from tenure.model.values.same import Same

#: What makes an outage.
LEAST_UNHEALTHY: Final = 3
LEAST_POOLS: Final = 2

#: From the beginning of an outage to its first probe.
PROBE_AFTER: Final = timedelta(minutes=10)
#: From a probe whose replacement does not come up to the next.
PROBE_AGAIN: Final = timedelta(minutes=30)
#: How long a node that has recovered counts as if it had not.
SETTLES: Final = timedelta(minutes=10)

ZONE, IMAGE, TYPE = "zone", "image", "instance-type"


class UnhealthyNode(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node that is unhealthy, may soon count as unhealthy, or has recovered recently."""

    claim: str
    #: Empty for a claim that a user made without one.
    pool: str
    #: Since when it has been unhealthy. For a booting node: when its TTL ends, and it counts.
    since: datetime
    booting: bool = False
    #: When it recovered; None: it has not.
    recovered_at: datetime | None = None
    #: It was the probe, and is gone: until when it counts all the same; None: it still exists.
    left_until: datetime | None = None
    #: When it would be repaired for a condition, or terminated for a time-out, if nothing blocked
    #: it; None: never.
    repaired_at: datetime | None = None
    timed_out_at: datetime | None = None

    def unhealthy_at(self, now: datetime) -> bool:
        if self.left_until is not None:
            return now < self.left_until
        return self.recovered_at is None and (not self.booting or self.since <= now)

    def settles_at(self) -> datetime | None:
        return None if self.recovered_at is None else later(self.recovered_at, SETTLES)

    def due_at(self, settings: Settings) -> datetime | None:
        asked = [self.timed_out_at, self.repaired_at if settings.node_repair else None]
        return min((at for at in asked if at is not None), default=None)


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """The last probe of a pool, as recorded on the pool."""

    pool: str
    claim: str = ""
    #: Their marks.
    domains: tuple[str, ...] = ()
    #: None: the record is invalid, so that pool is not probed.
    at: datetime | None = None
    #: The probe is gone, and a claim that the pool made since is initialized.
    answered: bool = False

    @property
    def ends_at(self) -> datetime | None:
        return None if self.at is None else later(self.at, PROBE_AGAIN)

    def open_at(self, now: datetime) -> bool:
        """Whether its result is still unknown."""
        return self.ends_at is None or (not self.answered and now < self.ends_at)


class PoolHealth(msgspec.Struct, frozen=True):
    """The health of a pool for its own circuit breaker, which also applies to probes."""

    unhealthy_nodes: tuple[UnhealthyNode, ...]
    count: PoolCount
    limit: str | int

    def breaker(self, now: datetime) -> Breaker:
        unhealthy = sum(node.unhealthy_at(now) for node in self.unhealthy_nodes)
        return self.count.breaker(unhealthy, self.limit)

    def tripped_at(self, now: datetime) -> bool:
        return self.breaker(now).tripped


def _probed_from(outage: Outage) -> datetime | None:
    """None: it lasts only because of nodes that have just recovered, and there are no probes."""
    return None if outage.since is None else later(outage.since, PROBE_AFTER)


class AffectedDomain(msgspec.Struct, frozen=True):
    """The unhealthy nodes of a domain that is in outage, or may be without any change."""

    domain: Domain
    #: All our nodes there, without those that may be the replacement of a probe that is gone.
    total: int
    unhealthy_nodes: tuple[UnhealthyNode, ...]
    #: The number of these replacements: they count once the probe no longer does.
    stand_ins: int = 0

    def outage_at(self, now: datetime) -> Outage | None:
        unhealthy = sorted(
            (p for p in self.unhealthy_nodes if p.unhealthy_at(now)),
            key=lambda p: (p.since, p.claim),
        )
        recovered = [
            p for p in self.unhealthy_nodes if (at := p.settles_at()) is not None and now < at
        ]
        counted = [*unhealthy, *recovered]
        left = tuple(p.claim for p in unhealthy if p.left_until is not None)
        total = self.total if left else self.total + self.stand_ins
        if not is_outage(counted, total):
            return None
        return Outage(
            domain=self.domain,
            unhealthy=len(unhealthy) - len(left),
            recovered=len(recovered),
            total=self.total + self.stand_ins,
            pools=_pools(p for p in unhealthy if p.left_until is None),
            since=_outage_since(unhealthy, total),
            until=_settled_at(unhealthy, recovered, total),
            left=left,
        )


def _settled_at(
    unhealthy: Sequence[UnhealthyNode], recovered: Sequence[UnhealthyNode], total: int
) -> datetime | None:
    """When the recovered nodes no longer make it an outage; None if the others alone do."""
    if is_outage(unhealthy, total):
        return None
    by_end = sorted(recovered, key=lambda p: (p.settles_at() or FOR_EVER, p.claim))

    def is_settled(count: int) -> bool:
        return not is_outage([*unhealthy, *by_end[count:]], total)

    return by_end[bisect_left(range(len(by_end)), True, key=is_settled) - 1].settles_at()


def is_outage(unhealthy_nodes: Collection[UnhealthyNode], total: int) -> bool:
    many = len(unhealthy_nodes) >= LEAST_UNHEALTHY and 2 * len(unhealthy_nodes) > total
    return many and _pools(unhealthy_nodes) >= LEAST_POOLS


def _pools(unhealthy_nodes: Iterable[UnhealthyNode]) -> int:
    return len({unhealthy_node.pool for unhealthy_node in unhealthy_nodes if unhealthy_node.pool})


def _outage_since(unhealthy: Sequence[UnhealthyNode], total: int) -> datetime | None:
    """``unhealthy`` in the order in which they became unhealthy; None where they are not enough."""
    if not is_outage(unhealthy, total):
        return None
    counts = range(len(unhealthy) + 1)
    return unhealthy[
        bisect_left(counts, True, key=lambda n: is_outage(unhealthy[:n], total)) - 1
    ].since


class Domains(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the breakers of domains depend on."""

    affected: tuple[AffectedDomain, ...] = ()
    probes: tuple[Probe, ...] = ()
    #: The pools with unhealthy nodes in them.
    pool_health: Mapping[str, PoolHealth] = {}

    def about(self, domains: Iterable[Domain]) -> Domains:
        """All of it for nodes in one of these, and nothing for others.

        The next probe of one domain follows from all that have unhealthy nodes in common with it.
        """
        if not self.affected:
            return NOTHING
        concerned = set(domains)
        return self if any(o.domain in concerned for o in self.affected) else NOTHING

    def zones(self) -> Domains:
        """The part that new claims depend on: they avoid zones in outage."""
        return Domains(affected=tuple(o for o in self.affected if o.domain.kind == ZONE))

    def at(self, settings: Settings, now: datetime) -> DomainState:
        """With the breakers of domains switched off, nothing is in outage."""
        return _state(Same(self), Same(settings), now)


NOTHING: Final = Domains()


class DomainState:
    """The domains at one instant."""

    def __init__(self, domains: Domains, settings: Settings, now: datetime) -> None:
        self._domains, self._settings, self._now = domains, settings, now
        self.outages: Final = tuple(
            outage for o in domains.affected if (outage := o.outage_at(now)) is not None
        )
        self._of: Final = {outage.domain: outage for outage in self.outages}
        #: By the claim of an unhealthy node: its outages.
        self._blocked: dict[str, list[Outage]] = {}
        for affected_domain in domains.affected:
            if (found := self._of.get(affected_domain.domain)) is not None:
                for unhealthy_node in affected_domain.unhealthy_nodes:
                    self._blocked.setdefault(unhealthy_node.claim, []).append(found)
        self._open = [probe for probe in domains.probes if probe.open_at(now)]
        self._probed = {probe.claim: probe for probe in self._open if probe.claim}
        self._chosen = self._choose()

    @cached_property
    def changes_at(self) -> datetime | None:
        """When the result may change although no object does."""
        return min((at for at in self._instants() if at > self._now), default=None)

    def outage_of(self, domains: Iterable[Domain]) -> tuple[Fact, ...]:
        """Why nothing in these domains is repaired; empty if none of them is in outage."""
        found = next((self._of[domain] for domain in domains if domain in self._of), None)
        return (found, *self._next(found)) if found is not None else ()

    def probe(self, claim: str) -> Probe | None:
        """The probe that allows the repair of the claim despite an outage."""
        return self._probed.get(claim)

    def next_probe(self, pool: str) -> Probe | None:
        """The node of the pool that is probed next: it is recorded on the pool first."""
        return self._chosen.get(pool)

    def zones_in_outage(self) -> dict[str, Outage]:
        """By name."""
        return {
            outage.domain.value: outage for outage in self.outages if outage.domain.kind == ZONE
        }

    def _next(self, outage: Outage) -> Iterator[Fact]:
        """About the next probe."""
        begins = _probed_from(outage)
        if begins is None:
            return
        if self._now < begins:
            yield FirstProbe(outage.domain, begins)
            return
        for probe in self._open:
            if outage.domain.mark in probe.domains and probe.at is not None:
                yield ProbeUnderWay(probe.claim, probe.at, later(probe.at, PROBE_AGAIN))
                return
        yield OneProbe(outage.domain)

    def _choose(self) -> dict[str, Probe]:
        """By pool: the next probe. At most one of each domain and of each pool."""
        taken = {mark for probe in self._open for mark in probe.domains}
        pools = {probe.pool for probe in self._open}
        chosen: dict[str, Probe] = {}
        for unhealthy_node in self._candidates():
            marks = tuple(outage.domain.mark for outage in self._blocked[unhealthy_node.claim])
            if unhealthy_node.pool not in pools and taken.isdisjoint(marks):
                taken |= set(marks)
                pools.add(unhealthy_node.pool)
                probe = Probe(pool=unhealthy_node.pool, claim=unhealthy_node.claim, domains=marks)
                chosen[unhealthy_node.pool] = probe
        return chosen

    def _candidates(self) -> list[UnhealthyNode]:
        """Nodes that are due, those of the pool with the most unhealthy nodes first.

        Then the longest unhealthy first; the last probe, if it still exists, comes last.
        """
        if not self.outages:
            return []
        probed = {probe.claim for probe in self._domains.probes}
        found = {p.claim: p for o in self._domains.affected for p in o.unhealthy_nodes}
        tripped = {
            pool
            for pool, one_pool in self._domains.pool_health.items()
            if one_pool.tripped_at(self._now)
        }
        fit = [p for p in found.values() if self._is_fit(p) and p.pool not in tripped]
        unhealthy = Counter(p.pool for p in found.values() if p.unhealthy_at(self._now))
        return sorted(fit, key=lambda p: (p.claim in probed, -unhealthy[p.pool], p.since, p.claim))

    def _is_fit(self, unhealthy_node: UnhealthyNode) -> bool:
        due_at = unhealthy_node.due_at(self._settings)
        if not unhealthy_node.pool or due_at is None or due_at > self._now:
            return False
        outages = self._blocked.get(unhealthy_node.claim, ())
        begins = [_probed_from(outage) for outage in outages]
        return bool(outages) and all(at is not None and at <= self._now for at in begins)

    def _instants(self) -> Iterator[datetime]:
        for probe in self._open:
            if probe.ends_at is not None:
                yield probe.ends_at
        for outage in self.outages:
            if (begins := _probed_from(outage)) is not None:
                yield begins
        for affected_domain in self._domains.affected:
            yield from _instants_of(affected_domain.unhealthy_nodes, self._settings)
        for one_pool in self._domains.pool_health.values():
            yield from _instants_of(one_pool.unhealthy_nodes, self._settings)


@lru_cache(4)  # All pools are evaluated for the same instant.
def _state(domains: Same[Domains], settings: Same[Settings], now: datetime) -> DomainState:
    enabled = settings.value.repair_domain_breaker
    return DomainState(domains.value if enabled else NOTHING, settings.value, now)


def _instants_of(
    unhealthy_nodes: Iterable[UnhealthyNode], settings: Settings
) -> Iterator[datetime]:
    for unhealthy_node in unhealthy_nodes:
        if unhealthy_node.booting:
            yield unhealthy_node.since
        for at in (
            unhealthy_node.settles_at(),
            unhealthy_node.left_until,
            unhealthy_node.due_at(settings),
        ):
            if at is not None:
                yield at
