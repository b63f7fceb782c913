"""How long a turn keeps everything else waiting when much happens at once.

A cluster in which 269 nodes have become unhealthy and are due for graceful repair, with nothing
that holds it back; then 200 NodeClaims are deleted at the same instant. The loop evaluates in
slices, so that the Lease is renewed in between; a slice can be longer than asked for by one key,
which is why the most expensive key is a figure of its own. Processor time: what other programs do
meanwhile does not count.
"""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from typing import Any, Final

import msgspec

from benchmarks.figures import Figure, Figures
from tenure.model.api.resource import NODE_CLAIMS, NODES
from tenure.runtime.controller import Controller
from tenure.sim.collector import rest_collector
from tenure.sim.world import World

UNHEALTHY: Final = 269
DELETED: Final = 200
PODS_PER_NODE: Final = 10
#: Seconds.
TURN_MAX: Final = 1.0
WATCHED_FOR: Final = timedelta(seconds=15)


class Busy(msgspec.Struct, frozen=True):
    nodes: int
    turns: int
    longest_turn: float
    longest_key: float
    total: float


class _Measured(World):
    """A world whose controller is timed with the processor's clock, and so works in slices."""

    def _new_controller(self) -> Controller:
        self.turns: list[float] = []
        self.keys: list[float] = []
        controller = super()._new_controller()
        controller.metrics.stopwatch = controller.evaluator._stopwatch = time.process_time
        turn, evaluator = controller.loop.turn, controller.evaluator
        evaluated = evaluator._evaluated

        async def timed() -> float | None:
            began = time.process_time()
            try:
                return await turn()
            finally:
                self.turns.append(time.process_time() - began)

        def noted(concern: Any, key: str, took: float) -> None:
            self.keys.append(took)
            evaluated(concern, key, took)

        controller.loop.turn = timed  # type: ignore[method-assign]
        evaluator._evaluated = noted
        return controller


def a_bad_day(unhealthy: int, deleted: int) -> Busy:
    nodes = unhealthy + deleted
    with _Measured() as world:
        for manifest in _cluster(nodes):
            world.apply(manifest)
        world.run(timedelta(minutes=8))
        names = sorted(node["metadata"]["name"] for node in world.store.list(NODES))
        assert len(names) >= nodes, len(names)
        for name in names[:unhealthy]:
            world.kubelets.silence(name)
        world.run(timedelta(seconds=75))
        claims = {
            claim.get("status", {}).get("nodeName"): claim["metadata"]["name"]
            for claim in world.store.list(NODE_CLAIMS)
        }
        rest_collector()
        world.turns.clear()
        world.keys.clear()
        for name in names[unhealthy:nodes]:
            world.store.delete(NODE_CLAIMS, "", claims[name])
        world.run(WATCHED_FOR)
        return Busy(
            nodes=len(names),
            turns=len(world.turns),
            longest_turn=max(world.turns),
            longest_key=max(world.keys),
            total=sum(world.turns),
        )


def _cluster(nodes: int) -> list[dict[str, Any]]:
    labels = {"app": "web"}
    container = {
        "name": "main",
        "image": "app",
        "resources": {"requests": {"cpu": f"{7_500 // PODS_PER_NODE}m", "memory": "64Mi"}},
    }
    node_class = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    requirements = [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["c7i.2xlarge"]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
    ]
    repair = {
        "maxUnhealthy": "100%",
        "terminationMode": "Graceful",
        "defaultTolerationDuration": "30s",
    }
    template = {"requirements": requirements, "nodeClassRef": node_class}
    return [
        {
            "apiVersion": "karpenter.kwok.sh/v1alpha1",
            "kind": "KWOKNodeClass",
            "metadata": {"name": "default"},
            "spec": {},
        },
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": "general"},
            "spec": {
                "template": {"spec": {**template, "terminationGracePeriod": "10m"}},
                "repair": repair,
                "disruption": {"budgets": [{"nodes": "100%"}]},
            },
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {
                "replicas": nodes * PODS_PER_NODE,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            },
        },
    ]


def measure(unhealthy: int = UNHEALTHY, deleted: int = DELETED) -> Figures:
    busy = a_bad_day(unhealthy, deleted)
    return Figures(
        title=f"{deleted} NodeClaims deleted at once beside {unhealthy} unhealthy nodes",
        relative=(),
        absolute=(
            Figure(what="longest turn", value=busy.longest_turn, unit="s", limit=TURN_MAX),
            Figure(what="most expensive key", value=busy.longest_key, unit="s", limit=TURN_MAX),
            Figure(what="turns", value=busy.turns),
            Figure(what="all turns", value=busy.total, unit="s"),
        ),
    )


if __name__ == "__main__":
    for figure in measure(*map(int, sys.argv[1:])).absolute:
        print(figure)
