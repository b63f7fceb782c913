"""What the price rules are asked with, read from a simulation: the nodes that go, and all offerings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from tenure.core.disrupt.consolidation.figures import disruption_cost, price_at, price_of
from tenure.core.disrupt.consolidation.prices import Offered, Types
from tenure.core.disrupt.simulate import LeavingNode, Simulation
from tenure.core.facts import Fact
from tenure.core.pool.lookup import capacity_of
from tenure.core.provision.reserved import requirements_of
from tenure.model.api.names import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.settings import Settings
from tenure.packing.consolidate.facts import PriceUnknown
from tenure.packing.consolidate.question import Candidate
from tenure.packing.consolidate.rules import PriceRules


def offered_in(simulation: Simulation, settings: Settings, now: datetime) -> Offered:
    return Offered(
        types={
            template.pool: {one.name: one for one in template.instance_types}
            for template in simulation.capacity.templates
        },
        dry=frozenset(key for key, until in simulation.capacity.dry.items() if until > now),
        rules=PriceRules(
            spot_to_spot=settings.spot_to_spot_consolidation, fee_cpus=settings.node_fee_cpus
        ),
    )


def going_of(leaving: Iterable[LeavingNode], offered: Offered) -> list[Candidate] | Fact:
    """What the nodes cost; or that it is not known."""
    found = []
    for one in leaving:
        pool, labels = one.claim.pool_name, one.node.labels
        instance_type, term = labels.get(INSTANCE_TYPE, ""), labels.get(CAPACITY_TYPE, "")
        price = price_of(one.node, offered.types.get(pool, {}))
        if price is None:
            return PriceUnknown(instance_type, term)
        candidate = Candidate(
            name=one.node.name,
            pool=pool,
            price=price,
            instance_type=instance_type,
            capacity_type=term,
            cost=disruption_cost(one.pods),
            capacity=capacity_of(one.claim, one.node.capacity),
        )
        found.append(candidate)
    return found


def prices_of(came: Sequence[NodeClaim], offered: Offered) -> list[int] | Fact:
    """What replacements cost that exist: at the most, where they are not launched yet."""
    found = []
    for one in came:
        types = offered.types.get(one.pool_name, {})
        price = price_at(one.labels, types) if one.launched else _worst(one, types)
        if not price:
            labels = one.labels
            return PriceUnknown(labels.get(INSTANCE_TYPE, ""), labels.get(CAPACITY_TYPE, ""))
        found.append(price)
    return found


def _worst(claim: NodeClaim, types: Types) -> int:
    """Of all that it may be launched as; 0: there is no such price."""
    wanted = requirements_of(claim)
    if wanted is None:
        return 0
    listed, zones, terms = map(wanted.allowed, (INSTANCE_TYPE, ZONE, CAPACITY_TYPE))
    prices = (
        one.price
        for name, kind in types.items()
        if listed.has(name)
        for one in kind.offerings
        if zones.has(one.zone) and terms.has(one.capacity_type)
    )
    return max(prices, default=0)
