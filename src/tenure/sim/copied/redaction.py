"""What is taken of an object of a real cluster: fields that are known to be harmless, and no others.

A list of what is left out would miss the next place where a password is put; so this is a list of what is
kept, kind by kind. Of every kind: name, labels, owners, finalizers, instants, and annotations of known names.
Of pods and templates: what decides where and how long they run, not what they run (``podparts.py``).

Left out with everything else: Secrets, ConfigMaps, environment values, commands and arguments, probes and hooks,
``last-applied-configuration``, ``managedFields``, user data of node classes, attributes of volumes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tenure.model.api import resource as r
from tenure.model.api.resource import Resource
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.copied.picking import conditions, metadata, pick
from tenure.sim.copied.podparts import claim_spec, pod_spec, pod_status, template

Part = Callable[[Any], Any]


def _whole(value: Any) -> Any:
    return value


def _nothing(_: Any) -> None:
    return None


def _workload(spec: Any) -> Any:
    """All of it but the template: numbers, names and selectors."""
    if not isinstance(spec, dict):
        return None
    kept = {key: value for key, value in spec.items() if key not in _WITH_TEXT}
    kept["template"] = template(spec.get("template"))
    if claims := spec.get("volumeClaimTemplates"):
        kept["volumeClaimTemplates"] = [
            {"metadata": metadata(one.get("metadata")), "spec": claim_spec(one.get("spec"))}
            for one in claims
        ]
    return kept


#: Of the spec of a workload: what is, or may hold, a template or other text.
_WITH_TEXT: Final = frozenset({"template", "volumeClaimTemplates", "podFailurePolicy"})


def _counts(status: Any) -> Any:
    """Numbers, names of revisions and conditions."""
    kept: dict[str, Any] = {
        name: value for name, value in (status or {}).items() if isinstance(value, str | int)
    }
    if found := conditions((status or {}).get("conditions")):
        kept["conditions"] = found
    return kept


def _node_spec(spec: Any) -> Any:
    return pick(spec, "providerID", "taints", "unschedulable", "podCIDR", "podCIDRs")


def _node_status(status: Any) -> Any:
    kept = pick(status, "capacity", "allocatable", "phase", "volumesAttached", "volumesInUse")
    info = pick((status or {}).get("nodeInfo"), *_NODE_INFO)
    said = conditions((status or {}).get("conditions"), messages=True)
    return {**kept, "conditions": said, "nodeInfo": info}


_NODE_INFO: Final = (
    *("architecture", "bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion"),
    *("kubeletVersion", "machineID", "operatingSystem", "osImage", "systemUUID"),
)


def _volume(spec: Any) -> Any:
    kept = pick(
        spec,
        *("accessModes", "capacity", "claimRef", "nodeAffinity", "persistentVolumeReclaimPolicy"),
        *("storageClassName", "volumeMode"),
    )
    if isinstance(source := (spec or {}).get("csi"), dict):
        kept["csi"] = pick(source, "driver", "volumeHandle")
    for name in ("awsElasticBlockStore", "gcePersistentDisk", "azureDisk"):
        if isinstance(source := (spec or {}).get(name), dict):
            kept[name] = pick(source, "volumeID", "pdName", "diskName", "diskURI")
    return kept


def _attachment(spec: Any) -> Any:
    source = pick((spec or {}).get("source"), "persistentVolumeName")
    return {**pick(spec, "attacher", "nodeName"), "source": source}


def _class_status(status: Any) -> Any:
    return {"conditions": conditions((status or {}).get("conditions"))}


_BUILT_IN: Final[dict[Resource, tuple[Part, Part]]] = {
    r.NAMESPACES: (_whole, lambda status: pick(status, "phase")),
    r.PRIORITY_CLASSES: (_nothing, _nothing),
    r.LIMIT_RANGES: (_whole, _nothing),
    r.STORAGE_CLASSES: (_nothing, _nothing),
    r.CSI_NODES: (_whole, _nothing),
    r.PERSISTENT_VOLUMES: (_volume, lambda status: pick(status, "phase")),
    r.PERSISTENT_VOLUME_CLAIMS: (claim_spec, lambda s: pick(s, "phase", "accessModes", "capacity")),
    r.VOLUME_ATTACHMENTS: (_attachment, lambda status: pick(status, "attached")),
    r.NODES: (_node_spec, _node_status),
    r.DEPLOYMENTS: (_workload, _counts),
    r.REPLICA_SETS: (_workload, _counts),
    r.STATEFUL_SETS: (_workload, _counts),
    r.DAEMON_SETS: (_workload, _counts),
    r.JOBS: (_workload, _counts),
    r.POD_DISRUPTION_BUDGETS: (_whole, _whole),
    r.PODS: (pod_spec, pod_status),
    r.NODE_POOLS: (_whole, _whole),
    r.NODE_CLAIMS: (_whole, _whole),
    r.MAINTENANCE_WINDOWS: (_whole, _whole),
    r.NODE_POOL_POLICIES: (_whole, _whole),
}
#: Fields beside spec and status.
_BESIDE: Final[dict[Resource, tuple[str, ...]]] = {
    r.PRIORITY_CLASSES: ("value", "globalDefault", "preemptionPolicy"),
    r.STORAGE_CLASSES: (
        *("provisioner", "reclaimPolicy", "volumeBindingMode", "allowVolumeExpansion"),
        "allowedTopologies",
    ),
}

#: In the order in which they are put into the embedded cluster: owners before what they own.
TAKEN: Final = tuple(_BUILT_IN)


def redacted(resource: Resource, obj: Obj, *, own_class: bool = False) -> Obj:
    """The object as it is taken. Of a node class of another cloud: only whether it is Ready.

    ``own_class``: the node class is the embedded cloud's own, and holds no user data.
    """
    spec, status = _BUILT_IN.get(resource, (_whole if own_class else _nothing, _class_status))
    kept: Obj = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata(obj.get("metadata")),
        **pick(obj, *_BESIDE.get(resource, ())),
    }
    if (part := spec(obj.get("spec"))) is not None:
        kept["spec"] = part
    if (part := status(obj.get("status"))) is not None:
        kept["status"] = part
    return kept
