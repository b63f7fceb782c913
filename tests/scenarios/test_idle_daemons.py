"""DaemonSets whose pods do not run decide neither the size nor the number of others' nodes."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.model.api.resource import EVENTS, NODES
from tenure.sim.scenario.dsl import Story
from tests.builders import MINUTE, a_cluster, a_deployment
from tests.scenarios.test_launch_breaker import a_daemon_set

#: More than half of the largest instance type of the catalogue.
HUGE = "100"
GATED = {"schedulingGates": [{"name": "example.com/later"}]}


def sizes(story: Story) -> list[int]:
    return sorted(int(node["status"]["capacity"]["cpu"]) for node in story.all(NODES))


@pytest.mark.parametrize("more", [{}, GATED], ids=["too large", "gated"])
@pytest.mark.parametrize("count", [1, 2])
def test_daemons_that_run_nowhere_change_nothing_for_others(
    count: int, more: dict[str, Any]
) -> None:
    with Story(*a_cluster(a_deployment())) as story:
        story.run(2 * MINUTE)
        (small,) = sizes(story)
        for number in range(count):
            story.apply(a_daemon_set(f"agent-{number}", cpu=HUGE, **more))
        story.run(MINUTE)
        story.apply(a_deployment("late", cpu="1500m"))
        story.run(3 * MINUTE)
        assert story.running("late") == 1
        assert sizes(story) == [small, small]


def test_daemons_that_no_type_holds_stop_no_first_node_and_are_named() -> None:
    agents = [a_daemon_set(name, cpu=HUGE) for name in ("agent", "log")]
    with Story(*a_cluster(*agents, a_deployment())) as story:
        story.run(3 * MINUTE)
        assert story.running("web") == 1
        (told,) = [e for e in story.all(EVENTS) if e["reason"] == "DaemonSetsTooLarge"]
        assert (told["type"], told["involvedObject"]["kind"]) == ("Warning", "NodePool")
        assert "default/agent" in told["message"]
