"""Budgets with ``within`` over a day in virtual time: leaders change, and nothing is forgotten."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, NODES
from tenure.sim.scenario.dsl import Story
from tenure.sim.world import WorldOptions
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
from tests.core.disrupt.retired import RETIRE
from tests.scenarios.fleets import Begun
from tests.scenarios.test_second_method import TwoMethods

CONDITION = "KWOKUnhealthy"
#: One pod on each node.
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        ]
    }
}
FAR = {"at": "2099-01-01T00:00:00Z", "reason": "Drifted"}
GRACEFUL = {"maxUnhealthy": "100%", "terminationMode": "Graceful"}


def a_cluster(nodes: int, *budgets: dict[str, Any]) -> list[Manifest]:
    pool = a_pool(
        disruption={"budgets": list(budgets), "consolidateAfter": "Never"}, repair=GRACEFUL
    )
    return [a_node_class(), pool, a_deployment(replicas=nodes, affinity=APART)]


def recorded(story: Story) -> list[dict[str, Any]]:
    found = story.the(NODE_POOLS).get("status", {}).get("disruptionStarts", [])
    return list(found)


def break_all(story: Story, method: str) -> None:
    for node in story.all(NODES):
        name = node["metadata"]["name"]
        if method == "Unhealthy":
            story.kubelets.set_condition(name, CONDITION, "True", "Test")
        else:
            story.store.patch(NODES, "", name, {"metadata": {"annotations": {RETIRE: "yes"}}})


@pytest.mark.parametrize("seed", [0, 1])
def test_a_roll_beside_an_ordinary_pdb_never_starts_more_than_the_velocity_allows(
    seed: int,
) -> None:
    """A PDB that other drains use up rolled commands back, and each began again uncounted."""
    objects = a_cluster(6, {"nodes": "50%"}, {"nodes": "2", "within": "1h"})
    options = WorldOptions(seed=seed)
    with Story(*objects, a_pdb(maxUnavailable=1), options=options) as story:
        story.run(10 * MINUTE)
        begun = Begun(story)
        patch = {"spec": {"template": {"metadata": {"labels": {"release": "two"}}}}}
        story.store.patch(NODE_POOLS, "", "general", patch)
        story.run(4 * HOUR)
        assert len(begun.at) == 6, "each node once: no start was wasted"
        within_an_hour = [sum(at - HOUR < one <= at for one in begun.at) for at in begun.at]
        assert max(within_an_hour) == 2


@pytest.mark.parametrize("method", ["Unhealthy", "Retired"])
def test_never_a_third_start_within_any_hour_over_leader_changes(method: str) -> None:
    with TwoMethods(*a_cluster(12, {"nodes": "2", "within": "1h"})) as story:
        story.run(5 * MINUTE)
        assert len(story.all(NODES)) == 12
        begun = Begun(story)
        break_all(story, method)
        leaders = [2 * SECOND, 31 * MINUTE, 3 * HOUR + 16 * SECOND]
        for until in leaders:
            story.run(until)
            story.crash()
        story.run(24 * HOUR - sum(leaders, timedelta()))
        assert len(begun.at) == 12, "all of them, one after the other"
        for first, third in zip(begun.at, begun.at[2:], strict=False):
            assert third - first >= HOUR
        assert begun.at[-1] - begun.at[0] <= 5 * HOUR + 10 * MINUTE, "and no slower than need be"
        assert recorded(story) == [], "after the span they are forgotten"
        assert story.running("web") == 12
        assert story.checkers.asked["too many starts"] >= 12


def forget(story: Story) -> None:
    """A user, or a fault of ours, takes the record away."""
    pool = story.the(NODE_POOLS)["metadata"]["name"]
    story.store.patch(
        NODE_POOLS, "", pool, {"status": {"disruptionStarts": None}}, subresource="status"
    )


def test_the_checkers_count_for_themselves() -> None:
    with Story(*a_cluster(4, {"nodes": "1", "within": "1h"})) as story:
        story.run(5 * MINUTE)
        break_all(story, "Unhealthy")
        for _ in range(10):
            story.run(MINUTE)
            forget(story)
        broken = {violation.rule for violation in story.checkers.violations}
        assert broken == {"too many starts"}
        story.checkers.violations.clear()


@pytest.mark.parametrize(("down", "counted"), [(2 * SECOND, 1), (30 * SECOND, 2)])
def test_a_crash_between_record_and_commit_forgets_nothing(down: timedelta, counted: int) -> None:
    with Story(*a_cluster(3, {"nodes": "2", "within": "1h"})) as story:
        story.run(5 * MINUTE)
        begun = Begun(story)
        break_all(story, "Unhealthy")
        story.run(29 * SECOND)
        while not recorded(story):
            story.run(SECOND / 200)
        (start,) = recorded(story)
        assert not begun.at, "it is recorded before it is committed"
        story.crash(stay_down=True)
        story.run(down)
        story.start()
        story.run_while(lambda: not begun.at, at_most=5 * MINUTE, step=SECOND)
        own = [one for one in recorded(story) if one["claim"] == start["claim"]]
        assert len(own) == counted, "one too many at the worst"
        story.run(50 * MINUTE)
        assert len(begun.at) == 3 - counted
        story.run(3 * HOUR)
        assert len(begun.at) == 3


def test_departures_that_no_budget_holds_count_and_are_not_held() -> None:
    with Story(*a_cluster(4, {"nodes": "2", "within": "1h"})) as story:
        story.run(5 * MINUTE)
        begun = Begun(story)
        for claim in story.all(NODE_CLAIMS)[:3]:
            story.store.delete(NODE_CLAIMS, "", claim["metadata"]["name"])
        story.run(10 * MINUTE)
        assert [one["reason"] for one in recorded(story)] == ["Deleted"] * 3
        assert len({one["claim"] for one in recorded(story)}) == 3
        break_all(story, "Unhealthy")
        story.run(40 * MINUTE)
        assert not begun.at
        story.run(20 * MINUTE)
        assert len(begun.at) == 2


def test_a_start_far_ahead_protects_for_one_span() -> None:
    with Story(*a_cluster(2, {"nodes": "1", "within": "1h"})) as story:
        story.run(5 * MINUTE)
        begun = Begun(story)
        pool, bad = story.the(NODE_POOLS), {**FAR, "claim": "x"}
        name = pool["metadata"]["name"]
        story.store.patch(
            NODE_POOLS, "", name, {"status": {"disruptionStarts": [bad]}}, subresource="status"
        )
        break_all(story, "Unhealthy")
        story.run(59 * MINUTE)
        assert not begun.at
        story.run(2 * MINUTE)
        assert len(begun.at) == 1
