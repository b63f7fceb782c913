"""A pod that cannot be placed: one event with the reason per pool, and what would place it."""

from __future__ import annotations

import json
from typing import Any

from tenure.cli.cluster.embedded import scene_of
from tenure.cli.cluster.question import Question
from tenure.cli.explain.asjson import to_json
from tenure.cli.explain.explanation import Explanation, explanation
from tenure.cli.explain.text import as_text
from tenure.model.api.resource import EVENTS, NODE_CLAIMS, NODE_POOLS, PODS
from tenure.sim.scenario.dsl import Story
from tests.builders import (
    HOUR,
    MINUTE,
    a_deployment,
    a_node_class,
    a_pod,
    a_pool,
    a_requirement,
)

ZONE = "topology.kubernetes.io/zone"


def explained(story: Story, pod: str) -> Explanation:
    answer = explanation(Question(PODS, pod, "default"), scene_of(story))
    assert answer is not None
    return answer


def events_of(story: Story, pod: str) -> list[dict[str, Any]]:
    return [
        event
        for event in story.all(EVENTS)
        if event["involvedObject"]["name"] == pod and event["reason"] == "FailedScheduling"
    ]


def test_one_event_says_why_for_each_pool_and_stays_as_it_is() -> None:
    tainted = a_pool(
        "batch", template={"taints": [{"key": "batch", "value": "true", "effect": "NoSchedule"}]}
    )
    big = a_pod("big", cpu="300")
    with Story(a_node_class(), a_pool(), tainted, big, a_deployment(replicas=3)) as story:
        story.run(1 * HOUR)
        (event,) = events_of(story, "big")
        assert len(story.all(NODE_CLAIMS)) == 1, "the others have their node"
    assert event["count"] == 1
    said = event["message"]
    assert "NodePool general: 0 of 59 instance types: " in said
    assert "too small (cpu 300 wanted, largest 191.45)" in said
    assert "NodePool batch: the pod does not tolerate taint batch=true:NoSchedule" in said


def test_explain_says_the_same_and_what_would_place_the_pod() -> None:
    big = a_pod("big", cpu="300")
    with Story(a_node_class(), a_pool(), big) as story:
        story.run(1 * MINUTE)
        (event,) = events_of(story, "big")
        answer = explained(story, "big")
    assert answer.verdicts[0].message == event["message"]
    text = as_text(answer)
    assert "  to fit    request at most 191.45 cpu (the pod requests 300)" in text
    (first, *_) = json.loads(to_json(answer))["smallestChanges"]
    assert first["fact"]["type"] == "AskAtMost"


def test_what_explain_advises_places_the_pod() -> None:
    """The limit is raised to what the advice says, and to no more."""
    pool = a_pool(limits={"cpu": "1"})
    with Story(a_node_class(), pool, a_pod("web", cpu="1500m")) as story:
        story.run(1 * MINUTE)
        assert not story.all(NODE_CLAIMS)
        (change, *_) = explained(story, "web").changes
        assert str(change) == "raise spec.limits.cpu to 2 in NodePool general"
        story.store.patch(NODE_POOLS, "", "general", {"spec": {"limits": {"cpu": "2"}}})
        story.run(5 * MINUTE)
        assert story.the(PODS)["spec"]["nodeName"]


def test_a_zone_that_no_pool_has() -> None:
    pool = a_pool(requirements=[a_requirement(ZONE, "zone-a", "zone-b")])
    far = a_pod("far", nodeSelector={ZONE: "zone-c"})
    with Story(a_node_class(), pool, far) as story:
        story.run(1 * MINUTE)
        (change, *_) = explained(story, "far").changes
    assert str(change).endswith(f"allow {ZONE}=zone-a")


def test_where_a_limit_leaves_one_node_the_highest_priority_gets_it() -> None:
    """It comes last and asks for least; the others wait, and are told of the limit."""
    top = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "top"},
        "value": 1000,
    }
    others = [a_pod(f"low-{n}", cpu="1800m") for n in range(3)]
    first = a_pod("first", cpu="500m", memory="100Mi", priorityClassName="top")
    pool = a_pool(limits={"cpu": "2"})
    with Story(a_node_class(), pool, top, *others, first) as story:
        story.run(5 * MINUTE)
        (claim,) = story.all(NODE_CLAIMS)
        bound = {pod["metadata"]["name"] for pod in story.all(PODS) if pod["spec"].get("nodeName")}
        assert bound == {"first"}
        for n in range(3):
            (event,) = events_of(story, f"low-{n}")
            assert "raise spec.limits.cpu" in event["message"]
    assert claim["status"]["capacity"]["cpu"] == "2"
