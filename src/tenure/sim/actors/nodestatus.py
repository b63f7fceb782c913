"""What a kubelet writes about its node: Node, conditions and CSINode, as values.

Nothing here acts; ``kubelet/kubelet.py`` says when, ``nodes/lifecycle.py`` shares the words. A
condition's ``lastTransitionTime`` moves only with its status, as Kubernetes has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from tenure.model.api.meta import format_time
from tenure.model.api.names import ARCH, HOSTNAME, NOT_READY_TAINT, OS, UNREGISTERED_TAINT, ZONE
from tenure.model.api.node import Taint
from tenure.model.cloud.instance import Instance
from tenure.sim.apiserver.objects.tree import Obj, dig

READY: Final = "Ready"
#: The CSI driver that runs on every node.
STORAGE_DRIVER: Final = "csi.sim.tenure.dev"

#: What is said of a condition: status, reason, message.
Words = tuple[str, str, str]

#: The kubelet's own words for its conditions, when all is well.
HEALTHY: Final[Mapping[str, Words]] = {
    "MemoryPressure": (
        "False",
        "KubeletHasSufficientMemory",
        "kubelet has sufficient memory available",
    ),
    "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    READY: ("True", "KubeletReady", "kubelet is posting ready status"),
}
NETWORK_NOT_READY: Final[Words] = (
    "False",
    "KubeletNotReady",
    "container runtime network not ready",
)
_STOPPED_POSTING: Final = "Kubelet stopped posting node status."
_NEVER_POSTED: Final = "Kubelet never posted node status."

#: Labels of older releases that every kubelet still sets.
_BETA: Final = {"beta.kubernetes.io/arch": ARCH, "beta.kubernetes.io/os": OS}
_LABEL_LENGTH: Final = 63


class BootedInstance(msgspec.Struct, frozen=True, kw_only=True):
    """An instance that has booted, and how it was told to introduce itself."""

    instance: Instance
    node_name: str
    #: What the user data says: labels and taints to register with.
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    #: By CSI driver, how many volumes it can attach; absent: any number.
    volume_limits: Mapping[str, int] = {}


def node_object(booted: BootedInstance, boot_id: str, now: datetime) -> dict[str, Any]:
    """The Node as it is registered: unregistered for Tenure, not ready for the scheduler."""
    instance = booted.instance
    labels = {**booted.labels, **instance.labels, HOSTNAME: booted.node_name[:_LABEL_LENGTH]}
    labels |= {beta: labels[key] for beta, key in _BETA.items() if key in labels}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": booted.node_name, "labels": labels},
        "spec": {"providerID": instance.provider_id, "taints": _first_taints(booted)},
        "status": {
            "capacity": without_extended(instance.capacity),
            "allocatable": without_extended(instance.allocatable),
            "conditions": reported((), {**HEALTHY, READY: NETWORK_NOT_READY}, now),
            "nodeInfo": _node_info(labels, boot_id),
        },
    }


def csi_node_object(booted: BootedInstance, node: Obj) -> dict[str, Any]:
    """What the storage drivers on the node say of it; it goes with its Node."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": booted.node_name}
    owner["uid"] = node["metadata"]["uid"]
    limits = {STORAGE_DRIVER: None, **booted.volume_limits}
    drivers = [
        {
            "name": driver,
            "nodeID": booted.instance.provider_id,
            "topologyKeys": [ZONE],
            **({} if count is None else {"allocatable": {"count": count}}),
        }
        for driver, count in limits.items()
    ]
    metadata = {"name": booted.node_name, "ownerReferences": [owner]}
    return {"metadata": metadata, "spec": {"drivers": drivers}}


def _first_taints(booted: BootedInstance) -> list[dict[str, str]]:
    own = [
        Taint(key=UNREGISTERED_TAINT, effect="NoExecute"),
        # Put there by the API server's admission, so that no pod is bound before the
        # node-lifecycle controller has seen the node.
        Taint(key=NOT_READY_TAINT, effect="NoSchedule"),
    ]
    seen: dict[tuple[str, str], Taint] = {}
    for taint in (*own, *booted.taints):
        seen.setdefault((taint.key, taint.effect), taint)
    return [msgspec.to_builtins(taint) for taint in seen.values()]


def _node_info(labels: Mapping[str, str], boot_id: str) -> dict[str, str]:
    return {
        "architecture": labels.get(ARCH, ""),
        "bootID": boot_id,
        "containerRuntimeVersion": "sim://1",
        "kernelVersion": "6.12",
        "kubeProxyVersion": "",
        "kubeletVersion": "v1.36.3",
        "machineID": "",
        "operatingSystem": labels.get(OS, ""),
        "osImage": "Embedded Linux",
        "systemUUID": "",
    }


def is_extended(resource: str) -> bool:
    """``nvidia.com/gpu``: a device plugin announces it once the node is up."""
    return "/" in resource


def without_extended(resources: Mapping[str, str]) -> dict[str, str]:
    return {name: amount for name, amount in resources.items() if not is_extended(name)}


def reported(old: Iterable[Obj], words: Mapping[str, Words], now: datetime) -> list[Obj]:
    """The conditions as the kubelet reports them now; those of others are kept as they are."""
    at = format_time(now)
    before = {condition["type"]: condition for condition in old}
    for type_, (status, reason, message) in words.items():
        known = before.get(type_)
        since = at
        if known is not None and known.get("status") == status:
            since = known.get("lastTransitionTime", at)
        before[type_] = {
            "type": type_,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": at,
            "lastTransitionTime": since,
        }
    return list(before.values())


def unheard_of(old: Iterable[Obj], now: datetime) -> list[Obj]:
    """The conditions once the kubelet has been silent for too long: Unknown."""
    at = format_time(now)
    before = {condition["type"]: condition for condition in old}
    for type_ in HEALTHY:
        known = before.get(type_)
        if known is None:
            words = {"reason": "NodeStatusNeverUpdated", "message": _NEVER_POSTED}
            before[type_] = {"type": type_, "status": "Unknown", **words, "lastTransitionTime": at}
        elif known.get("status") != "Unknown":
            words = {"reason": "NodeStatusUnknown", "message": _STOPPED_POSTING}
            before[type_] = {**known, "status": "Unknown", **words, "lastTransitionTime": at}
    return list(before.values())


def status_of(node: Obj, type_: str) -> str:
    """The condition's status; empty when the node does not have it."""
    for one in dig(node, "status", "conditions") or ():
        if one.get("type") == type_:
            status: str = one.get("status", "Unknown")
            return status
    return ""


def micro_time(instant: datetime) -> str:
    """RFC 3339 with microseconds, as leases carry it."""
    return instant.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
