"""What ``kubectl get`` shows of kinds that are only stored."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.serve.table.ages import age
from tenure.sim.serve.table.cells import lived, name
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
