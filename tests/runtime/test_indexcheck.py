"""A mistake in the index that packing keeps is found, counted, said, and healed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tenure.packing.index import keeper as keeper_module
from tenure.packing.index.keeper import Keeper
from tenure.packing.index.kept import KeptIndex
from tenure.runtime.indexcheck import CHANGES_MAX, PERIOD, IndexCheck
from tenure.runtime.telemetry.metrics import Metrics
from tests.packing.build import a_node, a_pod
from tests.packing.demand.test_topology import WEB, avoiding
from tests.packing.index.clusters import Cluster, placed_on_existing
from tests.packing.index.test_kept import kept_in

POD = a_pod("new", labels=WEB, **avoiding())


def asked(nodes: int = 3) -> Cluster:
    """Nodes of which the first takes the pod."""
    cluster = Cluster(1, nodes=0)
    cluster.nodes = {f"n-{n}": a_node(f"n-{n}") for n in range(nodes)}
    assert where(cluster) == {"new": "n-0"}
    return cluster


def where(cluster: Cluster) -> dict[str, str] | None:
    return placed_on_existing(cluster.problem((POD,)))


class Desk:
    def __init__(self, cluster: Cluster) -> None:
        self.metrics, self.said = Metrics(), list[str]()
        self.check = IndexCheck(cluster.derived, self.metrics, self.said.append)

    def turns(self, now: float) -> None:
        """As many as a comparison takes."""
        for turn in range(60):
            self.check.step(now + turn / 100)

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"tenure_packing_index_{name}_total", labels)


def no_room(index: KeptIndex) -> None:
    index.nodes.bins.free[0][0] = 0


def a_bit_too_few(index: KeptIndex) -> None:
    for levels in index.nodes.bins._fit:
        levels.masks = [mask & ~1 for mask in levels.masks]


def a_pod_too_many(index: KeptIndex) -> None:
    index.nodes.bins.note_pod(0, index.groups.all(), ())


def closed(index: KeptIndex) -> None:
    index.nodes.bins.alive &= ~1


@pytest.mark.parametrize(
    ("break_it", "table"),
    [(no_room, "free"), (a_bit_too_few, "fit"), (a_pod_too_many, "members"), (closed, "alive")],
)
def test_a_mistake_is_found_and_healed(break_it: Callable[[KeptIndex], None], table: str) -> None:
    cluster = asked()
    desk = Desk(cluster)
    desk.check.step(0.0)
    break_it(kept_in(cluster))
    assert where(cluster) != {"new": "n-0"}, "it is wrong, and would stay so"
    desk.check.step(PERIOD - 1)
    assert not desk.said
    desk.turns(PERIOD)
    assert where(cluster) == {"new": "n-0"}
    assert desk.value("disagreements") == 1
    assert desk.value("rebuilds", reason="Disagreement") == 1
    (line,) = desk.said
    assert f"({table}" in line
    desk.turns(2 * PERIOD)
    assert desk.value("disagreements") == 1


def test_many_changes_are_compared_before_it_is_time() -> None:
    cluster = asked()
    desk = Desk(cluster)
    desk.check.step(0.0)
    closed(kept_in(cluster))
    cluster.derived.lasting[Keeper].changes += CHANGES_MAX
    desk.turns(1.0)
    assert desk.value("disagreements") == 1


def test_a_comparison_goes_on_over_turns_while_nodes_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keeper_module, "STEP", 2)
    cluster = asked(nodes=9)
    desk = Desk(cluster)
    desk.check.step(0.0)
    index = kept_in(cluster)
    for turn in range(40):
        one = f"n-{turn % 9}"
        cluster.nodes[one] = cluster.nodes[one].with_pod(a_pod(f"p-{turn}", "10m", "1Mi"))
        cluster.nodes[f"m-{turn}"] = a_node(f"m-{turn}")
        where(cluster)
        desk.check.step(PERIOD + turn)
    assert kept_in(cluster) is index
    assert not desk.value("disagreements")
    closed(index)
    desk.turns(2 * PERIOD)
    assert desk.value("disagreements") == 1


def test_a_rebuild_is_counted_by_its_reason() -> None:
    cluster = asked()
    desk = Desk(cluster)
    cluster.nodes["n-9"] = a_node("n-9", labels={"disk": "fast"})
    picky = a_pod("picky", nodeSelector={"disk": "fast"})
    placed_on_existing(cluster.problem((picky,)))
    desk.check.step(0.0)
    assert desk.value("rebuilds", reason="Labels") == 1


def test_a_failure_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = asked()
    desk = Desk(cluster)
    cluster.nodes["n-9"] = a_node("n-9")
    monkeypatch.delattr(KeptIndex, "_read")
    for turn in range(5):
        assert where(cluster) is None
        desk.check.step(float(turn))
    (line,) = desk.said
    assert "_read" in line
    assert desk.value("rebuilds", reason="Failure")
