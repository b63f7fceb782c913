"""Clusters to copy: what Karpenter 1.15 left behind, and small ones of several clouds."""

from __future__ import annotations

from typing import Any

from tenure.sim.copied.copy import ClusterCopy, copied
from tests.folders import DATA

KARPENTER = DATA / "karpenter-1.15-cluster.jsonl"
AT = "2026-03-02T10:00:00Z"

Obj = dict[str, Any]


def a_copy(*objects: Obj) -> ClusterCopy:
    return copied([("here", one) for one in objects])


def metadata(name: str, uid: str = "", **more: Any) -> Obj:
    return {"name": name, "uid": uid or f"uid-{name}", "creationTimestamp": AT, **more}


def a_node(name: str, **labels: str) -> Obj:
    """A Node of four cpus; labels by their last words would be ambiguous, so they come whole."""
    amounts = {"cpu": "4", "memory": "16Gi", "pods": "110", "ephemeral-storage": "20Gi"}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": AT, "reason": "KubeletReady"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata(name, labels={"kubernetes.io/os": "linux", **labels}),
        "spec": {"providerID": f"cloud:///{name}"},
        "status": {
            "capacity": amounts,
            "allocatable": {**amounts, "cpu": "3900m"},
            "conditions": [ready],
            "nodeInfo": {"bootID": f"boot-of-{name}"},
        },
    }


def a_claimed_node(
    name: str, pool: str = "general", *, kind: str = "EC2NodeClass", **labels: str
) -> tuple[Obj, Obj]:
    """The Node and its NodeClaim, as Karpenter leaves them."""
    labels = {"karpenter.sh/nodepool": pool, "karpenter.sh/capacity-type": "on-demand", **labels}
    node = a_node(
        f"node-{name}",
        **labels,
        **{"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"},
    )
    done = ("Launched", "Registered", "Initialized", "Ready")
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": metadata(name, labels=labels, finalizers=["karpenter.sh/termination"]),
        "spec": {
            "expireAfter": "720h",
            "nodeClassRef": {"group": GROUPS[kind], "kind": kind, "name": "default"},
            "requirements": [],
        },
        "status": {
            "providerID": node["spec"]["providerID"],
            "nodeName": node["metadata"]["name"],
            "capacity": node["status"]["capacity"],
            "allocatable": node["status"]["allocatable"],
            "conditions": [
                {"type": type_, "status": "True", "reason": type_, "lastTransitionTime": AT}
                for type_ in done
            ],
        },
    }
    node["metadata"]["finalizers"] = ["karpenter.sh/termination"]
    node["metadata"]["ownerReferences"] = [
        {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": name, "uid": f"uid-{name}"}
    ]
    return node, claim


GROUPS = {
    "EC2NodeClass": "karpenter.k8s.aws",
    "AKSNodeClass": "karpenter.azure.com",
    "GCENodeClass": "karpenter.k8s.gcp",
    "ToyNodeClass": "toys.example.com",
}


def a_pool(name: str = "general", *, kind: str = "EC2NodeClass", **more: Any) -> Obj:
    ref = {"group": GROUPS[kind], "kind": kind, "name": "default"}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": metadata(name, generation=1),
        "spec": {
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"},
            "template": {
                "spec": {"expireAfter": "720h", "nodeClassRef": ref, "requirements": [], **more}
            },
        },
    }


def a_pending_pod(name: str, cpu: str = "2") -> Obj:
    container = {"name": "c", "image": "web", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(name, namespace="shop"),
        "spec": {
            "containers": [container],
            "schedulerName": "default-scheduler",
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
        },
        "status": {"phase": "Pending", "conditions": []},
    }
