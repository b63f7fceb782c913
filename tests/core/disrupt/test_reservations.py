"""Who is replaced is seated once for all plans of a look, and each plan is the same as alone."""

from __future__ import annotations

import pytest

from tenure.core.disrupt import simulate as replacement
from tenure.core.disrupt.simulate import Reservations, Simulation, leaving_node, simulation_in
from tenure.core.protect.protection import CREATION
from tenure.model.api.names import REPLACES
from tenure.model.api.resource import DEPLOYMENTS, NODES, PODS
from tenure.packing.demand.problem import Problem
from tenure.packing.demand.steps import Steps, at_once
from tenure.packing.pack import packing
from tenure.packing.result import Packing
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.scenario.dsl import Story
from tests.builders import MINUTE, SECOND, a_deployment, a_node_class, a_pool, a_requirement

REPAIR = {
    "maxUnhealthy": "100%",
    "terminationMode": "Graceful",
    "defaultTolerationDuration": "30s",
}


#: A Deployment that is scaled down deletes these pods first.
_FIRST_TO_GO = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-1"}}}


def simulation_of(nodes: int) -> tuple[Story, Simulation]:
    """A cluster in which every node is unhealthy and some are being replaced."""
    types = a_requirement("node.kubernetes.io/instance-type", "c7i.large")
    pool = a_pool(requirements=[types], repair=REPAIR, disruption={"budgets": [{"nodes": "100%"}]})
    story = Story(a_node_class(), pool, a_deployment(replicas=2 * nodes, cpu="700m"))
    story.run(5 * MINUTE)
    for node in story.all(NODES):
        story.kubelets.silence(node["metadata"]["name"])
    story.run(85 * SECOND)
    found = simulation_in(story.controller.snapshot(), CREATION)
    assert len(found.leaving) > 2, "else there is nothing to share"
    return story, found


def test_a_shared_seating_gives_the_plans_that_each_would_have_alone() -> None:
    story, simulation = simulation_of(8)
    with story:
        shared, settings, now = Reservations(), story.options.settings, story.now
        for leaving in simulation.leaving:
            alone = at_once(simulation.plan((leaving,), settings, now))
            both = simulation.plan((leaving,), settings, now, reservations=shared)
            assert at_once(both) == alone


def test_one_more_plan_costs_no_more_packings_than_it_makes_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story, simulation = simulation_of(8)
    count = 0

    def counted(problem: Problem) -> Steps[Packing]:
        nonlocal count
        count += 1
        return packing(problem)

    monkeypatch.setattr(replacement, "packing", counted)
    with story:
        shared, settings, now = Reservations(), story.options.settings, story.now
        first, second = simulation.leaving[:2]
        at_once(simulation.plan((first,), settings, now, reservations=shared))
        assert count > len(simulation.leaving)
        count = 0
        at_once(simulation.plan((second,), settings, now, reservations=shared))
        assert count <= 3


def test_two_nodes_are_planned_for_together() -> None:
    """Each of two half empty nodes fits onto the other; both together need one that is new."""
    types = a_requirement("node.kubernetes.io/instance-type", "c7i.large")
    kept = {"consolidationPolicy": "WhenEmpty", "budgets": [{"nodes": "100%"}]}
    pool = a_pool(requirements=[types], disruption=kept)
    with Story(a_node_class(), pool, a_deployment(replicas=4, cpu="700m")) as story:
        story.run(5 * MINUTE)
        second_pods = [pod for node in story.all(NODES) for pod in _pods_on(story, node)[1:]]
        for pod in second_pods:
            story.store.patch(PODS, "default", pod, _FIRST_TO_GO)
        story.store.patch(DEPLOYMENTS, "default", "web", {"spec": {"replicas": 2}})
        story.run(1 * MINUTE)
        snapshot = story.controller.snapshot()
        simulation = simulation_in(snapshot, CREATION)
        first, second = (
            leaving_node(claim, node, snapshot.pods_on(node.name).values())
            for node in snapshot.nodes.values()
            if (claim := snapshot.claim_of(node)) is not None
        )
        settings, now = story.options.settings, story.now
        assert not at_once(simulation.plan((first,), settings, now)).claims
        assert not at_once(simulation.plan((second,), settings, now)).claims
        plan = at_once(simulation.plan((first, second), settings, now))
        (new,) = plan.claims
        uids = sorted((first.claim.uid, second.claim.uid))
        assert new.create.body["metadata"]["annotations"][REPLACES] == ",".join(uids)
        assert set(new.planned.pods) == {pod.uid for one in (first, second) for pod in one.pods}


def _pods_on(story: Story, node: Obj) -> list[str]:
    name = node["metadata"]["name"]
    pods = [pod for pod in story.all(PODS) if pod["spec"].get("nodeName") == name]
    return sorted(pod["metadata"]["name"] for pod in pods)
