"""Which Nodes are unhealthy beyond doubt, and which may be: both counted simply.

The breakers here count only Nodes that are unhealthy by every reading of the pool's policies, so
they are never stricter than repair itself. A repair, on the other hand, needs a Node that may be
unhealthy by some reading, for the shortest toleration that any policy names.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from tenure.model.api import names
from tenure.model.api.meta import BEGINNING, Condition, format_time, later
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool, Repair
from tenure.model.cloud.repairs import RepairAction
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.values.duration import NEVER
from tenure.safety.times import span_of

DEFAULT_MAX_UNHEALTHY: Final = "20%"
#: What makes an outage of a failure domain: so many unhealthy Nodes, of so many pools.
LEAST_UNHEALTHY: Final = 3
LEAST_POOLS: Final = 2


def open_breaker(pool: NodePool | None, snapshot: Snapshot) -> str | None:
    """Whether more Nodes of the pool are unhealthy than ``maxUnhealthy`` allows."""
    if pool is None:
        return None
    repair = pool.spec.repair
    limit = repair.max_unhealthy if repair is not None else DEFAULT_MAX_UNHEALTHY
    nodes = {**snapshot.nodes_of_pool(pool.name)}
    for claim in snapshot.claims_of_pool(pool.name).values():
        nodes |= snapshot.nodes_with_provider(claim.provider_id)
    unhealthy = sorted(name for name in nodes if _is_unhealthy(nodes[name], pool, snapshot))
    allowed = _allowed(str(limit), len(nodes))
    if len(unhealthy) <= allowed:
        return None
    return (
        f"{len(unhealthy)} of {len(nodes)} Nodes of NodePool {pool.name} are unhealthy, and "
        f"nothing is repaired above {allowed} (maxUnhealthy {limit})"
    )


def outage(claim: NodeClaim, node: Node, settings: Settings, snapshot: Snapshot) -> str | None:
    """Whether most Nodes of its zone, image or instance type are unhealthy. A probe is let through."""
    if not settings.repair_domain_breaker or _is_probe(claim, snapshot):
        return None
    for what, nodes in _domains(claim, node, snapshot):
        unhealthy: set[str] = set()
        pools: set[str] = set()
        for name in nodes.keys() & snapshot.suspect_nodes().keys():
            owner = snapshot.claim_of(nodes[name])
            pool = snapshot.pools.get(owner.pool_name) if owner is not None else None
            if pool is not None and _is_unhealthy(nodes[name], pool, snapshot):
                unhealthy.add(name)
                pools.add(pool.name)
        many = len(unhealthy) >= LEAST_UNHEALTHY and 2 * len(unhealthy) > len(nodes)
        if many and len(pools) >= LEAST_POOLS:
            return f"{len(unhealthy)} of the {len(nodes)} Nodes with {what} are unhealthy"
    return None


def unfounded(claim: NodeClaim, node: Node, snapshot: Snapshot, now: datetime) -> str | None:
    """A repair of a Node that no policy can call unhealthy for long enough."""
    pool = snapshot.pools.get(claim.pool_name)
    repair = pool.spec.repair if pool is not None else None
    due = [
        later(max(c.last_transition_time or BEGINNING, node.created_at), span)
        for c in node.status.conditions
        if (span := _shortest(c, repair, snapshot)) is not None
    ]
    if not due:
        return f"Node {node.name} has no condition that is watched"
    if now < (first := min(due)):
        return f"what is wrong with Node {node.name} is tolerated until {format_time(first)}"
    return None


def _allowed(limit: str, total: int) -> int:
    number = limit.removesuffix("%")
    if not number.isdecimal():
        return 0
    if len(number) > 9:
        return total
    return int(number) if number == limit else -(-int(number) * total // 100)


def _is_unhealthy(node: Node, pool: NodePool, snapshot: Snapshot) -> bool:
    if node.plainly_healthy:
        return False
    claim = snapshot.claim_of(node)
    if claim is None or not (claim.registered and claim.initialized):
        return False  # It may be booting, or of another pool.
    repair = pool.spec.repair
    return any(_counts(condition, repair, snapshot) for condition in node.status.conditions)


def _counts(condition: Condition, repair: Repair | None, snapshot: Snapshot) -> bool:
    """Whether a breaker counts it by every reading: no policy switches it off or only reports it."""
    statements = snapshot.observations.repair_statements
    if any(one.action is RepairAction.NONE for one in statements):
        return False
    if repair is not None:
        entries = [one for one in repair.policies if one.condition_type == condition.type]
        if any(one.toleration == NEVER or one.action == "None" for one in entries):
            return False
        if repair.default_toleration_duration == NEVER:
            return False
        if any(one.reason is not None for one in entries):
            return False
    pair = (condition.type, condition.status)
    return any((one.condition_type, one.status) == pair for one in statements)


def _shortest(condition: Condition, repair: Repair | None, snapshot: Snapshot) -> timedelta | None:
    """The shortest toleration that any policy may mean for it; None: it is not watched."""
    statements = snapshot.observations.repair_statements
    pair = (condition.type, condition.status)
    spans = [
        one.toleration
        for one in statements
        if (one.condition_type, one.status) == pair or not one.reason
    ]
    watched = any((one.condition_type, one.status) == pair for one in statements)
    for entry in repair.policies if repair is not None else ():
        if entry.condition_type == condition.type and entry.status in (None, condition.status):
            watched = True
            spans += [span] if (span := span_of(entry.toleration)) is not None else []
    if repair is not None:
        default = span_of(repair.default_toleration_duration)
        spans += [default] if default is not None else []
    return min(spans, default=None) if watched else None


def _is_probe(claim: NodeClaim, snapshot: Snapshot) -> bool:
    """Whether its pool names it as the one that is repaired first."""
    pool = snapshot.pools.get(claim.pool_name)
    if pool is None:
        return False
    keys = (names.REPAIR_PROBE, names.PROBE_BESIDE)
    return any(claim.name in pool.annotations.get(key, "").split(" ") for key in keys)


def _domains(
    claim: NodeClaim, node: Node, snapshot: Snapshot
) -> Iterator[tuple[str, dict[str, Node]]]:
    if zone := node.labels.get(names.ZONE, ""):
        yield f"zone={zone}", {**snapshot.nodes_in_zone(zone)}
    if image := claim.status.image_id:
        found: dict[str, Node] = {}
        for one in snapshot.claims_of_image(image).values():
            found |= snapshot.nodes_with_provider(one.provider_id)
        yield f"image={image}", found
    if type_ := node.labels.get(names.INSTANCE_TYPE, ""):
        yield f"instance-type={type_}", {**snapshot.nodes_of_type(type_)}
