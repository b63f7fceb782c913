"""Draining: a full node, and ten at once, in the embedded cluster's time.

Evictions are bounded (100 per second, 200 at once), so that a drain is no storm for those who
create the pods again; beyond that a drain takes as long as its pods take to stop. Both are
measured in virtual time, which is the same on every machine. Pods have a deadline, too: with a
budget that allows nothing they are forced in time for their grace, at the same bounded rate.
"""

from __future__ import annotations

import time
from collections import Counter
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from benchmarks.figures import Figure, Figures
from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS
from tenure.sim.collector import rest_collector
from tenure.sim.world import World

#: 64 cores: 500 pods of 100m, and more pods than that fit.
MACHINE: Final = "m7i.16xlarge"
GRACE: Final = timedelta(seconds=60)
PERIOD: Final = timedelta(minutes=10)
#: Evictions in one second: what may come at once, and what comes in that second.
PEAK: Final = 300


class Drain(msgspec.Struct, frozen=True):
    nodes: int
    pods: int
    #: From the deletion of the claims to the last pod's and the last claim's end.
    emptied: timedelta
    gone: timedelta
    #: Pods that were made to leave in the busiest second.
    peak: int
    seconds: float


def a_drain(nodes: int, pods_per_node: int, *, blocked: bool = False) -> Drain:
    pods = nodes * pods_per_node
    with World() as world:
        for manifest in _cluster(pods, pods_per_node, blocked):
            world.apply(manifest)
        world.run(timedelta(minutes=10))
        assert len(world.store.list(NODES)) == nodes, len(world.store.list(NODES))
        leaving = _Leaving(world)
        rest_collector()
        begin, began = world.now, time.process_time()
        for claim in world.store.list(NODE_CLAIMS):
            world.store.delete(NODE_CLAIMS, "", claim["metadata"]["name"])
        world.run(timedelta(minutes=20))
        assert not leaving.pods, f"{len(leaving.pods)} pods have not left"
        assert not leaving.claims, f"{len(leaving.claims)} claims have not gone"
        return Drain(
            nodes=nodes,
            pods=pods,
            emptied=leaving.emptied_at - begin,
            gone=leaving.gone_at - begin,
            peak=max(leaving.asked.values()),
            seconds=time.process_time() - began,
        )


class _Leaving:
    """Watches those who are there now go."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.pods = {pod["metadata"]["uid"] for pod in world.store.list(PODS)}
        self.claims = {claim["metadata"]["uid"] for claim in world.store.list(NODE_CLAIMS)}
        self.asked: Counter[datetime] = Counter()
        self.emptied_at = self.gone_at = world.now
        world.store.subscribe(PODS, self._pod)
        world.store.subscribe(NODE_CLAIMS, self._claim)

    def _pod(self, type_: str, new: Any, old: Any) -> None:
        if new["metadata"]["uid"] not in self.pods:
            return
        was_leaving = old is not None and "deletionTimestamp" in old["metadata"]
        if "deletionTimestamp" in new["metadata"] and not was_leaving:
            self.asked[self._world.now.replace(microsecond=0)] += 1
        if type_ == "DELETED":
            self.pods.discard(new["metadata"]["uid"])
            self.emptied_at = self._world.now

    def _claim(self, type_: str, new: Any, old: Any) -> None:
        if type_ == "DELETED" and new["metadata"]["uid"] in self.claims:
            self.claims.discard(new["metadata"]["uid"])
            self.gone_at = self._world.now


def _cluster(pods: int, pods_per_node: int, blocked: bool) -> list[dict[str, Any]]:
    labels = {"app": "web"}
    cpu = f"{62_000 // pods_per_node}m"
    container = {
        "name": "main",
        "image": "app",
        "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}},
    }
    requirements = [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [MACHINE]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
    ]
    node_class = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    template = {
        "requirements": requirements,
        "nodeClassRef": node_class,
        "terminationGracePeriod": f"{PERIOD // timedelta(seconds=1)}s",
    }
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
            "spec": {"template": {"spec": template}},
        },
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "web"},
            "spec": {
                "selector": {"matchLabels": labels},
                "maxUnavailable": 0 if blocked else "100%",
            },
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {
                "replicas": pods,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "terminationGracePeriodSeconds": GRACE // timedelta(seconds=1),
                        "containers": [container],
                    },
                },
            },
        },
    ]


def measure() -> Figures:
    one, ten, held = a_drain(1, 500), a_drain(10, 100), a_drain(1, 500, blocked=True)
    forced = PERIOD - GRACE
    return Figures(
        title="drains of a node with 500 pods, of ten nodes with 100 each, and of a held one",
        relative=(
            Figure(what="500 pods: most that left in one second", value=one.peak, limit=PEAK),
            Figure(what="ten nodes: most that left in one second", value=ten.peak, limit=PEAK),
            Figure(what="held: most that were forced in one second", value=held.peak, limit=PEAK),
            _span("500 pods: empty after", one.emptied, GRACE),
            _span("ten nodes: empty after", ten.emptied, GRACE + timedelta(seconds=10)),
            _span("held: empty after", held.emptied, PERIOD),
            _span("held: gone after", held.gone, PERIOD + timedelta(minutes=2)),
            _span("blocked: no pod forced before", forced, held.emptied),
        ),
        absolute=(
            Figure(what="per pod of the full node", value=one.seconds / one.pods * 1e3, unit="ms"),
            Figure(what="per pod of the ten", value=ten.seconds / ten.pods * 1e3, unit="ms"),
            Figure(what="per pod of the held one", value=held.seconds / held.pods * 1e3, unit="ms"),
        ),
    )


def _span(what: str, span: timedelta, limit: timedelta) -> Figure:
    return Figure(
        what=what,
        value=span.total_seconds(),
        unit="s of the cluster's",
        limit=limit.total_seconds(),
    )
