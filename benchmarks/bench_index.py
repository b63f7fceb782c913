"""The index of nodes that is kept: what a question costs, and how long everything else waits for it.

    python -m benchmarks.run index

A fleet of the consolidation benchmark, used to 40 percent, 20 pods on each node. *One pod*: where it
fits, the whole packing. *The pods of a node*: where they would go if it went, as every method of
disruption asks; beside it, what a packing without the index takes. *A turn with nothing to do*: with
2,000 nodes, after a heartbeat, and after a pod became ready. *Delay of a turn*: a plan of
consolidation is computed in slices of 20 ms, reading the nodes included; a turn that is due at any
instant waits for the end of the slice. Processor time: what other programs do meanwhile does not count.
"""

from __future__ import annotations

import cProfile
import gc
import pstats
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

import msgspec

from benchmarks.bench_drift import Cluster
from benchmarks.consolidation import fleets
from benchmarks.figures import Figure, Figures, best_of
from benchmarks.scheduling import workloads
from tenure.cli.replica.operate import COLLECTOR
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODES, PODS
from tenure.model.snapshot.derived import Derived
from tenure.packing.consolidate.search import Search
from tenure.packing.demand.problem import ExistingNode, PoolTemplate, Problem
from tenure.packing.index.keeper import Keeper
from tenure.packing.index.kept import KeptIndex
from tenure.packing.pack import pack
from tenure.runtime.consolidation.planner import BEGINS
from tenure.sim.collector import rest_collector

NODES_ALL: Final = 5_000
NODES_OF_PLAN: Final = 2_000
ASKED: Final = 200


class Fleet:
    """Nodes, and an index of them that is there."""

    def __init__(self, nodes: int) -> None:
        question = fleets.half_empty(fleets.one_price_per_cpu(), nodes, workloads.easy(nodes * 20))
        self.nodes: tuple[ExistingNode, ...] = tuple(question.nodes)
        self.templates: tuple[PoolTemplate, ...] = tuple(question.templates)
        self.derived = Derived()
        for node in self.nodes[:ASKED]:  # What questions are about is learned by then.
            pack(self.problem(node.pods))
        gc.collect()

    def problem(
        self, pods: Sequence[Pod], nodes: tuple[ExistingNode, ...] | None = None, kept: bool = True
    ) -> Problem:
        return Problem(
            pods=tuple(pods),
            nodes=self.nodes if nodes is None else nodes,
            all_nodes=kept,
            templates=self.templates,
            derived=self.derived,
        )

    def one_pod(self) -> list[Problem]:
        return [self.problem((_unbound(node.pods[0]),)) for node in self.nodes[:ASKED]]

    def pods_of_a_node(self, *, kept: bool = True) -> list[Problem]:
        found = []
        for number, node in enumerate(self.nodes[:ASKED]):
            nodes = list(self.nodes)
            nodes[number] = msgspec.structs.replace(node, closed=True)
            found.append(self.problem(node.pods, tuple(nodes), kept))
        return found

    @property
    def keeper(self) -> Keeper:
        keeper: Keeper = self.derived.lasting[Keeper]
        return keeper


def _unbound(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=""))


def seconds_each(problems: Sequence[Problem]) -> float:
    def ask() -> None:
        for problem in problems:
            assert not pack(problem).claims

    return best_of(3, ask)[0] / len(problems)


def calls_each(problems: Sequence[Problem]) -> float:
    with cProfile.Profile() as profile:
        for problem in problems:
            pack(problem)
    calls: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
    return calls / len(problems)


def megabytes(nodes: Sequence[ExistingNode]) -> float:
    gc.collect()
    tracemalloc.start()
    index = KeptIndex()
    index.apply(tuple(nodes))
    found: float = tracemalloc.get_traced_memory()[0] / 1e6
    tracemalloc.stop()
    assert len(index) == len(nodes)
    return found


def longest_step(keeper: Keeper) -> float:
    """Of a comparison with an index that is built anew."""
    longest, began = 0.0, time.process_time()
    for found in keeper.compare():
        assert not found, found
        now = time.process_time()
        longest, began = max(longest, now - began), now
    return longest


# -- turns ---------------------------------------------------------------------------------------


def idle_turns(nodes: int) -> dict[str, float]:
    """Seconds of turns in which there is nothing to do."""
    cluster = Cluster(nodes, windows=5)
    rest_collector()
    for _ in range(3):
        cluster.turn("settle", timedelta(minutes=5))

    def heartbeat() -> None:
        cluster.edit(NODES, name, {"status": {"phase": ""}})

    def pod_ready() -> None:
        pods = cluster.tables.table(PODS)
        key, pod = next(iter(pods.items()))
        status = msgspec.structs.replace(pod.status, phase="Running")
        change = cluster.tables.put(PODS, msgspec.structs.replace(pods[key], status=status))
        cluster.add_change(change)

    name = next(iter(cluster.tables.table(NODES)))
    happens: dict[str, Callable[[], None]] = {
        "nothing happened": lambda: None,
        "a heartbeat came": heartbeat,
        "a pod became ready": pod_ready,
    }
    found = {}
    for what, change in happens.items():
        took = []
        for _ in range(10):
            change()
            cluster.turn(what)
            took.append(cluster.turns[-1].seconds)
            assert not cluster.turns[-1].actions, what
        found[what] = max(took)
    return found


def delays(nodes: int) -> tuple[float, float]:
    """For how long a turn waits while a plan is computed: in 99 of 100 instants, and at the most."""
    question = fleets.half_empty(fleets.one_price_per_cpu(), nodes, workloads.easy(nodes * 20))
    gc.collect()
    gc.freeze()
    thresholds = gc.get_threshold()
    gc.set_threshold(*COLLECTOR)
    slices = []
    began = time.process_time()
    for _ in Search(question).steps():
        now = time.process_time()
        if now - began >= BEGINS:
            slices.append(now - began)
            began = now
    gc.set_threshold(*thresholds)
    gc.unfreeze()
    longest, whole = max(slices), sum(slices)
    wait = 0.0
    # An instant within a slice is as likely as the slice is long, and waits for the rest of it.
    while sum(max(0.0, each - wait) for each in slices) > whole / 100:
        wait += 0.0001
    return wait, longest


def measure() -> Figures:
    few, many, plan = Fleet(NODES_ALL // 5), Fleet(NODES_ALL), Fleet(NODES_OF_PLAN)
    with_index = seconds_each(plan.pods_of_a_node())
    without = seconds_each(plan.pods_of_a_node(kept=False)[:20])
    one = calls_each(many.one_pod())
    build, _ = best_of(3, lambda: KeptIndex().apply(plan.nodes))
    wait, longest = delays(NODES_OF_PLAN)
    idle = idle_turns(NODES_OF_PLAN)
    return Figures(
        title="The index of nodes that is kept",
        relative=(
            Figure(what="one pod over 5,000 nodes, calls", value=one, limit=350),
            Figure(
                what="growth of these calls, five times as many nodes",
                value=one / calls_each(few.one_pod()),
                limit=1.2,
            ),
            Figure(
                what="the pods of one of 2,000 nodes, against a packing",
                value=with_index / without,
                limit=0.1,
            ),
            Figure(
                what="memory for 5,000 nodes, 100,000 pods",
                value=megabytes(many.nodes),
                unit="MB",
                limit=30,
            ),
        ),
        absolute=(
            Figure(
                what="one pod over 5,000 nodes",
                value=seconds_each(many.one_pod()) * 1e6,
                unit="µs",
                limit=100,
            ),
            Figure(what="the pods of one of 2,000 nodes", value=with_index * 1e3, unit="ms"),
            Figure(what="the same by a packing", value=without * 1e3, unit="ms"),
            Figure(what="building it for 2,000 nodes", value=build * 1e3, unit="ms", limit=200),
            Figure(
                what="longest step of a comparison, 5,000 nodes",
                value=longest_step(many.keeper) * 1e3,
                unit="ms",
            ),
            *(
                Figure(what=f"a turn, {what}, 2,000 nodes", value=took * 1e3, unit="ms", limit=50)
                for what, took in idle.items()
            ),
            Figure(
                what="delay of a turn while a plan is computed, p99",
                value=wait * 1e3,
                unit="ms",
                limit=100,
            ),
            Figure(what="the longest slice of the plan", value=longest * 1e3, unit="ms"),
        ),
    )


if __name__ == "__main__":
    figures = measure()
    for figure in (*figures.relative, *figures.absolute):
        print(figure)
    sys.exit(0 if figures.kept else 1)
