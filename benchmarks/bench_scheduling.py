"""The scheduling simulation: time per pod, price and nodes, against Karpenter's way.

    python -m benchmarks.bench_scheduling [--quick]

Each time is process CPU time from decoded pods and a loaded catalogue to the finished plan, in a fresh
process with the garbage collector as the controller sets it, the median of five. Karpenter's own
figures on such a machine: 256 pods/s at 1,000 pods, 224 at 10,000, 199 at 20,000; preferences
respected 68, ignored 2,325.
"""

from __future__ import annotations

import gc
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import msgspec

from benchmarks import bench_packing
from benchmarks.figures import Figure, Figures, best_of
from benchmarks.scheduling import workloads
from benchmarks.scheduling.bound import price_bound
from benchmarks.scheduling.karpenter import karpenters_way
from tenure.cli.replica.operate import COLLECTOR
from tenure.model.api.names import ZONE
from tenure.model.cloud.offering import MICRO_DOLLARS
from tenure.packing.demand.problem import ExistingNode, Problem
from tenure.packing.index.whatif import WhatIf
from tenure.packing.pack import pack
from tenure.sim.cloud.catalogue import instance_types, select

RUNS = 5
NODES = 2_000
PODS_PER_NODE = 20


class Run(msgspec.Struct, frozen=True):
    seconds: float
    price: int
    nodes: int
    unplaced: int
    megabytes: float


def problem(name: str, count: int) -> Problem:
    makers: dict[str, Callable[[int], Any]] = {
        "diverse": workloads.diverse,
        "easy": workloads.easy,
        "zone": workloads.zone_spread,
        "hostname": workloads.hostname_spread,
        "anti": workloads.anti_affinity,
        "small": workloads.small_deployments,
        "sizes": workloads.all_sizes,
        "respected": workloads.preferences,
        "ignored": workloads.preferences,
    }
    types = workloads.karpenters_types()
    return workloads.a_problem(makers[name](count), types, preferences=name == "respected")


def one_run(name: str, count: int) -> Run:
    """In this process, which should be a fresh one."""
    gc.set_threshold(*COLLECTOR)
    question = problem(name, count)
    gc.collect()
    start = time.process_time()
    packing = pack(question)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Run(seconds, packing.price, len(packing.claims), len(packing.unplaced), peak)


def runs(name: str, count: int, times: int = RUNS) -> Run:
    """Fresh processes; the one with the median time."""
    command = [sys.executable, "-m", "benchmarks.bench_scheduling", "--run", name, str(count)]
    found = []
    for _ in range(times):
        written = subprocess.run(command, check=True, capture_output=True).stdout  # noqa: S603
        found.append(msgspec.json.decode(written, type=Run))
    middle = median(run.seconds for run in found)
    return min(found, key=lambda run: abs(run.seconds - middle))


def a_fleet(count: int = NODES) -> tuple[ExistingNode, ...]:
    """Nodes that are used to 40 percent."""
    pods = workloads.easy(count * PODS_PER_NODE)
    allocatable = {"cpu": 32 * 10**9, "memory": (64 << 30) * 10**9, "pods": 110 * 10**9}
    return tuple(
        ExistingNode.holding(
            pods[n * PODS_PER_NODE : (n + 1) * PODS_PER_NODE],
            name=f"node-{n:05d}",
            allocatable=allocatable,
            labels={ZONE: workloads.ZONES[n % 3]},
        )
        for n in range(count)
    )


def what_if_milliseconds() -> float:
    """One of 2,000 nodes goes: where do its pods fit, on an index that is there."""
    index = WhatIf(a_fleet())
    names = [f"node-{n:05d}" for n in range(0, NODES, 20)]

    def take_out_each() -> None:
        for name in names:
            trial = index.take_out((name,), all_or_none=True)
            assert trial is not None
            index.undo(trial)

    take_out_each()
    seconds, _ = best_of(3, take_out_each)
    return seconds / len(names) * 1000


def measure(*, quick: bool = False) -> Figures:
    times = 1 if quick else RUNS
    sizes = (10_000,) if quick else (10_000, 100_000)
    measured = {(name, count): runs(name, count, times) for name, count in _cases(sizes)}
    diverse = measured["diverse", 10_000]
    pods, types = workloads.diverse(10_000), workloads.karpenters_types()
    theirs = karpenters_way(pods, types)
    handy = instance_types([shape for shape in select("all") if shape.cpu <= 64], seed=7)
    book = bench_packing.problem(bench_packing.workload(2_000), handy)
    ours, karpenters = bench_packing.run_ours(book, 1), bench_packing.run_karpenters(book)
    relative = [
        _ratio(
            "price of 10,000 diverse pods against Karpenter's way",
            diverse.price,
            theirs.price,
            0.75,
        ),
        _ratio(
            "nodes of 10,000 diverse pods against Karpenter's way",
            diverse.nodes,
            theirs.nodes,
            1.03,
        ),
        _ratio(
            "price against the linear bound", diverse.price, price_bound(pods, types, 2_000), 1.12
        ),
        _ratio(
            "price on a public cloud's price book, 2,000 pods", ours.price, karpenters.price, 0.5
        ),
        _ratio(
            "nodes on a public cloud's price book, 2,000 pods", ours.claims, karpenters.claims, 2
        ),
        Figure(
            what="pods without a place", value=sum(r.unplaced for r in measured.values()), limit=0
        ),
        Figure(
            what="peak memory",
            value=max(r.megabytes for r in measured.values()),
            unit="MB",
            limit=500,
        ),
    ]
    if not quick:
        growth = measured["diverse", 100_000].seconds / 10 / diverse.seconds
        relative.append(
            Figure(what="time per pod, 100,000 against 10,000", value=growth, limit=1.2)
        )
    limits = {("diverse", 10_000): 40.0, ("diverse", 100_000): 16.7}
    limits |= {("respected", 4_000): 143.0, ("ignored", 4_000): 20.0}
    absolute = [
        Figure(
            what=f"{name}, {count:,} pods: {run.nodes:,} nodes, ${run.price / MICRO_DOLLARS:,.0f}/h",
            value=run.seconds / count * 1e6,
            unit="µs/pod",
            limit=limits.get((name, count)),
        )
        for (name, count), run in measured.items()
    ]
    what = f"one of {NODES:,} nodes goes: where its {PODS_PER_NODE} pods fit"
    absolute.append(Figure(what=what, value=what_if_milliseconds(), unit="ms", limit=1))
    return Figures(title="Scheduling", relative=tuple(relative), absolute=tuple(absolute))


def _cases(sizes: Sequence[int]) -> list[tuple[str, int]]:
    cases = [("diverse", count) for count in sizes]
    cases += [(name, 4_000) for name in ("respected", "ignored")]
    return cases + [
        (name, 10_000) for name in ("easy", "zone", "hostname", "anti", "small", "sizes")
    ]


def _ratio(what: str, ours: float, theirs: float, limit: float) -> Figure:
    return Figure(what=what, value=ours / theirs, limit=limit)


def main(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["--run"]:
        name, count = arguments[1:]
        sys.stdout.write(msgspec.json.encode(one_run(name, int(count))).decode())
        return 0
    figures = measure(quick="--quick" in arguments)
    for figure in (*figures.relative, *figures.absolute):
        print(figure)
    return 0 if figures.kept else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
