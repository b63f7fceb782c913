"""A zone with nodes of two pools: some unhealthy, some healthy, some recovered."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from tenure.model.api import names
from tenure.model.api.meta import ApiObject
from tenure.model.api.node import Node, Taint
from tenure.model.api.nodeclaim import NodeClaim
from tests.core.build import a_claim, a_node, a_pool, ago, condition

#: The pool's own circuit breaker allows all nodes to be unhealthy at once.
REPAIR = {"defaultTolerationDuration": "5m", "maxUnhealthy": "100%"}


UNREACHABLE = Taint(key=names.UNREACHABLE_TAINT, effect="NoExecute")


def pools(probe: str = "", **repair: Any) -> list[ApiObject]:
    noted = {names.REPAIR_PROBE: probe} if probe else None
    given = REPAIR | repair
    return [a_pool("red", repair=given, annotations=noted), a_pool("blue", repair=given)]


def a_member(
    name: str,
    *,
    zone: str = "zone-c",
    unhealthy_since: datetime | None = None,
    healthy_since: datetime | None = None,
    image: str = "",
    type_: str = "",
    **claim: Any,
) -> list[NodeClaim | Node]:
    """Of the pool that its name begins with: ``red-1``. Well since its boot unless told otherwise."""
    labels = {names.NODEPOOL: name.split("-")[0], names.ZONE: zone}
    labels |= {names.INSTANCE_TYPE: type_} if type_ else {}
    ready = condition("Ready", at=healthy_since or ago(7000))
    if unhealthy_since is not None:
        ready = condition("Ready", "Unknown", "NodeStatusUnknown", at=unhealthy_since)
    up = condition("Initialized", at=ago(6000))
    about = {"conditions": (ready,)}
    node = a_node(
        f"node-{name}",
        claim=name,
        labels=labels,
        taints=[UNREACHABLE] if unhealthy_since is not None else (),
        status=about,
        creation_timestamp=ago(7200),
    )
    status = {"image_id": image} if image else {}
    given: dict[str, Any] = {
        "labels": labels,
        "creation_timestamp": ago(7200),
        "conditions": [up],
    } | claim
    return [a_claim(name, status=status, **given), node]


def members(names_: Iterable[str], **fields: Any) -> list[ApiObject]:
    return [item for name in names_ for item in a_member(name, **fields)]


def a_dead_zone(since: datetime, **fields: Any) -> list[ApiObject]:
    """Two unhealthy nodes of each pool in the zone, and one healthy node of each elsewhere."""
    dead = members(("red-1", "red-2", "blue-1", "blue-2"), unhealthy_since=since, **fields)
    return [*dead, *members(("red-8", "blue-8"), zone="zone-a")]
