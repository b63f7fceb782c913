"""The first day on a fleet of a hundred nodes that are all expired, drifted or empty.

Tenure takes over: nothing was disrupted before, and everything is due at once.
"""

from __future__ import annotations

import pytest

from tenure.cli.cluster.embedded import scene_of
from tenure.cli.plan.planning import plan_of
from tenure.cli.plan.text import Setting, as_text
from tenure.core.disrupt.facts.planning import CandidatesWait
from tenure.core.gates.operations import Gate
from tenure.model.api.resource import EVENTS, NODE_POOLS
from tenure.model.settings import Settings
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.scenario.dsl import Story
from tenure.sim.world import WorldOptions
from tests.builders import HOUR, MINUTE, SECOND
from tests.scenarios.fleets import Watched, a_cluster, a_fleet, label_template, leaving, scale, uids

FLEET = 100
ALLOWED = FLEET // 10
OFF = WorldOptions(settings=Settings(voluntary_disruption=False))


def becomes_due(story: Story, reason: str) -> None:
    """Every node of the fleet; nothing is disrupted by choice yet."""
    story.run(5 * MINUTE)
    if reason == "Drifted":
        label_template(story, "two")
    elif reason == "Empty":
        scale(story, 0)
    story.run(11 * HOUR if reason == "Expired" else 5 * MINUTE)


def waits(story: Story) -> CandidatesWait:
    verdicts = story.controller.evaluator.about(NODE_POOLS.kind, "general")
    (fact,) = (fact for one in verdicts for fact in one.facts if isinstance(fact, CandidatesWait))
    return fact


def the_event(story: Story) -> Obj:
    """One on the pool."""
    (event,) = (one for one in story.store.list(EVENTS) if one["reason"] == "CandidatesWait")
    assert event["involvedObject"]["kind"] == NODE_POOLS.kind
    return event


def planned(story: Story) -> list[str]:
    return as_text(plan_of(scene_of(story)), Setting(where="the story")).splitlines()


@pytest.mark.parametrize("reason", ["Expired", "Drifted", "Empty"])
def test_it_keeps_to_the_budget_and_says_how_many_wait_and_for_what(reason: str) -> None:
    cluster = a_cluster(a_fleet(FLEET), budgets=[{"nodes": "10%"}], template={"expireAfter": "10h"})
    with Story(*cluster, options=OFF) as story:
        becomes_due(story, reason)
        first, of = uids(story), ((reason, FLEET),)
        assert len(first) == FLEET
        assert not leaving(story)
        assert waits(story) == CandidatesWait(FLEET, FLEET, None, of, ((Gate.OFF, FLEET),))
        assert f"Candidates that wait: {FLEET} of {FLEET} ({FLEET} {reason})" in planned(story)

        story.set_settings(Settings())
        watch = Watched(story)
        story.run(2 * SECOND)
        now = waits(story)
        assert now.gates[0][0] == Gate.BUDGET
        assert now.candidates == FLEET - len(leaving(story))
        assert f"    NodePool/general: {now}" in planned(story)
        story.run(3 * MINUTE)
        assert len(uids(story) & first) < FLEET
        assert ALLOWED <= watch.most <= ALLOWED + 1, "a tenth of the fleet and its replacements"
        event = the_event(story)
        assert f"{reason}) wait: " in event["message"]
        assert event["count"] < FLEET // 3, "not with each of them"
        story.checkers.assert_kept()
