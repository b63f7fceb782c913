"""How long everything else waits while very many candidates are planned in vain.

    python -m benchmarks.run pass

2,000 nodes in four zones. The template of a pool is edited: all of its 500 nodes drift. They are in a zone that is sold
out, they are full, and so is every other node. The pods of each node are a workload of their own, spread over the zones:
so each candidate takes a packing, and all are refused. Meanwhile claims of another pool are deleted, one in each
turn: their drains are urgent. *Delay*: a claim is deleted when a turn has just begun, so that it waits for
its end, and for the end of the next one, which says what is done. Processor time: what other programs do
meanwhile does not count. Beside it the same pass in one go, without others between.

Counted, which is the same on every machine: how many plans one turn makes where each takes as long as half a slice,
and how many functions one plan calls for each node.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import msgspec

from benchmarks import fleet
from benchmarks.bench_drift import Cluster
from benchmarks.figures import Figure, Figures, collect_as_in_production
from tenure.core.decision import Concern, Verdict
from tenure.core.disrupt.facts.candidates import PodFitsNowhere
from tenure.core.marks.templatehash import field_hashes, hash_annotations
from tenure.core.policy.deciders import PATIENCE, UNMOVED, deciders
from tenure.model.api.meta import format_time
from tenure.model.api.nodeclass import NodeClass
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, NODES, PODS
from tenure.model.settings import Settings
from tenure.packing import pack as pack_module
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES
from tenure.runtime.evaluate.evaluator import Evaluator
from tenure.runtime.evaluate.suspended import SLICE

NODES_ALL: Final = 2_000
POOLS: Final = len(fleet.ZONES)
PODS_PER_NODE: Final = 20
#: Issue 14: while a plan is computed, the delay of a turn stays below this.
DELAY_MAX: Final = 0.1
#: Of functions, for each node: what a packing reads of it. With 200 nodes: with more, fewer.
CALLS_MAX: Final = 180
#: So many plans fit into one turn where each takes half a slice.
PLANS_MAX: Final = 3
#: So many claims are deleted meanwhile.
DELETED: Final = 100
_MACHINE: Final = "m7i.4xlarge"
_SIZE: Final = {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "20Gi"}
_REQUESTS: Final = {"cpu": "780m", "memory": "2Gi"}
_GAP: Final = Settings().turn_gap


class Meanwhile(msgspec.Struct, frozen=True):
    #: Seconds of each turn, from the first of the pass to its last.
    turns: tuple[float, ...]
    #: Seconds from a deletion to the end of the turn that says what is done about it.
    delays: tuple[float, ...]


class SoldOut(Cluster):
    """Pool and zone of a node go together."""

    def __init__(self, nodes: int, stopwatch: Callable[[], float] = lambda: 0.0) -> None:
        super().__init__(nodes, windows=0)
        self._stopwatch = stopwatch
        self.evaluator = Evaluator(deciders(), Settings(), PATIENCE, UNMOVED, stopwatch)
        dry = {
            (one.name, offering.zone, offering.capacity_type): self.now + timedelta(hours=2)
            for types in self.observations.instance_types.values()
            for one in types
            for offering in one.offerings
            if offering.zone == fleet.ZONES[0]
        }
        self.observations = msgspec.structs.replace(self.observations, dry_offerings=dry)
        self._deleted = 1

    def _fill(self, nodes: int) -> None:
        node_class = fleet.setting()[0]
        node_class["metadata"] |= {"uid": "uid-class", "generation": 1}
        ready = {"type": "Ready", "status": "True", "observedGeneration": 1}
        node_class["status"] = {"conditions": [ready]}
        self.tables.put(KWOK_NODE_CLASSES, msgspec.convert(node_class, NodeClass))
        for number in range(POOLS):
            self.put(NODE_POOLS, _pool(number))
        for number in range(nodes):
            pool = self.tables.table(NODE_POOLS)[_pool_name(number)]
            claim = fleet.claim(number) | {"status": fleet.claim_status(number)}
            claim["metadata"] |= {
                "uid": f"uid-{number}",
                "annotations": hash_annotations(field_hashes(pool.spec.template)),
            }
            claim["status"] |= {"capacity": _SIZE, "allocatable": _SIZE}
            node = fleet.node(number, f"uid-{number}")
            node["status"] |= {"capacity": _SIZE, "allocatable": _SIZE, "images": []}
            self.put(NODE_CLAIMS, _of_pool(claim, number))
            self.put(NODES, _of_pool(node, number))
            for which in range(PODS_PER_NODE):
                self.tables.put(PODS, msgspec.convert(_pod(number, which), Pod))

    def drift(self) -> None:
        """All nodes of the first pool; what a pass depends on is there, and it is due."""
        self.turn("the first turn of a process")
        self.turn("its writes are seen")
        template = {"metadata": {"labels": {"release": "2"}}}
        edit = {"metadata": {"generation": 2}, "spec": {"template": template}}
        self.edit(NODE_POOLS, "pool-0", edit)
        self.turn("the edit of a template")
        self.now += timedelta(seconds=5)

    def delete_a_claim(self) -> str:
        """Of a pool that does not drift."""
        name = fleet.claim_name(self._deleted)
        self._deleted += POOLS
        leaves = {"deletionTimestamp": format_time(self.now)}
        self.edit(NODE_CLAIMS, name, {"metadata": leaves})
        return name

    def short_turn(self) -> tuple[float, list[Verdict]]:
        """As the loop does it, the gap between two turns before it."""
        self.now += _GAP
        began = self._stopwatch()
        changes = self.changes.take()
        self.evaluator.begin(self.snapshot, changes, (), self.now)
        said = self.evaluator.resume(self.snapshot, self.now)
        self.evaluator.actionable()
        took = self._stopwatch() - began
        self.now += timedelta(seconds=took)
        return took, said

    def refused(self) -> int:
        """How many nodes are told that their pods fit nowhere."""
        return sum(
            one.concern is Concern.DISRUPTION
            and one.subject.kind == NODES.kind
            and any(isinstance(fact, PodFitsNowhere) for fact in one.facts)
            for one in self.evaluator.in_force()
        )


def a_pass(nodes: int) -> Meanwhile:
    """The whole pass, with a claim deleted in each of its first turns."""
    cluster = SoldOut(nodes, time.process_time)
    collect_as_in_production()
    cluster.drift()
    turns: list[float] = []
    delays: list[float] = []
    deleted = ""
    while not turns or cluster.evaluator.goes_on or cluster.refused() < nodes // POOLS:
        took, said = cluster.short_turn()
        turns.append(took)
        if deleted:
            assert any(one.subject.name == deleted for one in said), "it is told"
            delays.append(took + turns[-2])
        deleted = cluster.delete_a_claim() if len(delays) < DELETED else ""
    return Meanwhile(tuple(turns), tuple(delays))


def in_one_go(nodes: int) -> float:
    cluster = SoldOut(nodes)
    collect_as_in_production()
    cluster.drift()
    began = time.process_time()
    cluster.short_turn()
    took = time.process_time() - began
    assert cluster.refused() == nodes // POOLS
    return took


def plans_in_a_turn(nodes: int) -> int:
    """The most that one turn makes, by a stopwatch that goes on with each packing by half a slice."""
    made, whole = 0, pack_module._packed

    def packed(problem: Any) -> Any:
        nonlocal made
        made += 1
        return whole(problem)

    cluster = SoldOut(nodes, lambda: made * SLICE / 2)
    cluster.drift()
    pack_module._packed = packed
    try:
        most = 0
        while not made or cluster.evaluator.goes_on:
            before = made
            cluster.short_turn()
            most = max(most, made - before)
    finally:
        pack_module._packed = whole
    return most


def calls_of_a_plan(nodes: int) -> float:
    """Of functions, for each node."""
    cluster = SoldOut(nodes)
    cluster.drift()
    with cProfile.Profile() as profile:
        cluster.short_turn()
    calls: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
    return calls / (nodes // POOLS) / nodes


# -- the objects -----------------------------------------------------------------------------


def _pool_name(number: int) -> str:
    return f"pool-{number % POOLS}"


def _pool(number: int) -> dict[str, Any]:
    pool = fleet.setting()[1]
    pool["metadata"] = {"name": _pool_name(number), "generation": 1}
    pool["spec"]["disruption"] = {"budgets": [{"nodes": "100%"}], "consolidateAfter": "Never"}
    pool["spec"]["template"]["metadata"] = {"labels": {"release": "1"}}
    return pool


def _of_pool(manifest: dict[str, Any], number: int) -> dict[str, Any]:
    labels = manifest["metadata"]["labels"]
    labels |= {"karpenter.sh/nodepool": _pool_name(number), "release": "1"}
    labels["node.kubernetes.io/instance-type"] = _MACHINE
    return manifest


def _pod(node: int, which: int) -> dict[str, Any]:
    """One workload has a node in each zone."""
    name, app = f"web-{node}-{which}", f"web-{node // POOLS}"
    spread = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
    }
    owner = {"kind": "ReplicaSet", "name": app, "uid": app, "controller": True}
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "creationTimestamp": "2026-01-05T08:00:00Z",
            "labels": {"app": app},
            "ownerReferences": [owner],
        },
        "spec": {
            "nodeName": fleet.node_name(node),
            "topologySpreadConstraints": [spread],
            "containers": [{"name": "main", "resources": {"requests": _REQUESTS}}],
        },
        "status": {"phase": "Running"},
    }


def measure(nodes: int = NODES_ALL) -> Figures:
    few = nodes // 10
    one_go, meanwhile = in_one_go(nodes), a_pass(nodes)
    delays, turns = sorted(meanwhile.delays), sorted(meanwhile.turns)
    return Figures(
        title=f"{nodes // POOLS:,} of {nodes:,} nodes are candidates whose pods fit nowhere",
        relative=(
            Figure(what="plans in one turn", value=plans_in_a_turn(few), limit=PLANS_MAX),
            Figure(what="calls of one plan, per node", value=calls_of_a_plan(few), limit=CALLS_MAX),
        ),
        absolute=(
            Figure(what="the pass in one go", value=one_go, unit="s"),
            Figure(what="the pass, others between", value=sum(turns), unit="s"),
            Figure(what="its turns", value=len(turns)),
            Figure(what="longest turn", value=turns[-1], unit="s"),
            Figure(
                what="turn, 99 of 100",
                value=turns[len(turns) * 99 // 100],
                unit="s",
                limit=DELAY_MAX,
            ),
            Figure(what="delay of a drain, median", value=delays[len(delays) // 2], unit="s"),
            Figure(what="delay of a drain, longest", value=delays[-1], unit="s"),
        ),
    )


if __name__ == "__main__":
    found = measure(*map(int, sys.argv[1:]))
    for figure in (*found.relative, *found.absolute):
        print(figure)
