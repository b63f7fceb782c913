"""Instances: what the cloud answered about them, and how its list differs from the claims."""

from __future__ import annotations

from datetime import datetime, timedelta

from tenure.core.claim.garbage import INSTANCE
from tenure.core.decision import Subject
from tenure.errors import shown
from tenure.model.cloud.drift import Drift
from tenure.model.cloud.instance import Instance
from tenure.model.snapshot.observations import (
    DriftAnswer,
    InspectionAnswer,
    OrphanSighting,
    RebootAnswer,
    TerminationAnswer,
)
from tenure.runtime.observe.noted import Noted, move_all


class InstanceObservations:
    """By claim UID; orphans by provider id."""

    def __init__(self, noted: Noted) -> None:
        self._noted = noted
        self.terminations: dict[str, TerminationAnswer] = {}
        self.inspections: dict[str, InspectionAnswer] = {}
        self.reboots: dict[str, RebootAnswer] = {}
        self.drifts: dict[str, DriftAnswer] = {}
        self.orphans: dict[str, OrphanSighting] = {}
        #: Claims whose instance is not on the newest list.
        self.vanished: dict[str, datetime] = {}
        self._vanished_claims: dict[str, Subject] = {}

    def terminated(self, subject: Subject, claim_uid: str, answer: TerminationAnswer) -> None:
        if subject.kind == INSTANCE and subject.name not in self.orphans:
            return  # A newer list no longer has it.
        self.terminations[claim_uid] = answer
        self._noted.note(subject)

    def inspected(self, claim: Subject, answer: InspectionAnswer) -> None:
        self.inspections[claim.uid] = answer
        self._noted.note(claim)

    def rebooted(self, claim: Subject, answer: RebootAnswer) -> None:
        self.reboots[claim.uid] = answer
        self._noted.note(claim)

    def drift_known(self, claim: Subject, drift: Drift | None) -> None:
        self._drift_answered(claim, DriftAnswer(drift=drift))

    def drift_unknown(self, claim: Subject, failure: str, now: datetime) -> bool:
        """The provider did not answer; whether it had before."""
        known = self.drifts.get(claim.uid)
        since = known.silent_since if known is not None else None
        answer = DriftAnswer(silent_since=since or now, failure=shown(failure))
        self._drift_answered(claim, answer)
        return since is None

    def _drift_answered(self, claim: Subject, answer: DriftAnswer) -> None:
        if self.drifts.get(claim.uid) != answer:
            self.drifts[claim.uid] = answer
            self._noted.note(claim)

    def found_orphans(self, orphans: dict[str, Instance], now: datetime) -> None:
        """What the newest comparison found; an instance that is no orphan any more is dropped."""
        for provider_id in [known for known in self.orphans if known not in orphans]:
            self.terminations.pop(self.orphans.pop(provider_id).instance.claim_uid, None)
            self._noted.note(Subject(INSTANCE, provider_id))
        for provider_id, instance in sorted(orphans.items()):
            known = self.orphans.get(provider_id)
            first_at = known.first_at if known else now
            self.orphans[provider_id] = OrphanSighting(
                instance=instance, first_at=first_at, last_at=now
            )
            self._noted.note(Subject(INSTANCE, provider_id))

    def found_vanished(self, claims: dict[str, Subject], now: datetime) -> None:
        """Claims whose instance the newest list lacks, by claim UID; others are back."""
        for uid in [known for known in self.vanished if known not in claims]:
            del self.vanished[uid]
            self._noted.note(self._vanished_claims.pop(uid))
        for uid, subject in claims.items():
            self.vanished[uid] = now
            self._vanished_claims[uid] = subject
            self._noted.note(subject)

    def clock_stepped(self, step: timedelta) -> None:
        move_all(self.terminations, step)
        move_all(self.inspections, step)
        move_all(self.reboots, step)
        move_all(self.drifts, step)
        move_all(self.orphans, step)
        move_all(self.vanished, step)

    def forget_claim(self, uid: str) -> None:
        self.terminations.pop(uid, None)
        self.inspections.pop(uid, None)
        self.reboots.pop(uid, None)
        self.drifts.pop(uid, None)
        self.vanished.pop(uid, None)
        self._vanished_claims.pop(uid, None)
