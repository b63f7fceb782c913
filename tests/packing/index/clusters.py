"""Clusters that change, a step at a time, and questions about them."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec

from tenure.model.api.names import ARCH, CAPACITY_TYPE, HOSTNAME, ZONE
from tenure.model.api.pod import Pod
from tenure.model.snapshot.derived import Derived
from tenure.packing.demand.problem import Daemon, ExistingNode, PoolTemplate, Problem
from tenure.packing.demand.steps import at_once
from tenure.packing.existing import placing_on_existing
from tests.packing.build import NO_SCHEDULE, TOLERATE_BATCH, a_node, a_pod, a_pool
from tests.packing.mixes import APPS, TYPES, rules

POOLS = (a_pool("first", TYPES),)
SIZES = ("100m", "250m", "1", "2")
SELECTORS: list[dict[str, str]] = [{}, {}, {}, {ARCH: "amd64"}, {ZONE: "a"}, {"rack": "r1"}]


class Cluster:
    """Nodes with pods. What a step does not concern stays the same object."""

    def __init__(self, seed: int, nodes: int = 6, preferences: bool = False) -> None:
        self._random = Random(seed)
        self._made = 0
        self.nodes: dict[str, ExistingNode] = {}
        self.templates: tuple[PoolTemplate, ...] = POOLS
        self.daemons: tuple[Daemon, ...] = ()
        self.preferences = preferences
        self.derived = Derived()
        for _ in range(nodes):
            self.node_comes()

    # -- changes -------------------------------------------------------------------------------------

    def node_comes(self) -> None:
        random = self._random
        self._made += 1
        name = f"n-{random.choice('abcdefgh')}{self._made}"
        labels = {
            ZONE: random.choice("abc"),
            ARCH: random.choice(["amd64", "amd64", "arm64"]),
            CAPACITY_TYPE: random.choice(["spot", "on-demand"]),
            "rack": random.choice(["r1", "r2"]),
            HOSTNAME: name,
        }
        there = [self.a_pod(name) for _ in range(random.randint(0, 4))]
        self.nodes[name] = a_node(
            name,
            random.choice(["4", "8", "16"]),
            labels=labels,
            holding=there,
            taints=[NO_SCHEDULE] if random.random() < 0.1 else [],
            initialized=random.random() < 0.9,
        )

    def a_pod(self, node: str = "") -> Pod:
        random = self._random
        self._made += 1
        fields: dict[str, Any] = {
            "cpu": random.choice(SIZES),
            "memory": random.choice(["64Mi", "1Gi"]),
            "labels": {"app": random.choice(APPS)},
            "namespace": random.choice(["default", "default", "other"]),
            "port": random.choice([0, 0, 0, 0, 0, 80]),
            "priority": random.choice([0, 0, 0, 100]),
            "tolerations": random.choice([[], [], [TOLERATE_BATCH]]),
            "nodeSelector": random.choice(SELECTORS),
            "created": f"2030-01-01T00:00:{random.randint(10, 59)}Z",
            "deleted": "2030-01-02T00:00:00Z" if node and random.random() < 0.1 else None,
            **(rules(random) if random.random() < 0.5 else {}),
        }
        if random.random() < 0.1:
            own = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": fields["labels"]}}
            required = {"requiredDuringSchedulingIgnoredDuringExecution": [own]}
            fields["affinity"] = {"podAffinity": required}
        return a_pod(f"p-{self._made}", nodeName=node, **fields)

    def node_goes(self) -> None:
        if self.nodes:
            del self.nodes[self._random.choice(sorted(self.nodes))]

    def node_changes(self) -> None:
        """Its labels, taints, room, or whether it takes pods."""
        random, node = self._random, self._one()
        if node is None:
            return
        changes: list[dict[str, Any]] = [
            {"closed": not node.closed},
            {"initialized": not node.initialized},
            {"labels": {**node.labels, "rack": random.choice(["r1", "r2", "r3"])}},
            {"labels": {**node.labels, ZONE: random.choice("abcd")}},
            {"labels": {key: node.labels[key] for key in node.labels if key != ZONE}},
            {"taints": () if node.taints else (NO_SCHEDULE,)},
            {"available": {**node.available, "example.com/gpu": 2 * 10**9}},
        ]
        self.nodes[node.name] = msgspec.structs.replace(node, **random.choice(changes))

    def pod_comes(self) -> None:
        node = self._one()
        if node is not None:
            self.nodes[node.name] = node.with_pod(self.a_pod(node.name))

    def pod_goes(self) -> None:
        node = self._one()
        if node is not None and node.pods:
            gone = self._random.choice(node.pods)
            kept = [pod for pod in node.pods if pod is not gone]
            self.nodes[node.name] = _holding(node, kept)

    def pod_terminates(self) -> None:
        node = self._one()
        if node is not None and node.pods:
            one = self._random.choice(node.pods)
            metadata = msgspec.structs.replace(
                one.metadata, deletion_timestamp=one.metadata.creation_timestamp
            )
            ending = msgspec.structs.replace(one, metadata=metadata)
            pods = tuple(ending if pod is one else pod for pod in node.pods)
            self.nodes[node.name] = msgspec.structs.replace(node, pods=pods)

    def _one(self) -> ExistingNode | None:
        return self.nodes[self._random.choice(sorted(self.nodes))] if self.nodes else None

    # -- questions -----------------------------------------------------------------------------------

    def where_its_pods_go(self) -> Problem:
        """As disruption asks it: the node is closed, and its pods count until they have moved."""
        node = self._one()
        if node is None:
            return self.problem(())
        pods = tuple(pod for pod in node.pods if pod.active)
        closed = msgspec.structs.replace(node, closed=True)
        return self.problem(pods, {**self.nodes, node.name: closed})

    def where_new_pods_go(self) -> Problem:
        return self.problem(tuple(self.a_pod() for _ in range(self._random.randint(1, 3))))

    def problem(
        self, pods: tuple[Pod, ...], nodes: dict[str, ExistingNode] | None = None
    ) -> Problem:
        there = list((self.nodes if nodes is None else nodes).values())
        if self._random.random() < 0.2:
            self._random.shuffle(there)
        return Problem(
            pods=pods,
            nodes=tuple(there),
            all_nodes=True,
            templates=self.templates,
            daemons=self.daemons,
            preferences=self.preferences,
            derived=self.derived,
        )


def _holding(node: ExistingNode, pods: list[Pod]) -> ExistingNode:
    """With these pods, of those that were there."""
    full = ExistingNode.holding(node.pods, name=node.name, allocatable=node.available)
    less = ExistingNode.holding(pods, name=node.name, allocatable=node.available)
    available = {
        name: nano + less.available.get(name, 0) - full.available.get(name, 0)
        for name, nano in node.available.items()
    }
    return msgspec.structs.replace(
        node, pods=tuple(pods), available=available, host_ports=less.host_ports
    )


def placed_on_existing(problem: Problem) -> dict[str, str] | None:
    return at_once(placing_on_existing(problem))
