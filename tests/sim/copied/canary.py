"""A string planted wherever a secret may be, in an object of every kind that is taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from tenure.model.api import resource as r
from tenure.model.api.resource import Resource
from tenure.sim.copied.copy import NODE_CLASSES
from tenure.sim.copied.redaction import TAKEN
from tests.sim.copied.clusters import AT, a_claimed_node, a_node, a_pool

CANARY = "canary-7c1f"
EVERY: tuple[Resource, ...] = (*TAKEN, *NODE_CLASSES)

_CONTAINER: dict[str, Any] = {
    "name": "c",
    "image": "web:1",
    "env": [{"name": "TOKEN", "value": CANARY}],
    "envFrom": [{"secretRef": {"name": CANARY}}, {"configMapRef": {"name": CANARY}}],
    "command": ["serve", f"--password={CANARY}"],
    "args": [CANARY],
    "livenessProbe": {"httpGet": {"port": 80, "httpHeaders": [{"name": "a", "value": CANARY}]}},
    "readinessProbe": {"exec": {"command": [CANARY]}},
    "startupProbe": {"exec": {"command": [CANARY]}},
    "lifecycle": {
        "preStop": {"exec": {"command": [CANARY]}, "sleep": {"seconds": 5}},
        "postStart": {"exec": {"command": [CANARY]}},
    },
    "workingDir": CANARY,
    "volumeMounts": [{"name": "s", "mountPath": f"/{CANARY}"}],
    "resources": {"requests": {"cpu": "1"}},
}
_POD_SPEC: dict[str, Any] = {
    "containers": [_CONTAINER],
    "initContainers": [_CONTAINER | {"name": "i"}],
    "ephemeralContainers": [_CONTAINER | {"name": "e"}],
    "imagePullSecrets": [{"name": CANARY}],
    "serviceAccountName": CANARY,
    "hostAliases": [{"ip": "10.0.0.1", "hostnames": [CANARY]}],
    "dnsConfig": {"searches": [CANARY]},
    "securityContext": {"sysctls": [{"name": "a", "value": CANARY}]},
    "volumes": [
        {"name": "s", "secret": {"secretName": CANARY}},
        {"name": "m", "configMap": {"name": CANARY}},
        {"name": "p", "projected": {"sources": [{"secret": {"name": CANARY}}]}},
        {"name": "c", "csi": {"driver": "d", "volumeAttributes": {"password": CANARY}}},
        {"name": "d", "downwardAPI": {"items": [{"path": CANARY}]}},
        {"name": "h", "hostPath": {"path": CANARY}},
        {
            "name": "e",
            "ephemeral": {
                "volumeClaimTemplate": {
                    "metadata": {"annotations": {"example.com/key": CANARY}},
                    "spec": {"accessModes": ["ReadWriteOnce"], "dataSource": {"name": CANARY}},
                }
            },
        },
    ],
}
_TEMPLATE = {
    "metadata": {"labels": {"app": "web"}, "annotations": {"vault.example.com/token": CANARY}},
    "spec": _POD_SPEC,
}
_STATE = {"terminated": {"exitCode": 1, "message": CANARY}, "waiting": {"message": CANARY}}
_STATUS = {
    "phase": "Running",
    "message": CANARY,
    "conditions": [{"type": "Ready", "status": "True", "message": CANARY}],
    "containerStatuses": [{"name": "c", "state": _STATE, "lastState": _STATE}],
    "initContainerStatuses": [{"name": "i", "state": _STATE, "lastState": _STATE}],
}
_WORKLOAD = {
    "replicas": 1,
    "selector": {"matchLabels": {"app": "web"}},
    "template": _TEMPLATE,
    "volumeClaimTemplates": [
        {
            "metadata": {"name": "data", "annotations": {"example.com/key": CANARY}},
            "spec": {"accessModes": ["ReadWriteOnce"], "dataSourceRef": {"name": CANARY}},
        }
    ],
}
_SECRET_REF = {"name": CANARY, "namespace": CANARY}

#: By kind, what is in it beside what every object has.
PLANTED: dict[Resource, dict[str, Any]] = {
    r.PODS: {"spec": _POD_SPEC, "status": _STATUS},
    **{
        kind: {"spec": _WORKLOAD, "status": {"conditions": _STATUS["conditions"]}}
        for kind in (r.DEPLOYMENTS, r.REPLICA_SETS, r.STATEFUL_SETS, r.DAEMON_SETS)
    },
    r.JOBS: {"spec": {"template": {"spec": _POD_SPEC | {"restartPolicy": "Never"}}}},
    r.NODES: {
        "spec": {"providerID": "x", "configSource": {"configMap": {"name": CANARY}}},
        "status": {
            "images": [{"names": [CANARY]}],
            "addresses": [{"type": "ExternalDNS", "address": CANARY}],
            "config": {"error": CANARY},
        },
    },
    r.PERSISTENT_VOLUMES: {
        "spec": {
            "csi": {
                "driver": "d",
                "volumeHandle": "v",
                "volumeAttributes": {"password": CANARY},
                "nodeStageSecretRef": _SECRET_REF,
                "controllerPublishSecretRef": _SECRET_REF,
            },
            "mountOptions": [f"password={CANARY}"],
            "cephfs": {"secretRef": _SECRET_REF, "user": CANARY},
        },
        "status": {"phase": "Bound", "message": CANARY},
    },
    r.PERSISTENT_VOLUME_CLAIMS: {"spec": {"dataSource": {"kind": "X", "name": CANARY}}},
    r.STORAGE_CLASSES: {
        "provisioner": "p",
        "parameters": {"csi.storage.k8s.io/secret-name": CANARY},
        "mountOptions": [f"password={CANARY}"],
    },
    r.VOLUME_ATTACHMENTS: {
        "spec": {"attacher": "a", "source": {"inlineVolumeSpec": {"csi": {"x": CANARY}}}},
        "status": {
            "attached": True,
            "attachmentMetadata": {"token": CANARY},
            "attachError": {"message": CANARY},
        },
    },
    r.PRIORITY_CLASSES: {"value": 5, "description": CANARY},
    r.POD_DISRUPTION_BUDGETS: {"spec": {"selector": {"matchLabels": {"app": "web"}}}},
    r.LIMIT_RANGES: {"spec": {"limits": []}},
    r.CSI_NODES: {"spec": {"drivers": []}},
    r.NODE_POOLS: {"spec": a_pool()["spec"]},
    r.NODE_CLAIMS: {"spec": a_claimed_node("c")[1]["spec"]},
    r.MAINTENANCE_WINDOWS: {"spec": {"schedules": [{"cron": "0 3 * * *", "duration": "1h"}]}},
    r.NODE_POOL_POLICIES: {"spec": {"nodePoolSelector": {}}},
    r.NAMESPACES: {"status": {"conditions": [{"type": "a", "message": CANARY}]}},
}


def planted(resource: Resource) -> dict[str, Any]:
    """An object of that kind with the canary in every place where a secret may be."""
    namespace = {"namespace": "shop"} if resource.namespaced else {}
    custom: dict[str, Any] = {}
    if resource in NODE_CLASSES[1:]:
        custom = {"spec": {"userData": CANARY, "tags": {"token": CANARY}}}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": "planted",
            "uid": f"uid-{resource.kind.lower()}",
            "creationTimestamp": AT,
            **namespace,
            "labels": {"app": "web"},
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": f'{{"data": "{CANARY}"}}',
                "example.com/note": CANARY,
                "pod.beta.kubernetes.io/init-containers": CANARY,
                "k3s.io/node-env": CANARY,
            },
            "managedFields": [{"manager": CANARY, "fieldsV1": {"f:data": {CANARY: {}}}}],
            "selfLink": CANARY,
        },
        "data": {"password": CANARY},
        "stringData": {"password": CANARY},
        **custom,
        **PLANTED.get(resource, {}),
    }


def a_dump(folder: Path) -> Path:
    """Of a cluster that is full of secrets: one Node without, and one planted object of every kind."""
    secrets = [
        {"apiVersion": "v1", "kind": kind, "metadata": {"name": "s"}, "data": {"a": CANARY}}
        for kind in ("Secret", "ConfigMap")
    ]
    objects = [a_node("n1"), *secrets, *(planted(one) for one in EVERY)]
    file = folder / "dump.jsonl"
    file.write_bytes(b"\n".join(msgspec.json.encode(one) for one in objects))
    return file
