"""One object in several versions of its kind: how it is stored, and how each version shows it.

Kinds that clients define are converted as a definition without a webhook says it: another ``apiVersion``, and the
fields that the schema of that version knows. Of the built-in kinds two have another form: autoscalers by CPU
alone (autoscaling/v1) and the newer events.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from tenure.sim.apiserver.objects import storedkinds as stored
from tenure.sim.apiserver.objects.kinds import Kind
from tenure.sim.apiserver.objects.tree import Obj, dig, put

Convert = Callable[[Obj], Obj]
#: Where autoscaling/v1 keeps what it has no field for.
_METRICS: Final = "autoscaling.alpha.kubernetes.io/metrics"
_PERCENT: Final = "targetCPUUtilizationPercentage"
_PERCENT_NOW: Final = "currentCPUUtilizationPercentage"
#: Field of the newer event → of the older one.
_EVENT_FIELDS: Final = {
    "note": "message",
    "regarding": "involvedObject",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_OLD_EVENT_FIELDS: Final = {old: new for new, old in _EVENT_FIELDS.items()}


class _Forms(NamedTuple):
    inward: Convert
    outward: Convert


def inward(kind: Kind, stored_as: Kind, obj: Obj) -> Obj:
    """An object of one more version of a kind, as it is stored."""
    forms = _FORMS.get(kind.resource)
    return _as_known(obj if forms is None else forms.inward(obj), stored_as)


def outward(kind: Kind, obj: Obj) -> Obj:
    """A stored object as this version of its kind shows it."""
    forms = _FORMS.get(kind.resource)
    return _as_known(obj if forms is None else forms.outward(obj), kind)


def _as_known(obj: Obj, kind: Kind) -> Obj:
    """With the type of this version, and of a kind that a client has defined with the fields that it knows."""
    obj = {**obj, "apiVersion": kind.resource.api_version, "kind": kind.resource.kind}
    if kind.definition is None:
        return obj
    schema = kind.definition.schema
    return schema.default(schema.prune(obj))


def _renamed(obj: Obj, names: dict[str, str]) -> Obj:
    return {names.get(key, key): value for key, value in obj.items()}


def _to_new_event(obj: Obj) -> Obj:
    """Typed clients refuse one that does not say when; of an older one its last instant counts."""
    shown = _renamed(obj, _OLD_EVENT_FIELDS)
    if shown.get("eventTime"):
        return shown
    instants = (obj.get("lastTimestamp"), obj.get("firstTimestamp"))
    created = dig(obj, "metadata", "creationTimestamp")
    return {**shown, "eventTime": next(filter(None, instants), created)}


def _to_v2(obj: Obj) -> Obj:
    metadata, spec = dict(obj.get("metadata") or {}), dict(obj.get("spec") or {})
    annotations = dict(metadata.get("annotations") or {})
    others = _read_metrics(annotations.pop(_METRICS, None))
    if metadata.pop("annotations", None) is not None and annotations:
        metadata["annotations"] = annotations
    percent = spec.pop(_PERCENT, None)
    metrics = [*([] if percent is None else [_cpu(percent)]), *others]
    if metrics:
        spec["metrics"] = metrics
    status = {k: v for k, v in (obj.get("status") or {}).items() if k != _PERCENT_NOW}
    converted = {**obj, "metadata": metadata, "spec": spec}
    return {**converted, "status": status} if "status" in obj else converted


def _to_v1(obj: Obj) -> Obj:
    spec = {k: v for k, v in (obj.get("spec") or {}).items() if k not in ("metrics", "behavior")}
    others = []
    for metric in dig(obj, "spec", "metrics") or ():
        percent = dig(metric, "resource", "target", "averageUtilization")
        if dig(metric, "resource", "name") == "cpu" and percent and _PERCENT not in spec:
            spec[_PERCENT] = percent
        else:
            others.append(metric)
    shown = {**obj, "spec": spec}
    if "status" in obj:
        known = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")
        status = {key: obj["status"][key] for key in known if key in obj["status"]}
        shown["status"] = {"currentReplicas": 0, "desiredReplicas": 0, **status}
    if others:
        text = msgspec.json.encode(others).decode()
        shown = put(shown, ("metadata", "annotations", _METRICS), text)
    return shown


def _cpu(percent: Any) -> Obj:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _read_metrics(text: Any) -> list[Obj]:
    """The metrics that version 1 has no field for; none where they cannot be read."""
    try:
        return msgspec.json.decode(text or "[]", type=list[dict[str, Any]])
    except (msgspec.MsgspecError, TypeError):
        return []


_FORMS: Final = {
    stored.AUTOSCALERS_V1: _Forms(_to_v2, _to_v1),
    stored.EVENTS_V1: _Forms(lambda obj: _renamed(obj, _EVENT_FIELDS), _to_new_event),
}
