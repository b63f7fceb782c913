"""What the nodes of the pools cost, by their labels."""

from __future__ import annotations

from collections.abc import Iterable

from tenure.core.provision.remainders import Priced
from tenure.model.api.names import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from tenure.packing.demand.problem import ExistingNode, PoolTemplate


def nodes_by_price(nodes: Iterable[ExistingNode], templates: Iterable[PoolTemplate]) -> Priced:
    """By pool, the dearest first; without nodes that the cloud no longer offers."""
    types = {each.pool: {kind.name: kind for kind in each.instance_types} for each in templates}
    found: dict[str, list[tuple[int, ExistingNode]]] = {}
    for node in nodes:
        of = node.labels
        pool = of.get(NODEPOOL, "")
        kind = types.get(pool, {}).get(of.get(INSTANCE_TYPE, ""))
        for one in kind.offerings if kind is not None else ():
            if (one.zone, one.capacity_type) == (of.get(ZONE), of.get(CAPACITY_TYPE)):
                found.setdefault(pool, []).append((one.price, node))
    for known in found.values():
        known.sort(key=lambda one: (-one[0], one[1].name))
    return found
