"""A copy of a large cluster: from the file to a world in which Tenure has looked at everything.

5,000 nodes with 100,000 pods of 500 workloads, half of them on demand and half spot, on types of the price list.
The figures: seconds of one core to read and to load, and the memory of the process at its largest.
The limits: 60 s until the copy can be served, and 1 GiB until Tenure has looked at everything.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks.figures import Figure, Figures
from tenure.sim.collector import rest_collector
from tenure.sim.copied.copy import read_copy
from tenure.sim.copied.load import load, options_for
from tenure.sim.world import World

NODES: Final = 5_000
PODS: Final = 100_000
WORKLOADS: Final = 500
AT: Final = "2026-03-02T10:00:00Z"
_TYPES: Final = ("m7i.2xlarge", "c7i.4xlarge", "r7i.2xlarge", "m7i.4xlarge")
_CLASS: Final = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}


def _metadata(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "uid": f"uid-{name}", "creationTimestamp": AT, **more}


def _conditions(*types: str) -> list[dict[str, str]]:
    return [
        {"type": type_, "status": "True", "reason": type_, "lastTransitionTime": AT}
        for type_ in types
    ]


def objects(nodes: int, pods: int) -> Iterator[dict[str, Any]]:
    """A cluster of a public cloud, as ``kubectl get -o json`` shows it."""
    yield {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": _metadata("general", generation=1),
        "spec": {
            "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized"},
            "template": {"spec": {"nodeClassRef": _CLASS, "requirements": []}},
        },
    }
    for index in range(nodes):
        yield from _node(index)
    for index in range(WORKLOADS):
        yield _replica_set(index, pods // WORKLOADS)
    for index in range(pods):
        yield _pod(index, nodes)


def _node(index: int) -> Iterator[dict[str, Any]]:
    name, claim = f"ip-10-0-{index >> 8}-{index & 255}", f"general-{index:05}"
    labels = {
        "node.kubernetes.io/instance-type": _TYPES[index % len(_TYPES)],
        "topology.kubernetes.io/zone": f"eu-west-1{'abc'[index % 3]}",
        "karpenter.sh/capacity-type": ("on-demand", "spot")[index % 2],
        "karpenter.sh/nodepool": "general",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "kubernetes.io/hostname": name,
        "karpenter.sh/registered": "true",
        "karpenter.sh/initialized": "true",
    }
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "80Gi"}
    yield {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": _metadata(claim, labels=labels, finalizers=["karpenter.sh/termination"]),
        "spec": {"nodeClassRef": _CLASS, "requirements": [], "expireAfter": "720h"},
        "status": {
            "providerID": f"aws:///eu-west-1a/i-{index:08x}",
            "nodeName": name,
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": _conditions("Launched", "Registered", "Initialized", "Ready"),
        },
    }
    yield {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": _metadata(name, labels=labels, finalizers=["karpenter.sh/termination"]),
        "spec": {"providerID": f"aws:///eu-west-1a/i-{index:08x}"},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": _conditions("Ready"),
            "nodeInfo": {"bootID": f"boot-{index}"},
        },
    }


def _template(index: int) -> dict[str, Any]:
    container = {
        "name": "app",
        "image": f"registry.example.com/app-{index}:1",
        "env": [{"name": f"VALUE_{number}", "value": "x" * 20} for number in range(10)],
        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
    }
    return {
        "containers": [container],
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "tolerations": [
            {
                "key": f"node.kubernetes.io/{word}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
            for word in ("not-ready", "unreachable")
        ],
    }


def _replica_set(index: int, replicas: int) -> dict[str, Any]:
    labels = {"app": f"app-{index}"}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": _metadata(f"app-{index}", namespace="shop", generation=1),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": _template(index)},
        },
        "status": {"replicas": replicas},
    }


def _pod(index: int, nodes: int) -> dict[str, Any]:
    app, node = index % WORKLOADS, index % nodes
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"app-{app}"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(
            f"app-{app}-{index:06}",
            namespace="shop",
            labels={"app": f"app-{app}"},
            ownerReferences=[{**owner, "uid": f"uid-app-{app}", "controller": True}],
        ),
        "spec": {**_template(app), "nodeName": f"ip-10-0-{node >> 8}-{node & 255}", "priority": 0},
        "status": {
            "phase": "Running",
            "startTime": AT,
            "qosClass": "Burstable",
            "podIP": f"10.1.{index >> 8 & 255}.{index & 255}",
            "conditions": _conditions("PodScheduled", "Initialized", "ContainersReady", "Ready"),
            "containerStatuses": [
                {"name": "app", "ready": True, "state": {"running": {"startedAt": AT}}}
            ],
        },
    }


def measure(nodes: int = NODES, pods: int = PODS) -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cluster.jsonl"
        with file.open("wb") as lines:
            for one in objects(nodes, pods):
                lines.write(msgspec.json.encode(one) + b"\n")
        began = time.process_time()
        copy = read_copy(file)
        read = time.process_time()
        world = World(options_for(copy))
        load(copy, world)
        del copy
        rest_collector()
        loaded = time.process_time()
        served = _memory()
        world.run(timedelta(seconds=1))
        seen = time.process_time()
        world.close()
    return Figures(
        title=f"a copy of {nodes} nodes and {pods} pods",
        relative=(
            Figure(what="memory until it can be served", value=served, unit="MiB"),
            Figure(
                what="memory after Tenure's first look", value=_memory(), unit="MiB", limit=1024
            ),
        ),
        absolute=(
            Figure(what="reading the file", value=read - began, unit="s"),
            Figure(what="until it can be served", value=loaded - began, unit="s", limit=60),
            Figure(what="until Tenure has looked at it", value=seen - began, unit="s"),
        ),
    )


def _memory() -> float:
    """MiB at most, so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    figures = measure(*map(int, sys.argv[1:3]))
    print(*figures.relative, *figures.absolute, sep="\n")
