"""What prices, catalogues and reservations mean to consolidation, with the reasons that are told.

Stories begin on a Monday at 08:00 UTC. The checkers of budgets, windows and replacements are on.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

from tenure.cli.cluster.embedded import scene_of
from tenure.cli.cluster.question import Question
from tenure.cli.explain.explanation import explanation
from tenure.cli.explain.text import as_text
from tenure.cli.plan.planning import plan_of
from tenure.core.facts import Fact
from tenure.core.reasons import Reason
from tenure.model.api.names import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, NODES
from tenure.model.cloud.offering import InstanceType, Offering
from tenure.model.settings import Settings
from tenure.packing.consolidate.facts import (
    NoCheaperReplacement,
    PriceUnknown,
    SpotToSpotDisabled,
    TooFewSpotTypes,
)
from tenure.sim.scenario.dsl import Story
from tenure.sim.world import WorldOptions
from tests.builders import (
    HOUR,
    MINUTE,
    SECOND,
    a_deployment,
    a_node_class,
    a_pool,
    a_requirement,
    apart,
)
from tests.packing.test_reserved import RESERVED, reserved
from tests.scenarios.fleets import ANY, scale, uids
from tests.scenarios.test_consolidation import dollars, settled

QUIET = {"budgets": ANY, "consolidateAfter": "30s"}
SPOT = a_requirement(CAPACITY_TYPE, "spot")


def why(story: Story) -> set[Fact]:
    """What each node says of its consolidation first."""
    verdicts = story.controller.evaluator
    return {
        verdict.facts[0]
        for node in story.all(NODES)
        for verdict in verdicts.about("Node", node["metadata"]["name"])
        if verdict.reason is Reason.UNCONSOLIDATABLE
    }


def types(story: Story) -> Counter[str]:
    return Counter(one["metadata"]["labels"][INSTANCE_TYPE] for one in story.all(NODE_CLAIMS))


def allow(story: Story, *requirements: dict[str, Any]) -> None:
    wanted = {"template": {"spec": {"requirements": list(requirements)}}}
    story.store.patch(NODE_POOLS, "", "general", {"spec": wanted})


# -- spot by spot --------------------------------------------------------------------------------


def one_spot_node(*, gate: bool) -> Story:
    """A pod is left on a spot node that had ten; the pool allows one type."""
    options = WorldOptions(settings=Settings(spot_to_spot_consolidation=gate))
    large = a_requirement(INSTANCE_TYPE, "m7i.4xlarge")
    pool = a_pool(template={"requirements": [SPOT, large]}, disruption=QUIET)
    story = Story(a_node_class(), pool, a_deployment(replicas=10, cpu="1"), options=options)
    story.run(5 * MINUTE)
    scale(story, 1)
    return story


def test_a_spot_node_stays_without_the_feature_gate_and_names_it() -> None:
    with one_spot_node(gate=False) as story:
        allow(story, SPOT)
        there = uids(story)
        story.run(HOUR)
        assert uids(story) == there
        assert why(story) == {SpotToSpotDisabled()}
        (node,) = story.all(NODES)
        text = explained(story, node["metadata"]["name"])
        assert "To allow it, set --feature-gates=SpotToSpotConsolidation=true." in text


def test_with_the_gate_a_spot_node_needs_fifteen_cheaper_types() -> None:
    few = a_requirement(INSTANCE_TYPE, "m7i.4xlarge", "m7i.xlarge", "m7i.large", "c7i.large")
    with one_spot_node(gate=True) as story:
        allow(story, SPOT, few)
        there = uids(story)
        story.run(HOUR)
        assert uids(story) == there
        assert why(story) == {TooFewSpotTypes(3, 15)}
        allow(story, SPOT)
        story.run(HOUR)
        (claim,) = story.all(NODE_CLAIMS)
        assert claim["metadata"]["labels"][CAPACITY_TYPE] == "spot"
        (listed,) = (one for one in claim["spec"]["requirements"] if one["key"] == INSTANCE_TYPE)
        assert len(listed["values"]) == 15
        assert story.running("web") == 1
        assert settled(story)
        story.checkers.assert_kept()


def spot_prices(**by_type: int) -> Any:
    def price(kind: InstanceType, one: Offering) -> int:
        wanted = by_type.get(kind.name.replace(".", "_"))
        return wanted if wanted is not None and one.capacity_type == "spot" else one.price

    return price


@pytest.mark.parametrize("gate", [False, True])
def test_several_spot_nodes_become_one_with_the_gate_alone(gate: bool) -> None:
    """They become fewer, so fifteen types are not asked for; each by itself is cheaper than the other type."""
    options = WorldOptions(settings=Settings(spot_to_spot_consolidation=gate))
    small = a_requirement(INSTANCE_TYPE, "m7i.large")
    both = a_requirement(INSTANCE_TYPE, "m7i.large", "t4g.2xlarge")
    pool = a_pool(template={"requirements": [SPOT, small]}, disruption=QUIET)
    pods = a_deployment(replicas=12, cpu="500m")
    with Story(a_node_class(), pool, pods, options=options) as story:
        story.cloud.change_prices(spot_prices(m7i_large=40_000, t4g_2xlarge=100_000))
        story.run(5 * MINUTE)
        assert types(story) == {"m7i.large": 4}
        allow(story, SPOT, both)
        story.run(HOUR)
        assert types(story) == ({"t4g.2xlarge": 1} if gate else {"m7i.large": 4})
        assert story.running("web") == 12
        assert settled(story)
        story.checkers.assert_kept()


# -- no price ------------------------------------------------------------------------------------


def explained(story: Story, node: str) -> str:
    answer = explanation(Question(NODES, node), scene_of(story))
    assert answer is not None
    return as_text(answer)


def without(types: tuple[InstanceType, ...], name: str) -> tuple[InstanceType, ...]:
    return tuple(kind for kind in types if kind.name != name)


def free(types: tuple[InstanceType, ...], name: str) -> tuple[InstanceType, ...]:
    """The type has no price."""
    return tuple(
        msgspec.structs.replace(
            kind,
            offerings=tuple(msgspec.structs.replace(one, price=0) for one in kind.offerings),
        )
        if kind.name == name
        else kind
        for kind in types
    )


@pytest.mark.parametrize("change", [free, without])
def test_a_node_whose_price_goes_and_comes_back(change: Any) -> None:
    """While the provider has none, the node is no candidate, and says so; then it is replaced."""
    sizes = a_requirement(INSTANCE_TYPE, "m7i.large", "m7i.4xlarge")
    stays = {"budgets": [*ANY, {"nodes": "0", "reasons": ["Drifted"]}], "consolidateAfter": "30s"}
    pool = a_pool(requirements=[sizes], disruption=stays)
    with Story(a_node_class(), pool, a_deployment(replicas=10, cpu="1500m")) as story:
        story.run(5 * MINUTE)
        assert types(story) == {"m7i.4xlarge": 1}
        sold, there = story.cloud.types, uids(story)
        story.cloud.sell(change(sold, "m7i.4xlarge"))
        story.run(20 * MINUTE)
        scale(story, 1)
        story.run(2 * HOUR)
        assert uids(story) == there
        unknown = PriceUnknown("m7i.4xlarge", "on-demand")
        assert why(story) == {unknown}
        (node,) = story.all(NODES)
        assert f"  verdict   Unconsolidatable: {unknown}" in explained(
            story, node["metadata"]["name"]
        )
        outlook = plan_of(scene_of(story)).consolidation
        assert outlook is not None
        assert dict(outlook.stays) == {node["metadata"]["name"]: (unknown,)}
        assert (outlook.moves, outlook.price, outlook.candidates) == ((), 0, 0)
        story.cloud.sell(sold)
        story.run(HOUR)
        assert types(story) == {"m7i.large": 1}
        assert settled(story)
        story.checkers.assert_kept()


def test_no_node_is_replaced_by_a_type_without_a_price() -> None:
    sizes = a_requirement(INSTANCE_TYPE, "m7i.large", "m7i.4xlarge")
    pool = a_pool(requirements=[sizes], disruption=QUIET)
    with Story(a_node_class(), pool, a_deployment(replicas=10, cpu="1500m")) as story:
        story.run(5 * MINUTE)
        there = uids(story)
        story.cloud.sell(free(story.cloud.types, "m7i.large"))
        story.run(20 * MINUTE)
        scale(story, 1)
        story.run(2 * HOUR)
        assert uids(story) == there
        assert why(story) == {NoCheaperReplacement(887_040, 887_040, ("m7i.4xlarge",))}


# -- reserved ------------------------------------------------------------------------------------


def terms(story: Story) -> Counter[str]:
    return Counter(one["metadata"]["labels"][CAPACITY_TYPE] for one in story.all(NODE_CLAIMS))


def reserve(story: Story, instances: int, price: int) -> None:
    story.cloud.sell(
        tuple(
            reserved(kind, instances, "zone-a", price) if kind.name == "m7i.large" else kind
            for kind in story.cloud.types
        )
    )


BOTH = a_requirement(CAPACITY_TYPE, "on-demand", RESERVED)
LARGE = a_requirement(INSTANCE_TYPE, "m7i.large")


@pytest.mark.parametrize("price", [0, 1, 20_000])
def test_pods_of_on_demand_nodes_move_to_the_reserved_one_and_stay_there(price: int) -> None:
    """Three nodes for a pod each that has shrunk: what is paid for already stays, whatever it is said to cost."""
    pool = a_pool(template={"requirements": [BOTH, LARGE]}, disruption=QUIET)
    with Story(a_node_class()) as story:
        reserve(story, 1, price)
        story.apply(pool)
        story.run(MINUTE)
        story.apply(a_deployment(replicas=6, cpu="700m"))
        story.run(5 * MINUTE)
        assert terms(story) == {RESERVED: 1, "on-demand": 2}
        scale(story, 2)
        story.run(2 * HOUR)
        assert terms(story) == {RESERVED: 1}
        assert story.running("web") == 2
        assert settled(story)
        story.checkers.assert_kept()


@pytest.mark.parametrize("price", [0, 1, 20_000])
def test_a_reservation_that_is_there_later_takes_as_many_nodes_as_it_has_instances(
    price: int,
) -> None:
    pool = a_pool(template={"requirements": [BOTH, LARGE]}, disruption=QUIET)
    pods = a_deployment(replicas=3, cpu="1500m", affinity=apart())
    with Story(a_node_class(), pool, pods) as story:
        story.run(10 * MINUTE)
        assert terms(story) == {"on-demand": 3}
        reserve(story, 2, price)
        story.run(2 * HOUR)
        # Without a price it is not known to be cheaper (``docs/providers.md``).
        expected = {"on-demand": 3} if price == 0 else {RESERVED: 2, "on-demand": 1}
        assert terms(story) == expected
        assert settled(story)
        assert story.running("web") == 3
        story.checkers.assert_kept()


# -- a catalogue that changes ------------------------------------------------------------------


def emptied(_: tuple[InstanceType, ...]) -> tuple[InstanceType, ...]:
    return ()


def only_large(types: tuple[InstanceType, ...]) -> tuple[InstanceType, ...]:
    return tuple(kind for kind in types if kind.name == "m7i.4xlarge")


def dearer(types: tuple[InstanceType, ...]) -> tuple[InstanceType, ...]:
    """What is small costs as much as what is large."""
    return tuple(
        msgspec.structs.replace(
            kind,
            offerings=tuple(msgspec.structs.replace(one, price=900_000) for one in kind.offerings),
        )
        if kind.name == "m7i.large"
        else kind
        for kind in types
    )


@pytest.mark.parametrize("change", [emptied, only_large, dearer])
@pytest.mark.parametrize("seconds", range(0, 120, 20))
def test_a_catalogue_that_changes_at_any_moment_of_a_replacement(change: Any, seconds: int) -> None:
    """The node goes only once one is there that costs less; when the catalogue is back it is replaced."""
    sizes = a_requirement(INSTANCE_TYPE, "m7i.large", "m7i.4xlarge")
    stays = {"budgets": [*ANY, {"nodes": "0", "reasons": ["Drifted"]}], "consolidateAfter": "30s"}
    pool = a_pool(requirements=[sizes], disruption=stays)
    with Story(a_node_class(), pool, a_deployment(replicas=10, cpu="1500m")) as story:
        story.run(5 * MINUTE)
        sold, before = story.cloud.types, dollars(story)
        told(story, sold)
        story.at((60 + seconds) * SECOND, lambda: told(story, change(sold)))
        story.run(MINUTE)
        scale(story, 1)
        for _ in range(60):
            story.run(10 * SECOND)
            assert len(story.all(NODES)) >= 1
        assert types(story) in ({"m7i.4xlarge": 1}, {"m7i.large": 1})
        if types(story) == {"m7i.4xlarge": 1}:
            (said,) = why(story)
            assert isinstance(said, PriceUnknown | NoCheaperReplacement), said
        told(story, sold)
        story.run(HOUR)
        assert types(story) == {"m7i.large": 1}
        assert dollars(story) < before
        assert story.running("web") == 1
        assert settled(story)
        story.checkers.assert_kept()


def told(story: Story, types: tuple[InstanceType, ...]) -> None:
    """Tenure hears of it at once."""
    story.cloud.sell(types)
    story.controller.inventory.node_classes_changed()


def test_a_node_whose_offering_is_no_longer_listed_is_replaced_as_drifted() -> None:
    """The type is there, without the zone and capacity type of the node: the checkers agree that it differs."""
    pool = a_pool(requirements=[LARGE], disruption={**QUIET, "consolidateAfter": "Never"})
    with Story(a_node_class(), pool, a_deployment(replicas=1)) as story:
        story.run(5 * MINUTE)
        (zone,) = (one["metadata"]["labels"][ZONE] for one in story.all(NODE_CLAIMS))
        there = uids(story)
        story.cloud.sell(
            tuple(
                msgspec.structs.replace(
                    kind, offerings=tuple(one for one in kind.offerings if one.zone != zone)
                )
                for kind in story.cloud.types
            )
        )
        story.run(3 * HOUR)
        (left,) = (one["metadata"]["labels"][ZONE] for one in story.all(NODE_CLAIMS))
        assert left != zone
        assert not uids(story) & there
        assert story.running("web") == 1
        story.checkers.assert_kept()
