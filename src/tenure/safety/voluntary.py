# ruff: noqa: ARG001 (every rule takes the same arguments)
"""May a node be taken away by choice? By its objects as they are, and simple arithmetic.

A reason that is not known here needs no more than its mark; protected pods hold for it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final

from tenure.model.api import names
from tenure.model.api.meta import earlier, format_time, later
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import Pod
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.safety.pods import protected_until, protection_cap, why_protected
from tenure.safety.times import span_of

EMPTY: Final = "Empty"
EXPIRED: Final = "Expired"
UNDERUTILIZED: Final = "Underutilized"
#: By how much earlier than its full age a node may be replaced: no more than a tenth, and a day.
_SPREAD: Final = 10
_SPREAD_MAX: Final = timedelta(hours=24)

#: Reasons whose drain may begin although pods are protected, if the claim has a grace period.
_EVENTUAL: Final = frozenset({EXPIRED, "Drifted"})

#: The condition of the claim that each reason needs.
_CONDITIONS: Final = {
    EMPTY: names.EMPTY_CONDITION,
    "Drifted": names.DRIFTED_CONDITION,
    "Rebalance": names.REBALANCE_CONDITION,
}

_Rule = Callable[[NodeClaim, Node, NodePool, Snapshot, datetime], str | None]


def unfounded_choice(
    claim: NodeClaim, node: Node, reason: str, snapshot: Snapshot, now: datetime
) -> str | None:
    """Why the reason does not hold for the node now; None where it does, or is not known here."""
    type_, rule = _CONDITIONS.get(reason), _RULES.get(reason)
    if type_ is None and rule is None:
        return None
    pool = snapshot.pools.get(claim.pool_name)
    if pool is None or pool.spec.replicas is not None:
        return "its NodePool is gone, or has spec.replicas: no node of it is a candidate"
    if type_ is not None and not claim.is_true(type_):
        return f"its condition {type_} is not True"
    return rule(claim, node, pool, snapshot, now) if rule is not None else None


def _not_empty(
    claim: NodeClaim, node: Node, pool: NodePool, snapshot: Snapshot, now: datetime
) -> str | None:
    for pod in snapshot.pods_on(node.name).values():
        if occupies(pod):
            return f"pod {pod.key} is on Node {node.name}, which is not empty"
    if (coming := _coming(node, snapshot)) is not None:
        return coming
    after, said = span_of(pool.spec.disruption.consolidate_after), claim.condition("Empty")
    since = said.last_transition_time if said is not None else None
    if after is None or since is None or now < later(since, after):
        return f"it has not been empty for consolidateAfter of NodePool {pool.name}"
    return None


def _kept(
    claim: NodeClaim, node: Node, pool: NodePool, snapshot: Snapshot, now: datetime
) -> str | None:
    """Consolidation of a node with pods: its pool wants it, no pod is lost, and none came just now."""
    block = pool.spec.disruption
    after = span_of(block.consolidate_after)
    if after is None or block.consolidation_policy == "WhenEmpty":
        return f"NodePool {pool.name} does not consolidate nodes with pods"
    for pod in snapshot.pods_on(node.name).values():
        if not occupies(pod):
            continue
        if not any(one.controller for one in pod.metadata.owner_references):
            return f"pod {pod.key} is on Node {node.name}, and no controller creates it again"
        came = _bound_at(pod)
        if came is not None and now < later(came, after):
            return f"pod {pod.key} came to Node {node.name} within consolidateAfter"
    return _coming(node, snapshot)


def _coming(node: Node, snapshot: Snapshot) -> str | None:
    for pod in snapshot.pods_coming_to(node.name).values():
        if occupies(pod):
            return f"the scheduler is about to bind pod {pod.key} to Node {node.name}"
    return None


def _bound_at(pod: Pod) -> datetime | None:
    told = (one for one in pod.status.conditions if one.type == "PodScheduled")
    return next((one.last_transition_time for one in told if one.status == "True"), None)


def occupies(pod: Pod) -> bool:
    """Whether the pod would move, or be lost, with its node."""
    owners = {one.kind for one in pod.metadata.owner_references if one.controller}
    if pod.finished or owners & {"DaemonSet", "Node"}:
        return False
    return not pod.deleting or "StatefulSet" in owners


def _not_expired(
    claim: NodeClaim, node: Node, pool: NodePool, snapshot: Snapshot, now: datetime
) -> str | None:
    return too_young(claim, now, spread=True)


def too_young(claim: NodeClaim, now: datetime, *, spread: bool) -> str | None:
    """``spread``: it may be replaced a little before its time."""
    age = span_of(claim.spec.expire_after)
    if age is None or age <= timedelta():
        return "it does not expire"
    due = later(claim.created_at, age)
    if spread:
        due = earlier(due, min(age / _SPREAD, _SPREAD_MAX))
    return f"it expires at {format_time(due)} at the earliest" if now < due else None


_RULES: Final[Mapping[str, _Rule]] = {
    EMPTY: _not_empty,
    EXPIRED: _not_expired,
    UNDERUTILIZED: _kept,
}


def protected_pods(
    claim: NodeClaim,
    node: Node,
    reason: str,
    snapshot: Snapshot,
    settings: Settings,
    now: datetime,
) -> str | None:
    """Which pod of the Node is protected and blocks it."""
    if reason in _EVENTUAL and span_of(claim.spec.termination_grace_period) is not None:
        return None
    cap = protection_cap(node, snapshot)
    for _, pod in sorted(snapshot.pods_on(node.name).items()):
        if pod.mirror or pod.tolerates_disruption:
            continue
        until = protected_until(pod, cap=cap, clock=settings.protection_clock)
        if until is not None and now < until:
            return f"pod {pod.key} is on it, and {why_protected(pod, until)}"
    return None
