"""The breaker of a failure domain: many sick nodes that share a zone, an image or a type.

Held is a domain while three or more sick nodes, of two or more pools, are more than half of all
our nodes there: that is an outage, and new nodes would fare no better. While it is held:

1. nothing is repaired in it, nor given up for a time-out that counts;
2. except for one *probe* at a time, the first ten minutes after it was held. The next comes once
   the probe is gone and a claim that its pool made since is initialized, else half an hour later;
3. a probe that is gone counts as unhealthy until then, and its replacement not at all: its own
   departure must not release the domain;
4. nodes that have just recovered still count for a while, so that those which come back last are
   not repaired the moment half of the others have. In that time there are no probes.

*Held since* is read off the cluster: the earliest instant by which enough of those that are sick
now had fallen ill. Who was probed last stands on the probe's pool (``Permit``), written before
anything is done to the probe: a crash in between resumes with the same node.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final, NamedTuple

import msgspec

from tenure.core.health.breaker import Breaker
from tenure.core.health.poolcount import PoolCount
from tenure.model.api.meta import FOR_EVER, format_time, later
from tenure.model.settings import Settings

#: What makes a domain held.
LEAST_SICK: Final = 3
LEAST_POOLS: Final = 2

#: From when a domain is held to its first probe.
PROBE_AFTER: Final = timedelta(minutes=10)
#: From a probe whose replacement does not come up to the next.
PROBE_AGAIN: Final = timedelta(minutes=30)
#: How long a node that has recovered counts as if it had not.
SETTLES: Final = timedelta(minutes=10)

ZONE, IMAGE, TYPE = "zone", "image", "instance-type"


class Domain(NamedTuple):
    """What nodes share that may fail as a whole."""

    kind: str
    value: str

    def __str__(self) -> str:
        return f"{self.kind}={self.value}"

    @property
    def mark(self) -> str:
        """In an annotation, where blanks and commas separate."""
        return str(self).replace(" ", "_").replace(",", "_")


class Patient(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node that is sick, may soon count as sick, or was so until lately."""

    claim: str
    #: Empty for a claim that a person made without one.
    pool: str
    #: From when on it has been sick. Of one that boots: when its TTL ends, and it counts.
    since: datetime
    booting: bool = False
    #: When it recovered; None: it has not.
    well_at: datetime | None = None
    #: It was the probe, and has left: until when it counts all the same; None: it is there.
    left_until: datetime | None = None
    #: When it would be repaired for a condition, or given up, if nothing held it; None: never.
    repaired_at: datetime | None = None
    given_up_at: datetime | None = None

    def sick_at(self, now: datetime) -> bool:
        if self.left_until is not None:
            return now < self.left_until
        return self.well_at is None and (not self.booting or self.since <= now)

    def settles_at(self) -> datetime | None:
        return None if self.well_at is None else later(self.well_at, SETTLES)

    def due_at(self, settings: Settings) -> datetime | None:
        asked = [self.given_up_at, self.repaired_at if settings.node_repair else None]
        return min((at for at in asked if at is not None), default=None)


class Permit(msgspec.Struct, frozen=True, kw_only=True):
    """The last probe of a pool, as it is written on the pool."""

    pool: str
    claim: str = ""
    #: Their marks.
    domains: tuple[str, ...] = ()
    #: None: what is written there cannot be read, so that pool is not probed.
    at: datetime | None = None
    #: The probe is gone, and a claim that the pool made since is initialized.
    answered: bool = False

    @property
    def ends_at(self) -> datetime | None:
        return None if self.at is None else later(self.at, PROBE_AGAIN)

    def open_at(self, now: datetime) -> bool:
        """Whether its outcome is still waited for."""
        return self.ends_at is None or (not self.answered and now < self.ends_at)


class Ward(msgspec.Struct, frozen=True):
    """A pool as its own breaker sees it, which a probe does not get around."""

    patients: tuple[Patient, ...]
    count: PoolCount
    limit: str | int

    def breaker(self, now: datetime) -> Breaker:
        unhealthy = sum(patient.sick_at(now) for patient in self.patients)
        return self.count.breaker(unhealthy, self.limit)

    def tripped_at(self, now: datetime) -> bool:
        return self.breaker(now).tripped


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """A domain that is held."""

    domain: Domain
    sick: int
    recovered: int
    total: int
    pools: int
    #: None: only because of those that have just recovered.
    since: datetime | None
    #: Claims that were tried and have left, and whose replacement is not up yet.
    left: tuple[str, ...] = ()
    #: … until when, if nothing changes.
    until: datetime | None = None

    @property
    def probed_from(self) -> datetime | None:
        return None if self.since is None else later(self.since, PROBE_AFTER)

    def __str__(self) -> str:
        verb = "is" if self.sick == 1 else "are"
        sick = (
            f"{self.sick} of the {self.total} nodes with {self.domain}, in {self.pools} pools, "
            f"{verb} sick"
        )
        if self.left:
            sick += f", and the replacement of {', '.join(self.left)} is not initialized"
            return f"{sick}: its departure releases nothing"
        if self.since is not None:
            return f"{sick} since {format_time(self.since)}: that is rarely {self.sick} sick nodes"
        assert self.until is not None
        return (
            f"{sick}, and {self.recovered} have just recovered: nothing is repaired there before "
            f"{format_time(self.until)}"
        )


class Outbreak(msgspec.Struct, frozen=True):
    """The patients of a domain that is held, or may come to be without anything changing."""

    domain: Domain
    #: All our nodes there, but for those that may be the replacement of a probe that has left.
    total: int
    patients: tuple[Patient, ...]
    #: How many these are: they count once the probe does not any more.
    stand_ins: int = 0

    def held_at(self, now: datetime) -> Hold | None:
        sick = sorted(
            (p for p in self.patients if p.sick_at(now)), key=lambda p: (p.since, p.claim)
        )
        recovered = [p for p in self.patients if (at := p.settles_at()) is not None and now < at]
        counted = [*sick, *recovered]
        left = tuple(p.claim for p in sick if p.left_until is not None)
        total = self.total if left else self.total + self.stand_ins
        if not is_held(counted, total):
            return None
        return Hold(
            domain=self.domain,
            sick=len(sick) - len(left),
            recovered=len(recovered),
            total=self.total + self.stand_ins,
            pools=_pools(counted),
            since=_held_since(sick, total),
            until=_settled_at(sick, recovered, total),
            left=left,
        )


def _settled_at(
    sick: Sequence[Patient], recovered: Sequence[Patient], total: int
) -> datetime | None:
    """When the recovered ones no longer hold it; None where the sick ones do without them."""
    if is_held(sick, total):
        return None
    by_end = sorted(recovered, key=lambda p: (p.settles_at() or FOR_EVER, p.claim))

    def is_settled(count: int) -> bool:
        return not is_held([*sick, *by_end[count:]], total)

    return by_end[bisect_left(range(len(by_end)), True, key=is_settled) - 1].settles_at()


def is_held(patients: Collection[Patient], total: int) -> bool:
    many = len(patients) >= LEAST_SICK and 2 * len(patients) > total
    return many and _pools(patients) >= LEAST_POOLS


def _pools(patients: Iterable[Patient]) -> int:
    return len({patient.pool for patient in patients if patient.pool})


def _held_since(sick: Sequence[Patient], total: int) -> datetime | None:
    """``sick`` in the order in which they fell ill; None where they are not enough."""
    if not is_held(sick, total):
        return None
    counts = range(len(sick) + 1)
    return sick[bisect_left(counts, True, key=lambda n: is_held(sick[:n], total)) - 1].since


class Domains(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Everything that the breakers of domains depend on."""

    outbreaks: tuple[Outbreak, ...] = ()
    permits: tuple[Permit, ...] = ()
    #: The pools that have patients in them.
    wards: Mapping[str, Ward] = {}

    def about(self, domains: Iterable[Domain]) -> Domains:
        """All of it for who is in one of these, and nothing for others.

        Who is tried next in one domain follows from all that have patients in common with it.
        """
        if not self.outbreaks:
            return NOTHING
        concerned = set(domains)
        return self if any(o.domain in concerned for o in self.outbreaks) else NOTHING

    def zones(self) -> Domains:
        """As much of it as new claims depend on, which avoid zones that are held."""
        return Domains(outbreaks=tuple(o for o in self.outbreaks if o.domain.kind == ZONE))

    def at(self, settings: Settings, now: datetime) -> Look:
        """Pool after pool asks for the same instant, so the last answer is kept."""
        known: Look | None = self.__dict__.get(_LAST)
        if known is None or not known.is_at(settings, now):
            domains = self if settings.repair_domain_breaker else NOTHING
            known = self.__dict__[_LAST] = Look(domains, settings, now)
        return known


NOTHING: Final = Domains()
_LAST: Final = "last look"


class Look:
    """The domains at one instant."""

    def __init__(self, domains: Domains, settings: Settings, now: datetime) -> None:
        self._domains, self._settings, self._now = domains, settings, now
        self.holds: Final = tuple(
            hold for o in domains.outbreaks if (hold := o.held_at(now)) is not None
        )
        self._of: Final = {hold.domain: hold for hold in self.holds}
        #: By the patient's claim: what holds it.
        self._held: dict[str, list[Hold]] = {}
        for outbreak in domains.outbreaks:
            if (held := self._of.get(outbreak.domain)) is not None:
                for patient in outbreak.patients:
                    self._held.setdefault(patient.claim, []).append(held)
        self._open = [permit for permit in domains.permits if permit.open_at(now)]
        self._permitted = {permit.claim: permit for permit in self._open if permit.claim}
        self._chosen = self._choose()

    def is_at(self, settings: Settings, now: datetime) -> bool:
        return self._now == now and self._settings is settings

    @cached_property
    def changes_at(self) -> datetime | None:
        """Before then nothing here changes by itself."""
        return min((at for at in self._instants() if at > self._now), default=None)

    def holding(self, domains: Iterable[Domain]) -> str:
        """Why nothing is repaired that is in these; empty where none of them is held."""
        held = next((self._of[domain] for domain in domains if domain in self._of), None)
        if held is None:
            return ""
        return f"{held}; {next_probe}" if (next_probe := self._next(held)) else str(held)

    def permit(self, claim: str) -> Permit | None:
        """What lets the claim be repaired although a domain holds it."""
        return self._permitted.get(claim)

    def to_permit(self, pool: str) -> Permit | None:
        """The node of the pool that is to be probed next: it is written on the pool first."""
        return self._chosen.get(pool)

    def held_zones(self) -> dict[str, Hold]:
        """By name."""
        return {hold.domain.value: hold for hold in self.holds if hold.domain.kind == ZONE}

    def _next(self, hold: Hold) -> str:
        """When the next probe comes, in words."""
        from_ = hold.probed_from
        if from_ is None:
            return ""
        if self._now < from_:
            return f"one of them is tried at {format_time(from_)}"
        for permit in self._open:
            if hold.domain.mark in permit.domains and permit.ends_at is not None:
                return (
                    f"{permit.claim} is tried since {format_time(permit.at)}, the next once a "
                    f"new node is up, at {format_time(permit.ends_at)} at the latest"
                )
        return "one of them at a time is tried"

    def _choose(self) -> dict[str, Permit]:
        """By pool: who is probed next. At most one of each domain and of each pool."""
        taken = {mark for permit in self._open for mark in permit.domains}
        pools = {permit.pool for permit in self._open}
        chosen: dict[str, Permit] = {}
        for patient in self._candidates():
            marks = tuple(hold.domain.mark for hold in self._held[patient.claim])
            if patient.pool not in pools and taken.isdisjoint(marks):
                taken |= set(marks)
                pools.add(patient.pool)
                permit = Permit(pool=patient.pool, claim=patient.claim, domains=marks)
                chosen[patient.pool] = permit
        return chosen

    def _candidates(self) -> list[Patient]:
        """Those that are due, of the pool with the most sick, so that all pools have their turn.

        Then the longest sick first; who was tried last and is still there comes last.
        """
        if not self.holds:
            return []
        tried = {permit.claim for permit in self._domains.permits}
        found = {p.claim: p for o in self._domains.outbreaks for p in o.patients}
        tripped = {pool for pool, ward in self._domains.wards.items() if ward.tripped_at(self._now)}
        fit = [p for p in found.values() if self._is_fit(p) and p.pool not in tripped]
        sick = Counter(p.pool for p in found.values() if p.sick_at(self._now))
        return sorted(fit, key=lambda p: (p.claim in tried, -sick[p.pool], p.since, p.claim))

    def _is_fit(self, patient: Patient) -> bool:
        due_at = patient.due_at(self._settings)
        if not patient.pool or due_at is None or due_at > self._now:
            return False
        holds = self._held.get(patient.claim, ())
        begins = [hold.probed_from for hold in holds]
        return bool(holds) and all(at is not None and at <= self._now for at in begins)

    def _instants(self) -> Iterator[datetime]:
        for permit in self._open:
            if permit.ends_at is not None:
                yield permit.ends_at
        for hold in self.holds:
            if hold.probed_from is not None:
                yield hold.probed_from
        for outbreak in self._domains.outbreaks:
            yield from _instants_of(outbreak.patients, self._settings)
        for ward in self._domains.wards.values():
            yield from _instants_of(ward.patients, self._settings)


def _instants_of(patients: Iterable[Patient], settings: Settings) -> Iterator[datetime]:
    for patient in patients:
        if patient.booting:
            yield patient.since
        for at in (patient.settles_at(), patient.left_until, patient.due_at(settings)):
            if at is not None:
                yield at
