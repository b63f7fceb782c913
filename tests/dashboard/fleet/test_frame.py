"""A frame says of each node what governs it, and costs little where little has changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tenure.core.reasons import Reason
from tenure.dashboard.fleet.changes import applied, change_between
from tenure.dashboard.fleet.frame import FOUND_A_STEP, NODES_READ, FrameMaker, Inputs, frame_of
from tenure.dashboard.fleet.values import Frame, NodeView, Tone, Totals
from tenure.model.api.meta import ObjectMeta
from tenure.model.api.node import Node, NodeSpec, NodeStatus
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODES, PODS
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import stand_in
from tenure.sim.scenario.dsl import Story
from tenure.sim.scenario.load import load_scenario
from tenure.sim.scenario.run import Simulation
from tenure.sim.world import World
from tests.builders import HOUR, MINUTE, SECOND, a_cluster, a_deployment, a_pdb
from tests.snapshots import snapshot_with

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
SHIPPED = Path(__file__).parents[3] / "examples" / "scenarios"


def inputs_of(world: World) -> Inputs:
    controller = world.controller
    return Inputs(at=world.now, snapshot=controller.snapshot(), verdicts=controller.evaluator)


def frame(world: World) -> Frame:
    return FrameMaker().frame(inputs_of(world))


def one(found: Frame, **fields: object) -> NodeView:
    (view,) = [
        view
        for view in found.nodes
        if all(getattr(view, name) == value for name, value in fields.items())
    ]
    return view


def test_a_node_is_told_from_its_launch_until_it_serves() -> None:
    phases: list[tuple[str, Tone]] = []
    with Story(*a_cluster(a_deployment(replicas=1))) as story:
        story.start()
        for _ in range(180):
            story.run(SECOND)
            for view in frame(story).nodes:
                if (view.phase, view.tone) not in phases:
                    phases.append((view.phase, view.tone))
        last = frame(story)
    assert [tone for _, tone in phases[:-1]] == [Tone.COMING] * (len(phases) - 1)
    assert phases[-1] == ("in service", Tone.SERVING)
    (node,) = last.nodes
    assert node.key == f"NodeClaim/{node.name}"
    assert node.pool == "general"
    assert node.price is not None
    assert node.price > 0
    assert node.cpu is not None
    assert 500 <= node.cpu.requested <= node.cpu.allocatable
    assert node.memory is not None
    assert node.memory.requested >= 512 * 2**20
    assert node.pods == 1
    assert (last.totals.running, last.totals.pending) == (1, 0)
    assert last.totals.price == node.price
    (pool,) = last.pools
    assert (pool.name, pool.nodes, pool.price) == ("general", {Tone.SERVING: 1}, node.price)
    assert (pool.reason, pool.because) == ("", ""), "that it has 1 node is shown anyway"


def test_a_pod_that_waits_for_a_node_is_pending_and_says_why() -> None:
    with Story(*a_cluster(a_deployment(replicas=1))) as story:
        story.start()
        story.run(3 * SECOND)
        found = frame(story)
    (pod,) = found.pending
    assert pod.key.startswith("Pod/default/web-")
    assert pod.reason
    assert pod.because
    assert found.totals.pending == 1


def test_a_drain_that_a_pdb_blocks_names_it_and_says_when_it_is_retried() -> None:
    objects = a_cluster(a_deployment(replicas=1), a_pdb(maxUnavailable=0))
    with Story(*objects) as story:
        story.start()
        story.run(5 * MINUTE)
        name = story.delete_claim()
        story.run(10 * SECOND)
        view = one(frame(story), name=name)
    assert (view.phase, view.tone) == ("draining", Tone.LEAVING)
    assert view.reason == Reason.EVICTION_REFUSED
    assert "PodDisruptionBudget/default/web" in [blocker.subject for blocker in view.blockers]
    assert view.next


def played(name: str, steps: Iterable[timedelta]) -> Iterator[World]:
    """A shipped scenario after each of these steps."""
    simulation, at = Simulation(load_scenario(SHIPPED / f"{name}.yaml")), timedelta()
    try:
        for step in steps:
            at += step
            simulation.run_until(at)
            yield simulation.world
    finally:
        simulation.close()


@pytest.mark.parametrize(
    ("name", "step", "phase", "tone", "reason"),
    [
        ("freeze", HOUR, "drifted", Tone.WAITING, Reason.DISRUPTION_BLOCKED),
        ("graceful-repair", MINUTE, "unhealthy", Tone.UNHEALTHY, Reason.DISRUPTION_BLOCKED),
    ],
)
def test_scenarios_are_seen(
    name: str, step: timedelta, phase: str, tone: Tone, reason: Reason
) -> None:
    seen = set()
    for world in played(name, [step] * 24):
        seen |= {(view.phase, view.tone, view.reason) for view in frame(world).nodes}
    assert (phase, tone, reason) in seen


@pytest.mark.parametrize("name", ["drift", "crashes", "interruption", "shortage", "zone-outage"])
def test_changes_applied_to_a_frame_give_the_next(name: str) -> None:
    """The maker keeps what has not changed; a new one that reads everything agrees at every look."""
    maker, before, most = FrameMaker(), Frame(at=NOW, totals=Totals()), 0
    for world in played(name, [(1 + step % 7) * 3 * SECOND for step in range(120)]):
        after = maker.frame(inputs_of(world))
        assert after == frame(world)
        assert applied(change_between(before, after), before) == after
        before, most = after, max(most, len(after.nodes))
    assert most > 1


def a_node(name: str, pool: str = "") -> Node:
    labels = {"karpenter.sh/nodepool": pool} if pool else {}
    return Node(metadata=ObjectMeta(name=name, labels=labels), spec=NodeSpec(), status=NodeStatus())


class Reading(Snapshot):
    """Counts the Nodes whose pods are read, and how often the claims of one are looked for."""

    read = looked = 0

    def pods_on(self, node: str) -> Mapping[str, Pod]:
        self.read += 1
        return super().pods_on(node)

    def claims_with_provider(self, provider_id: str) -> Mapping[str, NodeClaim]:
        self.looked += 1
        return super().claims_with_provider(provider_id)


def test_every_step_of_a_frame_is_short() -> None:
    snapshot = Reading(snapshot_with(*(a_node(f"n-{number}") for number in range(400))).tables)
    inputs = Inputs(at=NOW, snapshot=snapshot, verdicts=None)
    maker = FrameMaker()
    steps: list[tuple[int, int]] = []
    before = (0, 0)
    for _ in maker.making(inputs):
        steps.append((snapshot.read - before[0], snapshot.looked - before[1]))
        before = snapshot.read, snapshot.looked
    assert sum(read for read, _ in steps) == 400
    assert max(read for read, _ in steps) <= NODES_READ
    assert max(looked for _, looked in steps) <= FOUND_A_STEP
    assert len(maker.frame(inputs).nodes) == 400


def test_a_frame_is_in_order_when_pools_change() -> None:
    snapshot = snapshot_with(a_node("n-1", "b"), a_node("n-2", "b"))
    maker = FrameMaker()

    def order() -> list[str]:
        found = maker.frame(Inputs(at=NOW, snapshot=snapshot, verdicts=None))
        return [view.name for view in found.nodes]

    assert order() == ["n-1", "n-2"]
    snapshot.tables.put(NODES, a_node("n-2", "a"))
    assert order() == ["n-2", "n-1"]
    snapshot.tables.put(NODES, a_node("n-0", "b"))
    assert order() == ["n-2", "n-0", "n-1"]
    snapshot.tables.remove(NODES, "n-2")
    assert order() == ["n-0", "n-1"]


def test_a_node_without_a_claim_is_foreign() -> None:
    found = frame_of(snapshot_with(a_node("ip-10-0-0-1")), None, NOW)
    view = one(found, key="Node/ip-10-0-0-1")
    assert (view.phase, view.tone, view.price) == ("foreign", Tone.FOREIGN, None)
    assert found.totals.unpriced == 1


def test_an_unreadable_object_is_shown_and_stops_no_other() -> None:
    bad = stand_in(a_node("bad"), "Expected `int`, got `str` - at `$.spec.x`")
    pod = stand_in(Pod(metadata=ObjectMeta(name="p", namespace="d")), "Expected `int`, got `str`")
    found = frame_of(snapshot_with(a_node("good"), bad, pod), None, NOW)
    assert one(found, name="bad").phase == "unreadable"
    assert one(found, name="bad").reason == Reason.OBJECT_UNREADABLE
    assert one(found, name="good").phase == "foreign"
    assert [note for note in found.notes if "d/p" in note]


def test_a_kind_that_is_not_listed_is_a_note() -> None:
    found = frame_of(snapshot_with(unlisted={PODS: "forbidden", NODES: "x" * 9000}), None, NOW)
    assert found.notes[1] == "pods cannot be listed: forbidden"
    assert all(len(note) <= 1000 for note in found.notes)


def test_a_node_that_is_being_replaced_says_what_it_waits_for() -> None:
    said = {
        view.next
        for world in played("graceful-repair", [11 * MINUTE, *[15 * SECOND] * 8])
        for view in frame(world).nodes
        if view.reason == Reason.REPLACING
    }
    assert said == {"waits for its replacement to be initialized"}
