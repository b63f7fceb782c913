"""What a program with Kubernetes' client for Python does to a cluster; run with one release of it on its path.

It prints one JSON object: what each step gave, or the error that it ended with.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from kubernetes import client, config, watch  # type: ignore[import-not-found]  # not in this environment

LABELS = {"app": "typed"}
CONTAINER = {
    "name": "c",
    "image": "registry.example/typed:1",
    "resources": {"requests": {"cpu": "1"}},
}
DEPLOYMENT = {
    "metadata": {"name": "typed"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER]}},
    },
}
JOB = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}}}
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "typed"}
SPACE = "default"


def named(**fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": "typed"}, **fields}


def running_pods() -> list[Any]:
    """Waits until both run, by a watch."""
    core, found = client.CoreV1Api(), {}
    for event in watch.Watch().stream(
        core.list_namespaced_pod, SPACE, label_selector="app=typed", timeout_seconds=100
    ):
        pod = event["object"]
        found[pod.metadata.name] = pod
        if len(found) == 2 and all(one.status.phase == "Running" for one in found.values()):
            break
    return list(found.values())


def steps() -> dict[str, Callable[[], Any]]:
    core, apps, custom = client.CoreV1Api(), client.AppsV1Api(), client.CustomObjectsApi()
    scaling, batch = client.AutoscalingV2Api(), client.BatchV1Api()
    budget = named(spec={"maxUnavailable": 1, "selector": {"matchLabels": LABELS}})
    return {
        "version": lambda: client.VersionApi().get_code().git_version,
        "deployment": lambda: apps.create_namespaced_deployment(SPACE, DEPLOYMENT).spec.replicas,
        "pods": lambda: sorted(pod.status.phase for pod in running_pods()),
        "ready": lambda: [
            one.ready
            for pod in core.list_namespaced_pod(SPACE).items
            for one in pod.status.container_statuses
        ],
        "nodes": lambda: len(core.list_node().items),
        "events": lambda: len(core.list_namespaced_event(SPACE).items) > 0,
        "pools": lambda: [
            one["metadata"]["name"]
            for one in custom.list_cluster_custom_object("karpenter.sh", "v1", "nodepools")["items"]
        ],
        "secret": lambda: core.create_namespaced_secret(SPACE, named(stringData={"a": "b"})).data,
        "account": lambda: core.create_namespaced_service_account(SPACE, named()).metadata.name,
        "autoscaler": lambda: (
            scaling.create_namespaced_horizontal_pod_autoscaler(
                SPACE, named(spec={"maxReplicas": 3, "scaleTargetRef": TARGET})
            ).status.desired_replicas
        ),
        "cron job": lambda: (
            batch.create_namespaced_cron_job(
                SPACE, named(spec={"schedule": "0 1 * * *", "jobTemplate": JOB})
            ).spec.suspend
        ),
        "budget": lambda: (
            client.PolicyV1Api()
            .create_namespaced_pod_disruption_budget(SPACE, budget)
            .status.disruptions_allowed
        ),
        "scale": lambda: (
            apps.patch_namespaced_deployment_scale(
                "typed", SPACE, {"spec": {"replicas": 1}}
            ).spec.replicas
        ),
        "may": lambda: (
            client.AuthorizationV1Api()
            .create_self_subject_access_review(
                {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
            )
            .status.allowed
        ),
        "newer events": lambda: bool(client.EventsV1Api().list_namespaced_event(SPACE).items),
        "autoscaler by cpu": lambda: (
            client.AutoscalingV1Api()
            .list_namespaced_horizontal_pod_autoscaler(SPACE)
            .items[0]
            .status.desired_replicas
        ),
        "ingresses": lambda: len(client.NetworkingV1Api().list_namespaced_ingress(SPACE).items),
    }


def main() -> None:
    config.load_kube_config(sys.argv[1])
    told: dict[str, Any] = {}
    for name, step in steps().items():
        try:
            told[name] = step()
        except Exception as error:  # noqa: BLE001  # The test tells it.
            told[name] = f"{type(error).__name__}: {error}"
    print(json.dumps(told))  # noqa: T201


if __name__ == "__main__":
    main()
