"""Consolidation: how long a complete plan takes, when its first move is there, how good it is.

    python -m benchmarks.bench_consolidation

Process CPU time on an index that is there, as it is in a running controller, and with its thresholds
of garbage collection. What reading takes stands beside it.

A slice is what the planner of a running controller does before it looks whether a turn is due: steps of reading
and searching, until one ends ``BEGINS`` seconds after the first began. Pods with preferences make tries
long, so they have fleets of their own (``preferring``).
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import msgspec

from benchmarks.consolidation import fleets, preferring
from benchmarks.figures import Figure, Figures
from benchmarks.scheduling import workloads
from benchmarks.scheduling.bound import price_bound
from tenure.cli.replica.operate import COLLECTOR
from tenure.model.api.pod import Pod
from tenure.model.cloud.offering import MICRO_DOLLARS, InstanceType
from tenure.packing.consolidate.question import Move, Question
from tenure.packing.consolidate.search import Search
from tenure.packing.demand.asked import read_pods
from tenure.packing.index.whatif import WhatIf
from tenure.runtime.consolidation.planner import BEGINS, SLICE

NODES = 2_000
PODS = 40_000
TYPES: dict[str, Callable[[], tuple[InstanceType, ...]]] = {
    "one price per cpu": fleets.one_price_per_cpu,
    "a public cloud's price list": fleets.price_list,
}
#: Which pods, how many, and on how many nodes.
PREFERRING: dict[str, tuple[Callable[[int], tuple[Pod, ...]], int, int]] = {
    "two preferences": (preferring.two_preferences, PODS, NODES),
    "soft spreads": (preferring.soft_spreads, PODS, NODES),
    "few huge classes": (preferring.few_huge_classes, PODS, NODES),
    "200 classes on each node": (preferring.every_pod_another_class, 4_000, 20),
}


class Run(msgspec.Struct, frozen=True, kw_only=True):
    reading: float
    plan: float
    first_move: float
    longest: float
    moves: list[Move]
    before: int
    nodes_before: int
    bound: float

    @property
    def price(self) -> int:
        return self.before - sum(move.saves for move in self.moves)

    @property
    def nodes(self) -> int:
        return self.nodes_before - sum(
            len(move.candidates) - len(move.claims) for move in self.moves
        )


def run(types: Sequence[InstanceType], pods: Sequence[Pod] = (), nodes: int = NODES) -> Run:
    pods = pods or workloads.easy(PODS)
    question = fleets.half_empty(types, nodes, pods)
    longest = longest_slice(question)
    gc.collect()
    start = time.process_time()
    search = Search(question)
    for _ in search.reading:
        pass
    reading = time.process_time() - start
    gc.collect()
    with_thresholds = gc.get_threshold()
    gc.set_threshold(*COLLECTOR)
    start = time.process_time()
    first = 0.0
    moves = []
    for move in search.moves():
        if move is not None:
            first = first or time.process_time() - start
            moves.append(move)
    plan = time.process_time() - start
    gc.set_threshold(*with_thresholds)
    return Run(
        reading=reading,
        plan=plan,
        first_move=first,
        longest=longest,
        moves=moves,
        before=sum(one.price for one in question.candidates),
        nodes_before=nodes,
        bound=price_bound(pods, types),
    )


def longest_slice(question: Question, times: int = 2) -> float:
    """Of a whole plan, reading included: the quickest run, as the others measure what disturbed it."""
    return min(max(slices(question)) for _ in range(times))


def slices(question: Question) -> Iterator[float]:
    """Seconds of processor time of each slice."""
    gc.collect()
    thresholds = gc.get_threshold()
    gc.set_threshold(*COLLECTOR)
    began = time.process_time()
    search = Search(question)
    for _ in chain(search.steps(), search.letting_go()):
        now = time.process_time()
        if now - began >= BEGINS:
            yield now - began
            began = time.process_time()
    gc.set_threshold(*thresholds)
    del search
    yield time.process_time() - began


def one_pod_microseconds(nodes: int = 5_000, times: int = 200) -> float:
    """Read one pod, and ask where it fits, on an index of nodes that are used to 40 percent."""
    question = fleets.half_empty(fleets.one_price_per_cpu(), nodes, workloads.easy(nodes * 20))
    index = WhatIf(question.nodes)
    classes = index.classes
    asked = [classes[number % len(classes)] for number in range(times)]
    for one in asked:
        index.nodes.first(one, 1)
    start = time.process_time()
    for one in asked:
        read_pods(one.pods[:1])
        index.nodes.first(one, 1)
    return (time.process_time() - start) / times * 1e6


def preferences() -> list[Figure]:
    """Plans for pods with preferences: no slice is longer than for others."""
    found: list[Figure] = []
    for pods_name, (make, count, nodes) in PREFERRING.items():
        for types_name, types in TYPES.items():
            name = f"{pods_name}, {types_name}"
            one = run(types(), make(count), nodes)
            what = f"{name}: {nodes:,} to {one.nodes:,} nodes"
            longest = one.longest * 1e3
            found += [
                Figure(what=what, value=one.plan, unit="s"),
                Figure(what=f"{name}: longest slice", value=longest, unit="ms", limit=SLICE * 1e3),
            ]
    return found


def measure(*, quick: bool = False) -> Figures:
    found = {name: run(make()) for name, make in TYPES.items() if not quick or "one" in name}
    relative = [
        Figure(
            what=f"{name}: price against the linear bound", value=one.price / one.bound, limit=1.15
        )
        for name, one in found.items()
    ]
    absolute = []
    for name, one in found.items():
        main = name == "one price per cpu"
        what = f"{name}: {NODES:,} to {one.nodes:,} nodes, ${_dollars(one.before)} to ${_dollars(one.price)}/h"
        absolute += [
            Figure(what=what, value=one.plan, unit="s", limit=1.5 if main else None),
            Figure(what=f"{name}: first move", value=one.first_move * 1e3, unit="ms", limit=50),
            Figure(what=f"{name}: longest slice", value=one.longest * 1e3, unit="ms", limit=20),
            Figure(what=f"{name}: reading the cluster", value=one.reading, unit="s"),
        ]
    if not quick:
        absolute += preferences()
    absolute.append(
        Figure(what="one pod over 5,000 nodes", value=one_pod_microseconds(), unit="µs", limit=100)
    )
    return Figures(title="Consolidation", relative=tuple(relative), absolute=tuple(absolute))


def _dollars(price: int) -> str:
    return f"{price / MICRO_DOLLARS:,.0f}"


def main(arguments: Sequence[str]) -> int:
    figures = measure(quick="--quick" in arguments)
    for figure in (*figures.relative, *figures.absolute):
        print(figure)
    return 0 if figures.kept else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
