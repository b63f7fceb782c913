"""Remember the departures of nodes, for budgets with ``within`` beside Karpenter.

Karpenter writes no such record, and the status of a NodePool is not ours there. So the NodePoolPolicy that
governs the pool remembers: which pool, when, which claim, why. The rules:

* A departure is recorded when it is first seen: the Node is tainted ``karpenter.sh/disrupted``, or the claim
  or its Node is being deleted. One that began before Tenure did is recorded under the instant when it
  began; a taint alone tells none, so that one begins with the write.
* Until it is recorded, it counts all the same (``limits``).
* A command of Karpenter's that is rolled back and starts again is another departure.
* A record is kept for the longest span of the pool's budgets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from tenure.core.beside.facts.budgets import DeparturesKept
from tenure.core.decision import Concern, Patch, Subject, Verdict
from tenure.core.marks.command import REASON_CONDITION, disrupted_since
from tenure.core.marks.ownership import is_leaving, uses_budgets
from tenure.core.marks.starts import (
    AHEAD_MAX,
    COMMITTED_WITHIN,
    counts_until,
    has_own_instant,
    has_velocity,
    instant_of,
    new_start,
    span_of,
)
from tenure.core.reasons import Reason
from tenure.model.api.meta import earlier, format_time, read_instant
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import DisruptionStart, NodePool
from tenure.model.api.policy import POLICY_STARTS_MAX, NodePoolPolicy, PoolStart
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOL_POLICIES, NODE_POOLS, NODES
from tenure.model.settings import Settings
from tenure.model.snapshot.governed import ruling_of, starts_of
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import is_unreadable

#: The field of a NodePoolPolicy's status.
_STARTS: Final = "disruptionStarts"


class Departure(msgspec.Struct, frozen=True):
    #: Without an instant where that is not known.
    start: DisruptionStart
    #: Since when Karpenter says that it disrupts the claim: an older record is of another departure.
    commanded_at: datetime | None = None
    #: Its record has the very instant, because a command of ours says it; a taint alone tells none.
    exact: bool = False


class StartsView(msgspec.Struct, frozen=True):
    policy: NodePoolPolicy
    #: By pool, with a budget that counts starts: the longest span, and what leaves now and is not recorded.
    pools: tuple[tuple[str, timedelta, tuple[DisruptionStart, ...]], ...]


class StartsDecider:
    concern = Concern.STARTS

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.pool_policies

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource == NODE_POOL_POLICIES:
            yield change.key
        elif change.resource == NODE_POOLS:
            yield from snapshot.pool_policies  # One that no longer governs it may remember something.
        elif change.resource in (NODE_CLAIMS, NODES):
            for name in pools_touched(change, snapshot):
                pool = snapshot.pools.get(name)
                if pool is not None and has_velocity(pool):
                    yield from _policies(pool)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> StartsView | None:
        policy = snapshot.pool_policies.get(key)
        if policy is None or is_unreadable(policy):
            return None
        pools = tuple(
            (name, _longest(pool), unrecorded(pool, snapshot) if _records(pool, key) else ())
            for name, pool in sorted(snapshot.pools.items())
            if not is_unreadable(pool) and has_velocity(pool)
        )
        if not pools and not policy.status.disruption_starts:
            return None
        return StartsView(policy, pools)

    def decide(self, view: StartsView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        policy = view.policy
        kept = tuple(_kept(view, now))
        same = kept == policy.status.disruption_starts
        verdict = Verdict(
            concern=Concern.STARTS,
            subject=Subject.of(NODE_POOL_POLICIES.kind, policy),
            reason=Reason.STARTS_CURRENT if same else Reason.STARTS_RECORDED,
            facts=(DeparturesKept(len(kept), POLICY_STARTS_MAX),),
            action=None if same else _record(policy, kept),
            recheck_at=_changes_at(view, now),
        )
        return (verdict,)


def pools_touched(change: Change, snapshot: Snapshot) -> Iterator[str]:
    """The pools, by the claims, that a change of a Node or claim concerns."""
    for version in change.versions():
        if isinstance(version, NodeClaim):
            yield version.pool_name
        elif isinstance(version, Node):
            for claim in snapshot.claims_with_provider(version.spec.provider_id).values():
                yield claim.pool_name


def unrecorded(pool: NodePool, snapshot: Snapshot) -> tuple[DisruptionStart, ...]:
    """What leaves the pool now and is not remembered, where a budget counts starts."""
    if not has_velocity(pool):
        return ()
    known = starts_of(pool)
    claims = snapshot.claims_of_pool(pool.name)
    found = (_departure(pool, claims[name], snapshot) for name in sorted(claims))
    return tuple(one.start for one in found if one is not None and not _is_known(one, known))


def _departure(pool: NodePool, claim: NodeClaim, snapshot: Snapshot) -> Departure | None:
    nodes = snapshot.nodes_with_provider(claim.provider_id)
    counts = claim.initialized or any(uses_budgets(claim, node) for node in nodes.values())
    leaves = claim.deleting or any(is_leaving(claim, node) for node in nodes.values())
    if not (counts and leaves):
        return None
    commanded_at = disrupted_since(claim)
    deleted = (one.metadata.deletion_timestamp for one in (claim, *nodes.values()))
    at = min((one for one in (commanded_at, *deleted) if one is not None), default=None)
    labels = next((nodes[name].labels for name in sorted(nodes)), claim.labels)
    said = claim.condition(REASON_CONDITION)
    reason = said.reason if said is not None and said.status == "True" else ""
    start = new_start(pool, claim, reason or "Deleted", labels)
    at_text = format_time(at) if at is not None else ""
    exact = has_own_instant(claim)
    return Departure(msgspec.structs.replace(start, at=at_text), commanded_at, exact)


def _is_known(departure: Departure, known: Iterable[DisruptionStart]) -> bool:
    slack = timedelta() if departure.exact else COMMITTED_WITHIN
    for start in known:
        if start.claim == departure.start.claim:
            at, since = read_instant(start.at), departure.commanded_at
            if at is None or since is None or earlier(since, slack) <= at:
                return True
    return False


def _policies(pool: NodePool) -> tuple[str, ...]:
    """Those that govern it; the first of them remembers."""
    ruling = ruling_of(pool)
    return ruling.policies if ruling is not None else ()


def _records(pool: NodePool, policy: str) -> bool:
    return _policies(pool)[:1] == (policy,)


def _longest(pool: NodePool) -> timedelta:
    budgets = pool.spec.disruption.budgets
    return max(span_of(one) for one in budgets if one.within is not None)


def _kept(view: StartsView, now: datetime) -> Iterator[PoolStart]:
    spans = {pool: span for pool, span, _ in view.pools}
    room = POLICY_STARTS_MAX
    for start in view.policy.status.disruption_starts[:POLICY_STARTS_MAX]:
        at = instant_of(start, now)
        if start.pool in spans and (at is None or now < counts_until(at, spans[start.pool])):
            room -= 1
            yield start if at is not None else msgspec.structs.replace(start, at="")
    for pool, span, departures in view.pools:
        for one in departures:
            at = read_instant(one.at)
            if room > 0 and (at is None or now < counts_until(at, span)):
                room -= 1
                yield PoolStart(
                    pool=pool, at=one.at, claim=one.claim, reason=one.reason, labels=one.labels
                )


def _changes_at(view: StartsView, now: datetime) -> datetime | None:
    spans = {pool: span for pool, span, _ in view.pools}
    kept: list[tuple[str, DisruptionStart]] = [
        (start.pool, start) for start in view.policy.status.disruption_starts
    ]
    kept += [(pool, start) for pool, _, departures in view.pools for start in departures]
    instants: list[datetime] = []
    for pool, start in kept:
        at = read_instant(start.at)
        if at is not None and pool in spans:
            instants += [earlier(at, AHEAD_MAX), counts_until(at, spans[pool])]
    return min((at for at in instants if at > now), default=None)


def _record(policy: NodePoolPolicy, starts: Sequence[PoolStart]) -> Patch:
    """On the version that was evaluated; a start without an instant gets that of the write."""
    meta = policy.metadata
    return Patch(
        resource=NODE_POOL_POLICIES,
        name=policy.name,
        uid=policy.uid,
        resource_version=meta.resource_version,
        body={
            "metadata": {"resourceVersion": meta.resource_version, "uid": policy.uid},
            "status": {_STARTS: [_to_wire(start) for start in starts] or None},
        },
        subresource="status",
    )


def _to_wire(start: PoolStart) -> dict[str, Any]:
    wire: dict[str, Any] = {"pool": start.pool, "claim": start.claim, "reason": start.reason}
    if start.at:
        wire["at"] = start.at
    if start.labels:
        wire["labels"] = dict(start.labels)
    return wire
