"""Consolidation in virtual time: fewer pods, fewer nodes, and then nothing moves any more.

Stories begin on a Monday at 08:00 UTC. The checkers of budgets, windows and replacements are on.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tenure.model.api.names import CAPACITY_TYPE, DO_NOT_DISRUPT, INSTANCE_TYPE
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, NODES, PODS
from tenure.model.cloud.offering import InstanceType, Offering
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.scenario.dsl import Story
from tests.builders import (
    HOUR,
    MINUTE,
    SECOND,
    a_deployment,
    a_node_class,
    a_pdb,
    a_pod,
    a_pool,
    a_requirement,
)
from tests.scenarios.fleets import ANY, Watched, a_cluster, a_window, scale, set_pool, uids

MEDIUM = a_requirement(INSTANCE_TYPE, "m7i.xlarge", "m7i.2xlarge")
TENTH = [{"nodes": "10%"}]


def names(story: Story, kind: Any) -> set[str]:
    return {one["metadata"]["uid"] for one in story.store.list(kind)}


def dollars(story: Story) -> float:
    """What all instances cost in an hour."""
    return story.cloud.bill.hourly / 1_000_000


def settled(story: Story, hours: int = 6) -> bool:
    """Whether neither nodes nor pods change for so long."""
    before = names(story, NODES), names(story, PODS), story.cloud.launch_count
    story.run(hours * HOUR)
    return before == (names(story, NODES), names(story, PODS), story.cloud.launch_count)


def a_busy_pool(**more: Any) -> dict[str, Any]:
    block = {"budgets": TENTH, "consolidateAfter": "30s", **more.pop("disruption", {})}
    return a_pool(requirements=[MEDIUM], disruption=block, **more)


class Evicted:
    """Pods that went although a user had protected them."""

    def __init__(self, story: Story) -> None:
        self.protected: list[str] = []
        story.store.subscribe(PODS, self._changed)

    def _changed(self, kind: str, new: Obj | None, old: Obj | None) -> None:
        gone = new is None or "deletionTimestamp" in new["metadata"]
        pod = old or new
        if gone and pod is not None:
            annotations = pod["metadata"].get("annotations") or {}
            if annotations.get(DO_NOT_DISRUPT) == "true":
                self.protected.append(pod["metadata"]["name"])


# -- fewer pods ------------------------------------------------------------------------------


def test_500_pods_become_200_and_their_nodes_follow() -> None:
    """Within budgets and a window; a protected pod, and one that nothing creates again, stay."""
    kept = a_pod("kept", cpu="500m")
    kept["metadata"]["annotations"] = {DO_NOT_DISRUPT: "true"}
    freeze = a_window("freeze", actions=["Consolidation"], schedules=[NOON])
    objects = [a_busy_pool(), a_deployment(replicas=500, cpu="500m"), kept, a_pod("bare"), freeze]
    with Story(a_node_class(), *objects, a_pdb(maxUnavailable="10%")) as story:
        story.run(15 * MINUTE)
        assert story.running("web") == 500
        full, price = story.count("nodes"), dollars(story)
        watched, evicted = Watched(story), Evicted(story)
        scale(story, 200)
        story.run(3 * HOUR + 30 * MINUTE)  # Until 11:45: before the window.
        few = story.count("nodes")
        assert few <= full * 0.5
        assert dollars(story) <= price * 0.5
        assert watched.most <= -(-full // 10)
        assert not evicted.protected
        assert {"kept", "bare"} <= {pod["metadata"]["name"] for pod in story.store.list(PODS)}
        assert story.running("web") == 200
        scale(story, 60)
        story.run(2 * HOUR)  # The window is active from 12:00 to 16:00.
        assert settled(story, hours=1)
        during = story.count("nodes")
        story.run(3 * HOUR)
        assert story.count("nodes") < during
        assert settled(story)
        story.checkers.assert_kept()


#: From 11:45 to 16:00.
NOON = {"cron": "45 11 * * *", "duration": "4h15m"}


def test_one_node_after_the_other_goes_while_no_more_than_a_pod_is_missing() -> None:
    with Story(
        *a_cluster(a_deployment(replicas=12, cpu="700m"), budgets=ANY), a_pdb(maxUnavailable=1)
    ) as story:
        story.run(5 * MINUTE)
        assert story.count("nodes") == 6
        scale(story, 6)
        story.run(MINUTE)
        lowest = [story.running("web")]
        for _ in range(60):
            story.run(20 * SECOND)
            lowest.append(story.running("web"))
        assert min(lowest[3:]) >= 5
        assert story.count("nodes") == 3
        assert settled(story)
        story.checkers.assert_kept()


def test_consolidate_after_counts_from_the_last_pod_that_came_or_went() -> None:
    cluster = a_cluster(a_deployment(replicas=4, cpu="700m"), consolidateAfter="20m")
    with Story(*cluster) as story:
        story.run(30 * MINUTE)
        scale(story, 2)
        story.run(15 * MINUTE)
        before = story.count("nodes")
        story.run(15 * MINUTE)
        assert (before, story.count("nodes")) == (2, 1)
        story.checkers.assert_kept()


@pytest.mark.parametrize(
    "block", [{"consolidationPolicy": "WhenEmpty"}, {"consolidateAfter": "Never"}]
)
def test_a_pool_may_keep_nodes_with_pods(block: dict[str, str]) -> None:
    one_each = a_deployment(replicas=4, cpu="700m")
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    one_each["spec"]["template"]["spec"]["topologySpreadConstraints"] = [spread]
    with Story(*a_cluster(one_each, **block)) as story:
        story.run(5 * MINUTE)
        there = uids(story)
        for pod in story.store.list(PODS)[:1]:
            story.store.patch(PODS, "default", pod["metadata"]["name"], FIRST_TO_GO)
        scale(story, 3)
        story.run(3 * HOUR)
        assert uids(story) == there
        set_pool(story, consolidationPolicy="WhenEmptyOrUnderutilized", consolidateAfter="0s")


FIRST_TO_GO = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-1000"}}}


def test_a_window_that_keeps_empty_nodes_keeps_them_empty() -> None:
    """They are room for pods that arrive: pods of other nodes do not move there, which would then go instead."""
    freeze = a_window("warm", actions=["EmptyConsolidation"])
    apps = [a_deployment(name, replicas=4, cpu="700m") for name in ("web", "api")]
    with Story(*a_cluster(*apps, freeze), a_pdb(maxUnavailable=1)) as story:
        story.run(5 * MINUTE)
        full = nodes_of(story, "api")
        scale(story, 0)
        story.run(50 * MINUTE)  # Until 08:55; the window is active until 09:00.
        nodes = story.count("nodes")
        assert (nodes, nodes_of(story, "api")) == (4, full)
        story.run(HOUR)
        assert (story.count("nodes"), nodes_of(story, "api")) == (len(full), full)
        story.checkers.assert_kept()


def nodes_of(story: Story, app: str) -> set[str]:
    pods = (pod for pod in story.all(PODS) if pod["metadata"]["labels"]["app"] == app)
    return {pod["spec"]["nodeName"] for pod in pods}


# -- something cheaper -----------------------------------------------------------------------


@pytest.mark.parametrize("limits", [{}, {"limits": {"cpu": "16"}}])
def test_a_node_that_is_too_large_is_replaced_by_a_smaller_one_first(limits: Any) -> None:
    """In a pool that is at its limit as well."""
    sizes = a_requirement(INSTANCE_TYPE, "m7i.large", "m7i.4xlarge")
    block = {"budgets": ANY, "consolidateAfter": "30s"}
    pool = a_pool(requirements=[sizes], disruption=block, **limits)
    with Story(a_node_class(), pool, a_deployment(replicas=10, cpu="1500m")) as story:
        story.run(5 * MINUTE)
        before = dollars(story)
        scale(story, 1)
        running = []
        for _ in range(60):
            story.run(10 * SECOND)
            running.append(story.running("web"))
        (claim,) = story.store.list(NODE_CLAIMS)
        assert claim["metadata"]["labels"][INSTANCE_TYPE] == "m7i.large"
        assert dollars(story) < before / 4
        assert settled(story)
        story.checkers.assert_kept()


def spot_prices(percent: int) -> Any:
    def price(kind: InstanceType, one: Offering) -> int:
        listed = max(each.price for each in kind.offerings if each.capacity_type == "on-demand")
        return listed * percent // 100 if one.capacity_type == "spot" else one.price

    return price


def test_on_demand_nodes_become_spot_where_the_pool_allows_both() -> None:
    pool = a_busy_pool(capacity="on-demand", disruption={"budgets": ANY})
    with Story(a_node_class(), pool, a_deployment(replicas=12, cpu="1")) as story:
        story.run(5 * MINUTE)
        before = dollars(story)
        terms = a_requirement(CAPACITY_TYPE, "on-demand", "spot")
        story.store.patch(
            NODE_POOLS,
            "",
            "general",
            {"spec": {"template": {"spec": {"requirements": [terms, MEDIUM]}}}},
        )
        story.run(HOUR)
        found = {one["metadata"]["labels"][CAPACITY_TYPE] for one in story.store.list(NODE_CLAIMS)}
        assert found == {"spot"}
        assert dollars(story) < before
        assert story.running("web") == 12
        assert settled(story)
        story.checkers.assert_kept()


def test_prices_that_go_up_and_down_move_nothing() -> None:
    """Spot is a little cheaper than on demand, then a little dearer, for six hours. Then it is much
    cheaper, and the nodes become spot, once."""
    both = a_requirement(CAPACITY_TYPE, "on-demand", "spot")
    pool = a_busy_pool(disruption={"budgets": ANY})
    pool["spec"]["template"]["spec"]["requirements"] = [both, MEDIUM]
    with Story(a_node_class(), pool, a_deployment(replicas=12, cpu="1")) as story:
        story.cloud.change_prices(spot_prices(120))
        story.run(30 * MINUTE)
        there, launched = uids(story), story.cloud.launch_count
        for percent in (103, 97, 95, 101, 98, 102) * 6:
            story.cloud.change_prices(spot_prices(percent))
            story.run(10 * MINUTE)
        assert (uids(story), story.cloud.launch_count) == (there, launched)
        story.cloud.change_prices(spot_prices(40))
        story.run(HOUR)
        assert not uids(story) & there
        assert settled(story)
        story.checkers.assert_kept()


def test_nodes_that_are_cheaper_together_are_replaced_together() -> None:
    """Each by itself is cheaper than the only other type; four of them are not."""
    block = {"budgets": ANY, "consolidateAfter": "30s"}
    small = a_requirement(INSTANCE_TYPE, "m7i.large")
    both = a_requirement(INSTANCE_TYPE, "m7i.large", "t4g.2xlarge")
    pool = a_pool(requirements=[small], disruption=block)
    with Story(a_node_class(), pool, a_deployment(replicas=12, cpu="500m")) as story:
        story.run(5 * MINUTE)
        assert story.count("nodes") == 4
        on_demand = a_requirement(CAPACITY_TYPE, "on-demand")
        wanted = {"template": {"spec": {"requirements": [on_demand, both]}}}
        story.store.patch(NODE_POOLS, "", "general", {"spec": wanted})
        running = []
        for _ in range(30):
            story.run(10 * SECOND)
            running.append(story.count("nodes"))
        (claim,) = story.store.list(NODE_CLAIMS)
        assert claim["metadata"]["labels"][INSTANCE_TYPE] == "t4g.2xlarge"
        assert story.running("web") == 12
        assert set(running) <= {1, 4, 5}, "all of them go, or none"
        assert settled(story)
        story.checkers.assert_kept()


# -- no runaway ------------------------------------------------------------------------------


def test_consolidation_and_provisioning_do_not_chase_each_other() -> None:
    """Spread, anti-affinity and PDBs at once: after a while nothing is launched any more."""
    spread = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": {"app": "db"}},
                }
            ]
        }
    }
    web = a_deployment("web", replicas=30, cpu="900m", topologySpreadConstraints=[spread])
    db = a_deployment("db", replicas=5, cpu="300m", affinity=apart)
    pool = a_busy_pool(disruption={"budgets": ANY, "consolidateAfter": "0s"})
    with Story(a_node_class(), pool, web, db, a_pdb(maxUnavailable=2)) as story:
        story.run(20 * MINUTE)
        scale(story, 9)
        story.run(2 * HOUR)
        assert story.running("web") == 9
        assert story.running("db") == 5
        assert settled(story, hours=12)
        story.checkers.assert_kept()


def test_what_becomes_possible_where_pods_come_and_go_is_found_within_minutes() -> None:
    """Plans have found nothing for half an hour, so that they are made rarely: a pod goes every 15 seconds."""
    api = a_deployment("api", replicas=8, cpu="700m")
    with Story(*a_cluster(a_deployment(replicas=16, cpu="700m"), api)) as story:
        story.run(5 * MINUTE)
        before = _plans(story)
        for number in range(1, 160):
            story.at(number * 15 * SECOND, lambda: _delete_one_of(story, "api"))
        story.run(30 * MINUTE)
        full = story.count("nodes")
        assert 6 <= _plans(story) - before <= 14
        scale(story, 4)
        story.run(10 * MINUTE)
        assert (full, story.count("nodes")) == (12, 6)
        story.checkers.assert_kept()


def _plans(story: Story) -> float:
    """How many were made."""
    (duration,) = story.controller.metrics.plan_duration.collect()
    return sum(one.value for one in duration.samples if one.name.endswith("_count"))


def _delete_one_of(story: Story, app: str) -> None:
    pods = [
        pod["metadata"]["name"]
        for pod in story.store.list(PODS)
        if pod["metadata"]["labels"]["app"] == app and "deletionTimestamp" not in pod["metadata"]
    ]
    if pods:
        story.store.delete(PODS, "default", min(pods))


def test_the_same_seed_makes_the_same_moves() -> None:
    def told() -> list[str]:
        with Story(*a_cluster(a_deployment(replicas=12, cpu="700m"))) as story:
            story.run(5 * MINUTE)
            scale(story, 5)
            story.run(20 * MINUTE)
            return [f"{e.at} {e.subject} {e.reason}" for e in story.history.entries]

    assert told() == told()


def test_a_crash_between_two_moves_forgets_nothing() -> None:
    with Story(
        *a_cluster(a_deployment(replicas=12, cpu="700m"), budgets=[{"nodes": "1"}])
    ) as story:
        story.run(5 * MINUTE)
        scale(story, 5)
        for _ in range(10):
            story.run(timedelta(seconds=37))
            story.crash()
        story.run(15 * MINUTE)
        assert story.running("web") == 5
        assert story.count("nodes") == 3
        story.checkers.assert_kept()
