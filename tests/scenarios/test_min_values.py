"""``minValues`` that cannot be met, under both policies, and a catalogue that changes or is empty."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.cli.cluster.embedded import scene_of
from tenure.cli.cluster.question import Question
from tenure.cli.explain.explanation import explanation
from tenure.cli.explain.text import as_text
from tenure.core.facts import Fact
from tenure.core.pool.facts import NoTypeListed, NoTypeMeets, NoZoneMeets, TooFewForMinValues
from tenure.core.reasons import Reason
from tenure.model.api.names import MIN_VALUES_RELAXED
from tenure.model.api.resource import EVENTS, NODE_CLAIMS, NODE_POOLS, PODS
from tenure.model.cloud.offering import InstanceType
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


def on_pool(told: Story) -> tuple[str, tuple[Fact, ...]]:
    (verdict,) = told.controller.evaluator.about("NodePool", "general")
    return verdict.reason, verdict.facts


def on_pod(told: Story, name: str) -> str:
    found = told.controller.evaluator.about("Pod", name, "default")
    assert {one.reason for one in found} == {Reason.FAILED_SCHEDULING}
    return found[0].message


@pytest.mark.parametrize("policy", ["Strict", "BestEffort"])
def test_min_values_that_no_pod_can_meet_are_told_of_the_pool_and_the_pod(policy: str) -> None:
    """One of the two types is sold no longer."""
    with story(policy) as told:
        told.run(MINUTE)
        assert on_pool(told)[0] == Reason.POOL_CURRENT
        sold = told.cloud.types
        sell(told, *(one for one in sold if one.name != "m7i.large"))
        told.apply(a_pod("web"))
        told.run(3 * MINUTE)
        if policy == "BestEffort":
            assert on_pool(told)[0] == Reason.POOL_CURRENT
            assert told.the(PODS)["spec"]["nodeName"]
            return
        few = TooFewForMinValues(INSTANCE_TYPE, 2, 1)
        assert on_pool(told) == (Reason.NO_COMPATIBLE_INSTANCE_TYPES, (few,))
        assert "too few for minValues 2 of node.kubernetes.io/instance-type" in on_pod(told, "web")
        events = [one for one in told.all(EVENTS) if one["reason"] == "NoCompatibleInstanceTypes"]
        (event,) = events
        assert (event["involvedObject"]["kind"], event["type"]) == ("NodePool", "Warning")
        sell(told, *sold)
        told.run(3 * MINUTE)
        assert on_pool(told)[0] == Reason.POOL_CURRENT
        assert told.the(PODS)["spec"]["nodeName"]


def sell(told: Story, *kinds: InstanceType) -> None:
    """Tenure hears of it at once."""
    told.cloud.sell(kinds)
    told.controller.inventory.node_classes_changed()


def test_strictly_a_pod_that_only_one_type_holds_is_told() -> None:
    with story("Strict", a_pod("large", cpu="6")) as told:
        told.run(3 * MINUTE)
        assert not told.all(NODE_CLAIMS)
        assert "1 too small" in on_pod(told, "large")
        assert "1 fits, too few for minValues 2" in on_pod(told, "large")
        assert on_pool(told)[0] == Reason.POOL_CURRENT, "smaller pods get a node"


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
        assert on_pod(told, "web") == "NodePool general: the NodePool has no instance types"
        listed = NoTypeListed("KWOKNodeClass default")
        assert on_pool(told) == (Reason.NO_COMPATIBLE_INSTANCE_TYPES, (listed,))
        told.cloud.sell(sold)
        told.run(30 * MINUTE)
        assert told.the(PODS)["spec"]["nodeName"]


def test_requirements_that_no_type_meets_are_told_of_the_pool() -> None:
    odd = {"key": "kubernetes.io/arch", "operator": "In", "values": ["s390x"]}
    with Story(a_node_class(), a_pool(requirements=[odd]), a_pod("web")) as told:
        told.run(3 * MINUTE)
        none = NoTypeMeets(59, "kubernetes.io/arch In [s390x]")
        assert on_pool(told) == (Reason.NO_COMPATIBLE_INSTANCE_TYPES, (none,))
        text = explained(told)
    assert "requires kubernetes.io/arch In [s390x], 0 of 59 instance types meet that" in text
    assert "Correct spec.template.spec.requirements" in text


def test_types_that_only_several_requirements_exclude_are_counted() -> None:
    """g5 is sold, and arm64 is; not together."""
    odd = [
        {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]},
        {"key": "karpenter.kwok.sh/instance-family", "operator": "In", "values": ["g5"]},
    ]
    with Story(a_node_class(), a_pool(requirements=odd)) as told:
        told.run(3 * MINUTE)
        assert on_pool(told) == (Reason.NO_COMPATIBLE_INSTANCE_TYPES, (NoTypeMeets(59),))


def test_zones_that_the_provider_does_not_have_are_told_with_those_that_it_has() -> None:
    """A pool of a team's own in ``tenure up``: nothing but the zones is in the way."""
    own = {
        "key": "topology.kubernetes.io/zone",
        "operator": "In",
        "values": ["us-east-1a", "us-east-1b"],
    }
    with Story(a_node_class(), a_pool(requirements=[own]), a_pod("web")) as told:
        told.run(3 * MINUTE)
        wanted = NoZoneMeets("zone us-east-1a or us-east-1b", ("zone-a", "zone-b", "zone-c"))
        assert on_pool(told) == (Reason.NO_COMPATIBLE_INSTANCE_TYPES, (wanted,))
        text = explained(told)
    assert "the NodePool requires zone us-east-1a or us-east-1b, the provider has" in text
    assert "Allow zone-a, zone-b, zone-c in spec.template.spec.requirements" in text


def explained(told: Story) -> str:
    answer = explanation(Question(NODE_POOLS, "general"), scene_of(told))
    assert answer is not None
    return as_text(answer)
