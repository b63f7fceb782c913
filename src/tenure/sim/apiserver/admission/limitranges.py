"""LimitRanges: what the API server fills in for new pods of a namespace, and what it refuses.

As LimitRanger does it, in this order: a LimitRange is completed when it is stored (``max`` is also
the default limit, a default limit also the default request, ``min`` the default request where
nothing else is said); a new pod's containers get what they do not say; then the pod is held to
``min``, ``max`` and ``maxLimitRequestRatio``, all complaints in one refusal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tenure.model.api.resource import PODS
from tenure.model.values.quantity import UNIT, format_resources, parse_quantity, parse_resources
from tenure.sim.apiserver.objects.refusals import forbidden
from tenure.sim.apiserver.objects.tree import Obj

_ANNOTATION: Final = "kubernetes.io/limit-ranger"
Amounts = Mapping[str, str]


def completed(limit_range: Obj) -> Obj:
    """The LimitRange as it is stored."""
    spec = limit_range.get("spec") or {}
    items = [_completed(item) for item in spec.get("limits") or ()]
    return {**limit_range, "spec": {**spec, "limits": items}}


def _completed(item: Obj) -> Obj:
    if item.get("type") != "Container":
        return item
    limits = {**(item.get("max") or {}), **(item.get("default") or {})}
    requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
    added = {"default": limits, "defaultRequest": requests}
    return {**item, **{key: value for key, value in added.items() if value}}


def limited(pod: Obj, limit_range: Obj) -> Obj:
    """The pod as this LimitRange lets it in; raises 403 with every complaint."""
    items: list[Obj] = limit_range["spec"]["limits"]
    pod = _filled(pod, items)
    containers = [container.get("resources") or {} for container in pod["spec"]["containers"]]
    complaints: list[str] = []
    for item in items:
        if item.get("type") == "Container":
            for resources in containers:
                requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
                complaints += _complaints(item, requests, limits)
        elif item.get("type") == "Pod":
            requests = _sum([resources.get("requests") or {} for resources in containers])
            limits = _sum([resources.get("limits") or {} for resources in containers])
            complaints += _complaints(item, requests, limits)
    if complaints:
        said = complaints[0] if len(complaints) == 1 else f"[{', '.join(complaints)}]"
        raise forbidden(PODS, pod["metadata"]["name"], said)
    return pod


def _filled(pod: Obj, items: Sequence[Obj]) -> Obj:
    limits: Obj = {}
    requests: Obj = {}
    for item in items:
        if item.get("type") == "Container":
            limits |= item.get("default") or {}
            requests |= item.get("defaultRequest") or {}
    spec, said = dict(pod["spec"]), []
    for field, kind in (("containers", "container"), ("initContainers", "init container")):
        if field in spec:
            spec[field] = [_with(c, requests, limits) for c in spec[field]]
            said += [
                f"{', '.join(missing)} {what} for {kind} {old['name']}"
                for old in pod["spec"][field]
                for what, defaults in (("request", requests), ("limit", limits))
                if (missing := _missing(old, what, defaults))
            ]
    if not said:
        return pod
    annotations = {**(pod["metadata"].get("annotations") or {})}
    annotations[_ANNOTATION] = f"LimitRanger plugin set: {'; '.join(said)}"
    return {**pod, "metadata": {**pod["metadata"], "annotations": annotations}, "spec": spec}


def _with(container: Obj, requests: Obj, limits: Obj) -> Obj:
    given = container.get("resources") or {}
    resources = {
        **given,
        "requests": {**requests, **(given.get("requests") or {})},
        "limits": {**limits, **(given.get("limits") or {})},
    }
    return {**container, "resources": {key: value for key, value in resources.items() if value}}


def _missing(container: Obj, what: str, defaults: Obj) -> list[str]:
    given = (container.get("resources") or {}).get(f"{what}s") or {}
    return sorted(name for name in defaults if name not in given)


def _sum(many: Sequence[Amounts]) -> Amounts:
    """Only what every container names has a sum."""
    parsed = [parse_resources(one) for one in many]
    named = set.intersection(*map(set, parsed))
    return format_resources({name: sum(one[name] for one in parsed) for name in sorted(named)})


def _complaints(item: Obj, requests: Amounts, limits: Amounts) -> Iterator[str]:
    type_ = item["type"]
    for name, least in sorted((item.get("min") or {}).items()):
        yield from _too_little(
            f"minimum {name} usage per {type_} is {least}", name, least, requests, limits
        )
    for name, most in sorted((item.get("max") or {}).items()):
        yield from _too_much(
            f"maximum {name} usage per {type_} is {most}", name, most, requests, limits
        )
    for name, ratio in sorted((item.get("maxLimitRequestRatio") or {}).items()):
        start = f"{name} max limit to request ratio per {type_} is {ratio}"
        yield from _too_far(start, name, ratio, requests, limits)


def _too_little(
    start: str, name: str, least: str, requests: Amounts, limits: Amounts
) -> Iterator[str]:
    if name not in requests:
        yield f"{start}.  No request is specified"
    elif parse_quantity(requests[name]) < parse_quantity(least):
        yield f"{start}, but request is {requests[name]}"
    elif name in limits and parse_quantity(limits[name]) < parse_quantity(least):
        yield f"{start}, but limit is {limits[name]}"


def _too_much(
    start: str, name: str, most: str, requests: Amounts, limits: Amounts
) -> Iterator[str]:
    if name not in limits:
        yield f"{start}.  No limit is specified"
    elif parse_quantity(limits[name]) > parse_quantity(most):
        yield f"{start}, but limit is {limits[name]}"
    elif name in requests and parse_quantity(requests[name]) > parse_quantity(most):
        yield f"{start}, but request is {requests[name]}"


def _too_far(
    start: str, name: str, ratio: str, requests: Amounts, limits: Amounts
) -> Iterator[str]:
    request = parse_quantity(requests.get(name, "0"))
    limit = parse_quantity(limits.get(name, "0"))
    if not request:
        yield f"{start}, but no request is specified or request is 0"
    elif not limit:
        yield f"{start}, but no limit is specified or limit is 0"
    elif limit * UNIT > parse_quantity(ratio) * request:
        yield f"{start}, but provided ratio is {limit / request:f}"
