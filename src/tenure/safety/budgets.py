"""Would one more node be beyond the budgets of its pool?

Counted by Karpenter's rules: a share is rounded up, the tightest budget wins, one that cannot be
read allows nothing. A node that is not initialized neither needs nor uses a budget.

A budget with ``within`` counts starts, from the record in the pool's status. It is asked until the
command is marked; then the start has happened.

While a command is planned, nodes of other commands count as leaving. When it is carried out only
nodes that are being deleted do: two commands that wait for each other would wait for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from tenure.errors import SpecError
from tenure.model.api import names
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import DEFAULT_BUDGETS, Budget, NodePool
from tenure.model.snapshot.governed import as_written, ruling_of
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.safety.reasons import is_repair
from tenure.safety.times import is_on, selects
from tenure.safety.velocity import too_fast
from tenure.schema.semantics.disruption import budget_problems


class _Counted(msgspec.Struct, frozen=True):
    node: Node
    #: The UID of its claim.
    claim: str
    #: Taken from the budget.
    taken: bool


def beyond_budgets(
    claim: NodeClaim,
    node: Node,
    reason: str,
    snapshot: Snapshot,
    now: datetime,
    *,
    planned: bool = False,
    group: frozenset[str] = frozenset(),
) -> str | None:
    """``group``: UIDs of claims that count as if they were on their way."""
    pool = snapshot.pools.get(claim.pool_name)
    if pool is None or not claim.initialized:
        return None
    return _beyond_any(pool, claim, node, reason, snapshot, now, planned=planned, group=group)


def open_beyond_budgets(
    claim: NodeClaim, node: Node, reasons: Sequence[str], snapshot: Snapshot, now: datetime
) -> str | None:
    """Beside Karpenter: would one more Node without the lever be beyond the budgets of policies, and those
    that Karpenter does not know? A Node without it counts as if it were on its way."""
    pool = snapshot.pools.get(claim.pool_name)
    if pool is None or not claim.initialized:
        return None  # Karpenter does not disrupt it before it is.
    if is_unreadable(pool):
        return f"NodePool {pool.name} cannot be read" if snapshot.pool_policies else None
    limiting = tuple(
        msgspec.structs.replace(one, reasons=())
        for one in _limiting(pool)
        if _limits(one, reasons, now)
    )
    if not limiting:
        return None  # The whole pool need not be looked at.
    block = msgspec.structs.replace(pool.spec.disruption, budgets=limiting)
    limited = msgspec.structs.replace(
        pool, spec=msgspec.structs.replace(pool.spec, disruption=block)
    )
    ahead = frozenset(_open_claims(pool, snapshot)) - {claim.uid}
    return _beyond_any(
        limited, claim, node, reasons[0], snapshot, now, planned=True, group=ahead, ahead=ahead
    )


def _limiting(pool: NodePool) -> Iterator[Budget]:
    """The budgets that Karpenter does not keep: those of policies, and those that use what it does not know.
    For whichever reason: the lever cannot tell them apart."""
    own, ruling = as_written(pool).spec.disruption.budgets, ruling_of(pool)
    found = [b for b in own if b.within or b.per or b.selector is not None or b.time_zone]
    if ruling is not None and ruling.budgets is not None:
        found += ruling.budgets[0 if own == DEFAULT_BUDGETS else len(own) :]
    return (one for one in found if one.nodes != "100%" or one.within is not None)


def _limits(budget: Budget, reasons: Sequence[str], now: datetime) -> bool:
    """Whether it may limit something now; one that cannot be read does."""
    if budget.reasons and not set(budget.reasons) & set(reasons):
        return False
    if budget.schedule is None or budget.duration is None:
        return True
    try:
        return is_on(budget.schedule, budget.duration, budget.time_zone, now)
    except (SpecError, OverflowError, ValueError):
        return True


def _open_claims(pool: NodePool, snapshot: Snapshot) -> Iterator[str]:
    for claim in snapshot.claims_of_pool(pool.name).values():
        for node in snapshot.nodes_with_provider(claim.provider_id).values():
            if node.annotations.get(names.DO_NOT_DISRUPT) != "true" and not _leaves(claim, node):
                yield claim.uid


def _leaves(claim: NodeClaim, node: Node) -> bool:
    return claim.deleting or node.deleting or node.has_taint(names.DISRUPTED_TAINT)


def _beyond_any(
    pool: NodePool,
    claim: NodeClaim,
    node: Node,
    reason: str,
    snapshot: Snapshot,
    now: datetime,
    *,
    planned: bool,
    group: frozenset[str],
    ahead: frozenset[str] = frozenset(),
) -> str | None:
    """``ahead``: UIDs of claims that may start at any moment, for budgets that count starts."""
    fleet = list(_fleet(pool, reason, snapshot, planned=planned, group=group))
    for index, budget in enumerate(pool.spec.disruption.budgets):
        try:
            said = _beyond(budget, index, node, reason, fleet, now, claim, pool, ahead)
        except (SpecError, OverflowError, ValueError) as error:
            said = f"a budget that cannot be read allows nothing: {error}"
        if said:
            return f"NodePool {pool.name}: {said}"
    return None


def _beyond(
    budget: Budget,
    index: int,
    node: Node,
    reason: str,
    fleet: list[_Counted],
    now: datetime,
    claim: NodeClaim,
    pool: NodePool,
    ahead: frozenset[str],
) -> str:
    for problem in budget_problems(budget, f"spec.disruption.budgets[{index}]"):
        return f"a budget that cannot be read allows nothing: {problem}"
    if budget.reasons and reason not in budget.reasons:
        return ""
    scheduled = budget.schedule is not None and budget.duration is not None
    if scheduled and not is_on(budget.schedule or "", budget.duration or "", budget.time_zone, now):
        return ""
    if not selects(budget.selector, node.labels):
        return ""
    group = [one for one in fleet if _is_counted(budget, node, one.node)]
    limit = _share(budget.nodes, len(group))
    if budget.within is not None:
        started = names.REPLACED_BY in claim.annotations
        limit -= sum(one.claim in ahead for one in group)
        return "" if started else too_fast(budget, limit, claim, node, pool, now)
    others = sorted(one.node.name for one in group if one.taken and one.node.name != node.name)
    if len(others) + 1 <= limit:
        return ""
    used = f"{len(others)} of them unavailable already ({', '.join(others[:3])})" if others else ""
    return f"budget {budget.nodes} allows {limit} of {len(group)} Nodes" + (used and f", {used}")


def _is_counted(budget: Budget, node: Node, other: Node) -> bool:
    if not selects(budget.selector, other.labels):
        return False
    if budget.per is None:
        return True
    key = names.NORMALIZED_LABELS.get(budget.per, budget.per)
    return node.labels.get(key) == other.labels.get(key)


def _share(nodes: str, total: int) -> int:
    if nodes.endswith("%"):
        return -(-int(nodes.removesuffix("%")) * total // 100)
    digits = nodes.lstrip("0") or "0"
    return int(digits) if len(digits) < 10 else total


def _fleet(
    pool: NodePool, reason: str, snapshot: Snapshot, *, planned: bool, group: frozenset[str]
) -> Iterator[_Counted]:
    """Our Nodes of the pool that are initialized or rebooting, until their instance ends."""
    found: dict[str, _Counted] = {}
    for claim in snapshot.claims_of_pool(pool.name).values():
        ref = claim.spec.node_class_ref
        if (ref.group, ref.kind) not in snapshot.ours or claim.instance_terminating:
            continue
        for node in snapshot.nodes_with_provider(claim.provider_id).values():
            if claim.initialized or claim.rebooting or _may_be_up(claim, node):
                taken = claim.uid in group or _is_taken(claim, node, reason, planned=planned)
                known = found.get(node.name)
                found[node.name] = _Counted(
                    node, claim.uid, taken or (known is not None and known.taken)
                )
    yield from found.values()


def _may_be_up(claim: NodeClaim, node: Node) -> bool:
    """Of a claim that cannot be read: its Node says that it is initialized, or it leaves."""
    leaves = claim.deleting or node.deleting or names.REPLACED_BY in claim.annotations
    leaves |= node.has_taint(names.DISRUPTED_TAINT)
    return is_unreadable(claim) and (leaves or node.labels.get(names.INITIALIZED) == "true")


def _is_taken(claim: NodeClaim, node: Node, reason: str, *, planned: bool) -> bool:
    if claim.deleting or node.deleting or claim.rebooting:
        return True
    if planned and (
        names.REPLACED_BY in claim.annotations or node.has_taint(names.DISRUPTED_TAINT)
    ):
        return True
    return not is_repair(reason) and not node.ready
