"""A pool whose new nodes do not come up says so, and takes it back when they do."""

from __future__ import annotations

from tenure.core.pool.registrations import HEALTHY
from tenure.model.api.resource import NODE_POOLS
from tenure.sim.scenario.dsl import Story
from tests.builders import MINUTE, SECOND, a_deployment, a_node_class, a_pool


def health(story: Story) -> tuple[str, str]:
    conditions = story.store.get(NODE_POOLS, "", "general")["status"]["conditions"]
    (told,) = (one for one in conditions if one["type"] == HEALTHY)
    return told["status"], told["message"]


def a_story() -> Story:
    pool = a_pool(template={"readinessTTL": "2m"})
    return Story(a_node_class(), pool, a_deployment(replicas=1))


def test_time_outs_of_new_nodes_are_said_on_the_pool_also_after_a_restart() -> None:
    with a_story() as story:
        story.infrastructure.faults.set(never_ready_rate=1.0)
        story.run(12 * MINUTE)
        status, message = health(story)
        assert status == "False"
        assert message.count("(readiness_timeout)") >= 2
        story.infrastructure.faults.clear()
        story.crash()
        story.run(3 * MINUTE)
        assert health(story)[0] == "False", "one good node does not outweigh two bad ones"
        for _ in range(3):
            story.delete_claim()
            story.run(5 * MINUTE)
        assert health(story) == ("True", "")


def test_a_change_of_the_pool_lets_it_begin_anew() -> None:
    with a_story() as story:
        story.infrastructure.faults.set(never_registers_rate=1.0)
        story.run(12 * MINUTE)
        assert health(story)[0] == "False"
        story.apply(a_pool(template={"readinessTTL": "2m"}, weight=7))
        story.run(30 * SECOND)
        assert health(story)[0] == "Unknown"
