"""The mutable side of ``Observations``: what the executor and the census learned.

Every entry may be lost at any moment without harm; entries about objects that are gone
are forgotten, so that this cannot grow with the age of the process.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from tenure.core.claim.garbage import INSTANCE
from tenure.core.decision import Subject
from tenure.core.launchbreaker.history import REMEMBERED as LAUNCHES_REMEMBERED
from tenure.core.launchbreaker.history import was_wasted
from tenure.core.launchbreaker.ledger import marked_served, unserved_owners
from tenure.core.pool.registrations import REMEMBERED, generations_of
from tenure.core.provision.placement import BATCH
from tenure.model.api.meta import later
from tenure.model.api.names import LAUNCHED_FOR
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, PODS
from tenure.model.cloud.instance import Instance
from tenure.model.cloud.offering import InstanceType, OfferingKey
from tenure.model.cloud.repairs import RepairStatement
from tenure.model.snapshot.observations import (
    Arrival,
    ClassRefusal,
    DepartedClaim,
    EvictionAnswer,
    InspectionAnswer,
    LaunchFailure,
    Observations,
    OrphanSighting,
    RebootAnswer,
    TerminationAnswer,
)
from tenure.model.snapshot.snapshot import Change

#: How long a node class that the cloud cannot use is left alone if it does not change.
UNUSABLE_MIN: Final = timedelta(minutes=1)
UNUSABLE_MAX: Final = timedelta(minutes=30)


def _is_old(claim: DepartedClaim, now: datetime) -> bool:
    return later(claim.created_at, LAUNCHES_REMEMBERED) <= now


class _Unusable(msgspec.Struct, frozen=True):
    generation: int
    pause: timedelta
    refusal: ClassRefusal

    @property
    def until(self) -> datetime:
        return self.refusal.until


class ObservationStore:
    def __init__(
        self,
        wake: Callable[[], None] = lambda: None,
        *,
        repair_statements: tuple[RepairStatement, ...] = (),
    ) -> None:
        self.wake = wake
        self.repair_statements = repair_statements
        self.instances: dict[str, Instance] = {}
        self.launch_failures: dict[str, LaunchFailure] = {}
        self.terminations: dict[str, TerminationAnswer] = {}
        self.inspections: dict[str, InspectionAnswer] = {}
        self.reboots: dict[str, RebootAnswer] = {}
        self.evictions: dict[str, EvictionAnswer] = {}
        self.waiting_seen: dict[str, datetime] = {}
        self.pods_decided_at: datetime | None = None
        self.dry_offerings: dict[OfferingKey, datetime] = {}
        self.orphans: dict[str, OrphanSighting] = {}
        self.vanished: dict[str, datetime] = {}
        self.instance_types: dict[str, tuple[InstanceType, ...]] = {}
        self.arrivals: dict[str, tuple[Arrival, ...]] = {}
        self.departed_claims: dict[str, DepartedClaim] = {}
        self.served_claims: dict[str, frozenset[str]] = {}
        self._observed: dict[Subject, None] = {}
        self._vanished_claims: dict[str, Subject] = {}
        self._unusable: dict[str, _Unusable] = {}

    def current(self) -> Observations:
        """A view of the live maps, for the length of a turn."""
        return Observations(
            repair_statements=self.repair_statements,
            instances=self.instances,
            launch_failures=self.launch_failures,
            terminations=self.terminations,
            inspections=self.inspections,
            reboots=self.reboots,
            evictions=self.evictions,
            waiting_seen=self.waiting_seen,
            pods_decided_at=self.pods_decided_at,
            dry_offerings=self.dry_offerings,
            orphans=self.orphans,
            vanished=self.vanished,
            instance_types=self.instance_types,
            arrivals=self.arrivals,
            departed_claims=self.departed_claims,
            served_claims=self.served_claims,
            refused_classes={key: known.refusal for key, known in self._unusable.items()},
        )

    def clock_stepped(self, step: timedelta) -> None:
        """The wall clock was set: what we learned was learned as long ago as before."""
        for known in (
            self.launch_failures,
            self.terminations,
            self.inspections,
            self.reboots,
            self.evictions,
            self.waiting_seen,
            self.dry_offerings,
            self.orphans,
            self.vanished,
        ):
            _move(known, step)
        if self.pods_decided_at is not None:
            self.pods_decided_at += step
        for key, unusable in self._unusable.items():
            refusal = _moved(unusable.refusal, step)
            self._unusable[key] = msgspec.structs.replace(unusable, refusal=refusal)

    def take_observed(self) -> list[Subject]:
        """Whom something new is known about since the last call."""
        observed, self._observed = self._observed, {}
        return list(observed)

    def launched(self, claim: Subject, instance: Instance) -> None:
        self.instances[claim.uid] = instance
        self.launch_failures.pop(claim.uid, None)
        self._note(claim)

    def launch_failed(self, claim: Subject, failure: LaunchFailure) -> None:
        self.launch_failures[claim.uid] = failure
        self._note(claim)

    def sold_out(self, offerings: Iterable[OfferingKey], until: datetime) -> None:
        for offering in offerings:
            self.dry_offerings[offering] = until

    def forget_dry(self, now: datetime) -> None:
        for key in [key for key, until in self.dry_offerings.items() if until <= now]:
            del self.dry_offerings[key]

    def termination(self, subject: Subject, claim_uid: str, answer: TerminationAnswer) -> None:
        if subject.kind == INSTANCE and subject.name not in self.orphans:
            return  # The next comparison found it gone while we asked.
        self.terminations[claim_uid] = answer
        self._note(subject)

    def inspected(self, claim: Subject, answer: InspectionAnswer) -> None:
        self.inspections[claim.uid] = answer
        self._note(claim)

    def rebooted(self, claim: Subject, answer: RebootAnswer) -> None:
        self.reboots[claim.uid] = answer
        self._note(claim)

    def arrived(self, pool: NodePool, claim: str, failure: str = "") -> None:
        """A node of the pool has come up, or was given up."""
        known = self.arrivals.get(pool.uid, ())
        newest = Arrival(claim=claim, failure=failure, generations=generations_of(pool))
        self.arrivals[pool.uid] = (*known, newest)[-REMEMBERED:]
        self._note(Subject.of(NODE_POOLS.kind, pool))

    def eviction_refused(self, pod: Subject, answer: EvictionAnswer) -> None:
        self.evictions[pod.uid] = answer
        self._note(pod)

    def seen_waiting(self, changes: Iterable[Change], now: datetime) -> None:
        """Pods that nobody knew to be without a node until now."""
        for change in changes:
            if isinstance(change.new, Pod) and change.new.unschedulable:
                self.waiting_seen.setdefault(change.new.uid, now)

    def pods_decided(self, now: datetime) -> None:
        """A claim was created for the pods of a batch: it is closed."""
        self.pods_decided_at = now
        self._note(BATCH)

    def departed(self, claim: NodeClaim, now: datetime) -> None:
        """A claim that was created for pods is gone; if in vain, it still counts for a while."""
        for uid in [uid for uid, one in self.departed_claims.items() if _is_old(one, now)]:
            del self.departed_claims[uid]
        served = self.served_claims.pop(claim.uid, frozenset())
        said = marked_served(claim.annotations.get(LAUNCHED_FOR, ""), served)
        if was_wasted(claim, self.terminations.get(claim.uid)) and said:
            self.departed_claims[claim.uid] = DepartedClaim(
                name=claim.name,
                pool=claim.pool_name,
                created_at=claim.created_at,
                launched_for=said,
            )

    def served(self, claim: NodeClaim, owner: str) -> None:
        """A pod of the owner has come to a good end on the claim's Node."""
        if owner in unserved_owners(claim):
            self.served_claims[claim.uid] = self.served_claims.get(claim.uid, frozenset()) | {owner}

    def claim_seen(self, claim: NodeClaim) -> None:
        """What the claim itself says by now need not be remembered."""
        owners = self.served_claims.get(claim.uid)
        if owners is not None and owners.isdisjoint(unserved_owners(claim)):
            del self.served_claims[claim.uid]

    def misconfigured(self, node_class: str, generation: int, now: datetime, message: str) -> None:
        """The cloud cannot use the class as it is: without its types nothing is planned on it."""
        last = self._unusable.get(node_class)
        pause = min(last.pause * 2, UNUSABLE_MAX) if last else UNUSABLE_MIN
        if last is None or now >= last.until or generation != last.generation:
            refusal = ClassRefusal(message=message, at=now, until=now + pause)
            self._unusable[node_class] = _Unusable(generation, pause, refusal)
        if self.instance_types.pop(node_class, None) is not None:
            self._note(Subject("NodeClass", node_class))

    def usable(self, node_class: str) -> None:
        self._unusable.pop(node_class, None)

    def unusable_until(self, node_class: str, generation: int) -> datetime | None:
        """None when nothing is known against the class as it is now."""
        known = self._unusable.get(node_class)
        return known.until if known and known.generation == generation else None

    def forget_types(self, node_classes: Collection[str]) -> None:
        """Only these node classes are still of interest."""
        for known in [known for known in self._unusable if known not in node_classes]:
            del self._unusable[known]
        for known in [known for known in self.instance_types if known not in node_classes]:
            del self.instance_types[known]
            self._note(Subject("NodeClass", known))

    def types_known(self, node_class: str, types: tuple[InstanceType, ...]) -> None:
        if node_class not in self.instance_types or self.instance_types[node_class] != types:
            self.instance_types[node_class] = types
            self._note(Subject("NodeClass", node_class))

    def types_unknown(self, node_class: str) -> None:
        """The cloud did not say; what it said before still stands."""
        if node_class not in self.instance_types:
            self.types_known(node_class, ())

    def seen_orphans(self, orphans: dict[str, Instance], now: datetime) -> None:
        """What the newest comparison found; an instance that is no orphan any more is dropped."""
        for provider_id in [known for known in self.orphans if known not in orphans]:
            self.terminations.pop(self.orphans.pop(provider_id).instance.claim_uid, None)
            self._note(Subject(INSTANCE, provider_id))
        for provider_id, instance in sorted(orphans.items()):
            known = self.orphans.get(provider_id)
            first_at = known.first_at if known else now
            self.orphans[provider_id] = OrphanSighting(
                instance=instance, first_at=first_at, last_at=now
            )
            self._note(Subject(INSTANCE, provider_id))

    def seen_vanished(self, claims: dict[str, Subject], now: datetime) -> None:
        """Claims whose instance the newest list lacks, by claim UID; others are back."""
        for uid in [known for known in self.vanished if known not in claims]:
            del self.vanished[uid]
            self._note(self._vanished_claims.pop(uid))
        for uid, subject in claims.items():
            self.vanished[uid] = now
            self._vanished_claims[uid] = subject
            self._note(subject)

    def forget(self, changes: Iterable[Change]) -> None:
        """Drop what is known about objects that are gone, and of pods that wait no longer."""
        for change in changes:
            if change.old is None:
                continue
            if not (isinstance(change.new, Pod) and change.new.unschedulable):
                self.waiting_seen.pop(change.old.uid, None)
            if change.new is not None:
                continue
            uid = change.old.uid
            if change.resource == NODE_CLAIMS:
                for known in (
                    self.instances,
                    self.launch_failures,
                    self.terminations,
                    self.inspections,
                    self.reboots,
                    self.vanished,
                    self._vanished_claims,
                ):
                    known.pop(uid, None)
            elif change.resource == PODS:
                self.evictions.pop(uid, None)
            elif change.resource == NODE_POOLS:
                self.arrivals.pop(uid, None)

    def _note(self, subject: Subject) -> None:
        self._observed[subject] = None
        self.wake()


def _move(known: dict[Any, Any], step: timedelta) -> None:
    for key, value in known.items():
        known[key] = _moved(value, step)


def _moved(value: Any, step: timedelta) -> Any:
    """An instant of ours, or an observation with such instants; nested values are others'."""
    if isinstance(value, datetime):
        return value + step
    fields = {name: getattr(value, name) for name in value.__struct_fields__}
    instants = {name: at + step for name, at in fields.items() if isinstance(at, datetime)}
    return msgspec.structs.replace(value, **instants)
