"""Nodes that are half empty, and a method that merges them: three are replaced by two.

Each of them has room for two pods, and one pod.
"""

from __future__ import annotations

from typing import Any

from tenure.model.api.resource import DEPLOYMENTS, NODE_CLAIMS, NODES, PODS
from tenure.sim.world import World
from tests.builders import MINUTE, Manifest, a_deployment, a_node_class, a_pool, a_requirement
from tests.core.disrupt.merged import MERGE

#: A Deployment that is scaled down deletes these pods first.
FIRST_TO_GO = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-1"}}}


def half_empty_nodes(count: int = 3, **disruption: Any) -> list[Manifest]:
    """``scale_down`` makes them half empty, and nothing but the method of the tests takes them away."""
    small = a_requirement("node.kubernetes.io/instance-type", "c7i.large")
    rules = {"budgets": [{"nodes": "100%"}], "consolidateAfter": "Never", **disruption}
    pool = a_pool(requirements=[small], disruption=rules)
    return [a_node_class(), pool, a_deployment(replicas=2 * count, cpu="700m")]


def scale_down(world: World) -> None:
    """Runs for four minutes."""
    world.run(3 * MINUTE)
    nodes = [node["metadata"]["name"] for node in world.store.list(NODES)]
    for name in nodes:
        _first, *others = sorted(
            pod["metadata"]["name"]
            for pod in world.store.list(PODS)
            if pod["spec"].get("nodeName") == name
        )
        for pod in others:
            world.store.patch(PODS, "default", pod, FIRST_TO_GO)
    world.store.patch(DEPLOYMENTS, "default", "web", {"spec": {"replicas": len(nodes)}})
    world.run(MINUTE)


def merge(world: World, value: str | None = "1") -> list[str]:
    """All nodes, from now on; the names of their claims."""
    claims = sorted(claim["metadata"]["name"] for claim in world.store.list(NODE_CLAIMS))
    for node in world.store.list(NODES):
        says = {"metadata": {"annotations": {MERGE: value}}}
        world.store.patch(NODES, "", node["metadata"]["name"], says)
    return claims
