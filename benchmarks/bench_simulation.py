"""Simulation: one virtual day of a busy cluster, Tenure's own loop included.

100 nodes and 2,000 pods of 40 Deployments, scheduled onto nodes that Tenure launches for
them. Over the day every Deployment is rolled out twice, pods die at random times, and
a user deletes a claim every hour: 8,000 pod lives or more. The nodes may be consolidated, so
that hundreds of plans are made, and none of them finds a move: 123 launches are the 100 nodes and
the 23 that the user deletes.

The limit was 20 s before there was consolidation of nodes with pods. Half of the time is Tenure's own turns, three for
each pod life, a quarter the plans, the rest the cluster (50 nodes, cProfile); no function takes more than a twentieth. It is
processor time, which other work on the host makes up to three times as long.
"""

from __future__ import annotations

import time
from datetime import timedelta
from random import Random
from typing import Any

import msgspec

from benchmarks.figures import Figure, Figures
from tenure.model.api.resource import DEPLOYMENTS, NODE_CLAIMS, PODS
from tenure.sim.collector import rest_collector
from tenure.sim.history import Entry, History
from tenure.sim.world import World

DAY = timedelta(days=1)
POOL_MACHINE = "m7i.2xlarge"
NODES = 100
PODS_PER_DEPLOYMENT = 50
#: Twenty of these fill the machine.
POD_CPU = "390m"


class Day(msgspec.Struct, frozen=True, kw_only=True):
    """What a simulated day was, and what it took."""

    seconds: float
    nodes: int
    pods: int
    lives: int
    writes: int
    turns: int
    verdicts: int
    launched: int


class _Counted(History):
    """Keeps the number of entries, not the entries."""

    count = 0

    def _add(self, entry: Entry) -> None:
        self.count += 1


def a_day(nodes: int, *, seed: int = 1) -> Day:
    deployments = nodes * 20 // PODS_PER_DEPLOYMENT
    with World() as world:
        world.history = _Counted(world.environment.clock)
        world.crash()  # A new controller, with the journal that only counts.
        lives = _Lives(world)
        populate(world, deployments)
        script(world, lives, deployments, wanted=nodes * 80, random=Random(seed))
        rest_collector()  # As the command line does.
        start = time.process_time()
        world.run(DAY)
        seconds = time.process_time() - start
        assert not world.errors, world.errors[:3]
        return Day(
            seconds=seconds,
            nodes=len(world.store.list(NODE_CLAIMS)),
            pods=len(world.store.list(PODS)),
            lives=lives.count,
            writes=world.store.version,
            turns=int(world.controller.metrics.turns._value.get()),
            verdicts=world.history.count,
            launched=world.cloud.launch_count,
        )


class _Lives:
    """Counts pods as they come, and knows those that live."""

    def __init__(self, world: World) -> None:
        self.count = 0
        self.names: dict[str, None] = {}
        world.store.subscribe(PODS, self._wrote)

    def _wrote(self, type_: str, new: Any, old: Any) -> None:
        name = new["metadata"]["name"]
        if type_ == "ADDED":
            self.count += 1
            self.names[name] = None
        elif type_ == "DELETED":
            self.names.pop(name, None)


def populate(world: World, deployments: int) -> None:
    requirements = [
        {
            "key": "node.kubernetes.io/instance-type",
            "operator": "In",
            "values": [POOL_MACHINE],
        },
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
    ]
    node_class = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    world.apply(
        {
            "apiVersion": "karpenter.kwok.sh/v1alpha1",
            "kind": "KWOKNodeClass",
            "metadata": {"name": "default"},
            "spec": {},
        }
    )
    world.apply(
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": "general"},
            "spec": {
                "template": {"spec": {"requirements": requirements, "nodeClassRef": node_class}}
            },
        }
    )
    for number in range(deployments):
        world.apply(deployment(number))


def deployment(number: int) -> dict[str, Any]:
    app = f"app-{number}"
    requests = {"cpu": POD_CPU, "memory": "1Gi"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": app},
        "spec": {
            "replicas": PODS_PER_DEPLOYMENT,
            "selector": {"matchLabels": {"app": app}},
            # Without surge: the cluster stays at its size.
            "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "10%"}},
            "template": {
                "metadata": {"labels": {"app": app}},
                "spec": {
                    "containers": [
                        {"name": "main", "image": "app:1", "resources": {"requests": requests}}
                    ]
                },
            },
        },
    }


def script(world: World, lives: _Lives, deployments: int, *, wanted: int, random: Random) -> None:
    """What happens over the day, drawn beforehand."""
    begin = world.now
    for number in range(deployments):
        for version in (2, 3):
            at = begin + random.uniform(0.05, 0.95) * DAY
            world.environment.at(at, _roll_out, world, f"app-{number}", version)
    for hour in range(1, 24):
        world.environment.at(begin + timedelta(hours=hour), _delete_claim, world, random)
    rolled, drained = deployments * PODS_PER_DEPLOYMENT * 2, 23 * 20
    first = deployments * PODS_PER_DEPLOYMENT
    for _ in range(max(0, wanted - first - rolled - drained) + 200):
        at = begin + random.uniform(0.02, 0.98) * DAY
        world.environment.at(at, _delete_pod, world, lives, random)


def _roll_out(world: World, name: str, version: int) -> None:
    annotations = {"version": str(version)}
    patch = {"spec": {"template": {"metadata": {"annotations": annotations}}}}
    world.store.patch(DEPLOYMENTS, "default", name, patch)


def _delete_claim(world: World, random: Random) -> None:
    claims = world.store.list(NODE_CLAIMS)
    claim = claims[random.randrange(len(claims))]
    world.store.delete(NODE_CLAIMS, "", claim["metadata"]["name"])


def _delete_pod(world: World, lives: _Lives, random: Random) -> None:
    names = list(lives.names)
    world.store.delete(PODS, "default", names[random.randrange(len(names))])


def measure() -> Figures:
    half, full = a_day(NODES // 2), a_day(NODES)
    assert full.nodes >= NODES, full
    assert full.pods >= NODES * 20, full
    assert full.lives >= NODES * 80, full
    growth = (full.seconds / full.lives) / (half.seconds / half.lives)
    return Figures(
        title=f"one virtual day of {full.nodes} nodes, {full.pods:,} pods, {full.lives:,} pod lives",
        relative=(
            Figure(what="growth of the cost per pod life, 50 → 100 nodes", value=growth),
            Figure(what="writes to the store per pod life", value=full.writes / full.lives),
            Figure(what="turns of Tenure's loop per pod life", value=full.turns / full.lives),
            Figure(what="verdicts recorded per pod life", value=full.verdicts / full.lives),
        ),
        absolute=(
            Figure(what="per pod life", value=full.seconds / full.lives * 1e3, unit="ms"),
            Figure(what="per write", value=full.seconds / full.writes * 1e6, unit="µs"),
            Figure(what="the day", value=full.seconds, unit="s", limit=60),
        ),
    )
