"""What ``kubectl get`` shows of workloads and the other built-in kinds."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.store.selection import written
from tenure.sim.serve.table.ages import age, span
from tenure.sim.serve.table.podcells import NONE

_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"


def name(obj: Obj) -> str:
    text: str = obj["metadata"].get("name", "")
    return text


def lived(obj: Obj, now: datetime) -> str:
    return age(obj["metadata"].get("creationTimestamp"), now)


def _number(obj: Obj, *path: str) -> int:
    return dig(obj, *path) or 0


def _containers(obj: Obj) -> list[str]:
    """Their names, and their images."""
    containers = dig(obj, "spec", "template", "spec", "containers") or []
    return [",".join(str(one.get(key, "")) for one in containers) for key in ("name", "image")]


def selector_text(selector: Obj | None) -> str:
    return written(selector) or NONE


def namespace_cells(obj: Obj, now: datetime) -> list[Any]:
    return [name(obj), dig(obj, "status", "phase") or "", lived(obj, now)]


def service_cells(obj: Obj, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    ports = ",".join(
        f"{one.get('port')}{':' + str(one['nodePort']) if one.get('nodePort') else ''}"
        f"/{one.get('protocol') or 'TCP'}"
        for one in spec.get("ports") or []
    )
    kind = spec.get("type") or "ClusterIP"
    outside = "<pending>" if kind == "LoadBalancer" else ",".join(spec.get("externalIPs") or [])
    return [
        name(obj),
        kind,
        spec.get("clusterIP") or NONE,
        outside or NONE,
        ports or NONE,
        lived(obj, now),
        selector_text({"matchLabels": spec.get("selector") or {}}),
    ]


def config_map_cells(obj: Obj, now: datetime) -> list[Any]:
    data = len(obj.get("data") or {}) + len(obj.get("binaryData") or {})
    return [name(obj), str(data), lived(obj, now)]


def limit_range_cells(obj: Obj, _now: datetime) -> list[Any]:
    return [name(obj), obj["metadata"]["creationTimestamp"]]


def _modes(modes: Any) -> str:
    return ",".join(_MODES.get(mode, mode) for mode in modes or [])


def volume_cells(obj: Obj, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    claim = spec.get("claimRef")
    return [
        name(obj),
        dig(spec, "capacity", "storage") or "",
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy") or "",
        dig(obj, "status", "phase") or "",
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or "<unset>",
        dig(obj, "status", "reason") or "",
        lived(obj, now),
        spec.get("volumeMode") or "<unset>",
    ]


def volume_claim_cells(obj: Obj, now: datetime) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    bound = bool(spec.get("volumeName"))
    return [
        name(obj),
        "Terminating" if "deletionTimestamp" in obj["metadata"] else status.get("phase", ""),
        spec.get("volumeName") or "",
        (dig(status, "capacity", "storage") or "") if bound else "",
        _modes(status.get("accessModes")) if bound else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or "<unset>",
        lived(obj, now),
        spec.get("volumeMode") or "<unset>",
    ]


def daemon_set_cells(obj: Obj, now: datetime) -> list[Any]:
    wanted = dig(obj, "spec", "template", "spec", "nodeSelector") or {}
    return [
        name(obj),
        _number(obj, "status", "desiredNumberScheduled"),
        _number(obj, "status", "currentNumberScheduled"),
        _number(obj, "status", "numberReady"),
        _number(obj, "status", "updatedNumberScheduled"),
        _number(obj, "status", "numberAvailable"),
        selector_text({"matchLabels": wanted}),
        lived(obj, now),
        *_containers(obj),
        selector_text(dig(obj, "spec", "selector")),
    ]


def deployment_cells(obj: Obj, now: datetime) -> list[Any]:
    ready, wanted = _number(obj, "status", "readyReplicas"), _number(obj, "spec", "replicas")
    return [
        name(obj),
        f"{ready}/{wanted}",
        str(_number(obj, "status", "updatedReplicas")),
        str(_number(obj, "status", "availableReplicas")),
        lived(obj, now),
        *_containers(obj),
        selector_text(dig(obj, "spec", "selector")),
    ]


def replica_set_cells(obj: Obj, now: datetime) -> list[Any]:
    return [
        name(obj),
        _number(obj, "spec", "replicas"),
        _number(obj, "status", "replicas"),
        _number(obj, "status", "readyReplicas"),
        lived(obj, now),
        *_containers(obj),
        selector_text(dig(obj, "spec", "selector")),
    ]


def stateful_set_cells(obj: Obj, now: datetime) -> list[Any]:
    ready, wanted = _number(obj, "status", "readyReplicas"), _number(obj, "spec", "replicas")
    return [name(obj), f"{ready}/{wanted}", lived(obj, now), *_containers(obj)]


def job_cells(obj: Obj, now: datetime) -> list[Any]:
    status = obj.get("status") or {}
    began, ended = status.get("startTime"), status.get("completionTime")
    took = ""
    if began:
        until = datetime.fromisoformat(ended) if ended else now
        took = span(until - datetime.fromisoformat(began))
    return [
        name(obj),
        "Complete" if ended else "Running",
        f"{_number(obj, 'status', 'succeeded')}/{_number(obj, 'spec', 'completions') or 1}",
        took,
        lived(obj, now),
        *_containers(obj),
        selector_text(dig(obj, "spec", "selector")),
    ]


def budget_cells(obj: Obj, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    share = [str(spec.get(key, "N/A")) for key in ("minAvailable", "maxUnavailable")]
    return [name(obj), *share, _number(obj, "status", "disruptionsAllowed"), lived(obj, now)]


def priority_class_cells(obj: Obj, now: datetime) -> list[Any]:
    policy = obj.get("preemptionPolicy") or "PreemptLowerPriority"
    value, for_all = obj.get("value", 0), bool(obj.get("globalDefault"))
    return [name(obj), value, for_all, lived(obj, now), policy]


def storage_class_cells(obj: Obj, now: datetime) -> list[Any]:
    default = (obj["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true"
    return [
        f"{name(obj)} (default)" if default else name(obj),
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy") or "Delete",
        obj.get("volumeBindingMode") or "Immediate",
        "true" if obj.get("allowVolumeExpansion") else "false",
        lived(obj, now),
    ]


def attachment_cells(obj: Obj, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    return [
        name(obj),
        spec.get("attacher", ""),
        dig(spec, "source", "persistentVolumeName") or "",
        spec.get("nodeName", ""),
        bool(dig(obj, "status", "attached")),
        lived(obj, now),
    ]


def csi_node_cells(obj: Obj, now: datetime) -> list[Any]:
    return [name(obj), len(dig(obj, "spec", "drivers") or []), lived(obj, now)]


def lease_cells(obj: Obj, now: datetime) -> list[Any]:
    return [name(obj), dig(obj, "spec", "holderIdentity") or "", lived(obj, now)]
