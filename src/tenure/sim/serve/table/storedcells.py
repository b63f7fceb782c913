"""What ``kubectl get`` shows of kinds that are only stored."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tenure.model.api.resource import EVENTS
from tenure.sim.apiserver.objects import storedkinds as stored
from tenure.sim.apiserver.objects.kinds import KINDS
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.objects.versions import inward
from tenure.sim.serve.table.ages import age
from tenure.sim.serve.table.cells import lived, name, replica_set_cells, selector_text
from tenure.sim.serve.table.nodecells import event_cells
from tenure.sim.serve.table.podcells import NONE

_UNKNOWN = "<unknown>"


def secret_cells(obj: Obj, now: datetime) -> list[Any]:
    return [name(obj), obj.get("type") or "", len(obj.get("data") or {}), lived(obj, now)]


def service_account_cells(obj: Obj, now: datetime) -> list[Any]:
    return [name(obj), str(len(obj.get("secrets") or ())), lived(obj, now)]


def endpoints_cells(obj: Obj, now: datetime) -> list[Any]:
    found = [
        f"{address.get('ip', '')}:{port.get('port', '')}"
        for subset in obj.get("subsets") or ()
        for port in subset.get("ports") or ()
        for address in subset.get("addresses") or ()
    ]
    more = f" + {len(found) - 3} more..." if len(found) > 3 else ""
    return [name(obj), ",".join(found[:3]) + more or NONE, lived(obj, now)]


def cron_job_cells(obj: Obj, now: datetime) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    containers = dig(spec, "jobTemplate", "spec", "template", "spec", "containers") or ()
    ran = status.get("lastScheduleTime")
    return [
        name(obj),
        spec.get("schedule") or "",
        spec.get("timeZone") or NONE,
        bool(spec.get("suspend")),
        len(status.get("active") or ()),
        age(ran, now) if ran else NONE,
        lived(obj, now),
        ",".join(str(one.get("name", "")) for one in containers),
        ",".join(str(one.get("image", "")) for one in containers),
        NONE,
    ]


def autoscaler_cells(obj: Obj, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    target = spec.get("scaleTargetRef") or {}
    metrics = ", ".join(map(_metric, spec.get("metrics") or ()))
    return [
        name(obj),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        metrics or NONE,
        str(spec.get("minReplicas", "<unset>")),
        str(spec.get("maxReplicas", 0)),
        str(dig(obj, "status", "currentReplicas") or 0),
        lived(obj, now),
    ]


def old_autoscaler_cells(obj: Obj, now: datetime) -> list[Any]:
    return autoscaler_cells(
        inward(KINDS[stored.AUTOSCALERS_V1], KINDS[stored.POD_AUTOSCALERS], obj), now
    )


def new_event_cells(obj: Obj, now: datetime) -> list[Any]:
    return event_cells(inward(KINDS[stored.EVENTS_V1], KINDS[EVENTS], obj), now)


def _metric(metric: Obj) -> str:
    """Nothing measures here, so what is known is the target."""
    resource = metric.get("resource") or {}
    target = resource.get("target") or {}
    if "averageUtilization" not in target:
        return f"{_UNKNOWN}/<auto>"
    return f"{resource.get('name', '')}: {_UNKNOWN}/{target['averageUtilization']}%"


def binding_cells(obj: Obj, now: datetime) -> list[Any]:
    role, subjects = obj.get("roleRef") or {}, obj.get("subjects") or ()
    of_kind = {
        kind: ", ".join(_subject(one) for one in subjects if one.get("kind") == kind)
        for kind in ("User", "Group", "ServiceAccount")
    }
    named = f"{role.get('kind', '')}/{role.get('name', '')}"
    return [name(obj), named, lived(obj, now), *of_kind.values()]


def _subject(subject: Obj) -> str:
    where = f"{subject['namespace']}/" if subject.get("namespace") else ""
    return where + str(subject.get("name", ""))


def replication_controller_cells(obj: Obj, now: datetime) -> list[Any]:
    labels = dig(obj, "spec", "selector") or {}
    *cells, _ = replica_set_cells(obj, now)
    return [*cells, selector_text({"matchLabels": labels})]


def quota_cells(obj: Obj, now: datetime) -> list[Any]:
    hard, used = dig(obj, "spec", "hard") or {}, dig(obj, "status", "used") or {}
    shares = {key: f"{key}: {used.get(key, '0')}/{value}" for key, value in sorted(hard.items())}
    requests = [text for key, text in shares.items() if not key.startswith("limits.")]
    limits = [text for key, text in shares.items() if key.startswith("limits.")]
    return [name(obj), ", ".join(requests), ", ".join(limits), lived(obj, now)]


def template_cells(obj: Obj, _now: datetime) -> list[Any]:
    containers = dig(obj, "template", "spec", "containers") or ()
    labels = dig(obj, "template", "metadata", "labels") or {}
    columns = [",".join(str(one.get(key, "")) for one in containers) for key in ("name", "image")]
    return [name(obj), *columns, selector_text({"matchLabels": labels})]


def component_cells(obj: Obj, _now: datetime) -> list[Any]:
    health: Obj = next((one for one in obj.get("conditions") or () if one["type"] == "Healthy"), {})
    status = {"True": "Healthy", "False": "Unhealthy"}.get(health.get("status", ""), "Unknown")
    return [name(obj), status, health.get("message", ""), health.get("error", "")]


def revision_cells(obj: Obj, now: datetime) -> list[Any]:
    owners = obj["metadata"].get("ownerReferences") or ()
    owner = next((one for one in owners if one.get("controller")), None)
    group = owner["apiVersion"].rpartition("/")[0] if owner else ""
    kind = f"{owner['kind'].lower()}{'.' if group else ''}{group}" if owner else ""
    controller = f"{kind}/{owner['name']}" if owner else NONE
    return [name(obj), controller, obj.get("revision", 0), lived(obj, now)]


def ingress_cells(obj: Obj, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    hosts = [one.get("host") or "*" for one in spec.get("rules") or ()]
    addresses = [
        one.get("ip") or one.get("hostname") or ""
        for one in dig(obj, "status", "loadBalancer", "ingress") or ()
    ]
    more = f" + {len(hosts) - 3} more..." if len(hosts) > 3 else ""
    return [
        name(obj),
        spec.get("ingressClassName") or NONE,
        ",".join(hosts[:3]) + more or "*",
        ",".join(addresses),
        "80, 443" if spec.get("tls") else "80",
        lived(obj, now),
    ]


def ingress_class_cells(obj: Obj, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    found = spec.get("parameters")
    parameters = NONE
    if found:
        group = f".{found['apiGroup']}" if found.get("apiGroup") else ""
        parameters = f"{found.get('kind', '')}{group}/{found.get('name', '')}"
    return [name(obj), spec.get("controller", ""), parameters, lived(obj, now)]


def network_policy_cells(obj: Obj, now: datetime) -> list[Any]:
    return [name(obj), selector_text(dig(obj, "spec", "podSelector")), lived(obj, now)]


def slice_cells(obj: Obj, now: datetime) -> list[Any]:
    ports = [str(one.get("port", "*")) for one in obj.get("ports") or ()]
    addresses = [text for one in obj.get("endpoints") or () for text in one.get("addresses") or ()]
    return [
        name(obj),
        obj.get("addressType", ""),
        _first_three(ports, "<unset>"),
        _first_three(addresses, "<unset>"),
        lived(obj, now),
    ]


def _first_three(texts: list[str], otherwise: str) -> str:
    more = f" + {len(texts) - 3} more..." if len(texts) > 3 else ""
    return ",".join(texts[:3]) + more or otherwise


def runtime_class_cells(obj: Obj, now: datetime) -> list[Any]:
    return [name(obj), obj.get("handler", ""), lived(obj, now)]


def webhook_cells(obj: Obj, now: datetime) -> list[Any]:
    return [name(obj), len(obj.get("webhooks") or ()), lived(obj, now)]


def admission_policy_cells(obj: Obj, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    kind = spec.get("paramKind")
    parameters = f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else "<unset>"
    return [name(obj), len(spec.get("validations") or ()), parameters, lived(obj, now)]


def policy_binding_cells(obj: Obj, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    given = spec.get("paramRef")
    parameters = (
        f"{given.get('namespace') or '*'}/{given.get('name') or '*'}" if given else "<unset>"
    )
    return [name(obj), spec.get("policyName", ""), parameters, lived(obj, now)]


def api_service_cells(obj: Obj, now: datetime) -> list[Any]:
    service = dig(obj, "spec", "service")
    where = f"{service.get('namespace', '')}/{service.get('name', '')}" if service else "Local"
    conditions = dig(obj, "status", "conditions") or ()
    found: Obj = next((one for one in conditions if one.get("type") == "Available"), {})
    available = found.get("status", "Unknown")
    if available == "False":
        available = f"False ({found.get('reason', '')})"
    return [name(obj), where, available, lived(obj, now)]


def driver_cells(obj: Obj, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    audiences = [one.get("audience", "") for one in spec.get("tokenRequests") or ()]
    return [
        name(obj),
        spec.get("attachRequired", True),
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        ",".join(audiences) or "<unset>",
        bool(spec.get("requiresRepublish")),
        ",".join(spec.get("volumeLifecycleModes") or ("Persistent",)),
        lived(obj, now),
    ]


def capacity_cells(obj: Obj, now: datetime) -> list[Any]:
    return [
        name(obj),
        obj.get("storageClassName", ""),
        obj.get("capacity", "<unset>"),
        lived(obj, now),
    ]


def scale_cells(obj: Obj, now: datetime) -> list[Any]:
    counts = [dig(obj, part, "replicas") or 0 for part in ("spec", "status")]
    return [name(obj), *counts, lived(obj, now)]
