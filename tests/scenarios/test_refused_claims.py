"""A pod whose NodeClaim the API server would refuse keeps no other pod from a node."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.model.api.resource import EVENTS, NODE_CLAIMS
from tenure.sim.dsl import Story
from tests.builders import MINUTE, Manifest, a_deployment, a_node_class, a_pool

HOSTNAME = "kubernetes.io/hostname"


def wanting(*expressions: dict[str, Any]) -> dict[str, Any]:
    terms = [{"matchExpressions": list(expressions)}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


def no(key: str, *values: str) -> dict[str, Any]:
    if not values:
        return {"key": key, "operator": "DoesNotExist"}
    return {"key": key, "operator": "NotIn", "values": list(values)}


def a_cluster(*more: Manifest, **pool: Any) -> list[Manifest]:
    return [a_node_class(), a_pool(**pool), *more]


def warnings(story: Story, app: str) -> set[str]:
    return {
        event["message"]
        for event in story.all(EVENTS)
        if event["type"] == "Warning"
        and event["reason"] == "FailedScheduling"
        and event["involvedObject"]["name"].startswith(app)
        and event["source"]["component"] == "tenure"
    }


#: What every new node satisfies, because it has no such label or another value.
SATISFIED = {
    "hostname": wanting(no(HOSTNAME, "n1")),
    "legacy": wanting(no("karpenter.sh/provisioner-name")),
    "reserved": wanting(no("karpenter.sh/nodepool-hash", "x")),
    "many": wanting(*(no(f"k{number}.example.com/x", "v") for number in range(150))),
    "many absent": wanting(*(no(f"k{number}.example.com/x") for number in range(150))),
    "not a label value": wanting(no("topology.kubernetes.io/zone", "a b/c!")),
    "negative": wanting({"key": "example.com/none", "operator": "NotIn", "values": ["v" * 100]}),
}


@pytest.mark.parametrize("name", SATISFIED)
def test_what_every_new_node_satisfies_is_no_part_of_a_claim(name: str) -> None:
    odd = a_deployment("odd", **SATISFIED[name])
    with Story(*a_cluster(odd, a_deployment("web"))) as story:
        story.run(3 * MINUTE)
        assert (story.running("odd"), story.running("web")) == (1, 1)
        assert len(story.all(NODE_CLAIMS)) == 1


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        (wanting(no(HOSTNAME)), HOSTNAME),
        ({"nodeSelector": {HOSTNAME: "n1"}}, HOSTNAME),
        ({"nodeSelector": {"karpenter.sh/nodepool-hash": "x"}}, "karpenter.sh/nodepool-hash"),
        (wanting(no("karpenter.sh/registered")), "karpenter.sh/registered"),
    ],
)
def test_what_no_new_node_satisfies_is_said_on_the_pod(odd: dict[str, Any], said: str) -> None:
    with Story(*a_cluster(a_deployment("odd", **odd), a_deployment("web"))) as story:
        story.run(3 * MINUTE)
        assert (story.running("odd"), story.running("web")) == (0, 1)
        (message,) = warnings(story, "odd")
        assert said in message


def test_a_label_value_that_the_api_refuses_is_said_on_its_pod_alone() -> None:
    """The pool lets pods choose the value of a label; nothing can be labelled with this one."""
    pool = {"requirements": [{"key": "example.com/team", "operator": "Exists"}]}
    odd = a_deployment("odd", replicas=3, **wanting(
        {"key": "example.com/team", "operator": "In", "values": ["a b/c!"]}
    ))  # fmt: skip
    with Story(*a_cluster(odd, a_deployment("web"), **pool)) as story:
        story.run(3 * MINUTE)
        assert (story.running("odd"), story.running("web")) == (0, 1)
        (message,) = warnings(story, "odd")
        assert "example.com/team" in message
