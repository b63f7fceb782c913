"""Which nodes of all pools are sick at the same time, and what they share.

What follows from that is in ``domains``. Sick is what the breaker of the node's own pool counts;
a node that is still booting stands here with the instant from which it will count, and one that
is well with the instant at which it recovered, where others of its domain are sick.

Nearly always nobody is sick, and that is seen at a glance. Else only those are looked at that are
not plainly well or have changed since their boot, and the nodes of a domain are counted only as
far as it matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from tenure.core.claim.ownership import is_our_node, is_ours
from tenure.core.health.domains import (
    IMAGE,
    NOTHING,
    SETTLES,
    TYPE,
    ZONE,
    Domain,
    Domains,
    Outbreak,
    Patient,
    Permit,
    Ward,
    is_held,
)
from tenure.core.health.health import examine, limit_of, unusable
from tenure.core.health.poolcount import count_nodes
from tenure.core.health.rules import Rules, illnesses
from tenure.core.pool.lookup import rules_of
from tenure.core.protect.protection import protection_on
from tenure.model.api import names
from tenure.model.api.meta import BEGINNING, FOR_EVER, later, read_instant
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.snapshot.snapshot import Snapshot


class _Bed(msgspec.Struct, frozen=True):
    """A patient, and who that is."""

    patient: Patient
    claim: NodeClaim
    node: Node


def domains_in(snapshot: Snapshot) -> Domains:
    """What the breakers of domains depend on; nothing where nothing is held, nor may come to be."""
    return snapshot.once(_surveyed)


def patients_in(snapshot: Snapshot) -> tuple[Patient, ...]:
    """Everybody who is sick, or will count as such, in whatever pool or none."""
    return snapshot.once(_everybody)


def ward_of(pool: str, snapshot: Snapshot) -> Ward:
    """A pool as its own breaker counts it."""
    return _ward(pool, patients_in(snapshot), snapshot)


def _ward(pool: str, patients: Iterable[Patient], snapshot: Snapshot) -> Ward:
    return Ward(
        tuple(patient for patient in patients if patient.pool == pool),
        count_nodes(pool, rules_of(pool, snapshot), snapshot),
        limit_of(snapshot.pools.get(pool)),
    )


def _everybody(snapshot: Snapshot) -> tuple[Patient, ...]:
    return tuple(bed.patient for bed in _Survey(snapshot).beds())


def _surveyed(snapshot: Snapshot) -> Domains:
    return _Survey(snapshot).domains()


class _Known(NamedTuple):
    """What a Node was found to be, kept with it: it is never changed, only replaced."""

    claim: NodeClaim
    asked: tuple[Rules, bool]
    patient: Patient | None


_PATIENT: Final = "patient"


class _Survey:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._rules: dict[str, Rules] = {}
        self._broken: dict[str, bool] = {}

    def domains(self) -> Domains:
        beds = list(self.beds())
        if not beds:
            return NOTHING
        shared: dict[Domain, list[_Bed]] = {}
        for bed in (*beds, *self._recovered(min(bed.patient.since for bed in beds))):
            for domain in domains_of(bed.claim, bed.node):
                shared.setdefault(domain, []).append(bed)
        permits = tuple(self._permits())
        found = (self._outbreak(domain, there, permits) for domain, there in sorted(shared.items()))
        outbreaks = tuple(outbreak for outbreak in found if outbreak is not None)
        if not outbreaks:
            return NOTHING
        pools = sorted({p.pool for o in outbreaks for p in o.patients if p.pool})
        return Domains(
            outbreaks=outbreaks,
            # Of a pool that has nobody there any more, too: its last one may just have been tried.
            permits=permits,
            wards={pool: _ward(pool, [b.patient for b in beds], self._snapshot) for pool in pools},
        )

    # -- who is sick -------------------------------------------------------------------

    def beds(self) -> Iterator[_Bed]:
        snapshot = self._snapshot
        for _, node in sorted(snapshot.suspect_nodes().items()):
            claim = snapshot.claim_of(node)
            if claim is None or not claim.registered or not is_ours(claim, snapshot):
                continue
            if len(snapshot.nodes_with_provider(claim.provider_id)) == 1:
                patient = self._patient(claim, node)
                if patient is not None:
                    yield _Bed(patient, claim, node)

    def _patient(self, claim: NodeClaim, node: Node) -> Patient | None:
        """Worked out again only when the Node, its claim or its pool's rules were replaced."""
        asked = (self._of_pool(claim), self._is_broken(claim.pool_name))
        known: _Known | None = node.__dict__.get(_PATIENT)
        if known is None or known.claim is not claim or known.asked != asked:
            patient = self._examined(claim, node)
            known = node.__dict__[_PATIENT] = _Known(claim, asked, patient)
        return known.patient

    def _examined(self, claim: NodeClaim, node: Node) -> Patient | None:
        """As the breaker of its own pool counts."""
        health = examine(claim, node, self._of_pool(claim))
        ill = [illness for illness in health.ill if illness.counts]
        boot, before_ready = health.boot, health.before_ready
        if not before_ready and not ill:
            return None
        repaired_at = min((i.due_at for i in ill if i.due_at is not None), default=None)
        since = min((illness.since for illness in ill), default=BEGINNING)
        if boot is not None and before_ready:
            since = min(boot.due_at, *health.due()) if ill else boot.due_at
        if claim.rebooting or self._is_broken(claim.pool_name):
            repaired_at = None
        given_up_at = boot.due_at if boot is not None else None
        free_at = _free_at(claim, node)
        return Patient(
            claim=claim.name,
            pool=claim.pool_name,
            since=since,
            booting=before_ready,
            repaired_at=_no_sooner(repaired_at, free_at),
            given_up_at=_no_sooner(given_up_at, free_at),
        )

    def _of_pool(self, claim: NodeClaim) -> Rules:
        pool = claim.pool_name
        if pool not in self._rules:
            self._rules[pool] = rules_of(pool, self._snapshot)
        return self._rules[pool]

    def _is_broken(self, pool: str) -> bool:
        """Whether the pool's ``repair`` block cannot be used, so that nothing repairs by it."""
        if pool not in self._broken:
            self._broken[pool] = bool(unusable(self._snapshot.pools.get(pool)))
        return self._broken[pool]

    # -- what they share ---------------------------------------------------------------

    def _recovered(self, begin: datetime) -> Iterator[_Bed]:
        """Who was sick until so lately that this may matter to who is sick since then."""
        snapshot = self._snapshot
        for _, node in sorted(snapshot.changed_nodes().items()):
            if not _is_late(node.changed_at, begin):
                continue
            claim = snapshot.claim_of(node)
            if claim is not None and is_ours(claim, snapshot):
                well_at = self._well_at(claim, node)
                if well_at is not None and _is_late(well_at, begin):
                    name, pool = claim.name, claim.pool_name
                    patient = Patient(claim=name, pool=pool, since=well_at, well_at=well_at)
                    yield _Bed(patient, claim, node)

    def _well_at(self, claim: NodeClaim, node: Node) -> datetime | None:
        """Its last recovery; None for a node that has been well since its boot, or is not now."""
        initialized = claim.condition("Initialized")
        if initialized is None or initialized.status != "True":
            return None
        up_at = initialized.last_transition_time or BEGINNING
        rules = self._of_pool(claim)
        if illnesses(node, rules):
            return None
        watched = {"Ready", *(type_ for type_, _ in rules.sick)}
        ends = (c.last_transition_time for c in node.status.conditions if c.type in watched)
        return max((at for at in ends if at is not None and at > up_at), default=None)

    def _outbreak(
        self, domain: Domain, beds: list[_Bed], permits: Iterable[Permit]
    ) -> Outbreak | None:
        """None where it is not held, and will not be either as long as nothing changes."""
        departed = [one for one in permits if domain.mark in one.domains and self._has_left(one)]
        counted = [*(bed.patient for bed in beds), *map(_departed, departed)]
        patients = sorted(counted, key=lambda patient: patient.claim)
        if not is_held(patients, 0) or all(p.well_at is not None for p in patients):
            return None
        total = stand_ins = 0
        for node in nodes_in(domain, self._snapshot):
            if not is_our_node(node, self._snapshot):
                continue
            if any(self._stands_in(node, permit) for permit in departed):
                stand_ins += 1
                continue
            total += 1
            if not is_held(patients, total):
                return None  # So many are found that the rest need not be counted.
        return Outbreak(domain, total, tuple(patients), stand_ins)

    # -- who is tried ------------------------------------------------------------------

    def _permits(self) -> Iterator[Permit]:
        for name, pool in sorted(self._snapshot.pools.items()):
            if (written := pool.annotations.get(names.REPAIR_PROBE)) is not None:
                permit = read_permit(name, written)
                yield msgspec.structs.replace(permit, answered=self._is_answered(permit))

    def _is_answered(self, permit: Permit) -> bool:
        if permit.at is None or self._probe(permit) is not None:
            return False
        made = self._snapshot.claims_of_pool(permit.pool).values()
        return any(claim.initialized and _is_since(permit, claim) for claim in made)

    def _probe(self, permit: Permit) -> NodeClaim | None:
        """Its claim, as long as that exists; names are used again."""
        claim = self._snapshot.claims.get(permit.claim)
        return None if claim is None or _is_since(permit, claim) else claim

    def _has_left(self, permit: Permit) -> bool:
        """Whether its health can no longer be seen, and its replacement is not up."""
        if permit.at is None or permit.answered:
            return False
        claim = self._probe(permit)
        return claim is None or not self._snapshot.nodes_with_provider(claim.provider_id)

    def _stands_in(self, node: Node, permit: Permit) -> bool:
        """Whether it may be the replacement of the probe, or one of several."""
        claim = self._snapshot.claim_of(node)
        if claim is None or claim.pool_name != permit.pool or claim.initialized:
            return False
        return _is_since(permit, claim)


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


def read_permit(pool: str, written: str) -> Permit:
    """``DOMAIN[,DOMAIN…] CLAIM INSTANT``; whatever else stands there is no permit to anybody."""
    try:
        domains, claim, instant = written.split(" ")
    except ValueError:
        return Permit(pool=pool)
    if (at := read_instant(instant)) is None:
        return Permit(pool=pool)
    return Permit(pool=pool, claim=claim, domains=tuple(domains.split(",")), at=at)


def _departed(permit: Permit) -> Patient:
    """As a node that has been unhealthy for longer than all others."""
    return Patient(claim=permit.claim, pool=permit.pool, since=BEGINNING, left_until=permit.ends_at)


def _is_since(permit: Permit, claim: NodeClaim) -> bool:
    """Whether the claim was made since the probe was chosen."""
    return permit.at is not None and claim.created_at >= permit.at.replace(microsecond=0)


def _free_at(claim: NodeClaim, node: Node) -> datetime:
    """When no veto holds it; for ever where one does, or it is leaving already."""
    if claim.deleting or node.deleting:
        return FOR_EVER
    vetoes = (protection_on(thing, names.DO_NOT_REPAIR) for thing in (node, claim))
    return max((veto.until for veto in vetoes if veto is not None), default=BEGINNING)


def _no_sooner(at: datetime | None, than: datetime) -> datetime | None:
    return None if at is None or than == FOR_EVER else max(at, than)


def _is_late(at: datetime | None, begin: datetime) -> bool:
    """Whether it may still count when somebody who is sick since then falls due."""
    return at is not None and later(at, SETTLES) > begin
