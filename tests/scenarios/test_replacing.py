"""Graceful repair in virtual time: the replacement first, and no pod lost.

``KWOKUnhealthy`` is tolerated for 30 s and bounds the drain to 45 s, by the provider's word; the
node stays Ready all the time.
"""

from __future__ import annotations

from typing import Any

import pytest

from tenure.model.api.names import (
    DO_NOT_DISRUPT,
    DO_NOT_REPAIR,
    REPLACEMENT_FAILED,
)
from tenure.model.api.resource import DEPLOYMENTS, EVENTS, NODE_CLAIMS, NODE_POOLS, NODES, PODS
from tenure.sim.scenario.dsl import Story
from tests.builders import (
    HOUR,
    MINUTE,
    SECOND,
    Manifest,
    a_deployment,
    a_node_class,
    a_pool,
    a_requirement,
)
from tests.scenarios.signs import is_gone, is_leaving, is_tainted, replacement_of, says

BROKEN_CONDITION = "KWOKUnhealthy"
#: The provider's toleration, and a moment.
DUE = 31 * SECOND
ALWAYS = {"nodes": "100%"}


def a_cluster(*more: Manifest, **pool: Any) -> list[Manifest]:
    return [a_node_class(), a_pool(**pool), *more]


def becomes_unhealthy(story: Story, type_: str = BROKEN_CONDITION) -> tuple[str, str]:
    """The one node of the story and its claim, by name."""
    node, claim = story.the(NODES)["metadata"]["name"], story.the(NODE_CLAIMS)["metadata"]["name"]
    story.kubelets.set_condition(node, type_, "True", "Test")
    return node, claim


def last_word(story: Story, subject: str) -> str:
    """The newest verdict of the pipeline on the subject, as people read it."""
    events = [e for e in story.store.list(EVENTS) if e["reason"].startswith("Disruption")]
    about = [
        e
        for e in events
        if f"{e['involvedObject']['kind']}/{e['involvedObject']['name']}" == subject
    ]
    return str(about[-1]["message"])


def test_the_old_node_stays_with_its_pods_until_the_new_one_is_initialized() -> None:
    with Story(*a_cluster(a_deployment(replicas=3))) as story:
        story.run(5 * MINUTE)
        node, claim = becomes_unhealthy(story)
        story.run(DUE)
        marked = ("True", "Unhealthy")  # In a write of its own.
        assert story.run_while(
            lambda: not is_tainted(story, node) or says(story, claim, "DisruptionReason") != marked,
            at_most=10 * SECOND,
            step=SECOND,
        )
        new = replacement_of(story, claim)
        assert new is not None
        name = new["metadata"]["name"]
        while says(story, name, "Initialized") != ("True", "Initialized"):
            assert not is_leaving(story, claim)
            assert story.running("web") == 3
            story.run(SECOND)
        assert story.run_while(
            lambda: not is_leaving(story, claim), at_most=10 * SECOND, step=SECOND
        )
        story.run(2 * MINUTE)
        assert is_gone(story, claim)
        assert story.running("web") == 3
        assert story.count("claims") == story.count("instances") == 1
        assert story.cloud.launch_count == 2
        assert {"NodeRepairDue", "Replacing", "Replaced"} <= set(
            story.reasons(f"NodeClaim/{claim}")
        )


def test_a_budget_of_none_blocks_it_and_says_so_until_it_is_lifted() -> None:
    budgets = [{"nodes": "0", "reasons": ["Unhealthy"]}]
    with Story(*a_cluster(a_deployment(), disruption={"budgets": budgets})) as story:
        story.run(5 * MINUTE)
        node, claim = becomes_unhealthy(story)
        story.run(10 * MINUTE)
        assert not is_leaving(story, claim)
        assert not is_tainted(story, node)
        assert "allows 0 of 1 Node" in last_word(story, f"Node/{node}")
        story.store.patch(
            NODE_POOLS, "", "general", {"spec": {"disruption": {"budgets": [ALWAYS]}}}
        )
        story.run(5 * MINUTE)
        assert is_gone(story, claim)
        assert story.running("web") == 1


def test_a_protected_pod_stays_until_the_bound_less_its_own_grace() -> None:
    web = a_deployment(annotations={DO_NOT_DISRUPT: "true"}, terminationGracePeriodSeconds=20)
    with Story(*a_cluster(web)) as story:
        story.run(5 * MINUTE)
        _, claim = becomes_unhealthy(story)
        (pod,) = (p["metadata"]["name"] for p in story.store.list(PODS))
        story.run_while(lambda: not is_leaving(story, claim), at_most=10 * MINUTE, step=SECOND)
        began = story.now
        story.run_while(lambda: not _is_stopping(story, pod), at_most=5 * MINUTE, step=SECOND)
        assert abs(story.now - began - 25 * SECOND) <= 3 * SECOND, "45 s less 20 s"
        story.run(3 * MINUTE)
        assert story.running("web") == 1


def _is_stopping(story: Story, pod: str) -> bool:
    found = story.store.find(PODS, "default", pod)
    return found is None or "deletionTimestamp" in found["metadata"]


def test_do_not_disrupt_on_the_node_does_not_block_a_repair_and_do_not_repair_does() -> None:
    with Story(*a_cluster(a_deployment())) as story:
        story.run(5 * MINUTE)
        node, claim = becomes_unhealthy(story)
        _annotate(story, node, {DO_NOT_DISRUPT: "true", DO_NOT_REPAIR: "true"})
        story.run(5 * MINUTE)
        assert not is_leaving(story, claim)
        assert "DoNotRepair" in story.reasons(f"Node/{node}")
        _annotate(story, node, {DO_NOT_REPAIR: None})
        story.run(5 * MINUTE)
        assert is_gone(story, claim)


def _annotate(story: Story, node: str, annotations: dict[str, str | None]) -> None:
    story.store.patch(NODES, "", node, {"metadata": {"annotations": annotations}})


def test_without_a_bound_anywhere_pods_that_must_not_be_evicted_block_it() -> None:
    """A condition that only the pool watches has no bound."""
    policies = [{"conditionType": "Gpu", "status": "True", "toleration": "30s"}]
    repair = {"terminationMode": "Graceful", "policies": policies}
    web = a_deployment(annotations={DO_NOT_DISRUPT: "true"})
    with Story(*a_cluster(web, repair=repair)) as story:
        story.run(5 * MINUTE)
        node, claim = becomes_unhealthy(story, "Gpu")
        story.run(5 * MINUTE)
        assert not is_leaving(story, claim)
        assert "no grace period bounds the drain of Node" in last_word(story, f"Node/{node}")


def test_with_a_claims_own_grace_period_it_goes_all_the_same() -> None:
    policies = [{"conditionType": "Gpu", "status": "True", "toleration": "30s"}]
    repair = {"terminationMode": "Graceful", "policies": policies}
    web = a_deployment(annotations={DO_NOT_DISRUPT: "true"})
    template = {"terminationGracePeriod": "10m"}
    with Story(*a_cluster(web, repair=repair, template=template)) as story:
        story.run(5 * MINUTE)
        _, claim = becomes_unhealthy(story, "Gpu")
        story.run(5 * MINUTE)
        assert is_leaving(story, claim)
        assert not is_gone(story, claim)
        story.run(10 * MINUTE)
        assert is_gone(story, claim)
        assert story.running("web") == 1


def test_a_replacement_that_does_not_come_up_leaves_the_old_node_as_it_was() -> None:
    template = {"readinessTTL": "2m"}
    with Story(*a_cluster(a_deployment(replicas=2), template=template)) as story:
        story.run(5 * MINUTE)
        node, claim = becomes_unhealthy(story)
        story.infrastructure.faults.set(never_ready_rate=1.0)
        story.run(DUE + 2 * SECOND)
        assert is_tainted(story, node)
        story.run(3 * MINUTE)
        assert not is_leaving(story, claim)
        assert story.running("web") == 2
        assert "ReplacementFailed" in story.reasons(f"NodeClaim/{claim}")
        noted = story.store.find(NODE_CLAIMS, "", claim)["metadata"]["annotations"]  # type: ignore[index]
        assert noted[REPLACEMENT_FAILED].startswith("1 ")
        story.infrastructure.faults.clear()
        story.run(5 * MINUTE)
        assert is_gone(story, claim)
        assert story.running("web") == 2
        assert story.count("claims") == 1


def test_after_a_failure_the_node_takes_pods_again_and_the_pool_pauses() -> None:
    template = {"readinessTTL": "2m"}
    with Story(*a_cluster(a_deployment(replicas=2), template=template)) as story:
        story.run(5 * MINUTE)
        node, claim = becomes_unhealthy(story)
        story.infrastructure.faults.set(never_ready_rate=1.0)
        launched = story.cloud.launch_count

        def failed() -> bool:
            return "ReplacementFailed" in story.reasons(f"NodeClaim/{claim}")

        story.run_while(lambda: not failed(), at_most=10 * MINUTE, step=SECOND)
        story.run(3 * SECOND)
        assert not is_tainted(story, node)
        assert says(story, claim, "DisruptionReason") is None
        story.run(50 * SECOND)
        assert story.cloud.launch_count == launched + 1, "a minute's pause"
        story.run(20 * SECOND)
        assert story.cloud.launch_count == launched + 2


def test_no_capacity_for_a_replacement_is_such_a_failure() -> None:
    with Story(*a_cluster(a_deployment(replicas=2))) as story:
        story.run(5 * MINUTE)
        node, claim = becomes_unhealthy(story)
        story.infrastructure.faults.set(cloud_dry=(("*", "*", "*"),))
        story.run(10 * MINUTE)
        assert not is_leaving(story, claim)
        assert not is_tainted(story, node)
        assert story.running("web") == 2
        story.infrastructure.faults.clear()
        story.run(HOUR)
        assert is_gone(story, claim)
        assert story.running("web") == 2


def test_a_node_that_recovers_while_its_replacement_boots_stays() -> None:
    with Story(*a_cluster(a_deployment(replicas=2))) as story:
        story.run(5 * MINUTE)
        node, claim = becomes_unhealthy(story)
        story.run(DUE)
        assert story.run_while(
            lambda: not is_tainted(story, node), at_most=10 * SECOND, step=SECOND
        )
        story.kubelets.set_condition(node, BROKEN_CONDITION, "False", "Well")
        story.run(10 * MINUTE)
        assert not is_leaving(story, claim)
        assert not is_tainted(story, node)
        assert "DisruptionCancelled" in story.reasons(f"NodeClaim/{claim}")
        assert says(story, claim, "DisruptionReason") is None


def test_a_node_without_pods_needs_no_replacement() -> None:
    with Story(*a_cluster(a_deployment())) as story:
        story.run(5 * MINUTE)
        _, claim = becomes_unhealthy(story)
        story.store.patch(DEPLOYMENTS, "default", "web", {"spec": {"replicas": 0}})
        story.run(DUE + MINUTE)
        assert is_gone(story, claim)
        assert story.count("claims") == 0


def _is_ending(claim: Any) -> bool:
    """Its pods have moved: it no longer counts."""
    told = {c["type"]: c["status"] for c in claim.get("status", {}).get("conditions", ())}
    return told.get("InstanceTerminating") == "True"


@pytest.mark.parametrize("budget", ["1", "50%"])
def test_no_more_go_at_once_than_the_budget_allows(budget: str) -> None:
    """Ten nodes, five of them unhealthy: the breaker allows it."""
    big = a_requirement("node.kubernetes.io/instance-type", "m7i.large")
    repair = {"terminationMode": "Graceful", "maxUnhealthy": "100%"}
    disruption = {"budgets": [{"nodes": budget}]}
    web = a_deployment(replicas=10, cpu="1500m")
    with Story(*a_cluster(web, requirements=[big], repair=repair, disruption=disruption)) as story:
        story.run(5 * MINUTE)
        assert story.count("claims") == 10
        unhealthy = sorted(n["metadata"]["name"] for n in story.all(NODES))[:5]
        old = {c["metadata"]["name"] for c in story.all(NODE_CLAIMS)}
        for node in unhealthy:
            story.kubelets.set_condition(node, BROKEN_CONDITION, "True", "Test")
        most, end = 0, story.now + 30 * MINUTE
        while story.now < end:
            story.run(2 * SECOND)
            ending = [c for c in story.all(NODE_CLAIMS) if _is_ending(c)]
            gone = {c["status"].get("nodeName") for c in ending}
            most = max(most, sum(is_tainted(story, n) for n in unhealthy if n not in gone))
        assert most == (1 if budget == "1" else 5)
        left = old & {c["metadata"]["name"] for c in story.all(NODE_CLAIMS)}
        assert len(left) == 5
        assert story.running("web") == 10
