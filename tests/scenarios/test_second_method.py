"""A second method, told in virtual time with the production loop: replaced first, then terminated."""

from __future__ import annotations

from collections.abc import Sequence

from tenure.core.decider import AnyDecider
from tenure.core.policy.deciders import deciders
from tenure.model.api.resource import NODE_CLAIMS, NODES
from tenure.model.settings import Settings
from tenure.sim.scenario.dsl import Story
from tests.builders import MINUTE, SECOND, Manifest, a_deployment, a_node_class, a_pool
from tests.core.disrupt.retired import BOTH, REASON, RETIRE
from tests.scenarios.signs import is_gone, is_leaving, is_tainted, replacement_of, says


class TwoMethods(Story):
    """The same world; Tenure has one more method in its list."""

    def choose(self, settings: Settings) -> Sequence[AnyDecider]:
        return deciders(settings, BOTH)


def a_cluster(*more: Manifest, nodes: str = "100%") -> list[Manifest]:
    # Budgets may name the reasons of the API alone; one that names none holds for all.
    budgets = {"budgets": [{"nodes": nodes}, {"nodes": "0", "reasons": ["Drifted"]}]}
    return [a_node_class(), a_pool(disruption=budgets), *more]


def retire(story: Story, node: str, value: str | None = "yes") -> None:
    story.store.patch(NODES, "", node, {"metadata": {"annotations": {RETIRE: value}}})


def the_node(story: Story) -> tuple[str, str]:
    return story.the(NODES)["metadata"]["name"], story.the(NODE_CLAIMS)["metadata"]["name"]


def test_a_retired_node_is_replaced_first_and_then_terminates() -> None:
    with TwoMethods(*a_cluster(a_deployment(replicas=3))) as story:
        story.run(5 * MINUTE)
        node, claim = the_node(story)
        retire(story, node)
        story.run(3 * SECOND)
        new = replacement_of(story, claim)
        assert new is not None
        story.run_while(lambda: not is_tainted(story, node), at_most=MINUTE, step=SECOND)
        story.run(SECOND)
        assert says(story, claim, "DisruptionReason") == ("True", REASON)
        name = new["metadata"]["name"]
        while says(story, name, "Initialized") != ("True", "Initialized"):
            assert not is_leaving(story, claim)
            assert story.running("web") == 3
            story.run(SECOND)
        story.run(5 * MINUTE)
        assert is_gone(story, claim)
        assert story.running("web") == 3
        assert story.cloud.launch_count == 2


def test_a_budget_without_reasons_blocks_it() -> None:
    with TwoMethods(*a_cluster(a_deployment(), nodes="0")) as story:
        story.run(5 * MINUTE)
        node, claim = the_node(story)
        retire(story, node)
        story.run(10 * MINUTE)
        assert not is_leaving(story, claim)
        assert not is_tainted(story, node)
        assert story.cloud.launch_count == 1


def test_a_node_that_is_no_longer_retired_takes_pods_again() -> None:
    with TwoMethods(*a_cluster(a_deployment(replicas=3))) as story:
        story.run(5 * MINUTE)
        node, claim = the_node(story)
        retire(story, node)
        story.run_while(lambda: not is_tainted(story, node), at_most=MINUTE, step=SECOND)
        retire(story, node, None)
        story.run(5 * SECOND)
        assert not is_tainted(story, node)
        assert says(story, claim, "DisruptionReason") is None
        story.run(10 * MINUTE)
        assert not is_leaving(story, claim)
        assert story.running("web") == 3
