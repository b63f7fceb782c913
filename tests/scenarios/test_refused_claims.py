"""A pod whose NodeClaim the API server would refuse keeps no other pod from a node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tenure.errors import Cause
from tenure.model.api.names import NOMINATED_PODS, ZONE
from tenure.model.api.resource import EVENTS, NODE_CLAIMS, NODES, PODS
from tenure.model.settings import Settings
from tenure.sim.apiserver.admission.admission import Schemas
from tenure.sim.apiserver.objects.kinds import Kind
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.scenario.dsl import Story
from tenure.sim.world import WorldOptions
from tests.builders import HOUR, MINUTE, SECOND, Manifest, a_deployment, a_node_class, a_pool

HOSTNAME = "kubernetes.io/hostname"
#: Pods are there for a while before a claim is created for them.
SLOW_BATCH = WorldOptions(settings=Settings(batch_idle=20 * SECOND, batch_max=30 * SECOND))


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


# -- an API server that refuses what we take for right -----------------------------------


@pytest.fixture
def policy(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """UIDs of pods; a policy of the cluster refuses every new claim that names one of them."""
    refused: list[str] = []
    known = Schemas.validate

    def validate(self: Schemas, kind: Kind, obj: Obj, old: Obj | None) -> Sequence[Cause]:
        said = obj["metadata"].get("annotations", {}).get(NOMINATED_PODS, "")
        if kind.resource == NODE_CLAIMS and old is None and any(uid in said for uid in refused):
            return [Cause("FieldValueInvalid", "must please the policy", "metadata.annotations")]
        return known(self, kind, obj, old)

    monkeypatch.setattr(Schemas, "validate", validate)
    return refused


def uids(story: Story, app: str) -> list[str]:
    pods = story.all(PODS)
    return [p["metadata"]["uid"] for p in pods if p["metadata"]["labels"].get("app") == app]


def refusals(story: Story) -> int:
    return sum("must please the policy" in entry.outcome for entry in story.history.entries)


def test_pods_of_a_refused_claim_are_planned_apart(policy: list[str]) -> None:
    with Story(*a_cluster(), options=SLOW_BATCH) as story:
        story.apply(a_deployment("odd", replicas=3, nodeSelector={ZONE: "zone-c"}))
        story.apply(a_deployment("web", replicas=2))
        story.run(5 * SECOND)
        policy += uids(story, "odd")
        assert len(policy) == 3
        story.run(2 * MINUTE)
        assert (story.running("odd"), story.running("web")) == (0, 2)
        (message,) = {said.partition("; retrying")[0] for said in warnings(story, "odd")}
        assert "the API server refused NodeClaim general-" in message
        assert "must please the policy" in message
        assert warnings(story, "web") == set()
        # Together, alone, then after 1m, 2m, 4m, …
        story.run(HOUR)
        assert 5 <= refusals(story) <= 9


def test_a_refusal_that_ends_leaves_nothing_behind(policy: list[str]) -> None:
    with Story(*a_cluster(), options=SLOW_BATCH) as story:
        story.apply(a_deployment("odd", replicas=2))
        story.apply(a_deployment("web", replicas=2))
        story.run(5 * SECOND)
        policy += uids(story, "odd")
        story.run(2 * MINUTE)
        policy.clear()
        story.run(5 * MINUTE)
        assert (story.running("odd"), story.running("web")) == (2, 2)
        assert story.controller.observations.refused_claims.by_pod == {}


def test_a_node_stays_whose_pods_the_api_server_refuses_a_claim_for(policy: list[str]) -> None:
    with Story(*a_cluster(a_deployment("odd"), repair={"terminationMode": "Graceful"})) as story:
        story.run(3 * MINUTE)
        assert story.running("odd") == 1
        policy += uids(story, "odd")
        node = story.the(NODES)["metadata"]["name"]
        story.kubelets.set_condition(node, "KWOKUnhealthy", "True", "Test")
        story.run(HOUR)
        assert story.running("odd") == 1
        assert refusals(story) <= 9
