"""The few rules of built-in kinds that a node manager can run into.

A real API server checks some thousand things; these are the ones whose refusal a user's
code must handle, or that catch a mistake in a scenario: required parts of a pod, taints,
selectors that do not match their template, and what may not change after creation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from tenure.errors import Cause
from tenure.model.api import resource as r
from tenure.model.api.resource import Resource
from tenure.sim.apiserver.admission.definitionrules import change_causes, definition_causes
from tenure.sim.apiserver.admission.podrules import (
    affinity_causes,
    resource_causes,
    selector_causes,
    spread_causes,
)
from tenure.sim.apiserver.objects.definition import DEFINITIONS
from tenure.sim.apiserver.objects.refusals import malformed, required, unsupported, untouchable
from tenure.sim.apiserver.objects.tree import Obj, dig, same

_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_PERCENT: Final = re.compile(r"[0-9]+%")
_TEMPLATED: Final = frozenset({r.DEPLOYMENTS, r.REPLICA_SETS, r.STATEFUL_SETS, r.DAEMON_SETS})

#: What an update of a pod's spec may touch beside container images.
_MUTABLE_POD_FIELDS: Final = ("activeDeadlineSeconds", "tolerations", "schedulingGates")


def creation_causes(resource: Resource, obj: Obj) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    if resource == r.PODS:
        yield from _pod_spec(spec, "spec")
    elif resource == r.NODES:
        yield from _taints(spec.get("taints", []))
    elif resource in _TEMPLATED:
        yield from _workload(spec)
    elif resource == r.JOBS:
        yield from _job(spec)
    elif resource == r.POD_DISRUPTION_BUDGETS:
        yield from _budget(spec)
    elif resource == r.PRIORITY_CLASSES:
        yield from _priority_class(obj)
    elif resource == r.LEASES:
        yield from _lease(spec)
    elif resource == r.EVENTS:
        yield from _event(obj)
    elif resource == DEFINITIONS:
        yield from definition_causes(obj)


def update_causes(resource: Resource, obj: Obj, old: Obj) -> Iterator[Cause]:
    if resource == r.PRIORITY_CLASSES and obj.get("value") != old.get("value"):
        yield malformed("value", "may not be changed in an update")
    spec, before = obj.get("spec") or {}, old.get("spec") or {}
    if spec is before:
        return
    if resource == r.PODS:
        yield from _pod_change(spec, before)
    elif resource == r.NODES:
        yield from _taints(spec.get("taints", []))
        if before.get("providerID") and spec.get("providerID") != before["providerID"]:
            message = "node updates may not change providerID except from empty to valid"
            yield untouchable("spec.providerID", message)
    elif resource in _TEMPLATED:
        if not same(spec.get("selector"), before.get("selector")):
            yield malformed("spec.selector", "field is immutable")
        yield from _workload(spec)
    elif resource == r.POD_DISRUPTION_BUDGETS:
        yield from _budget(spec)
    elif resource == r.LEASES:
        yield from _lease(spec)
    elif resource == DEFINITIONS:
        yield from change_causes(obj, old)
        yield from definition_causes(obj)
    elif resource == r.VOLUME_ATTACHMENTS and not same(spec, before):
        yield malformed("spec", "field is immutable")


def _lease(spec: Obj) -> Iterator[Cause]:
    if spec.get("leaseDurationSeconds", 1) <= 0:
        yield malformed("spec.leaseDurationSeconds", "must be greater than 0")


def _event(obj: Obj) -> Iterator[Cause]:
    """Events lie beside what they are about; those about nodes and pools in ``default``."""
    about = dig(obj, "involvedObject", "namespace") or "default"
    if obj["metadata"]["namespace"] != about:
        yield malformed("involvedObject.namespace", "does not match event.namespace")


def _pod_spec(spec: Obj, at: str) -> Iterator[Cause]:
    containers = spec.get("containers") or []
    if not containers:
        yield required(f"{at}.containers")
    for field in ("initContainers", "containers"):
        yield from _containers(spec.get(field) or [], f"{at}.{field}")
    if spec["restartPolicy"] not in _RESTART_POLICIES:
        yield unsupported(f"{at}.restartPolicy", spec["restartPolicy"], _RESTART_POLICIES)
    yield from _tolerations(spec.get("tolerations") or [], f"{at}.tolerations")
    if spread := spec.get("topologySpreadConstraints"):
        yield from spread_causes(spread, f"{at}.topologySpreadConstraints")
    if affinity := spec.get("affinity"):
        yield from affinity_causes(affinity, f"{at}.affinity")


def _containers(containers: list[Any], at: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, container in enumerate(containers):
        for field in ("name", "image"):
            if not container.get(field):
                yield required(f"{at}[{index}].{field}")
        if resources := container.get("resources"):
            yield from resource_causes(resources, f"{at}[{index}].resources")
        name = container.get("name", "")
        if name and name in seen:
            yield Cause(reason="FieldValueDuplicate", field=f"{at}[{index}].name", message=name)
        seen.add(name)


def _tolerations(tolerations: list[Any], at: str) -> Iterator[Cause]:
    for index, toleration in enumerate(tolerations):
        here = f"{at}[{index}]"
        operator = toleration.get("operator") or "Equal"
        if operator not in ("Equal", "Exists", "Gt", "Lt"):
            yield unsupported(f"{here}.operator", operator, ("Equal", "Exists"))
        if not toleration.get("key") and operator != "Exists":
            yield malformed(f"{here}.operator", "operator must be Exists when `key` is empty")
        if operator == "Exists" and toleration.get("value"):
            yield malformed(here + ".operator", "value must be empty when `operator` is 'Exists'")
        effect = toleration.get("effect")
        if effect and effect not in _EFFECTS:
            yield unsupported(f"{here}.effect", effect, _EFFECTS)
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            message = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield malformed(f"{here}.effect", message)


def _taints(taints: list[Any]) -> Iterator[Cause]:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        here = f"metadata.taints[{index}]"  # Not where taints are, but what the server says.
        key, effect = taint.get("key", ""), taint.get("effect", "")
        if not key:
            yield malformed(f"{here}.key", "name part must be non-empty")
        if not effect:
            yield required(f"{here}.effect")
        elif effect not in _EFFECTS:
            yield unsupported(f"{here}.effect", effect, _EFFECTS)
        if (key, effect) in seen:
            yield Cause(reason="FieldValueDuplicate", field=here, message=f"{key}:{effect}")
        seen.add((key, effect))


def _workload(spec: Obj) -> Iterator[Cause]:
    selector = spec.get("selector")
    if not selector:
        yield required("spec.selector")
    yield from selector_causes(selector, "spec.selector")
    labels = dig(spec, "template", "metadata", "labels") or {}
    wanted = dig(selector, "matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        message = "`selector` does not match template `labels`"
        yield malformed("spec.template.metadata.labels", message)
    for field in ("replicas", "minReadySeconds", "revisionHistoryLimit"):
        if (number := spec.get(field) or 0) < 0:
            why = f"Invalid value: {number}: must be greater than or equal to 0"
            yield malformed(f"spec.{field}", why)
    for strategy in ("strategy", "updateStrategy"):
        rolling = dig(spec, strategy, "rollingUpdate") or {}
        for field, value in rolling.items():
            # More than all may come at once, but no more than all may be missing.
            at_most = 100 if field == "maxUnavailable" else None
            yield from _share(value, f"spec.{strategy}.rollingUpdate.{field}", at_most)
    template = dig(spec, "template", "spec")
    yield from _pod_spec({"restartPolicy": "Always", **(template or {})}, "spec.template.spec")


def _job(spec: Obj) -> Iterator[Cause]:
    for field in ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds"):
        if (number := spec.get(field) or 0) < 0:
            why = f"Invalid value: {number}: must be greater than or equal to 0"
            yield malformed(f"spec.{field}", why)
    template = dig(spec, "template", "spec")
    pod = {"restartPolicy": "Always", **(template or {})}
    yield from _pod_spec(pod, "spec.template.spec")
    if pod["restartPolicy"] not in ("OnFailure", "Never"):
        yield required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')


def _budget(spec: Obj) -> Iterator[Cause]:
    for field in ("minAvailable", "maxUnavailable"):
        yield from _share(spec.get(field), f"spec.{field}")
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield malformed("spec", "minAvailable and maxUnavailable cannot be both set")
    yield from selector_causes(spec.get("selector"), "spec.selector")


def _share(value: object, at: str, at_most: int | None = 100) -> Iterator[Cause]:
    good = isinstance(value, int) and value >= 0
    good = good or (isinstance(value, str) and _PERCENT.fullmatch(value) is not None)
    if value is not None and not good:
        yield malformed(at, "must be a number from 0 or a percentage like 10%")
    elif isinstance(value, str) and at_most is not None and int(value[:-1]) > at_most:
        yield malformed(at, f"must not be greater than {at_most}%")


def _priority_class(obj: Obj) -> Iterator[Cause]:
    name, value = obj["metadata"]["name"], obj.get("value", 0)
    if value > 1_000_000_000 and not name.startswith("system-"):
        yield untouchable("value", "maximum allowed value of a user defined priority is 1000000000")


def _pod_change(spec: Obj, before: Obj) -> Iterator[Cause]:
    for key in sorted(spec.keys() | before.keys()):
        new, old = spec.get(key), before.get(key)
        if key in _MUTABLE_POD_FIELDS or same(new, old):
            continue
        if key in ("containers", "initContainers") and _same_but_images(new, old):
            continue
        yield untouchable("spec", f"pod updates may not change fields other than images: {key}")
    kept = spec.get("tolerations") or []
    if not all(any(same(t, k) for k in kept) for t in before.get("tolerations") or []):
        yield untouchable("spec.tolerations", "existing toleration can not be modified")


def _same_but_images(new: Any, old: Any) -> bool:
    if not isinstance(new, list) or not isinstance(old, list) or len(new) != len(old):
        return False
    plain = [[{**c, "image": ""} for c in containers] for containers in (new, old)]
    return same(plain[0], plain[1])
