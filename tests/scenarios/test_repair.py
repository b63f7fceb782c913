"""Nodes that do not become Ready, and unhealthy nodes, in virtual time."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from tenure.model.api.names import DO_NOT_DISRUPT, DO_NOT_REPAIR
from tenure.model.api.resource import EVENTS, NODE_CLAIMS, NODE_POOLS, NODES
from tenure.sim.scenario.dsl import Story
from tests.builders import (
    HOUR,
    MINUTE,
    SECOND,
    Manifest,
    a_deployment,
    a_node_class,
    a_pdb,
    a_pool,
)


def a_repaired_cluster(*more: Manifest, **pool: Any) -> list[Manifest]:
    given: dict[str, Any] = {"repair": {"defaultTolerationDuration": "10m"}} | pool
    return [a_node_class(), a_pool(**given), *more]


def the_claim(story: Story) -> str:
    name: str = story.the(NODE_CLAIMS)["metadata"]["name"]
    return name


def given_up_at(story: Story, name: str) -> datetime:
    """When the claim was deleted."""
    seen: list[datetime] = []

    def look(type_: str, new: Any, old: Any) -> None:
        if new["metadata"]["name"] == name and "deletionTimestamp" in new["metadata"]:
            seen.append(story.now)

    story.store.subscribe(NODE_CLAIMS, look)
    story.run_while(lambda: not seen, at_most=3 * HOUR, step=SECOND)
    return seen[0]


def test_a_node_that_never_becomes_ready_is_replaced_after_its_ttl_and_the_pods_run() -> None:
    pool = {"template": {"readinessTTL": "5m"}}
    with Story(*a_repaired_cluster(a_deployment(), **pool)) as story:
        story.infrastructure.faults.set(never_ready_rate=1.0)
        story.run_while(lambda: not story.all(NODES), at_most=5 * MINUTE, step=SECOND)
        node, name = story.the(NODES), the_claim(story)
        born = datetime.fromisoformat(node["metadata"]["creationTimestamp"])
        story.infrastructure.faults.clear()
        assert timedelta() <= given_up_at(story, name) - born - 5 * MINUTE <= 2 * SECOND
        assert "ReadinessTimeout" in story.reasons(f"NodeClaim/{name}")
        story.run(5 * MINUTE)
        assert story.running("web") == 1
        assert story.count("instances", "unclaimed") == 0


def test_restarting_every_minute_does_not_give_it_more_time() -> None:
    pool = {"template": {"readinessTTL": "5m"}}
    with Story(*a_repaired_cluster(a_deployment(), **pool)) as story:
        story.infrastructure.faults.set(never_ready_rate=1.0)
        story.run_while(lambda: not story.all(NODES), at_most=5 * MINUTE, step=SECOND)
        born = datetime.fromisoformat(story.the(NODES)["metadata"]["creationTimestamp"])
        name = the_claim(story)
        for _ in range(4):
            story.run(MINUTE)
            story.crash()
        assert timedelta() <= given_up_at(story, name) - born - 5 * MINUTE <= 2 * SECOND


def test_flapping_between_false_and_unknown_for_an_hour_buys_no_time() -> None:
    pool = {"template": {"readinessTTL": "30m"}}
    with Story(*a_repaired_cluster(a_deployment(), **pool)) as story:
        story.infrastructure.faults.set(never_ready_rate=1.0)
        story.run_while(lambda: not story.all(NODES), at_most=5 * MINUTE, step=SECOND)
        node, name = story.the(NODES)["metadata"], the_claim(story)
        for i in range(1, 60):
            status = "Unknown" if i % 2 else "False"
            deed = partial(_say, story, node["name"], status)
            story.at(story.now - story.options.epoch + i * MINUTE, deed)
        born = datetime.fromisoformat(node["creationTimestamp"])
        assert timedelta() <= given_up_at(story, name) - born - 30 * MINUTE <= 2 * SECOND


def _say(story: Story, node: str, status: str) -> None:
    if story.kubelets.is_alive(node):
        story.kubelets.set_condition(node, "Ready", status, "Flapping")


def test_a_silent_node_is_replaced_in_spite_of_budgets_and_protection() -> None:
    web = a_deployment(replicas=3, annotations={DO_NOT_DISRUPT: "true"})
    manifests = a_repaired_cluster(web, a_pdb(maxUnavailable=0))
    with Story(*manifests) as story:
        story.run(5 * MINUTE)
        node, name = story.the(NODES)["metadata"]["name"], the_claim(story)
        story.kubelets.silence(node)
        story.run(20 * MINUTE)
        assert story.store.find(NODE_CLAIMS, "", name) is None
        assert story.running("web") == 3
        said = [event for event in story.store.list(EVENTS) if event["reason"] == "NodeRepair"]
        assert {event["involvedObject"]["kind"] for event in said} == {"Node", "NodeClaim"}


def test_a_node_that_comes_back_in_time_is_left_alone() -> None:
    # Its pods have moved meanwhile, so it comes back empty.
    stay = {"disruption": {"consolidateAfter": "Never"}}
    with Story(*a_repaired_cluster(a_deployment(replicas=3), **stay)) as story:
        story.run(5 * MINUTE)
        node, name = story.the(NODES)["metadata"]["name"], the_claim(story)
        story.kubelets.silence(node)
        story.run(9 * MINUTE)
        story.kubelets.resume(node)
        story.run(HOUR)
        assert the_claim(story) == name, "others may have come for its pods meanwhile"
        assert "NodeRepair" not in story.reasons("NodeClaim/*")


def test_a_node_whose_object_is_lost_is_given_up_after_its_ttl() -> None:
    pool = {"template": {"readinessTTL": "5m"}}
    with Story(*a_repaired_cluster(a_deployment(), **pool)) as story:
        story.run(5 * MINUTE)
        node, name = story.the(NODES), the_claim(story)
        story.store.discard(NODES, node)
        lost_at = story.now
        assert timedelta() <= given_up_at(story, name) - lost_at - 5 * MINUTE <= 2 * SECOND
        story.run(5 * MINUTE)
        assert story.running("web") == 1


@pytest.mark.parametrize("crash_at", range(4))
def test_a_crash_between_stamp_and_deletion_heals(crash_at: int) -> None:
    with Story(*a_repaired_cluster(a_deployment(replicas=2))) as story:
        story.run(5 * MINUTE)
        node, name = story.the(NODES)["metadata"]["name"], the_claim(story)
        story.kubelets.set_condition(node, "Ready", "False", "Broken")
        story.run(10 * MINUTE - SECOND + crash_at * SECOND / 2)
        story.crash()
        story.run(10 * MINUTE)
        assert story.store.find(NODE_CLAIMS, "", name) is None
        assert story.running("web") == 2
        assert story.count("instances") == story.count("claims") == 1


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"never_registers_rate": 1.0}, "RegistrationTimeout"),
        ({"launch_failure_rate": 1.0}, "LaunchTimeout"),
    ],
    ids=["never registers", "never launches"],
)
def test_what_never_gets_a_node_is_given_up_after_its_ttl_and_tried_again(
    fault: dict[str, float], reason: str
) -> None:
    pool = {"template": {"readinessTTL": "5m"}}
    with Story(*a_repaired_cluster(a_deployment(), **pool)) as story:
        story.infrastructure.faults.set(**fault)
        story.run_while(lambda: not story.all(NODE_CLAIMS), at_most=MINUTE, step=SECOND)
        name, born = the_claim(story), story.now
        assert timedelta() <= given_up_at(story, name) - born - 5 * MINUTE <= 3 * SECOND
        assert reason in story.reasons(f"NodeClaim/{name}")
        story.infrastructure.faults.clear()
        story.run(10 * MINUTE)
        assert story.running("web") == 1
        assert story.count("instances") == story.count("claims") == 1


def test_a_pool_that_is_edited_while_its_nodes_boot_changes_nothing_for_them() -> None:
    pool = {"template": {"readinessTTL": "10m"}}
    with Story(*a_repaired_cluster(a_deployment(), **pool)) as story:
        story.infrastructure.faults.set(never_ready_rate=1.0)
        story.run_while(lambda: not story.all(NODES), at_most=5 * MINUTE, step=SECOND)
        born = datetime.fromisoformat(story.the(NODES)["metadata"]["creationTimestamp"])
        name = the_claim(story)
        shorter = {"spec": {"template": {"spec": {"readinessTTL": "1m"}}}}
        story.store.patch(NODE_POOLS, "", "general", shorter)
        assert timedelta() <= given_up_at(story, name) - born - 10 * MINUTE <= 2 * SECOND
        story.run(2 * SECOND)
        new = story.the(NODE_CLAIMS, pick="newest")
        assert new["spec"]["readinessTTL"] == "1m", "for new ones it counts"


def test_ready_five_minutes_before_its_end_is_early_enough_and_spends_the_ttl_for_ever() -> None:
    pool = {"template": {"readinessTTL": "30m"}}
    with Story(*a_repaired_cluster(a_deployment(), **pool)) as story:
        story.infrastructure.faults.set(never_ready_rate=1.0)
        story.run_while(lambda: not story.all(NODES), at_most=5 * MINUTE, step=SECOND)
        node, name = story.the(NODES)["metadata"]["name"], the_claim(story)
        story.infrastructure.faults.clear()
        story.run(25 * MINUTE)
        story.kubelets.heal(node, "Ready")
        story.run(2 * HOUR)
        assert not story.store.find(NODE_CLAIMS, "", name)["metadata"].get("deletionTimestamp")  # type: ignore[index]
        story.kubelets.set_condition(node, "Ready", "False", "Broken")
        unhealthy_at = story.now
        assert timedelta() <= given_up_at(story, name) - unhealthy_at - 10 * MINUTE <= 2 * SECOND
        assert "ReadinessTimeout" not in story.reasons(f"NodeClaim/{name}")


def test_a_veto_of_two_hours_on_a_node_that_is_ten_days_old_lasts_two_hours_from_now() -> None:
    with Story(*a_repaired_cluster(a_deployment())) as story:
        story.run(5 * MINUTE)
        node, name = story.the(NODES)["metadata"]["name"], the_claim(story)
        story.run(10 * 24 * HOUR)
        veto = {"metadata": {"annotations": {DO_NOT_REPAIR: "2h"}}}
        story.store.patch(NODES, "", node, veto)
        vetoed = story.now
        story.kubelets.set_condition(node, "Ready", "False", "Broken")
        assert timedelta() <= given_up_at(story, name) - vetoed - 2 * HOUR <= 2 * SECOND
        assert "DoNotRepair" in story.reasons(f"Node/{node}")


def test_the_pods_of_a_node_repaired_forcefully_get_their_new_node_before_the_old_one_is_gone() -> (
    None
):
    with Story(*a_repaired_cluster(a_deployment(replicas=3))) as story:
        story.run(5 * MINUTE)
        node, name = story.the(NODES)["metadata"]["name"], the_claim(story)
        story.kubelets.set_condition(node, "Ready", "False", "Broken")
        given_up_at(story, name)
        story.run_while(lambda: len(story.all(NODE_CLAIMS)) < 2, at_most=MINUTE, step=SECOND)
        assert story.store.find(NODES, "", node) is not None
