"""What cannot be read promises no place for pods, and launches beside it stay bounded."""

from __future__ import annotations

from typing import Any

from tenure.model.api.meta import format_time
from tenure.model.api.resource import DAEMON_SETS, NODE_CLAIMS, NODES, PODS
from tenure.sim.scenario.dsl import Story
from tests.builders import (
    HOUR,
    MINUTE,
    SECOND,
    a_deployment,
    a_node_class,
    a_pool,
    a_requirement,
)
from tests.scenarios.test_bad_objects import (
    a_cluster,
    a_running,
    rewritten,
    unreadable,
    with_condition,
)
from tests.scenarios.test_launch_breaker import QUICK, a_daemon_set, launched


def spoiled(story: Story, resource: Any, name: str) -> None:
    """One of several is rewritten so that it cannot be read."""
    (known,) = (one for one in story.all(resource) if one["metadata"]["name"] == name)
    new = {**known, "status": dict(known.get("status", {}))}
    unreadable(new)
    story.store.rewrite(resource, new)


def claims(story: Story) -> list[str]:
    return sorted(claim["metadata"]["name"] for claim in story.all(NODE_CLAIMS))


def with_an_unreadable_claim_in_flight(**limits: str) -> Story:
    story = Story(a_node_class(), a_pool(limits=limits), a_deployment("first"))
    for _ in range(30):
        if not claims(story):
            story.run(SECOND)
    rewritten(story, NODE_CLAIMS, unreadable)
    return story


# -- pods that cannot be read -------------------------------------------------------------------


def test_the_node_of_a_running_pod_that_cannot_be_read_takes_no_more_pods() -> None:
    with a_running() as story:
        rewritten(story, PODS, unreadable, app="web")
        story.apply(a_deployment("late", cpu="1600m"))
        story.run(15 * MINUTE)
        assert story.running("late") == 1
        assert launched(story) == 2
        assert "SchedulerDisagrees" not in story.reasons("Pod/default/late-*")


def test_daemon_pods_that_cannot_be_read_cost_no_further_nodes() -> None:
    agent = a_daemon_set(cpu="10m", memory="16Mi")
    with Story(*a_cluster(a_deployment(), agent), options=QUICK) as story:
        done: set[str] = set()
        for _ in range(300):
            story.run(SECOND)
            pods = [pod["metadata"]["name"] for pod in story.all(PODS)]
            for name in [one for one in pods if one.startswith("agent") and one not in done]:
                spoiled(story, PODS, name)
                done.add(name)
        assert done
        assert story.running("web") == 1
        assert launched(story) == 1


# -- claims that cannot be read -----------------------------------------------------------------


def test_pods_of_others_do_not_wait_for_a_claim_that_cannot_be_read() -> None:
    with with_an_unreadable_claim_in_flight() as story:
        story.run(MINUTE)
        story.apply(a_deployment("late", cpu="300m"))
        story.run(10 * MINUTE)
        assert story.running("late") == 1


def test_the_pods_of_a_claim_that_cannot_be_read_get_another_once() -> None:
    with with_an_unreadable_claim_in_flight() as story:
        story.run(HOUR)
        assert story.running("first") == 1
        assert launched(story) == 2
        assert "ObjectUnreadable" in story.reasons("NodeClaim/*")


def test_a_claim_that_cannot_be_read_counts_against_the_limits_of_its_pool() -> None:
    with with_an_unreadable_claim_in_flight(cpu="3") as story:
        story.run(20 * MINUTE)
        assert launched(story) == 1
        assert "FailedScheduling" in story.reasons("Pod/default/first-*")


def test_launches_are_bounded_where_no_claim_can_be_read() -> None:
    with Story(*a_cluster(a_deployment())) as story:
        done: set[str] = set()
        for _ in range(720):
            story.run(5 * SECOND)
            for name in set(claims(story)) - done:
                spoiled(story, NODE_CLAIMS, name)
                done.add(name)
        assert 2 <= launched(story) <= 12
        assert "LaunchBreakerOpen" in story.reasons("NodePool/general")


# -- Nodes that cannot be read ------------------------------------------------------------------


def test_an_unhealthy_node_that_cannot_be_read_still_counts_in_the_breaker_of_its_pool() -> None:
    small = a_requirement("node.kubernetes.io/instance-type", "t4g.small")
    repair = {"maxUnhealthy": 1, "terminationMode": "Forceful"}
    pool = a_pool(requirements=[small], repair=repair)
    with Story(a_node_class(), pool, a_deployment(replicas=5, cpu="1200m")) as story:
        story.run(5 * MINUTE)
        names = sorted(node["metadata"]["name"] for node in story.all(NODES))
        for name in names[:2]:
            (node,) = (one for one in story.all(NODES) if one["metadata"]["name"] == name)
            told = {**node, "status": dict(node["status"])}
            with_condition("KWOKUnhealthy", format_time(story.now), reason="X")(told)
            status = {"conditions": told["status"]["conditions"]}
            story.store.patch(NODES, "", name, {"status": status}, subresource="status")
        story.run(5 * SECOND)
        spoiled(story, NODES, names[0])
        story.run(20 * MINUTE)
        assert len(names) == 5
        assert "NodeRepair" not in story.reasons("NodeClaim/*")
        assert "NodeRepairBlocked" in story.reasons("NodePool/general")
        assert sorted(node["metadata"]["name"] for node in story.all(NODES)) == names


def test_new_nodes_have_room_for_the_pods_of_a_daemon_set_that_cannot_be_read() -> None:
    """They preempt the pod that a node without such room was launched for."""
    agent = a_daemon_set("agent", cpu="1", priorityClassName="system-node-critical")
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "labelSelector": {"matchLabels": {"app": "web"}},
                    "topologyKey": "kubernetes.io/hostname",
                }
            ]
        }
    }
    with Story(a_node_class(), a_pool(), agent, a_deployment(cpu="1")) as story:
        story.run(5 * MINUTE)
        (known,) = story.all(DAEMON_SETS)
        template = known["spec"]["template"]
        metadata = {**template["metadata"], "generation": "x"}
        spec = {**known["spec"], "template": {**template, "metadata": metadata}}
        story.store.rewrite(DAEMON_SETS, {**known, "spec": spec})
        story.run(30 * SECOND)  # Its controller replaces the pod: the template is another one.
        before = launched(story)
        story.apply(a_deployment("big", cpu="1500m", memory="1Gi", affinity=apart))
        story.run(HOUR)
        assert launched(story) == before + 1
        assert story.running("big") == 1
