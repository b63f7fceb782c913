"""Prices of spot go up and down: nodes become spot once, and nothing moves back and forth.

Stories begin on a Monday at 08:00 UTC. The checkers of budgets, windows and replacements are on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from tenure.model.api.names import CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS
from tenure.model.cloud.offering import InstanceType, Offering
from tenure.model.settings import Settings
from tenure.sim.scenario.dsl import Story
from tenure.sim.world import WorldOptions
from tests.builders import HOUR, MINUTE, a_deployment, a_node_class, a_pool, a_requirement
from tests.scenarios.fleets import ANY, uids
from tests.scenarios.test_consolidation import settled, spot_prices

BOTH = a_requirement(CAPACITY_TYPE, "on-demand", "spot")
QUIET = {"budgets": ANY, "consolidateAfter": "30s"}


def terms(story: Story) -> Counter[str]:
    labels = [one["metadata"]["labels"] for one in story.store.list(NODE_CLAIMS)]
    return Counter(one.get(CAPACITY_TYPE, "") for one in labels)


def apart(app: str) -> dict[str, object]:
    """Each pod on a node of its own."""
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def swing(story: Story, percents: Iterable[int]) -> None:
    """An hour at each of these prices, in percent of on-demand."""
    for percent in percents:
        story.cloud.change_prices(spot_prices(percent))
        story.run(HOUR)


@pytest.mark.parametrize("types", [("m7i.4xlarge",), ("t4g.small", "m7i.large", "m7i.4xlarge")])
def test_spot_nodes_stay_when_their_price_rises_above_on_demand(types: tuple[str, ...]) -> None:
    """While on-demand is cheaper, new nodes would be on-demand; those that are spot do not move."""
    wanted = {"requirements": [BOTH, a_requirement(INSTANCE_TYPE, *types)]}
    pool = a_pool(template=wanted, disruption=QUIET)
    pods = a_deployment(replicas=4, cpu="14" if len(types) == 1 else "1", affinity=apart("web"))
    with Story(a_node_class(), pool, pods) as story:
        story.cloud.change_prices(spot_prices(40))
        story.run(30 * MINUTE)
        there, launched = uids(story), story.cloud.launch_count
        assert terms(story) == {"spot": 4}
        swing(story, (140, 40) * 4)
        assert (uids(story), story.cloud.launch_count) == (there, launched)
        story.checkers.assert_kept()


def test_small_on_demand_nodes_become_spot_once() -> None:
    """A node of two cpus costs less than the fee of a node, and becomes spot for 37 % less all the same.
    Then spot goes up and down by more than half, and nothing moves any more."""
    small = a_requirement(INSTANCE_TYPE, "t4g.small")
    pool = a_pool(requirements=[small], disruption=QUIET)
    pods = a_deployment(replicas=6, cpu="1500m", affinity=apart("web"))
    with Story(a_node_class(), pool, pods) as story:
        story.cloud.change_prices(spot_prices(63))
        story.run(10 * MINUTE)
        assert terms(story) == {"on-demand": 6}
        wanted = {"template": {"spec": {"requirements": [BOTH, small]}}}
        story.store.patch(NODE_POOLS, "", "general", {"spec": wanted})
        story.run(HOUR)
        assert terms(story) == {"spot": 6}
        there, launched = uids(story), story.cloud.launch_count
        swing(story, (95, 120, 45, 103, 63) * 2)
        assert (uids(story), story.cloud.launch_count) == (there, launched)
        assert settled(story)
        story.checkers.assert_kept()


def cheaper(family: str) -> Any:
    """Spot of this family is a fifth cheaper than of the others."""

    def price(kind: InstanceType, one: Offering) -> int:
        spot = 120_000 if kind.name.startswith(family) else 150_000
        return spot if one.capacity_type == "spot" else one.price

    return price


def test_spot_nodes_do_not_follow_prices_that_swing_from_family_to_family() -> None:
    """With the feature gate, and several nodes at once, for which fifteen types are not asked for."""
    options = WorldOptions(settings=Settings(spot_to_spot_consolidation=True))
    types = a_requirement(INSTANCE_TYPE, "m7i.2xlarge", "m7g.2xlarge")
    wanted = {"requirements": [a_requirement(CAPACITY_TYPE, "spot"), types]}
    pool = a_pool(template=wanted, disruption=QUIET)
    pods = a_deployment(replicas=4, cpu="5")
    with Story(a_node_class(), pool, pods, options=options) as story:
        story.cloud.change_prices(cheaper("m7i"))
        story.run(2 * HOUR)
        there, launched = uids(story), story.cloud.launch_count
        for family in ("m7g", "m7i") * 4:
            story.cloud.change_prices(cheaper(family))
            story.run(HOUR)
        assert (uids(story), story.cloud.launch_count) == (there, launched)
        story.checkers.assert_kept()
