"""Launches: what the cloud answered, and which claims were created for pods in vain."""

from __future__ import annotations

from datetime import datetime, timedelta

from tenure.core.decision import Subject
from tenure.core.launchbreaker.history import REMEMBERED
from tenure.core.launchbreaker.ledger import marked_served, unserved_owners
from tenure.core.launchbreaker.removed import was_left_at_once, was_wasted
from tenure.model.api.meta import later
from tenure.model.api.names import LAUNCHED_FOR
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.cloud.instance import Instance
from tenure.model.snapshot.observations import DepartedClaim, LaunchFailure, TerminationAnswer
from tenure.runtime.observe.noted import Noted, move_all


class LaunchObservations:
    """All by claim UID."""

    def __init__(self, noted: Noted) -> None:
        self._noted = noted
        self.launched_instances: dict[str, Instance] = {}
        self.failures: dict[str, LaunchFailure] = {}
        self.departed_claims: dict[str, DepartedClaim] = {}
        self.served_claims: dict[str, frozenset[str]] = {}

    def launched(self, claim: Subject, instance: Instance) -> None:
        self.launched_instances[claim.uid] = instance
        self.failures.pop(claim.uid, None)
        self._noted.note(claim)

    def failed(self, claim: Subject, failure: LaunchFailure) -> None:
        self.failures[claim.uid] = failure
        self._noted.note(claim)

    def departed(
        self, claim: NodeClaim, termination: TerminationAnswer | None, now: datetime
    ) -> None:
        """A claim that was created for pods is gone; if in vain, it still counts for a while."""
        for uid in [uid for uid, one in self.departed_claims.items() if _is_old(one, now)]:
            del self.departed_claims[uid]
        served = self.served_claims.pop(claim.uid, frozenset())
        launched_for = marked_served(claim.annotations.get(LAUNCHED_FOR, ""), served)
        left_at_once = was_left_at_once(claim)
        if launched_for and (left_at_once or was_wasted(claim, termination)):
            self.departed_claims[claim.uid] = DepartedClaim(
                name=claim.name,
                pool=claim.pool_name,
                created_at=claim.created_at,
                launched_for=launched_for,
                left_at_once=left_at_once,
            )

    def served(self, claim: NodeClaim, owner: str) -> None:
        """A pod of the owner has ended by itself on the claim's Node."""
        if owner in unserved_owners(claim):
            self.served_claims[claim.uid] = self.served_claims.get(claim.uid, frozenset()) | {owner}

    def claim_seen(self, claim: NodeClaim) -> None:
        """What the claim itself says by now need not be remembered."""
        owners = self.served_claims.get(claim.uid)
        if owners is not None and owners.isdisjoint(unserved_owners(claim)):
            del self.served_claims[claim.uid]

    def clock_stepped(self, step: timedelta) -> None:
        move_all(self.failures, step)

    def forget_claim(self, uid: str) -> None:
        self.launched_instances.pop(uid, None)
        self.failures.pop(uid, None)


def _is_old(claim: DepartedClaim, now: datetime) -> bool:
    return later(claim.created_at, REMEMBERED) <= now
