"""What becomes of a command, in virtual time: leaders change, replacements fail, gates close, pods appear.

Stories begin on a Monday at 08:00 UTC. A node takes about 45 s from its launch to Initialized.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tenure.model.api.names import DO_NOT_DISRUPT, REPLACES
from tenure.model.api.resource import (
    MAINTENANCE_WINDOWS,
    NODE_CLAIMS,
    NODE_POOLS,
    NODES,
    PODS,
)
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.scenario.dsl import Story
from tests.builders import (
    HOUR,
    MINUTE,
    SECOND,
    Manifest,
    a_deployment,
    a_node_class,
    a_pdb,
    a_pod,
    a_pool,
)
from tests.scenarios.fleets import (
    ANY,
    SMALL,
    a_cluster,
    a_fleet,
    a_window,
    label_template,
    names,
    of_pool,
    the_claim,
    uids,
)
from tests.scenarios.signs import (
    blocked,
    is_as_before,
    is_gone,
    is_leaving,
    is_tainted,
    replacement_of,
    says,
    warned,
)

MOMENT = timedelta(milliseconds=50)


def run_until(story: Story, true: Callable[[], object], step: timedelta = SECOND) -> None:
    story.run_while(lambda: not true(), at_most=10 * MINUTE, step=step)
    assert true()


def a_drifted_node(story: Story) -> tuple[str, str]:
    """The one node of the story and its claim, whose template has changed just now."""
    story.run(5 * MINUTE)
    node, claim = the_claim(story)
    label_template(story, "two")
    return node, claim


def freeze(story: Story) -> None:
    story.store.create(MAINTENANCE_WINDOWS, a_window(actions=["Drift"], schedules=[]))


# -- leaders ---------------------------------------------------------------------------------


def test_each_new_leader_continues_the_command_of_the_one_before() -> None:
    with Story(*a_cluster(a_fleet(1))) as story:
        node, claim = a_drifted_node(story)
        run_until(story, lambda: replacement_of(story, claim), MOMENT)
        new = replacement_of(story, claim)["metadata"]["name"]
        story.crash()
        run_until(story, lambda: is_tainted(story, node))
        story.crash()
        run_until(story, lambda: says(story, new, "Initialized") == ("True", "Initialized"), MOMENT)
        story.crash()
        run_until(story, lambda: is_leaving(story, claim))
        story.crash()
        story.run(5 * MINUTE)
        assert names(story) == {new}
        assert story.cloud.launch_count == 2
        assert story.running("web") == 1
        story.checkers.assert_kept()


# -- replacements that fail ------------------------------------------------------------------


def never_ready(story: Story, pool: str) -> None:
    """From now on, no new node of the pool becomes Ready."""

    def on_node(type_: str, node: Obj, _old: Obj | None) -> None:
        if type_ == "ADDED" and node["metadata"]["labels"]["karpenter.sh/nodepool"] == pool:
            story.environment.soon(story.kubelets.silence, node["metadata"]["name"])

    story.store.subscribe(NODES, on_node)


STARTUP = {"startupTaints": [{"key": "example.com/agent", "effect": "NoSchedule"}]}


def two_pools() -> list[Manifest]:
    """Each with a workload of its own, two nodes of it."""
    pools = [
        a_pool(
            name,
            requirements=[SMALL],
            disruption={"budgets": ANY},
            template={"readinessTTL": "2m", "taints": [{"key": name, "effect": "NoSchedule"}]},
        )
        for name in ("red", "blue")
    ]
    apps = [
        a_deployment(
            name, replicas=2, cpu="1500m", tolerations=[{"key": name, "operator": "Exists"}]
        )
        for name in ("red", "blue")
    ]
    return [a_node_class(), *pools, *apps]


@pytest.mark.parametrize("fails", ["never Ready", "never Initialized"])
def test_a_replacement_that_fails_leaves_the_node_as_it_was_and_the_other_pool_rolls_on(
    fails: str,
) -> None:
    with Story(*two_pools()) as story:
        story.run(5 * MINUTE)
        red, blue = of_pool(story, "red"), of_pool(story, "blue")
        if fails == "never Ready":
            never_ready(story, "red")
        else:  # An agent that is not installed was to remove the taint.
            story.store.patch(NODE_POOLS, "", "red", {"spec": {"template": {"spec": STARTUP}}})
        missing: list[timedelta] = []

        def on_pod(*_: object) -> None:
            if story.running("red") < 2:
                missing.append(story.elapsed)

        story.store.subscribe(PODS, on_pod)
        label_template(story, "two", "red")
        label_template(story, "two", "blue")
        story.run(30 * MINUTE)
        assert not missing, "no workload loses capacity"
        assert set(of_pool(story, "red")) >= set(red)
        assert not set(of_pool(story, "blue")) & set(blue), "the other pool has rolled"
        told = {name: story.reasons(f"NodeClaim/{name}") for name in red}
        assert any("ReplacementFailed" in reasons for reasons in told.values())
        story.run_while(
            lambda: any(is_tainted(story, c["status"]["nodeName"]) for c in red.values()),
            at_most=30 * MINUTE,
            step=SECOND,
        )
        for name, claim in red.items():
            is_as_before(story, claim["status"]["nodeName"], name)
            assert "failed: NodePool red replaces no node before" in blocked(story, name)
            assert story.controller.evaluator.about("NodeClaim", name)[0].recheck_at is not None
        story.checkers.assert_kept()


# -- replacements that are left over -----------------------------------------------------------


def test_a_replacement_that_no_command_needs_is_removed_although_windows_and_budgets_are_closed() -> (
    None
):
    with Story(*a_cluster(a_fleet(1))) as story:
        node, claim = a_drifted_node(story)
        run_until(story, lambda: is_tainted(story, node))
        new = replacement_of(story, claim)["metadata"]["name"]
        all_of_it = ["Drift", "Expiration", "Consolidation", "Rebalance"]
        story.store.create(MAINTENANCE_WINDOWS, a_window(actions=all_of_it, schedules=[]))
        zero = {"disruption": {"budgets": [{"nodes": "0"}]}}
        story.store.patch(NODE_POOLS, "", "general", {"spec": zero})
        story.run(5 * MINUTE)
        assert names(story) == {claim}
        is_as_before(story, node, claim)
        assert "ReplacementLeftOver" in story.reasons(f"NodeClaim/{new}")
        assert "MaintenanceWindow freeze blocks Drift" in blocked(story, claim)
        story.checkers.assert_kept()


def test_a_replacement_that_a_pod_uses_loses_its_mark_and_stays() -> None:
    with Story(*a_cluster(a_fleet(1), consolidationPolicy="WhenEmpty")) as story:
        node, claim = a_drifted_node(story)
        run_until(story, lambda: is_tainted(story, node))
        new = replacement_of(story, claim)["metadata"]["name"]
        story.apply(a_pod("guest", cpu="100m", nodeSelector={"example.com/release": "two"}))
        freeze(story)
        run_until(story, lambda: REPLACES not in annotations_of(story, new))
        story.run(30 * MINUTE)
        assert names(story) == {claim, new}
        assert story.running("guest") == 1
        assert story.the(PODS, app="guest")["spec"]["nodeName"] == f"node-{new}"
        is_as_before(story, node, claim)
        story.checkers.assert_kept()


def annotations_of(story: Story, claim: str) -> dict[str, str]:
    found: dict[str, str] = story.store.get(NODE_CLAIMS, "", claim)["metadata"]["annotations"]
    return found


# -- gates that close ------------------------------------------------------------------------


def budget_of_zero(story: Story) -> None:
    budgets = {"disruption": {"budgets": [{"nodes": "0", "reasons": ["Drifted"]}]}}
    story.store.patch(NODE_POOLS, "", "general", {"spec": budgets})


def protect_the_node(story: Story) -> None:
    mark = {"metadata": {"annotations": {DO_NOT_DISRUPT: "true"}}}
    for node in story.all(NODES):
        story.store.patch(NODES, "", node["metadata"]["name"], mark)


@pytest.mark.parametrize(
    ("close", "says_why"),
    [
        (freeze, "MaintenanceWindow freeze blocks Drift of Node"),
        (budget_of_zero, "budget 0 (Drifted) of NodePool general allows 0 of"),
        (protect_the_node, 'karpenter.sh/do-not-disrupt: "true"'),
    ],
)
def test_the_taint_is_rolled_back_when_a_gate_closes_before_the_node_terminates(
    close: Callable[[Story], None], says_why: str
) -> None:
    with Story(*a_cluster(a_fleet(1))) as story:
        node, claim = a_drifted_node(story)
        run_until(story, lambda: is_tainted(story, node))
        close(story)
        story.run(3 * MINUTE)
        is_as_before(story, node, claim)
        assert "DisruptionCancelled" in story.reasons(f"NodeClaim/{claim}")
        assert says_why in blocked(story, claim)
        story.run(HOUR)
        assert names(story) == {claim}
        story.checkers.assert_kept()


def protect_pods(story: Story) -> None:
    mark = {"metadata": {"annotations": {DO_NOT_DISRUPT: "true"}}}
    for pod in story.all(PODS):
        story.store.patch(PODS, "default", pod["metadata"]["name"], mark)


def forbid_evictions(story: Story) -> None:
    story.apply(a_pdb(maxUnavailable=0))


@pytest.mark.parametrize(
    ("appears", "says_why"),
    [
        (protect_pods, 'karpenter.sh/do-not-disrupt: "true"'),
        (forbid_evictions, "PDB default/web"),
    ],
)
def test_protection_that_appears_between_decision_and_taint_stops_it(
    appears: Callable[[Story], None], says_why: str
) -> None:
    with Story(*a_cluster(a_fleet(1))) as story:
        node, claim = a_drifted_node(story)
        run_until(story, lambda: replacement_of(story, claim), timedelta(milliseconds=5))
        assert not is_tainted(story, node)
        appears(story)
        tainted = 0
        for _ in range(120):
            story.run(SECOND)
            tainted += is_tainted(story, node)
        assert tainted <= 1, "at the most for the moment in which the news travels"
        story.run(10 * MINUTE)
        is_as_before(story, node, claim)
        assert says_why in blocked(story, claim)
        assert names(story) == {claim}, "and its replacement is removed"
        assert story.running("web") == 1
        story.checkers.assert_kept()


# -- who is no candidate -----------------------------------------------------------------------


@pytest.mark.parametrize("replicas", [{"replicas": 1}, {}], ids=["static", "dynamic"])
def test_nodes_of_a_static_pool_are_candidates_of_nothing(replicas: dict[str, Any]) -> None:
    """The node is empty, drifted and expired; in a pool without replicas it goes."""
    pool = a_pool(
        requirements=[SMALL],
        disruption={"budgets": ANY, "consolidateAfter": "10m"},
        template={"expireAfter": "1h"},
        **replicas,
    )
    template = pool["spec"]["template"]["spec"]
    by_hand: Manifest = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "one", "labels": {"karpenter.sh/nodepool": "general"}},
        "spec": {
            "nodeClassRef": template["nodeClassRef"],
            "requirements": template["requirements"],
            "expireAfter": "1h",
        },
    }
    with Story(a_node_class(), pool, by_hand) as story:
        story.run(5 * MINUTE)
        assert says(story, "one", "Initialized") == ("True", "Initialized")
        zones = [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["elsewhere"]}]
        requirements = {"spec": {"template": {"spec": {"requirements": zones}}}}
        story.store.patch(NODE_POOLS, "", "general", requirements)
        story.run(5 * HOUR)
        assert is_gone(story, "one") is not bool(replicas)
        if replicas:
            assert not is_leaving(story, "one")


# -- eventual ----------------------------------------------------------------------------------


@pytest.mark.parametrize("protected_by", ["annotation", "PDB"])
def test_with_a_grace_period_a_protected_pod_keeps_a_drifted_node_until_the_deadline(
    protected_by: str,
) -> None:
    pods: dict[str, Any] = {"terminationGracePeriodSeconds": 30}
    if protected_by == "annotation":
        pods["annotations"] = {DO_NOT_DISRUPT: "true"}
    cluster = a_cluster(
        a_deployment(cpu="1500m", **pods), template={"terminationGracePeriod": "20m"}
    )
    with Story(*cluster) as story:
        if protected_by == "PDB":
            forbid_evictions(story)
        _, claim = a_drifted_node(story)
        run_until(story, lambda: is_leaving(story, claim))
        begun = story.elapsed
        (pod,) = story.all(PODS, app="web")
        while (found := story.store.find(PODS, "default", pod["metadata"]["name"])) is not None:
            if "deletionTimestamp" in found["metadata"]:
                break
            story.run(SECOND)
        left = story.elapsed - begun
        assert 19 * MINUTE <= left <= 20 * MINUTE, "its own 30 s before the deadline"
        story.run(3 * MINUTE)
        assert is_gone(story, claim)
        assert story.running("web") == 1
        story.checkers.assert_kept()


def test_without_a_grace_period_it_waits_for_as_long_as_the_pod_is_protected() -> None:
    pod = a_deployment(cpu="1500m", annotations={DO_NOT_DISRUPT: "4h"})
    with Story(*a_cluster(pod)) as story:
        first = a_drifted_node(story)[1]
        story.run(3 * HOUR + 50 * MINUTE)
        assert not is_leaving(story, first)
        assert story.cloud.launch_count == 1, "no replacement waits with it"
        assert 'karpenter.sh/do-not-disrupt: "4h"' in blocked(story, first)
        assert warned(story, "until 2026-01-05T12:00:0")
        old = uids(story)
        story.run(15 * MINUTE)
        assert not uids(story) & old
        story.checkers.assert_kept()
