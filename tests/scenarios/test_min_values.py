"""``minValues`` that cannot be met, under both policies, and a catalogue that changes or is empty."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.model.api.names import MIN_VALUES_RELAXED
from tenure.model.api.resource import NODE_CLAIMS, PODS
from tenure.model.settings import Settings
from tenure.sim.scenario.dsl import Story
from tenure.sim.world import WorldOptions
from tests.builders import MINUTE, a_node_class, a_pod, a_pool

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
TWO = {
    "key": INSTANCE_TYPE,
    "operator": "In",
    "values": ["m7i.large", "m7i.2xlarge"],
    "minValues": 2,
}


def story(policy: str, *pods: dict[str, Any]) -> Story:
    options = WorldOptions(settings=Settings(min_values_policy=policy))
    return Story(a_node_class(), a_pool(requirements=[TWO]), *pods, options=options)


def test_strictly_a_pod_that_only_one_type_holds_is_told() -> None:
    with story("Strict", a_pod("large", cpu="6")) as told:
        told.run(3 * MINUTE)
        assert not told.all(NODE_CLAIMS)
        assert told.reasons("Pod/default/large")[-1] == "FailedScheduling"


def test_as_a_wish_the_claim_is_made_and_marked() -> None:
    with story("BestEffort", a_pod("large", cpu="6")) as told:
        told.run(3 * MINUTE)
        claim = told.the(NODE_CLAIMS)
        assert told.the(PODS)["spec"]["nodeName"]
    assert claim["metadata"]["annotations"][MIN_VALUES_RELAXED] == "true"
    (listed,) = (one for one in claim["spec"]["requirements"] if one["key"] == INSTANCE_TYPE)
    assert (listed["values"], listed["minValues"]) == (["m7i.2xlarge"], 1)


@pytest.mark.parametrize("policy", ["Strict", "BestEffort"])
def test_a_claim_with_enough_values_is_not_marked(policy: str) -> None:
    with story(policy, a_pod("small")) as told:
        told.run(3 * MINUTE)
        claim = told.the(NODE_CLAIMS)
    assert claim["metadata"]["annotations"][MIN_VALUES_RELAXED] == "false"


def test_an_empty_catalogue_is_told_and_one_that_comes_back_is_used() -> None:
    """The cloud lists nothing for half an hour: pods wait and say why, and nothing fails."""
    with Story(a_node_class(), a_pool()) as told:
        told.run(1 * MINUTE)
        sold = told.cloud.types
        told.cloud.sell(())
        told.run(30 * MINUTE)
        told.apply(a_pod("web"))
        told.run(5 * MINUTE)
        assert not told.all(NODE_CLAIMS)
        assert told.reasons("Pod/default/web")[-1] == "FailedScheduling"
        told.cloud.sell(sold)
        told.run(30 * MINUTE)
        assert told.the(PODS)["spec"]["nodeName"]
