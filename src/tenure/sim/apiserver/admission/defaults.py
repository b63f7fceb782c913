"""What the API server fills in when an object of a built-in kind is created.

Only what is read: the grace, tolerations and priority of a pod, the number of
replicas, the first status. The rest of a real server's defaults (probes, pull policies,
file modes) would be noise in every history.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Any, Final

from tenure.model.api import resource as r
from tenure.model.api.names import NOT_READY_TAINT, UNREACHABLE_TAINT
from tenure.model.api.resource import Resource
from tenure.sim.apiserver.admission.definitionrules import with_defaults
from tenure.sim.apiserver.admission.limitranges import completed
from tenure.sim.apiserver.objects import storedkinds as stored
from tenure.sim.apiserver.objects.definition import DEFINITIONS
from tenure.sim.apiserver.objects.kinds import KINDS
from tenure.sim.apiserver.objects.tree import Obj, dig, put

#: name -> (class name, value, preemption policy); "" asks for the cluster's default.
Priority = Callable[[str], tuple[str, int, str]]

#: For how long a pod stays on a node that is not ready or cannot be reached.
_TOLERATION_SECONDS: Final = 300

_POD_SPEC: Final[Obj] = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
    "enableServiceLinks": True,
}
_TEMPLATED: Final = frozenset(
    {r.DEPLOYMENTS, r.REPLICA_SETS, r.STATEFUL_SETS, r.DAEMON_SETS, r.JOBS}
)
_SPECS: Final[dict[Resource, Obj]] = {
    r.DEPLOYMENTS: {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600},
    r.REPLICA_SETS: {"replicas": 1},
    r.STATEFUL_SETS: {
        "replicas": 1,
        "podManagementPolicy": "OrderedReady",
        "revisionHistoryLimit": 10,
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    },
    r.DAEMON_SETS: {"revisionHistoryLimit": 10},
    r.POD_DISRUPTION_BUDGETS: {},
    r.PERSISTENT_VOLUMES: {
        "persistentVolumeReclaimPolicy": "Retain",
        "volumeMode": "Filesystem",
    },
    r.PERSISTENT_VOLUME_CLAIMS: {"volumeMode": "Filesystem"},
    r.JOBS: {
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "suspend": False,
        "podReplacementPolicy": "TerminatingOrFailed",
    },
    stored.CRON_JOBS: {
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    },
    stored.POD_AUTOSCALERS: {"minReplicas": 1},
    stored.AUTOSCALERS_V1: {"minReplicas": 1},
    stored.REPLICATION_CONTROLLERS: {"replicas": 1},
    stored.NETWORK_POLICIES: {"policyTypes": ["Ingress"]},
}
#: Of a storage class that does not say it.
_STORAGE: Final[Obj] = {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}
#: What keeps a claim, and a volume, from going while they are in use.
CLAIM_PROTECTION: Final = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION: Final = "kubernetes.io/pv-protection"
_PROTECTED: Final = {
    r.PERSISTENT_VOLUME_CLAIMS: CLAIM_PROTECTION,
    r.PERSISTENT_VOLUMES: VOLUME_PROTECTION,
}
#: Kind -> the field, and how many pods are replaced at a time if nothing is said.
_ROLLING: Final[dict[Resource, tuple[str, Obj]]] = {
    r.DEPLOYMENTS: ("strategy", {"maxSurge": "25%", "maxUnavailable": "25%"}),
    r.DAEMON_SETS: ("updateStrategy", {"maxSurge": 0, "maxUnavailable": 1}),
    r.STATEFUL_SETS: ("updateStrategy", {"partition": 0}),
}
_STATUSES: Final[dict[Resource, Obj]] = {
    r.NAMESPACES: {"phase": "Active"},
    r.PERSISTENT_VOLUMES: {"phase": "Pending"},
    r.PERSISTENT_VOLUME_CLAIMS: {"phase": "Pending"},
    r.DAEMON_SETS: {
        "currentNumberScheduled": 0,
        "desiredNumberScheduled": 0,
        "numberMisscheduled": 0,
        "numberReady": 0,
    },
    r.REPLICA_SETS: {"replicas": 0},
    r.STATEFUL_SETS: {"replicas": 0, "availableReplicas": 0},
    r.POD_DISRUPTION_BUDGETS: {
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "disruptionsAllowed": 0,
        "expectedPods": 0,
    },
    r.VOLUME_ATTACHMENTS: {"attached": False},
    stored.POD_AUTOSCALERS: {"desiredReplicas": 0},
    stored.AUTOSCALERS_V1: {"currentReplicas": 0, "desiredReplicas": 0},
    stored.REPLICATION_CONTROLLERS: {"replicas": 0},
}


def create_defaults(resource: Resource, obj: Obj, priority: Priority) -> Obj:
    """The object as it is first stored."""
    if resource == r.PODS:
        return _pod(obj, priority)
    if resource == r.NODES:
        return _node(obj)
    obj = _workload(resource, obj)
    if resource == r.NAMESPACES:
        obj = _namespace(obj)
    elif resource == r.JOBS:
        obj = _job(obj)
    elif resource == r.STORAGE_CLASSES:
        obj = {**obj, **{key: value for key, value in _STORAGE.items() if not obj.get(key)}}
    elif resource == r.LIMIT_RANGES:
        obj = completed(obj)
    elif resource == r.SERVICES:
        obj = _service(obj)
    elif resource == stored.SECRETS:
        obj = _secret(obj)
    elif resource == DEFINITIONS:
        obj = with_defaults(obj)
    elif resource in _PROTECTED:
        obj = _protected(obj, _PROTECTED[resource])
    if KINDS[resource].status:
        obj = {**obj, "status": _STATUSES.get(resource, {})}
    return obj


def update_defaults(resource: Resource, obj: Obj, old: Obj) -> Obj:
    """What a changed spec leaves out is filled in again, so that a manifest can be put twice."""
    if resource == stored.SECRETS:
        return _secret(obj)
    if resource == r.SERVICES:
        return _service(obj, old)
    if obj.get("spec") is old.get("spec"):
        return obj
    if resource == DEFINITIONS:
        return with_defaults(obj)
    if resource == r.PODS:
        spec = _with_pod_spec(obj.get("spec") or {})
        for field in ("priority", "preemptionPolicy", "nodeName"):
            if field in old["spec"]:
                spec.setdefault(field, old["spec"][field])
        spec["tolerations"] = _tolerations(spec.get("tolerations") or [])
        return {**obj, "spec": spec}
    return _workload(resource, obj)


#: Of a service that has an address.
_ADDRESSED: Final[Obj] = {
    "internalTrafficPolicy": "Cluster",
    "ipFamilies": ["IPv4"],
    "ipFamilyPolicy": "SingleStack",
}


def _service(obj: Obj, old: Obj | None = None) -> Obj:
    """An address that no other service is likely to have, kept for as long as the service lives."""
    spec = obj.get("spec") or {}
    if old is not None and spec is old.get("spec"):
        return obj
    spec = {"type": "ClusterIP", "sessionAffinity": "None", **spec}
    if spec["type"] != "ExternalName":
        given = spec.get("clusterIP") or dig(old, "spec", "clusterIP") or _cluster_ip(obj)
        spec = {**_ADDRESSED, **spec, "clusterIP": given, "clusterIPs": [given]}
    ports = [_port({"targetPort": one.get("port"), **one}) for one in spec.get("ports") or ()]
    return {**obj, "spec": {**spec, "ports": ports} if ports else spec}


def _cluster_ip(obj: Obj) -> str:
    number = int(obj["metadata"]["uid"].replace("-", "")[-4:], 16)
    return f"10.96.{number >> 8}.{number & 255}"


def _secret(obj: Obj) -> Obj:
    """Values in text are written and never read back."""
    text = obj.get("stringData") or {}
    encoded = {key: b64encode(str(value).encode()).decode() for key, value in text.items()}
    kept = {key: value for key, value in obj.items() if key != "stringData"}
    if encoded:
        kept["data"] = {**(kept.get("data") or {}), **encoded}
    return {**kept, "type": kept.get("type") or "Opaque"}


def _workload(resource: Resource, obj: Obj) -> Obj:
    if (spec := _SPECS.get(resource)) is not None:
        obj = {**obj, "spec": {**spec, **(obj.get("spec") or {})}}
    if resource == r.JOBS:
        obj = _with_job_counts(obj)
    if resource in _ROLLING:
        obj = _with_strategy(obj, *_ROLLING[resource])
    return _with_template(obj) if resource in _TEMPLATED else obj


def _with_strategy(obj: Obj, field: str, rolling: Obj) -> Obj:
    given = obj["spec"].get(field) or {}
    strategy = {"type": "RollingUpdate", **given}
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = {**rolling, **(given.get("rollingUpdate") or {})}
    return put(obj, ("spec", field), strategy)


def _with_job_counts(obj: Obj) -> Obj:
    """One pod, unless something is said; parallelism alone means a queue of work."""
    given = obj["spec"]
    counts = {"parallelism": 1}
    if given.get("completions") is None and given.get("parallelism") is None:
        counts["completions"] = 1
    missing = {key: count for key, count in counts.items() if given.get(key) is None}
    return {**obj, "spec": {**given, **missing}} if missing else obj


def _job(obj: Obj) -> Obj:
    """A job selects its pods by its own UID, unless it insists on a selector."""
    metadata, spec = obj["metadata"], obj["spec"]
    if spec.get("manualSelector"):
        return obj
    prefix = "batch.kubernetes.io/"
    about = {"controller-uid": metadata["uid"], "job-name": metadata["name"]}
    labels = {f"{prefix}{key}": value for key, value in about.items()} | about
    selector = {"matchLabels": {f"{prefix}controller-uid": metadata["uid"]}}
    obj = put(obj, ("spec", "selector"), selector)
    obj = put(obj, ("spec", "manualSelector"), False)
    if isinstance(spec.get("template"), dict):
        # A job that says no labels has those of its pods.
        given = (spec["template"].get("metadata") or {}).get("labels") or {}
        obj = put(obj, ("spec", "template", "metadata", "labels"), {**given, **labels})
        if not metadata.get("labels"):
            obj = put(obj, ("metadata", "labels"), {**given, **labels})
    return obj


def _protected(obj: Obj, finalizer: str) -> Obj:
    finalizers = obj["metadata"].get("finalizers") or []
    if finalizer in finalizers:
        return obj
    return put(obj, ("metadata", "finalizers"), [*finalizers, finalizer])


def _namespace(obj: Obj) -> Obj:
    name = obj["metadata"]["name"]
    labels = {**obj["metadata"].get("labels", {}), "kubernetes.io/metadata.name": name}
    return put(put(obj, ("metadata", "labels"), labels), ("spec", "finalizers"), ["kubernetes"])


def _node(obj: Obj) -> Obj:
    """A new node takes no pods until the node-lifecycle controller finds it ready."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    taints = spec.get("taints") or []
    if not any(t.get("key") == NOT_READY_TAINT for t in taints):
        spec = {**spec, "taints": [*taints, {"key": NOT_READY_TAINT, "effect": "NoSchedule"}]}
    if "capacity" in status and "allocatable" not in status:
        status = {**status, "allocatable": status["capacity"]}
    return {**obj, "spec": spec, "status": status}


def _with_template(obj: Obj) -> Obj:
    template = obj["spec"].get("template")
    if not isinstance(template, dict) or not isinstance(template.get("spec"), dict):
        return obj
    return put(obj, ("spec", "template", "spec"), _with_pod_spec(template["spec"]))


def _with_pod_spec(spec: Obj) -> Obj:
    spec = {**_POD_SPEC, **spec}
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    for field in ("containers", "initContainers"):
        if isinstance(spec.get(field), list):
            spec[field] = [_container(item) for item in spec[field]]
    return spec


def _container(container: Any) -> Any:
    """A limit without a request is a request too: that is what the scheduler adds up."""
    if not isinstance(container, dict):
        return container
    resources = container.get("resources") or {}
    if limits := resources.get("limits"):
        requests = {**limits, **(resources.get("requests") or {})}
        resources = {**resources, "requests": requests}
    if ports := container.get("ports"):
        container = {**container, "ports": [_port(port) for port in ports]}
    return {**container, "resources": resources}


def _port(port: Any) -> Any:
    return (
        {**port, "protocol": "TCP"} if isinstance(port, dict) and not port.get("protocol") else port
    )


def _pod(obj: Obj, priority: Priority) -> Obj:
    spec = _with_pod_spec(obj.get("spec") or {})
    class_name, value, preemption = priority(spec.get("priorityClassName", ""))
    if class_name:
        spec["priorityClassName"] = class_name
    spec["priority"] = value
    spec["preemptionPolicy"] = preemption
    spec["tolerations"] = _tolerations(spec.get("tolerations") or [])
    status: Obj = {"phase": "Pending"}
    if spec.get("schedulingGates"):
        status["conditions"] = [_GATED]
    return {**obj, "spec": spec, "status": status}


def with_qos(pod: Obj) -> Obj:
    """Admission may have given it other resources."""
    return {**pod, "status": {**pod["status"], "qosClass": _qos(pod["spec"])}}


_GATED: Final[Obj] = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
    "lastProbeTime": None,
    "lastTransitionTime": None,
}


def _tolerations(given: list[Obj]) -> list[Obj]:
    """A pod without tolerations for unhealthy nodes stays on them for five minutes."""
    added = [
        {
            "key": key,
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": _TOLERATION_SECONDS,
        }
        for key in (NOT_READY_TAINT, UNREACHABLE_TAINT)
        if not any(
            t.get("key", "") in ("", key) and t.get("effect", "") in ("", "NoExecute")
            for t in given
        )
    ]
    return [*given, *added] if added else given


def _qos(spec: Obj) -> str:
    """Guaranteed, Burstable or BestEffort, from CPU and memory of all containers."""
    containers = [*spec.get("containers", ()), *spec.get("initContainers", ())]
    resources = [c.get("resources", {}) for c in containers if isinstance(c, dict)]
    counted = [
        {name: dict_.get(name) for name in ("cpu", "memory") if dict_.get(name)}
        for res in resources
        for dict_ in (res.get("requests") or {}, res.get("limits") or {})
    ]
    if not any(counted):
        return "BestEffort"
    pairs = zip(counted[::2], counted[1::2], strict=True)
    if all(len(limits) == 2 and requests == limits for requests, limits in pairs):
        return "Guaranteed"
    return "Burstable"
