"""Beside Karpenter, in virtual time: the budgets of a NodePoolPolicy are kept by levers.

No Karpenter runs here: what it would do to an open Node, the story does by hand.
"""

from __future__ import annotations

from typing import Any

from tenure.model.api import names
from tenure.model.api import resource as r
from tenure.model.api.meta import format_time
from tenure.sim.scenario.dsl import Story
from tenure.sim.world import DEFAULT_EPOCH
from tests.scenarios.test_beside_karpenter import MINUTE, beside, freeze


def policy(*budgets: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "tenure.dev/v1alpha1",
        "kind": "NodePoolPolicy",
        "metadata": {"name": "slow"},
        "spec": {"budgets": list(budgets)},
    }


def annotations_of(node: Any) -> dict[str, str]:
    found: dict[str, str] = node["metadata"].get("annotations") or {}
    return found


def open_nodes(story: Story) -> list[str]:
    nodes = (one for one in story.all(r.NODES) if names.DO_NOT_DISRUPT not in annotations_of(one))
    return sorted(one["metadata"]["name"] for one in nodes)


def claim_of(story: Story, node: str) -> Any:
    (found,) = (one for one in story.all(r.NODE_CLAIMS) if one["status"].get("nodeName") == node)
    return found


def taint(story: Story, node: str) -> None:
    taints = [{"key": names.DISRUPTED_TAINT, "effect": "NoSchedule"}]
    story.store.patch(r.NODES, "", node, {"spec": {"taints": taints}})


def gone(story: Story, node: str) -> None:
    """Its claim and the Node, finalizers or not, and the instance."""
    claim = claim_of(story, node)
    name = claim["metadata"]["name"]
    story.cloud.vanish(claim["status"]["providerID"])
    for resource, one in ((r.NODE_CLAIMS, name), (r.NODES, node)):
        story.store.patch(resource, "", one, {"metadata": {"finalizers": None}})
        story.store.delete(resource, "", one)


def starts(story: Story) -> list[Any]:
    found: list[Any] = story.the(r.NODE_POOL_POLICIES)["status"].get("disruptionStarts") or []
    return found


def test_one_node_at_a_time_is_left_open_and_the_next_when_it_is_gone() -> None:
    with beside(policy({"nodes": "1"}), spread=True) as story:
        nodes = len(story.all(r.NODES))
        assert nodes > 2
        (first,) = open_nodes(story)
        held = next(one for one in story.all(r.NODES) if one["metadata"]["name"] != first)
        assert (
            annotations_of(held)[names.DO_NOT_DISRUPT_BECAUSE] == "budgets of NodePoolPolicy slow"
        )
        taint(story, first)
        story.run(2 * MINUTE)
        assert open_nodes(story) == [first], "it leaves, so no other may go"
        gone(story, first)
        story.run(MINUTE)
        (second,) = open_nodes(story)
        assert second != first
        assert story.checkers.asked["open beyond budgets"] == 1
        assert not starts(story), "no budget counts starts"


def test_departures_are_remembered_and_hold_the_pool_for_the_span() -> None:
    with beside(policy({"nodes": "1", "within": "30m"}), spread=True) as story:
        (first,) = open_nodes(story)
        taint(story, first)
        at = story.now
        story.run(MINUTE)
        (start,) = starts(story)
        assert (start["pool"], start["claim"]) == (
            "general",
            claim_of(story, first)["metadata"]["uid"],
        )
        gone(story, first)
        story.run(20 * MINUTE)
        assert open_nodes(story) == [], "one has left in this half hour"
        story.crash()
        story.run(5 * MINUTE)
        assert (open_nodes(story), len(starts(story))) == ([], 1), "a restart forgets nothing"
        story.run_until(at + 32 * MINUTE)
        assert (len(open_nodes(story)), starts(story)) == (1, [])


def test_without_the_policy_every_lever_goes_and_with_a_window_all_are_covered() -> None:
    with beside(policy({"nodes": "1"}), spread=True) as story:
        nodes = len(story.all(r.NODES))
        story.apply(freeze(0 * MINUTE, 30 * MINUTE))
        story.run(MINUTE)
        assert open_nodes(story) == []
        story.run_until(DEFAULT_EPOCH + 31 * MINUTE)
        assert len(open_nodes(story)) == 1
        story.store.delete(r.NODE_POOL_POLICIES, "", "slow")
        story.run(MINUTE)
        assert len(open_nodes(story)) == nodes


def test_a_budget_that_is_closed_says_until_when() -> None:
    closed = {"nodes": "0", "schedule": "0 8 * * *", "duration": "30m"}
    with beside(policy({"nodes": "100%"}, closed), spread=True) as story:
        assert open_nodes(story) == []
        ends = format_time(DEFAULT_EPOCH + 30 * MINUTE)
        untils = {annotations_of(one)[names.DO_NOT_DISRUPT_UNTIL] for one in story.all(r.NODES)}
        assert untils == {ends}
        story.run_until(DEFAULT_EPOCH + 31 * MINUTE)
        assert len(open_nodes(story)) == len(story.all(r.NODES))
