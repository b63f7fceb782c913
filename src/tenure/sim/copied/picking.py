"""Fields of an object that are kept by name: of metadata, of conditions, of anything else."""

from __future__ import annotations

from typing import Any, Final

#: Of these groups every annotation is a controller's, and none holds what users type.
_GROUPS: Final = ("tenure.dev", "karpenter.sh", "kwok.x-k8s.io")
#: Providers of Karpenter write below their own.
_PROVIDERS: Final = "karpenter."
#: Of Kubernetes' own, by name: others have held whole specs of pods.
_KUBERNETES: Final = frozenset(
    {
        "batch.kubernetes.io/job-completion-index",
        "cluster-autoscaler.kubernetes.io/safe-to-evict",
        "controller.kubernetes.io/pod-deletion-cost",
        "deployment.kubernetes.io/desired-replicas",
        "deployment.kubernetes.io/max-replicas",
        "deployment.kubernetes.io/revision",
        "deprecated.daemonset.template.generation",
        "kubernetes.io/config.mirror",
        "kubernetes.io/config.source",
        "pv.kubernetes.io/bind-completed",
        "pv.kubernetes.io/bound-by-controller",
        "pv.kubernetes.io/provisioned-by",
        "storageclass.beta.kubernetes.io/is-default-class",
        "storageclass.kubernetes.io/is-default-class",
        "volume.beta.kubernetes.io/storage-class",
        "volume.beta.kubernetes.io/storage-provisioner",
        "volume.kubernetes.io/selected-node",
        "volume.kubernetes.io/storage-provisioner",
    }
)
_METADATA: Final = (
    *("name", "generateName", "namespace", "uid", "creationTimestamp", "generation"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "labels", "finalizers"),
    "ownerReferences",
)
_CONDITION: Final = (
    *("type", "status", "reason", "lastTransitionTime", "lastHeartbeatTime", "lastProbeTime"),
    *("lastUpdateTime", "observedGeneration"),
)


def pick(value: Any, *names: str) -> dict[str, Any]:
    """Those fields of a map that are there and say something."""
    if not isinstance(value, dict):
        return {}
    return {name: value[name] for name in names if value.get(name) is not None}


def metadata(given: Any) -> dict[str, Any]:
    kept = pick(given, *_METADATA)
    if isinstance(labels := kept.get("labels"), dict):
        kept["labels"] = {key: _text(value) for key, value in labels.items() if _is_plain(value)}
    if isinstance(owners := kept.get("ownerReferences"), list):
        kept["ownerReferences"] = [one for one in owners if _is_owner(one)]
    if found := known_annotations((given or {}).get("annotations")):
        kept["annotations"] = found
    return kept


def _is_owner(one: Any) -> bool:
    return isinstance(one, dict) and all(
        isinstance(one.get(key), str) for key in ("apiVersion", "kind", "name")
    )


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _text(value: Any) -> str:
    """A label of a file that was written by hand: ``zone: 5`` means "5"."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def known_annotations(given: Any) -> dict[str, str]:
    """Those that a controller here may read."""
    return {key: value for key, value in (given or {}).items() if is_known(key)}


def is_known(key: str) -> bool:
    group = key.rpartition("/")[0]
    return (
        key in _KUBERNETES
        or group.startswith(_PROVIDERS)
        or any(group == one or group.endswith(f".{one}") for one in _GROUPS)
    )


def conditions(given: Any, *, messages: bool = False) -> list[dict[str, Any]]:
    """Without those that name no type or status, which say nothing. ``messages``: those of kubelets and of Karpenter;
    a container's may say anything.
    """
    return [
        {**pick(one, *_CONDITION), "message": (one.get("message") or "") if messages else ""}
        for one in given or ()
        if isinstance(one, dict)
        and isinstance(one.get("type"), str)
        and isinstance(one.get("status"), str)
    ]
