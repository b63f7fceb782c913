"""What is taken of pods and of their templates: where they may run, what they need, how long they take to leave."""

from __future__ import annotations

from typing import Any, Final

from tenure.sim.copied.picking import conditions, metadata, pick

_SPEC: Final = (
    *("activeDeadlineSeconds", "affinity", "automountServiceAccountToken", "dnsPolicy"),
    *("enableServiceLinks", "hostIPC", "hostNetwork", "hostPID", "hostname", "nodeName"),
    *("nodeSelector", "os", "overhead", "preemptionPolicy", "priority", "priorityClassName"),
    *("readinessGates", "resources", "restartPolicy", "runtimeClassName", "schedulerName"),
    *("schedulingGates", "setHostnameAsFQDN", "shareProcessNamespace", "subdomain"),
    *("terminationGracePeriodSeconds", "tolerations", "topologySpreadConstraints"),
)
_CONTAINER: Final = (
    *("name", "image", "imagePullPolicy", "resources", "restartPolicy"),
    *("terminationMessagePath", "terminationMessagePolicy"),
)
_PORT: Final = ("name", "containerPort", "hostPort", "protocol")
_STATUS: Final = (
    *("phase", "reason", "startTime", "qosClass", "hostIP", "hostIPs", "podIP", "podIPs"),
    *("nominatedNodeName", "observedGeneration", "resize"),
)
_CONTAINER_STATUS: Final = ("name", "image", "imageID", "ready", "restartCount", "started")
_STATE: Final = ("startedAt", "finishedAt", "exitCode", "reason")
#: Volumes that decide where a pod can run; the others are left out, those from Secrets among them.
_VOLUME: Final = ("name", "persistentVolumeClaim")
_CLAIM: Final = (
    *("accessModes", "resources", "selector", "storageClassName", "volumeMode", "volumeName"),
)


def pod_spec(spec: Any) -> dict[str, Any]:
    kept = pick(spec, *_SPEC)
    for name in ("containers", "initContainers"):
        if isinstance(found := (spec or {}).get(name), list):
            kept[name] = [_container(one) for one in found if isinstance(one, dict)]
    volumes = [_volume(one) for one in (spec or {}).get("volumes") or ()]
    if followed := [one for one in volumes if len(one) > 1]:
        kept["volumes"] = followed
    return kept


def claim_spec(spec: Any) -> dict[str, Any]:
    """Of a PersistentVolumeClaim, or of a template for some."""
    return pick(spec, *_CLAIM)


def _volume(given: Any) -> dict[str, Any]:
    kept = pick(given, *_VOLUME)
    made = pick(pick(given, "ephemeral").get("ephemeral"), "volumeClaimTemplate")
    if made:
        wanted = made["volumeClaimTemplate"]
        parts = {
            "metadata": metadata(wanted.get("metadata")),
            "spec": claim_spec(wanted.get("spec")),
        }
        kept["ephemeral"] = {"volumeClaimTemplate": parts}
    return kept


def template(given: Any) -> dict[str, Any]:
    given = given if isinstance(given, dict) else {}
    return {"metadata": metadata(given.get("metadata")), "spec": pod_spec(given.get("spec"))}


def pod_status(status: Any) -> dict[str, Any]:
    status = status if isinstance(status, dict) else {}
    kept = pick(status, *_STATUS)
    kept["conditions"] = conditions(status.get("conditions"))
    for name in ("containerStatuses", "initContainerStatuses"):
        if isinstance(found := status.get(name), list):
            kept[name] = [_container_status(one) for one in found if isinstance(one, dict)]
    return kept


def _container(given: dict[str, Any]) -> dict[str, Any]:
    kept = pick(given, *_CONTAINER)
    if isinstance(resources := kept.get("resources"), dict):
        kept["resources"] = {name: _amounts(part) for name, part in resources.items()}
    if ports := [pick(one, *_PORT) for one in given.get("ports") or ()]:
        kept["ports"] = ports
    stop = pick(pick(given, "lifecycle").get("lifecycle"), "preStop").get("preStop")
    if sleep := pick(stop, "sleep"):  # How long the pod takes to leave; other hooks are commands.
        kept["lifecycle"] = {"preStop": sleep}
    return kept


def _amounts(part: Any) -> Any:
    """As text: ``cpu: 1`` in a file that was written by hand."""
    if not isinstance(part, dict):
        return part
    return {name: str(one) if isinstance(one, int | float) else one for name, one in part.items()}


def _container_status(given: dict[str, Any]) -> dict[str, Any]:
    kept = pick(given, *_CONTAINER_STATUS)
    if isinstance(state := given.get("state"), dict):
        kept["state"] = {name: pick(said, *_STATE) for name, said in state.items()}
    return kept
