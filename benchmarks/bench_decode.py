"""Decoding: what it costs to turn the API's bytes into the typed objects we read.

The pods are as big as real ones: managed fields, probes, volumes, environment and status,
nearly all of which is skipped. The way is the informer's: one list, items decoded one by
one. The limit of half a second for 10,000 pods is the project's own promise.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from benchmarks.figures import Figure, Figures, best_of
from tenure.model.api.meta import ApiObject
from tenure.model.api.pod import Pod
from tenure.model.api.resource import PODS
from tenure.model.snapshot.kinds import decode_list

PODS_MANY = 10_000
PODS_FEW = 1_000


class _Page(msgspec.Struct):
    items: list[msgspec.Raw]


_PAGE = msgspec.json.Decoder(_Page)


def pod(number: int) -> dict[str, Any]:
    """A pod as a real API server lists it, about 6 KB."""
    app = f"shop-{number % 97}"
    labels = {
        "app.kubernetes.io/name": app,
        "app.kubernetes.io/part-of": "shop",
        "pod-template-hash": f"{number % 97:010x}",
    }
    at = "2026-01-05T08:00:00Z"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{app}-{number:010x}",
            "generateName": f"{app}-",
            "namespace": "production",
            "uid": f"6f1c2a7e-0000-4000-8000-{number:012x}",
            "resourceVersion": str(100_000 + number),
            "creationTimestamp": at,
            "labels": labels,
            "annotations": {
                "prometheus.io/scrape": "true",
                "kubectl.kubernetes.io/restartedAt": at,
            },
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": app,
                    "uid": f"0b9d3c55-0000-4000-8000-{number % 97:012x}",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": _managed_fields(at),
        },
        "spec": _spec(app, labels),
        "status": _status(number, at),
    }


def _managed_fields(at: str) -> list[dict[str, Any]]:
    container: dict[str, Any] = {
        f"f:{name}": {} for name in ("image", "imagePullPolicy", "name", "resources")
    }
    environment: dict[str, Any] = {
        f'k:{{"name":"SETTING_{i}"}}': {".": {}, "f:value": {}} for i in range(12)
    }
    return [
        {
            "manager": manager,
            "operation": "Update",
            "apiVersion": "v1",
            "time": at,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:containers": {**container, "f:env": environment}}},
        }
        for manager in ("kube-controller-manager", "kubelet")
    ]


def _spec(app: str, labels: dict[str, str]) -> dict[str, Any]:
    probe = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10}
    container = {
        "name": "main",
        "image": f"registry.example/{app}:1.2.3",
        "env": [{"name": f"SETTING_{i}", "value": f"value of {i}"} for i in range(12)],
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "resources": {
            "requests": {"cpu": "250m", "memory": "512Mi"},
            "limits": {"memory": "512Mi"},
        },
        "livenessProbe": probe,
        "readinessProbe": probe,
        "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets", "readOnly": True}],
    }
    return {
        "containers": [container, {**container, "name": "proxy"}],
        "nodeName": "node-17",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "serviceAccountName": app,
        "schedulerName": "default-scheduler",
        "priority": 0,
        "tolerations": [
            {
                "key": f"node.kubernetes.io/{key}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
            for key in ("not-ready", "unreachable")
        ],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": labels},
            }
        ],
        "volumes": [{"name": "token", "projected": {"sources": [], "defaultMode": 420}}],
    }


def _status(number: int, at: str) -> dict[str, Any]:
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    return {
        "phase": "Running",
        "podIP": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
        "startTime": at,
        "qosClass": "Burstable",
        "conditions": [
            {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": at}
            for kind in kinds
        ],
        "containerStatuses": [
            {
                "name": name,
                "ready": True,
                "restartCount": 0,
                "imageID": f"registry.example/{name}@sha256:{number:064x}",
                "state": {"running": {"startedAt": at}},
            }
            for name in ("main", "proxy")
        ],
    }


def page(pods: int) -> bytes:
    """The answer to a list request."""
    head = {"apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": "1"}}
    return json.dumps({**head, "items": [pod(number) for number in range(pods)]}).encode()


def decode_page(data: bytes) -> list[ApiObject]:
    return decode_list(PODS, _PAGE.decode(data).items)


def measure() -> Figures:
    few, many = page(PODS_FEW), page(PODS_MANY)
    few_seconds, _ = best_of(5, lambda: decode_page(few))
    seconds, items = best_of(3, lambda: decode_page(many))
    json_seconds, _ = best_of(3, lambda: json.loads(many))
    assert len(items) == PODS_MANY
    assert all(isinstance(item, Pod) for item in items), "every pod was readable"
    growth = (seconds / PODS_MANY) / (few_seconds / PODS_FEW)
    return Figures(
        title=f"decode {PODS_MANY:,} pods of {len(many) // PODS_MANY:,} bytes",
        relative=(
            Figure(what="time relative to plain json.loads", value=seconds / json_seconds),
            Figure(what="growth of the cost per pod, 1,000 → 10,000", value=growth),
        ),
        absolute=(
            Figure(what="per pod", value=seconds / PODS_MANY * 1e6, unit="µs"),
            Figure(what="all of them", value=seconds, unit="s", limit=0.5),
        ),
    )
