"""Report on each claim when it expires: the condition ``Expired`` from then on.

A claim is as old as it may become at its creation plus ``spec.expireAfter``. With the pool's
``expirationPolicy: WhenAllowed`` it expires a little earlier, by up to a tenth of that and a day at
the most, by an amount that follows from its UID: so nodes that were created together do not expire
together. With ``Always`` it expires just then.

The condition only makes it a candidate (``methods/expired``). A claim without a pool, one of a pool
with ``spec.replicas`` (that is said), and one whose ``expireAfter`` is ``Never`` do not expire; nor does
one whose ``expireAfter`` is no duration above zero: that is said, too.

Beside Karpenter it is a mark instead of the condition, and only for claims that expire by a NodePoolPolicy:
one with an ``expireAfter`` of its own is expired by Karpenter, by force.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.decision import Concern, Patch, Subject, Verdict
from tenure.core.disrupt.facts.candidates import (
    ClaimExpires,
    DoesNotExpire,
    ExpiresByForce,
    StaticPool,
)
from tenure.core.disrupt.surroundings import Surroundings
from tenure.core.facts import Fact
from tenure.core.marks.candidacy import mark_expired, says_expired, unmark_expired
from tenure.core.marks.ownership import claim_status, is_ours
from tenure.core.marks.timeout import span_of
from tenure.core.reasons import Reason
from tenure.core.verdicts import say
from tenure.model.api.meta import earlier, later
from tenure.model.api.names import EXPIRED_AT, EXPIRED_CONDITION
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.resource import CRDS, DEPLOYMENTS, NODE_CLAIMS, NODE_POOLS
from tenure.model.settings import Settings
from tenure.model.snapshot.governed import as_written
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.model.values.duration import NEVER

ALWAYS: Final = "Always"
#: Nodes expire earlier by up to this part of their age …
SPREAD: Final = 10
#: … and by no more than this.
SPREAD_MAX: Final = timedelta(hours=24)


def expires_at(claim: NodeClaim, policy: str) -> datetime | None:
    """None: never. ``policy``: the ``expirationPolicy`` of its pool."""
    age = _age_of(claim)
    if age is None:
        return None
    at = later(claim.created_at, age)
    return at if policy == ALWAYS else earlier(at, spread_of(claim.uid, age))


def _age_of(claim: NodeClaim) -> timedelta | None:
    age = span_of(claim.spec.expire_after)
    return age if age is not None and age > timedelta() else None


def spread_of(uid: str, age: timedelta) -> timedelta:
    """By how much earlier a claim with this UID expires, in whole seconds."""
    share = int.from_bytes(hashlib.sha256(uid.encode()).digest()[:8]) / 2**64
    spread = min(age / SPREAD, SPREAD_MAX) * share
    return spread - spread % timedelta(seconds=1)


class ExpirationView(msgspec.Struct, frozen=True):
    claim: NodeClaim
    #: The ``expirationPolicy`` of its pool; None: it does not expire.
    policy: str | None
    #: Whether its pool has ``spec.replicas``.
    static: bool = False
    #: Karpenter expires it, beside which Tenure runs.
    forced: ExpiresByForce | None = None
    #: It is not known which Karpenter that is, or it does not act: nothing is written.
    only_looks: bool = False


class ExpirationDecider:
    concern = Concern.EXPIRATION

    def __init__(self, beside: Surroundings | None = None) -> None:
        """``beside``: Karpenter, whose the status of claims is."""
        self._beside = beside

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.claims

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource == NODE_CLAIMS:
            yield change.key
        elif change.resource in (DEPLOYMENTS, CRDS) and self._beside is not None:
            yield from snapshot.claims
        elif change.resource == NODE_POOLS and not _is_same_policy(change):
            yield from snapshot.claims_of_pool(change.key)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> ExpirationView | None:
        claim = snapshot.claims.get(key)
        if claim is None or claim.deleting or is_unreadable(claim) or not is_ours(claim, snapshot):
            return None
        pool = snapshot.pools.get(claim.pool_name)
        if self._beside is not None and (forced := expires_by_force(claim)) is not None:
            only_looks = self._beside.stands_still(snapshot) is not None
            return ExpirationView(claim, None, forced=forced, only_looks=only_looks)
        if _is_static(pool):
            return ExpirationView(claim, None, static=True)
        policy = _policy_of(pool)
        if policy is None or claim.spec.expire_after in (None, NEVER):
            said = claim.condition(EXPIRED_CONDITION) is not None or EXPIRED_AT in claim.annotations
            return ExpirationView(claim, None) if said else None
        if self._beside is None:
            return ExpirationView(claim, policy)
        only_looks = self._beside.stands_still(snapshot) is not None
        return ExpirationView(claim, policy, only_looks=only_looks)

    def decide(self, view: ExpirationView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        verdict = self._decided(view, now)
        return (msgspec.structs.replace(verdict, action=None) if view.only_looks else verdict,)

    def _decided(self, view: ExpirationView, now: datetime) -> Verdict:
        claim, after = view.claim, view.claim.spec.expire_after or ""
        if view.forced is not None:
            return self._not_expired(claim, view.forced)
        at = expires_at(claim, view.policy) if view.policy is not None else None
        if view.static:
            return self._not_expired(claim, StaticPool(claim.pool_name))
        if at is None:
            invalid = after if view.policy is not None else ""
            return self._not_expired(claim, DoesNotExpire(claim.name, invalid))
        expires = ClaimExpires(claim.name, at, after, view.policy or "", over=now >= at)
        if now < at:
            return self._not_expired(claim, expires, at)
        action = self._marks(claim, at) if self._beside is not None else _says_so(claim, expires)
        return say(Concern.EXPIRATION, claim, Reason.EXPIRED, expires, action=action)

    def _marks(self, claim: NodeClaim, at: datetime) -> Patch | None:
        """Not before its Node has registered: Karpenter would copy the mark to it."""
        return mark_expired(claim, at) if claim.registered else None

    def _not_expired(
        self, claim: NodeClaim, fact: Fact, recheck_at: datetime | None = None
    ) -> Verdict:
        action = unmark_expired(claim)
        if self._beside is None and claim.condition(EXPIRED_CONDITION) is not None:
            action = claim_status(claim, drop=(EXPIRED_CONDITION,))
        reason = Reason.NOT_EXPIRED
        return say(Concern.EXPIRATION, claim, reason, fact, action=action, recheck_at=recheck_at)


def _says_so(claim: NodeClaim, expires: ClaimExpires) -> Patch | None:
    """A mark from when Tenure ran beside Karpenter goes once the condition stands there."""
    return claim_status(claim, says_expired(str(expires))) or unmark_expired(claim)


def expires_by_force(claim: NodeClaim) -> ExpiresByForce | None:
    """When Karpenter expires it, beside which Tenure runs: whatever its NodePool says, and also without one."""
    if expires_softly(claim) or (at := expires_at(claim, ALWAYS)) is None:
        return None
    return ExpiresByForce(claim.name, at, claim.spec.expire_after or "")


def expires_softly(claim: NodeClaim) -> bool:
    """Whether a NodePoolPolicy expires it, and nothing else does."""
    written = as_written(claim).spec.expire_after
    return written in (None, NEVER) and claim.spec.expire_after not in (None, NEVER)


def _policy_of(pool: NodePool | None) -> str | None:
    if pool is None or pool.static or is_unreadable(pool):
        return None
    return pool.spec.disruption.expiration_policy


def _is_static(pool: NodePool | None) -> bool:
    return pool is not None and not is_unreadable(pool) and pool.static


def _is_same_policy(change: Change) -> bool:
    old, new = change.old, change.new
    if not isinstance(old, NodePool) or not isinstance(new, NodePool):
        return False
    return _policy_of(old) == _policy_of(new) and _is_static(old) == _is_static(new)
