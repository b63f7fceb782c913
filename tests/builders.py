"""Manifests for stories, with everything said that a story does not care about.

Each builder gives a plain manifest; keyword arguments change what the story is about.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

Manifest = dict[str, Any]

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def a_node_class(name: str = "default", **spec: Any) -> Manifest:
    return {
        "apiVersion": "karpenter.kwok.sh/v1alpha1",
        "kind": "KWOKNodeClass",
        "metadata": {"name": name},
        "spec": spec,
    }


def a_requirement(key: str, *values: str, operator: str = "In") -> Manifest:
    return {"key": key, "operator": operator, "values": list(values)}


def a_pool(
    name: str = "general",
    *,
    capacity: str = "on-demand",
    requirements: Sequence[Manifest] = (),
    node_class: str = "default",
    template: Manifest | None = None,
    **spec: Any,
) -> Manifest:
    """``template`` goes into ``spec.template.spec``, the other arguments into ``spec``."""
    inner = {
        "requirements": [a_requirement("karpenter.sh/capacity-type", capacity), *requirements],
        "nodeClassRef": {
            "group": "karpenter.kwok.sh",
            "kind": "KWOKNodeClass",
            "name": node_class,
        },
        **(template or {}),
    }
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"template": {"spec": inner}, **spec},
    }


def pod_spec(*, cpu: str = "500m", memory: str = "512Mi", **spec: Any) -> Manifest:
    requests = {"cpu": cpu, "memory": memory}
    container = {"name": "main", "image": "app", "resources": {"requests": requests}}
    return {"containers": [container], **spec}


def apart(app: str = "web") -> Manifest:
    """An affinity that gives each pod of the app a node of its own."""
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": app}},
    }
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def a_deployment(
    name: str = "web",
    *,
    replicas: int = 1,
    cpu: str = "500m",
    memory: str = "512Mi",
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> Manifest:
    """``annotations`` and the other arguments go to its pods."""
    labels = {"app": name}
    metadata = {"labels": labels, "annotations": annotations or {}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": metadata,
                "spec": pod_spec(cpu=cpu, memory=memory, **spec),
            },
        },
    }


def a_stateful_set(
    name: str = "db", *, replicas: int = 1, policy: str = "OrderedReady", **spec: Any
) -> Manifest:
    """``storage="1Gi"`` gives each pod a volume; the other arguments go to its pods."""
    storage = spec.pop("storage", None)
    manifest = a_deployment(name, replicas=replicas, **spec) | {"kind": "StatefulSet"}
    manifest["spec"] |= {"serviceName": name, "podManagementPolicy": policy}
    if storage is not None:
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
        manifest["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": claim}]
    return manifest


def a_job(name: str = "sum", *, annotations: dict[str, str] | None = None, **spec: Any) -> Manifest:
    """``job={...}`` goes to the job, the other arguments to its pods."""
    given = spec.pop("job", {})
    metadata = {"labels": {"app": name}, "annotations": annotations or {}}
    template = {"metadata": metadata, "spec": pod_spec(**{"restartPolicy": "Never", **spec})}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template, **given},
    }


def a_pod(name: str = "lonely", **spec: Any) -> Manifest:
    metadata = {"name": name, "labels": {"app": name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec(**spec)}


def a_pdb(app: str = "web", **spec: Any) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }


def a_cluster(*more: Manifest) -> list[Manifest]:
    """What a story needs before anything can be launched, and more."""
    return [a_node_class(), a_pool(), *more]
