"""Graceful repair of many nodes reserves capacity for each node's pods, beside pending pods."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.model.api.names import DO_NOT_DISRUPT, REPLACED_BY, REPLACES
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, NODES, PODS
from tenure.model.settings import Settings
from tenure.sim.infrastructure import InfrastructureOptions
from tenure.sim.scenario.dsl import Story
from tenure.sim.world import WorldOptions
from tests.builders import HOUR, MINUTE, SECOND, a_deployment, a_requirement
from tests.scenarios.signs import is_gone, is_leaving
from tests.scenarios.test_replacing import (
    ALWAYS,
    BROKEN_CONDITION,
    DUE,
    a_cluster,
    becomes_unhealthy,
)

#: One pod of 1.5 cores is a node's whole load.
LARGE = a_requirement("node.kubernetes.io/instance-type", "m7i.large")
FULL = "1500m"
CAREFUL = {"terminationMode": "Graceful", "maxUnhealthy": "100%"}


def fewest_running(story: Story, app: str, seconds: int) -> int:
    fewest = story.running(app)
    for _ in range(seconds):
        story.run(SECOND)
        fewest = min(fewest, story.running(app))
    return fewest


def left_without_replacement(story: Story) -> set[str]:
    """Claims that are marked to go although nothing was launched for them."""
    marks = {
        c["metadata"]["name"]: c["metadata"]["annotations"].get(REPLACED_BY)
        for c in story.all(NODE_CLAIMS)
    }
    return {name for name, mark in marks.items() if mark == ""}


@pytest.mark.parametrize("seed", [0, 1])
def test_of_four_unhealthy_full_nodes_each_waits_for_a_replacement_of_its_own(seed: int) -> None:
    """A pool as it is by default, 20 full nodes: 10 % of them may go at once, that is two."""
    web = a_deployment(replicas=20, cpu=FULL)
    with Story(*a_cluster(web, requirements=[LARGE]), options=WorldOptions(seed=seed)) as story:
        story.run(5 * MINUTE)
        assert story.count("claims") == story.running("web") == 20
        for node in sorted(n["metadata"]["name"] for n in story.all(NODES))[:4]:
            story.kubelets.set_condition(node, BROKEN_CONDITION, "True", "Test")
        without: set[str] = set()
        fewest = 20
        for _ in range(300):
            story.run(SECOND)
            without |= left_without_replacement(story)
            fewest = min(fewest, story.running("web"))
        assert not without, "its pods fit nowhere but on nodes that were launched for others"
        assert fewest >= 18, "two may move at once"


def test_fifty_unhealthy_nodes_do_not_take_the_workload_down() -> None:
    web = a_deployment(replicas=50, cpu=FULL)
    pool: dict[str, Any] = {"repair": CAREFUL, "disruption": {"budgets": [{"nodes": "10"}]}}
    with Story(*a_cluster(web, requirements=[LARGE], **pool)) as story:
        story.run(5 * MINUTE)
        assert story.running("web") == 50
        for node in story.all(NODES):
            story.kubelets.set_condition(node["metadata"]["name"], BROKEN_CONDITION, "True", "Test")
        assert fewest_running(story, "web", 600) >= 40, "a budget of 10"
        assert story.running("web") == 50


def test_pods_that_come_meanwhile_do_not_take_the_place_that_was_launched_for_others() -> None:
    web, other = a_deployment(cpu=FULL), a_deployment("other", cpu=FULL)
    with Story(*a_cluster(web, requirements=[LARGE])) as story:
        story.run(5 * MINUTE)
        _, claim = becomes_unhealthy(story)
        story.run(DUE + 4 * SECOND)
        story.apply(other)
        without = 0
        for _ in range(300):
            story.run(SECOND)
            without += story.running("web") == 0
        assert is_gone(story, claim)
        assert without <= 15, "it only has to move, not to wait for an instance"


def test_a_node_does_not_go_before_the_one_that_its_pods_would_fit_on_is_there() -> None:
    """A user cordons the unhealthy node; the node that another pod gets never becomes Ready."""
    with Story(*a_cluster(a_deployment(), requirements=[LARGE])) as story:
        story.run(5 * MINUTE)
        node, _ = becomes_unhealthy(story)
        story.store.patch(NODES, "", node, {"spec": {"unschedulable": True}})
        story.infrastructure.faults.set(never_ready_rate=1.0)
        story.apply(a_deployment("other"))
        story.run(20 * MINUTE)
        assert story.running("web") == 1, "nothing has come that could take it"


def test_two_nodes_with_protected_pods_get_two_replacements() -> None:
    """The drain of the first takes up to half an hour: its place is not free meanwhile."""
    policy = {
        "conditionType": "Gpu",
        "status": "True",
        "toleration": "30s",
        "terminationGracePeriod": "30m",
    }
    web = a_deployment(replicas=2, cpu=FULL, annotations={DO_NOT_DISRUPT: "true"})
    pool: dict[str, Any] = {
        "repair": {**CAREFUL, "policies": [policy]},
        "disruption": {"budgets": [ALWAYS]},
    }
    with Story(*a_cluster(web, requirements=[LARGE], **pool)) as story:
        story.run(5 * MINUTE)
        for node in sorted(n["metadata"]["name"] for n in story.all(NODES)):
            story.kubelets.set_condition(node, "Gpu", "True", "Test")
            story.run(5 * MINUTE)
        leaving = [c for c in story.all(NODE_CLAIMS) if "deletionTimestamp" in c["metadata"]]
        new = [c for c in story.all(NODE_CLAIMS) if REPLACES in c["metadata"]["annotations"]]
        assert len(new) >= len(leaving)


def test_at_its_limits_a_pool_does_not_give_a_running_pods_place_to_one_that_waits() -> None:
    """Two nodes are all it may have, and a third pod has been waiting for long."""
    web, extra = a_deployment(replicas=2, cpu=FULL), a_deployment("extra", cpu=FULL)
    pool: dict[str, Any] = {"limits": {"cpu": "4"}, "repair": CAREFUL}
    with Story(*a_cluster(web, requirements=[LARGE], **pool)) as story:
        story.run(5 * MINUTE)
        story.apply(extra)
        story.run(2 * MINUTE)
        assert (story.running("web"), story.running("extra")) == (2, 0)
        node = sorted(n["metadata"]["name"] for n in story.all(NODES))[0]
        story.kubelets.set_condition(node, BROKEN_CONDITION, "True", "Test")
        story.run(HOUR)
        assert story.running("web") == 2


def test_a_bound_of_a_condition_that_is_still_tolerated_does_not_force_a_protected_pod() -> None:
    """``Gpu`` is due and gives half an hour; ``Ready`` is tolerated for ten minutes, then 0 s."""
    policies = [
        {
            "conditionType": "Gpu",
            "status": "True",
            "toleration": "30s",
            "terminationGracePeriod": "30m",
        }
    ]
    web = a_deployment(annotations={DO_NOT_DISRUPT: "true"}, terminationGracePeriodSeconds=20)
    repair = {"terminationMode": "Graceful", "policies": policies}
    with Story(*a_cluster(web, repair=repair)) as story:
        story.run(5 * MINUTE)
        node, claim = becomes_unhealthy(story, "Gpu")
        (pod,) = (p["metadata"]["name"] for p in story.store.list(PODS))
        story.run(DUE + 2 * SECOND)
        story.kubelets.set_condition(node, "Ready", "False", "KubeletNotReady")
        story.run(2 * MINUTE)
        assert is_leaving(story, claim), "its replacement is there"
        found = story.store.find(PODS, "default", pod)
        assert found is not None
        assert "deletionTimestamp" not in found["metadata"], "protected for 30m less 20s"


def test_a_replacement_that_is_never_initialized_does_not_stand_in_a_second_time() -> None:
    """One bad instance: its startup taint stays. Whatever is launched afterwards is fine."""
    template = {"startupTaints": [{"key": "example.com/agent", "effect": "NoSchedule"}]}
    agents = InfrastructureOptions(startup_agents={"example.com/agent": 10 * SECOND})
    options = WorldOptions(infrastructure=agents)
    with Story(*a_cluster(a_deployment(), template=template), options=options) as story:
        story.run(5 * MINUTE)
        _, claim = becomes_unhealthy(story)
        story.infrastructure.faults.set(startup_taint_stuck_rate=1.0)
        story.run(DUE + 2 * MINUTE)
        story.infrastructure.faults.clear()
        story.run(6 * HOUR)
        assert is_gone(story, claim), "another replacement would have come up"


def test_a_pool_that_switches_its_repair_off_is_not_told_that_the_node_has_recovered() -> None:
    with Story(*a_cluster(a_deployment(replicas=2))) as story:
        story.run(5 * MINUTE)
        _, claim = becomes_unhealthy(story)
        story.run(DUE + 2 * SECOND)
        never = {"terminationMode": "Graceful", "defaultTolerationDuration": "Never"}
        story.store.patch(NODE_POOLS, "", "general", {"spec": {"repair": never}})
        story.run(MINUTE)
        said = [e for e in story.history.entries if e.reason == "DisruptionCancelled"]
        assert {e.subject for e in said} >= {f"NodeClaim/{claim}"}
        assert not any("recovered" in e.message for e in said), "it is as unhealthy as before"


def test_switched_off_repair_lets_no_command_that_was_under_way_end_the_node() -> None:
    with Story(*a_cluster(a_deployment(replicas=2))) as story:
        story.run(5 * MINUTE)
        _, claim = becomes_unhealthy(story)
        story.run(DUE + 2 * SECOND)
        off = Settings(node_repair=False)
        story.options = msgspec.structs.replace(story.options, settings=off)
        story.crash()
        story.run(5 * MINUTE)
        assert not is_leaving(story, claim)
