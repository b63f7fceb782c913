"""``tenure explain`` of a node that is to go by choice: what blocks it, and its next chance.

Stories begin at 08:00; the node is due at 08:05, and asked about at 08:10.
"""

from __future__ import annotations

from typing import Any

import pytest

from tenure.cli.cluster.embedded import scene_of
from tenure.cli.cluster.question import Question
from tenure.cli.explain.explanation import Explanation, explanation
from tenure.cli.explain.text import as_text
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, NODES
from tenure.model.settings import Settings
from tenure.sim.scenario.dsl import Story
from tenure.sim.world import WorldOptions
from tests.builders import MINUTE, SECOND, Manifest, a_deployment, a_pdb
from tests.scenarios.fleets import (
    a_cluster,
    a_fleet,
    a_window,
    label_template,
    scale,
    set_pool,
    the_claim,
)

OFF = WorldOptions(settings=Settings(voluntary_disruption=False))
#: From 08:00 to 20:00, nothing.
BY_DAY = {"nodes": "0", "schedule": "0 8 * * *", "duration": "12h"}


def asked(story: Story, kind: str, name: str) -> Explanation:
    answer = explanation(Question.parse((kind, name)), scene_of(story))
    assert answer is not None
    return answer


def explained(story: Story) -> str:
    _, claim = the_claim(story)
    return as_text(asked(story, "claim", claim))


def drifted(story: Story) -> str:
    story.run(5 * MINUTE)
    label_template(story, "two")
    story.run(5 * MINUTE)
    return explained(story)


def protected(until: str) -> Manifest:
    annotations = {"karpenter.sh/do-not-disrupt": until}
    return a_deployment(cpu="1500m", annotations=annotations)


@pytest.mark.parametrize(
    ("cluster", "says"),
    [
        pytest.param(
            a_cluster(a_fleet(1), a_window(actions=["Drift"])),
            "MaintenanceWindow freeze blocks Drift of Node {node} until 2026-01-05T09:00:00Z",
            id="window",
        ),
        pytest.param(
            a_cluster(a_fleet(1), budgets=[BY_DAY]),
            "blocked until 2026-01-05T20:00:00Z, in 11h50m, unless the cluster changes before",
            id="budget with a schedule",
        ),
        pytest.param(
            a_cluster(a_fleet(1), budgets=[{"nodes": "0"}]),
            "no node is disrupted before the budget is raised",
            id="budget of none",
        ),
        pytest.param(
            a_cluster(protected("1h")),
            'karpenter.sh/do-not-disrupt: "1h" protects from disruption until 2026-01-05T09:00:00Z',
            id="protected pod",
        ),
        pytest.param(
            a_cluster(protected("true")),
            'karpenter.sh/do-not-disrupt: "true"',
            id="pod protected for ever",
        ),
        pytest.param(
            a_cluster(a_fleet(1), a_pdb(maxUnavailable=0)),
            "blocked by PodDisruptionBudget default/web: PDB default/web can never allow an eviction",
            id="PDB",
        ),
    ],
)
def test_a_drifted_node_names_its_next_chance(cluster: Any, says: str) -> None:
    with Story(*cluster) as story:
        told = drifted(story)
        node, _ = the_claim(story)
        assert says.format(node=node) in told


def test_switched_off_it_names_the_switch() -> None:
    with Story(*a_cluster(a_fleet(1)), options=OFF) as story:
        told = drifted(story)
        assert "voluntary disruption is switched off until --voluntary-disruption=true" in told


def test_an_empty_node_says_from_when_on_it_is_a_candidate() -> None:
    with Story(*a_cluster(a_fleet(1), consolidateAfter="30m")) as story:
        story.run(5 * MINUTE)
        scale(story, 0)
        story.run(5 * MINUTE)
        told = explained(story)
        assert "a candidate from 2026-01-05T08:35:00Z, in 25m, on" in told
        set_pool(story, consolidateAfter="10m")
        story.run(SECOND)
        assert "a candidate from 2026-01-05T08:15:00Z" in explained(story)


def test_a_node_says_when_it_expires() -> None:
    cluster = a_cluster(a_fleet(1), expirationPolicy="Always", template={"expireAfter": "2h"})
    with Story(*cluster) as story:
        story.run(5 * MINUTE)
        assert "expires at 2026-01-05T10:00:0" in explained(story)


def test_with_a_velocity_it_says_when_the_next_may_start_and_so_does_its_pool() -> None:
    with Story(*a_cluster(a_fleet(2), budgets=[{"nodes": "1", "within": "1h"}])) as story:
        drifted(story)
        told = as_text(asked(story, "pool", "general"))
        next_at = "2026-01-05T09:05:15Z, in 55m15s"
        assert f"the next may start at {next_at}" in told
        assert f"  budgets   allow 0 more Nodes now, may change at {next_at} (Unhealthy, " in told
        assert f"wait: 1 for budgets; next chance at {next_at}" in told.replace("waits:", "wait:")


def test_a_window_that_closes_too_soon_names_when_it_is_open_again() -> None:
    """A node takes about a minute; the first window has half of one."""
    short = {"cron": "10 8 * * *", "duration": "30s"}
    long = {"cron": "40 8 * * *", "duration": "5m"}
    window = a_window("mornings", type="Allow", actions=["Drift"], schedules=[short, long])
    with Story(*a_cluster(a_fleet(1)), window) as story:
        told = drifted(story)
        assert "not started: a new node of NodePool general takes" in told
        assert "is not active before 2026-01-05T08:40:00Z, in 30m" in told
        told = as_text(asked(story, "window", "mornings"))
        _, claim = the_claim(story)
        assert f"NodeClaim/{claim} (disruption)" in told


def test_after_a_failed_replacement_it_says_until_when_the_pool_backs_off() -> None:
    with Story(*a_cluster(a_fleet(1), template={"readinessTTL": "2m"})) as story:
        story.run(5 * MINUTE)

        def on_node(type_: str, node: Any, _old: Any) -> None:
            if type_ == "ADDED":
                story.environment.soon(story.kubelets.silence, node["metadata"]["name"])

        story.store.subscribe(NODES, on_node)
        claim = story.the(NODE_CLAIMS)["metadata"]["name"]
        label_template(story, "two")
        failed = "karpenter.sh/replacement-failed"
        story.run_while(
            lambda: (
                failed not in story.store.get(NODE_CLAIMS, "", claim)["metadata"]["annotations"]
            ),
            at_most=10 * MINUTE,
            step=5 * SECOND,
        )
        story.run(SECOND)
        told = as_text(asked(story, "claim", claim))
        assert (
            f"a replacement of NodeClaim {claim} failed: NodePool general replaces no node" in told
        )
        assert "before 2026-01-05T08:" in told


def test_a_window_lists_all_that_waits_for_it_also_beside_a_longer_one() -> None:
    longer = {"cron": "0 8 * * *", "duration": "2h"}
    windows = (
        a_window("short", actions=["Drift"]),
        a_window("long", schedules=[longer], actions=["Drift"]),
    )
    with Story(*a_cluster(a_fleet(1)), *windows) as story:
        drifted(story)
        _, claim = the_claim(story)
        for name in ("short", "long"):
            told = as_text(asked(story, "window", name))
            assert f"NodeClaim/{claim} (disruption)" in told
            assert "MaintenanceWindow long blocks Drift" in told
            assert "until 2026-01-05T10:00:00Z, in 1h50m" in told


@pytest.mark.parametrize(("kind", "name"), [("pool", "general"), ("window", "freeze")])
def test_nodes_that_wait_for_the_same_are_explained_once(kind: str, name: str) -> None:
    with Story(*a_cluster(a_fleet(4), a_window(actions=["Drift"]))) as story:
        drifted(story)
        told = as_text(asked(story, kind, name))
        assert told.count("verdict   DisruptionBlocked: ") == 1
        assert "; the same of 3 more: Node" in told


def test_budgets_that_allow_none_say_why() -> None:
    with Story(*a_cluster(a_fleet(1), budgets=[{"nodes": "10%"}])) as story:
        story.run(20 * SECOND)
        told = as_text(asked(story, "pool", "general"))
        assert "Underutilized): the NodePool has no initialized Node that they count" in told
        story.run(5 * MINUTE)
        story.delete_claim()
        story.run(SECOND)
        told = as_text(asked(story, "pool", "general"))
        assert "): 1 of 1 Node is being disrupted, terminating or not Ready" in told


def test_a_pool_that_always_expires_says_that_budgets_do_not_hold_that() -> None:
    with Story(*a_cluster(a_fleet(1), expirationPolicy="Always")) as story:
        told = as_text(asked(story, "pool", "general"))
        assert "(Unhealthy, Empty, Drifted, Rebalance, Underutilized)" in told
        assert "  budgets   do not hold expired Nodes (expirationPolicy Always)" in told


def test_a_budget_that_cannot_be_read_is_named_by_the_pool() -> None:
    with Story(*a_cluster(a_fleet(1))) as story:
        story.run(5 * MINUTE)
        bad = [
            {"nodes": "1", "schedule": "0 0 * * *", "duration": "1h", "timeZone": "Mars/Olympus"}
        ]
        set_pool(story, budgets=bad)
        label_template(story, "two")
        story.run(MINUTE)
        told = as_text(asked(story, "pool", "general"))
        assert "  budgets   allow 0 more Nodes now (Unhealthy, Empty, Expired, Drifted" in told
        assert "DisruptionInvalid: " in told
        allowed = story.the(NODE_POOLS)["status"]["disruptionsAllowed"]
        assert {one["nodes"] for one in allowed} == {0}
