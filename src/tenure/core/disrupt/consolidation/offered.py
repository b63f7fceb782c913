"""What the price rules are asked with, read from a simulation: the nodes that go, and all offerings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from tenure.core.disrupt.consolidation.figures import price_at, price_of
from tenure.core.disrupt.consolidation.prices import Going, Rules, Types
from tenure.core.disrupt.simulate import LeavingNode, Simulation
from tenure.core.facts import Fact
from tenure.model.api.names import CAPACITY_TYPE, INSTANCE_TYPE
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.settings import Settings
from tenure.packing.consolidate.facts import PriceUnknown

#: A cpu is worth a part of what a cpu costs at the least: nodes have memory, too.
_PART_OF_CPU: Final = 0.5
_NANO: Final = 1_000_000_000


def types_in(simulation: Simulation) -> dict[str, Types]:
    """By pool, and by name."""
    return {
        template.pool: {one.name: one for one in template.instance_types}
        for template in simulation.capacity.templates
    }


def going_of(leaving: Iterable[LeavingNode], simulation: Simulation) -> list[Going] | Fact:
    """What the nodes cost; or that it is not known."""
    types, found = types_in(simulation), []
    for one in leaving:
        labels = one.node.labels
        instance_type, term = labels.get(INSTANCE_TYPE, ""), labels.get(CAPACITY_TYPE, "")
        price = price_of(one.node, types.get(one.claim.pool_name, {}))
        if price is None:
            return PriceUnknown(instance_type, term)
        found.append(Going(price, instance_type, term))
    return found


def launched_price(came: Sequence[NodeClaim], simulation: Simulation) -> int:
    """What replacements cost that are launched. One that is not yet was created by the same rules."""
    types = types_in(simulation)
    prices = (price_at(one.labels, types.get(one.pool_name, {})) for one in came if one.launched)
    return sum(price or 0 for price in prices)


def rules_of(simulation: Simulation, settings: Settings, now: datetime) -> Rules:
    types = types_in(simulation)
    return Rules(
        types=types,
        dry=frozenset(key for key, until in simulation.capacity.dry.items() if until > now),
        spot_to_spot=settings.spot_to_spot_consolidation,
        fee=settings.node_fee_cpus * _PART_OF_CPU * _cpu_price(types.values()),
    )


def _cpu_price(types: Iterable[Types]) -> float:
    """The least that a cpu costs."""
    return min(
        (
            one.price * _NANO / cpus
            for each in types
            for kind in each.values()
            if (cpus := kind.allocatable.get("cpu", 0)) > 0
            for one in kind.offerings
            if one.available and one.price > 0
        ),
        default=0.0,
    )
