"""How long everything else waits while nodes are planned for very many pods.

    python -m benchmarks.run batch

2,000 full nodes with 40,000 pods, and pods that wait: 1,000 classes; 5,000 sizes; 5,000 pods with four terms each (two spreads,
required anti-affinity, preferred affinity). Meanwhile claims of nodes are deleted, one in each turn, whose drains are urgent,
and in each turn a pod that waits goes and another one comes, so that the view of the plan is never up to date.
*Delay*: a claim is deleted when a turn has just begun, so that it waits for its end, and for the end of the next
one, which says what is done. Processor time: what other programs do meanwhile does not count. Beside it the same plan in one go,
which is what everything else waited for before packing was cut into steps.

Counted, which is the same on every machine: how many functions the longest step of a packing calls, how many passes there are until
all pods that stay have their claim, and whether steps change the plan.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from types import FrameType
from typing import Any, Final

import msgspec

from benchmarks import fleet
from benchmarks.bench_pass import POOLS, SoldOut
from benchmarks.figures import Figure, Figures, collect_as_in_production
from tenure.core.decision import Concern, Create
from tenure.core.policy.deciders import PATIENCE, UNMOVED, deciders
from tenure.core.provision.decider import ProvisionDecider
from tenure.model.api.meta import format_time
from tenure.model.api.pod import Pod
from tenure.model.api.resource import PODS
from tenure.model.settings import Settings
from tenure.packing.demand.problem import Problem
from tenure.packing.pack import pack, packing
from tenure.runtime.evaluate.evaluator import Evaluator
from tenure.sim.cloud.catalogue import instance_types, select

NODES_ALL: Final = 2_000
#: Issue 14: while a plan is computed, the delay of a turn stays below this.
DELAY_MAX: Final = 0.1
#: Of functions in one step: some 10 ms.
CALLS_MAX: Final = 30_000
_HOST: Final = "kubernetes.io/hostname"
_ZONE: Final = "topology.kubernetes.io/zone"
#: The batch is closed.
_LATER: Final = timedelta(seconds=30)

Workload = Callable[[int], dict[str, Any]]


class Planned(msgspec.Struct, frozen=True):
    #: Seconds of each turn.
    turns: tuple[float, ...]
    #: Seconds from a deletion to the end of the turn that says what is done about it.
    delays: tuple[float, ...]
    claims: int


class Batch(SoldOut):
    """Full nodes, every instance type for sale, and pods that wait."""

    def __init__(
        self,
        nodes: int,
        workload: Workload,
        pods: int,
        stopwatch: Callable[[], float] = lambda: 0.0,
    ) -> None:
        super().__init__(nodes, stopwatch)
        types = tuple(instance_types(select("all"), seed=7, zones=fleet.ZONES))
        (key,) = self.observations.instance_types
        self.observations = msgspec.structs.replace(
            self.observations, instance_types={key: types}, dry_offerings={}
        )
        self.evaluator = Evaluator(deciders(), Settings(), PATIENCE, UNMOVED, stopwatch)
        self._workload, self._pods, self._came = workload, pods, 0
        self.turn("the first turn of a process")
        self.turn("its writes are seen")
        for _ in range(pods):
            self.come()
        self.now += _LATER

    def come(self) -> None:
        """One more pod waits."""
        self.version += 1
        since = format_time(self.now)
        waits = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "lastTransitionTime": since,
        }
        manifest = self._workload(self._came)
        manifest["metadata"] |= {
            "namespace": "default",
            "uid": f"waits-{self._came:06d}",
            "name": f"waits-{self._came:06d}",
            "creationTimestamp": since,
            "resourceVersion": str(self.version),
        }
        manifest["status"] = {"phase": "Pending", "conditions": [waits]}
        self.add_change(self.tables.put(PODS, msgspec.convert(manifest, Pod)))
        self._came += 1

    def change_a_pod(self) -> None:
        """The oldest goes, another one comes."""
        gone = self._came - self._pods
        self.add_change(self.tables.remove(PODS, f"default/waits-{gone:06d}"))
        self.come()

    def claims(self) -> int:
        """How many are to be created in this turn."""
        return sum(
            one.concern is Concern.PROVISIONING and isinstance(one.action, Create)
            for one in self.evaluator.actionable()
        )

    def problem(self) -> Problem:
        view = ProvisionDecider().view(self.snapshot, "cluster")
        assert view is not None
        assert view.capacity is not None
        capacity, settings = view.capacity, Settings()
        zones = capacity.zones.at(settings, self.now)
        return capacity.problem(capacity.waiting(self.now), zones, settings, self.now)


def planned(nodes: int, workload: Workload, pods: int) -> Planned:
    """Turns until claims are created, with a claim deleted and a pod changed in each."""
    cluster = Batch(nodes, workload, pods, time.process_time)
    collect_as_in_production()
    turns: list[float] = []
    delays: list[float] = []
    deleted = ""
    while not (turns and cluster.claims()):
        took, said = cluster.short_turn()
        turns.append(took)
        if deleted:
            assert any(one.subject.name == deleted for one in said), "it is told"
            delays.append(took + turns[-2])
        deleted = cluster.delete_a_claim() if len(delays) < nodes // POOLS // 2 else ""
        cluster.change_a_pod()
    return Planned(tuple(turns), tuple(delays), cluster.claims())


def in_one_go(nodes: int, workload: Workload, pods: int) -> tuple[float, int]:
    cluster = Batch(nodes, workload, pods)
    collect_as_in_production()
    took = time.process_time()
    cluster.short_turn()
    return time.process_time() - took, cluster.claims()


def longest_step(problem: Problem) -> int:
    """How many functions are called in it. What is read of the instance types is kept, so it is read before."""
    whole = pack(problem)
    longest = calls = 0

    def count(_: FrameType, event: str, __: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    def steps() -> Iterator[None]:
        made = yield from packing(problem)
        sys.setprofile(None)
        assert made == whole, "steps change nothing"

    sys.setprofile(count)
    try:
        for _ in steps():
            longest, calls = max(longest, calls), 0
    finally:
        sys.setprofile(None)
    return max(longest, calls)


# -- the pods --------------------------------------------------------------------------------


def classes(number: int) -> dict[str, Any]:
    return _pod(number % 1_000)


def sizes(number: int) -> dict[str, Any]:
    return _pod(number)


def terms(number: int) -> dict[str, Any]:
    """Five pods are a workload, of five sizes."""
    pod = _pod(number % 900)
    own, other = _selecting(number // 5), _selecting(number // 5 + 1)
    hard = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    pod["spec"]["topologySpreadConstraints"] = [
        {**hard, **own, "topologyKey": _ZONE},
        {**hard, **own, "topologyKey": _HOST, "maxSkew": 2},
    ]
    near = {"weight": 1, "podAffinityTerm": {**other, "topologyKey": _ZONE}}
    required, preferred = (
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
    )
    pod["spec"]["affinity"] = {
        "podAntiAffinity": {required: [{**other, "topologyKey": _HOST}]},
        "podAffinity": {preferred: [near]},
    }
    pod["metadata"]["labels"] = {"app": f"app-{number // 5}"}
    return pod


def _selecting(app: int) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": f"app-{app}"}}}


def _pod(kind: int) -> dict[str, Any]:
    requests = {"cpu": f"{20 + kind}m", "memory": f"{64 + kind % 700}Mi"}
    owner = {"kind": "ReplicaSet", "name": f"app-{kind}", "uid": f"o-{kind}", "controller": True}
    return {
        "metadata": {"labels": {"app": f"app-{kind}"}, "ownerReferences": [owner]},
        "spec": {"containers": [{"name": "main", "resources": {"requests": requests}}]},
    }


WORKLOADS: Final[tuple[tuple[str, Workload, int], ...]] = (
    ("1,000 classes", classes, 5_000),
    ("5,000 sizes", sizes, 5_000),
    ("four terms each", terms, 5_000),
)


def measure(nodes: int = NODES_ALL) -> Figures:
    relative: list[Figure] = []
    absolute: list[Figure] = []
    for name, workload, pods in WORKLOADS:
        few = Batch(nodes // 10, workload, pods // 2)
        calls = longest_step(few.problem())
        relative.append(
            Figure(what=f"{name}: calls in the longest step", value=calls, limit=CALLS_MAX)
        )
        one_go, _ = in_one_go(nodes, workload, pods)
        found = planned(nodes, workload, pods)
        turns, delays = sorted(found.turns), sorted(found.delays)
        absolute += [
            Figure(what=f"{name}: in one go", value=one_go, unit="s"),
            Figure(what=f"{name}: turns", value=len(turns)),
            Figure(what=f"{name}: claims after the first pass", value=found.claims),
            Figure(what=f"{name}: longest turn", value=turns[-1], unit="s"),
            Figure(
                what=f"{name}: turn, 99 of 100",
                value=turns[len(turns) * 99 // 100],
                unit="s",
                limit=DELAY_MAX,
            ),
            Figure(what=f"{name}: delay of a drain, longest", value=delays[-1], unit="s"),
        ]
    return Figures(
        title=f"nodes for 5,000 pods beside {nodes:,} full nodes",
        relative=tuple(relative),
        absolute=tuple(absolute),
    )


if __name__ == "__main__":
    shown = measure(*map(int, sys.argv[1:]))
    for figure in (*shown.relative, *shown.absolute):
        print(figure)
