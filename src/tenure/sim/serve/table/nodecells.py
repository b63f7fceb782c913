"""What ``kubectl get nodes`` and ``kubectl get events`` show."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.serve.table.ages import UNKNOWN, age
from tenure.sim.serve.table.podcells import NONE

_ROLE: Final = "node-role.kubernetes.io/"
_OLD_ROLE: Final = "kubernetes.io/role"


def node_cells(node: Obj, now: datetime) -> list[Any]:
    info = dig(node, "status", "nodeInfo") or {}
    return [
        node["metadata"].get("name", ""),
        _state(node),
        _roles(node["metadata"].get("labels") or {}),
        age(node["metadata"].get("creationTimestamp"), now),
        info.get("kubeletVersion", ""),
        _address(node, "InternalIP"),
        _address(node, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        info.get("kernelVersion") or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _state(node: Obj) -> str:
    conditions = dig(node, "status", "conditions") or []
    ready = next((one.get("status") for one in conditions if one.get("type") == "Ready"), None)
    word = {"True": "Ready", None: "Unknown"}.get(ready, "NotReady")
    return f"{word},SchedulingDisabled" if dig(node, "spec", "unschedulable") else word


def _roles(labels: Obj) -> str:
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)}
    roles |= {labels[_OLD_ROLE]} if _OLD_ROLE in labels else set()
    return ",".join(sorted(roles - {""})) or NONE


def _address(node: Obj, kind: str) -> str:
    addresses = dig(node, "status", "addresses") or []
    return next((one.get("address", "") for one in addresses if one.get("type") == kind), NONE)


def event_cells(event: Obj, now: datetime) -> list[Any]:
    first = event.get("firstTimestamp") or event.get("eventTime")
    last = event.get("lastTimestamp") or first
    count = event.get("count") or 1
    if series := event.get("series"):
        last, count = series.get("lastObservedTime"), series.get("count")
    about = event.get("involvedObject") or {}
    named = [about.get("kind", "").lower(), about.get("name", "")]
    source = event.get("source") or {}
    return [
        age(last, now),
        event.get("type", ""),
        event.get("reason", ""),
        "/".join(part for part in named if part),
        about.get("fieldPath", ""),
        ", ".join(part for part in (_component(event), source.get("host", "")) if part),
        event.get("message", "").strip(),
        age(first, now),
        str(count),
        event["metadata"].get("name", ""),
    ]


def _component(event: Obj) -> str:
    component: str = dig(event, "source", "component") or event.get("reportingComponent", "")
    return component
