"""Where the pods of a node would go is asked of the index that is kept, and the plan is the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tenure.core.disrupt.simulate import Plan, Simulation, leaving_node, simulation_in
from tenure.core.protect.protection import CREATION
from tenure.model.api.resource import NODES
from tenure.packing import existing
from tenure.packing import pack as packing
from tenure.packing.demand.steps import at_once
from tenure.packing.index.keeper import Keeper
from tenure.packing.question import Question
from tenure.sim.scenario.dsl import Story
from tests.builders import MINUTE, a_deployment, a_node_class, a_pool, a_requirement
from tests.scenarios.fleets import scale


@pytest.fixture
def half_empty() -> Iterator[Story]:
    """Sixteen pods on eight nodes, then four of them fewer."""
    types = a_requirement("node.kubernetes.io/instance-type", "c7i.large")
    pool = a_pool(requirements=[types], disruption={"consolidateAfter": "Never"})
    with Story(a_node_class(), pool, a_deployment(replicas=16, cpu="700m")) as story:
        story.run(5 * MINUTE)
        scale(story, 12)
        story.run(MINUTE)
        yield story


def plans_of(story: Story) -> list[Plan]:
    snapshot = story.controller.snapshot()
    simulation: Simulation = simulation_in(snapshot, CREATION)
    found = []
    for name, node in sorted(snapshot.nodes.items()):
        claim = snapshot.claim_of(node)
        assert claim is not None
        leaving = leaving_node(claim, node, snapshot.pods_on(name).values())
        found.append(at_once(simulation.plan([leaving], story.options.settings, story.now)))
    return found


def test_the_index_gives_the_plans_that_packings_give(
    half_empty: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def counted(problem: Any) -> Question:
        asked.append(problem)
        return Question(problem)

    monkeypatch.setattr(packing, "Question", counted)
    found = plans_of(half_empty)
    fit = [plan for plan in found if not plan.claims and plan.why is None]
    assert len(half_empty.all(NODES)) == len(found)
    assert len(fit) > 0, "pods of some nodes have room on others"
    assert len(asked) == len(found) - len(fit), "a packing is made for new nodes only"
    monkeypatch.setattr(existing, "PODS_MAX", 0)
    assert plans_of(half_empty) == found


def test_the_index_is_kept_over_turns(half_empty: Story) -> None:
    plans_of(half_empty)
    kept = half_empty.controller.cache.tables.derived.lasting[Keeper]
    index, before = kept.index, kept.changes
    scale(half_empty, 11)
    half_empty.run(MINUTE)
    plans_of(half_empty)
    assert kept.index is index
    # The node that lost a pod; for each plan, the node that is asked about and the one before.
    assert kept.changes - before <= 2 * len(half_empty.all(NODES)) + 4
