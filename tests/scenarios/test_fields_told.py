"""What a newcomer sees on a NodePool whose fields do not act, or differ from Karpenter: one event, for ever."""

from __future__ import annotations

from typing import Any

from tenure.model.api.resource import EVENTS, NODE_POOLS
from tenure.sim.scenario.dsl import Story
from tests.builders import MINUTE, a_node_class, a_pool


def events(story: Story, reason: str) -> list[dict[str, Any]]:
    return [one for one in story.store.list(EVENTS) if one["reason"] == reason]


def test_a_field_that_differs_is_told_once_and_a_restart_does_not_repeat_it() -> None:
    with Story(a_node_class(), a_pool(template={"expireAfter": "168h"})) as story:
        story.run(2 * MINUTE)
        (event,) = events(story, "FieldsDiffer")
        assert event["involvedObject"]["kind"] == "NodePool"
        assert "spec.template.spec.expireAfter differs from Karpenter" in event["message"]
        story.store.delete(EVENTS, event["metadata"]["namespace"], event["metadata"]["name"])
        story.crash()
        story.run(2 * MINUTE)
        assert events(story, "FieldsDiffer") == [], "the pool's condition remembers it"


def test_a_pool_that_sets_what_nothing_acts_on_says_so() -> None:
    with Story(a_node_class(), a_pool(replicas=3)) as story:
        story.run(2 * MINUTE)
        (event,) = events(story, "FieldsIgnored")
        assert (event["type"], event["count"]) == ("Warning", 1)
        conditions = story.store.get(NODE_POOLS, "", "general")["status"]["conditions"]
        (told,) = (one for one in conditions if one["type"] == "FieldsAct")
        assert told["status"] == "False"
        assert "spec.replicas does nothing" in told["message"]


def test_a_node_class_that_no_provider_serves_is_told_on_the_pool_once() -> None:
    pool = a_pool()
    ref = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    pool["spec"]["template"]["spec"]["nodeClassRef"] = ref
    with Story(pool) as story:
        for _ in range(3):
            story.run(2 * MINUTE)
            (event,) = events(story, "NodeClassNotServed")
            assert event["count"] == 1
            assert "EC2NodeClass.karpenter.k8s.aws is not served" in event["message"]
            story.crash()
        stored = story.store.get(NODE_POOLS, "", "general")
        assert "status" not in stored or not stored["status"].get("conditions"), (
            "nothing is written"
        )
