"""A large fleet as API objects: nodes with their claims, and the pods that fill them.

Everything has settled: every claim is initialized, every pod is bound. Who manages the fleet
has nothing to do but to know it.
"""

from __future__ import annotations

from typing import Any, Final

from benchmarks.bench_decode import pod

POOL: Final = "general"
CLASS: Final = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
NAMESPACE: Final = "production"
#: The cluster's name, as tags on instances have it.
CLUSTER: Final = "benchmark"
ZONES: Final = ("test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d")
_AT: Final = "2026-01-05T08:00:00Z"
_TYPE: Final = "c-16x-amd64-linux"
_SIZE: Final = {"cpu": "16", "memory": "32Gi", "pods": "256", "ephemeral-storage": "20Gi"}
_STAGES: Final = ("Launched", "Registered", "Initialized", "Ready")


def node_name(number: int) -> str:
    return f"kwok-general-{number:05d}"


def claim_name(number: int) -> str:
    return f"general-{number:05d}"


def pod_name(number: int) -> str:
    name: str = pod(number)["metadata"]["name"]
    return name


def setting() -> list[dict[str, Any]]:
    """The node class and the pool."""
    return [
        {
            "apiVersion": "karpenter.kwok.sh/v1alpha1",
            "kind": "KWOKNodeClass",
            "metadata": {"name": CLASS["name"]},
            "spec": {},
        },
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": POOL},
            "spec": {"template": {"spec": {"requirements": [], "nodeClassRef": CLASS}}},
        },
    ]


def claim(number: int) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": claim_name(number),
            "labels": _labels(number),
            "finalizers": ["karpenter.sh/termination"],
        },
        "spec": {"requirements": [], "nodeClassRef": CLASS, "expireAfter": "Never"},
    }


def claim_status(number: int) -> dict[str, Any]:
    return {
        "providerID": f"kwok://{node_name(number)}",
        "nodeName": node_name(number),
        "capacity": _SIZE,
        "allocatable": _SIZE,
        "conditions": [
            _condition(stage, "True", stage, lastTransitionTime=_AT) for stage in _STAGES
        ],
    }


def node(number: int, claim_uid: str) -> dict[str, Any]:
    owner = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "name": claim_name(number),
        "uid": claim_uid,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node_name(number),
            "labels": {
                **_labels(number),
                "kubernetes.io/hostname": claim_name(number),
                "karpenter.sh/registered": "true",
                "karpenter.sh/initialized": "true",
                "kwok.x-k8s.io/node": "fake",
            },
            "annotations": {
                "karpenter.kwok.sh/cluster": CLUSTER,
                "karpenter.kwok.sh/claim": claim_name(number),
                "karpenter.kwok.sh/claim-uid": claim_uid,
                "karpenter.kwok.sh/launched-at": _AT,
                "kwok.x-k8s.io/node": "fake",
            },
            "finalizers": ["karpenter.sh/termination"],
            "ownerReferences": [owner],
        },
        "spec": {"providerID": f"kwok://{node_name(number)}"},
        "status": {
            "capacity": _SIZE,
            "allocatable": _SIZE,
            "conditions": [
                _condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                _condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                _condition("PIDPressure", "False", "KubeletHasSufficientPID"),
                _condition("Ready", "True", "KubeletReady"),
            ],
            "nodeInfo": dict.fromkeys(_NODE_INFO, ""),
            # As many as a kubelet reports: they are most of a real Node.
            "images": [
                {"names": [f"registry.example/shop/service-{i}:1.{number % 7}"], "sizeBytes": 9**8}
                for i in range(30)
            ],
        },
    }


def bound_pod(number: int, nodes: int) -> dict[str, Any]:
    """A pod of realistic size on one of the nodes."""
    manifest = pod(number)
    metadata = manifest["metadata"]
    for written_by_server in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
        del metadata[written_by_server]
    metadata["namespace"] = NAMESPACE
    del manifest["status"]
    manifest["spec"]["nodeName"] = node_name(number % nodes)
    for unknown_here in ("serviceAccount", "serviceAccountName", "priorityClassName", "priority"):
        manifest["spec"].pop(unknown_here, None)
    return manifest


_NODE_INFO: Final = (
    "machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion",
    "kubeletVersion", "kubeProxyVersion", "operatingSystem", "architecture",
)  # fmt: skip


def _labels(number: int) -> dict[str, str]:
    return {
        "karpenter.sh/nodepool": POOL,
        "karpenter.sh/capacity-type": "on-demand",
        "karpenter.kwok.sh/kwoknodeclass": CLASS["name"],
        "node.kubernetes.io/instance-type": _TYPE,
        "topology.kubernetes.io/zone": ZONES[number % len(ZONES)],
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
    }


def _condition(type_: str, status: str, reason: str, **times: str) -> dict[str, Any]:
    times = times or {"lastHeartbeatTime": _AT, "lastTransitionTime": _AT}
    return {"type": type_, "status": status, "reason": reason, "message": "", **times}
