"""Report on each claim when it expires: the condition ``Expired`` from then on.

A claim is as old as it may become at its creation plus ``spec.expireAfter``. With the pool's
``expirationPolicy: WhenAllowed`` it expires a little earlier, by up to a tenth of that and a day at
the most, by an amount that follows from its UID: so nodes that were created together do not expire
together. With ``Always`` it expires just then.

The condition only makes it a candidate (``methods/expired``). A claim without a pool, one of a pool
with ``spec.replicas`` (that is said), and one whose ``expireAfter`` is ``Never`` do not expire; nor does
one whose ``expireAfter`` is no duration above zero: that is said, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.disrupt.facts.candidates import ClaimExpires, DoesNotExpire, StaticPool
from tenure.core.facts import Fact
from tenure.core.marks.candidacy import says_expired
from tenure.core.marks.ownership import claim_status, is_ours
from tenure.core.marks.timeout import span_of
from tenure.core.reasons import Reason
from tenure.core.verdicts import say
from tenure.model.api.meta import earlier, later
from tenure.model.api.names import EXPIRED_CONDITION
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS
from tenure.model.settings import Settings
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


class ExpirationDecider:
    concern = Concern.EXPIRATION

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.claims

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource == NODE_CLAIMS:
            yield change.key
        elif change.resource == NODE_POOLS and not _is_same_policy(change):
            yield from snapshot.claims_of_pool(change.key)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> ExpirationView | None:
        claim = snapshot.claims.get(key)
        if claim is None or claim.deleting or is_unreadable(claim) or not is_ours(claim, snapshot):
            return None
        pool = snapshot.pools.get(claim.pool_name)
        if _is_static(pool):
            return ExpirationView(claim, None, static=True)
        policy = _policy_of(pool)
        if policy is None or claim.spec.expire_after in (None, NEVER):
            said = claim.condition(EXPIRED_CONDITION) is not None
            return ExpirationView(claim, None) if said else None
        return ExpirationView(claim, policy)

    def decide(self, view: ExpirationView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        claim = view.claim
        at = expires_at(claim, view.policy) if view.policy is not None else None
        if view.static:
            return (_not_expired(claim, StaticPool(claim.pool_name)),)
        if at is None:
            invalid = claim.spec.expire_after if view.policy is not None else None
            return (_not_expired(claim, DoesNotExpire(claim.name, invalid or "")),)
        after, policy = claim.spec.expire_after or "", view.policy or ""
        expires = ClaimExpires(claim.name, at, after, policy, over=now >= at)
        if now < at:
            return (_not_expired(claim, expires, at),)
        action = claim_status(claim, says_expired(str(expires)))
        return (say(Concern.EXPIRATION, claim, Reason.EXPIRED, expires, action=action),)


def _not_expired(claim: NodeClaim, fact: Fact, recheck_at: datetime | None = None) -> Verdict:
    action = None
    if claim.condition(EXPIRED_CONDITION) is not None:
        action = claim_status(claim, drop=(EXPIRED_CONDITION,))
    reason = Reason.NOT_EXPIRED
    return say(Concern.EXPIRATION, claim, reason, fact, action=action, recheck_at=recheck_at)


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
