"""What admission makes of a pod's resources in a namespace with LimitRanges.

As the API server's LimitRanger: first a limit without a request becomes the request; then each
LimitRange of the namespace fills in what is still missing, container by container (``default`` and
``defaultRequest`` of type ``Container``); then ``min``, ``max`` and ``maxLimitRequestRatio`` are
checked for every container, and for all of them together (type ``Pod``). A pod that breaks one
is refused. The API server completes a LimitRange when it stores it (a ``max`` is also the default
limit, a default limit also the default request), so nothing is completed here.

A LimitRange that cannot be read is ignored: it only affects how much capacity is reserved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from tenure.errors import SpecError
from tenure.model.api.pod import Container, PodSpec, ResourceRequirements
from tenure.model.api.workload import LimitRange, LimitRangeItem
from tenure.model.values.quantity import UNIT, parse_resources

Amounts = Mapping[str, int]

CONTAINER: Final = "Container"
POD: Final = "Pod"


def admitted(spec: PodSpec, ranges: Mapping[str, LimitRange]) -> PodSpec | None:
    """The pod's spec as it will be created; None if admission refuses it."""
    for _, one in sorted(ranges.items()):
        spec = msgspec.structs.replace(
            spec,
            containers=tuple(_filled(container, one) for container in spec.containers),
            init_containers=tuple(_filled(container, one) for container in spec.init_containers),
        )
        if any(_refuses(item, spec) for item in one.spec.limits):
            return None
    return spec


def _filled(container: Container, one: LimitRange) -> Container:
    limits: dict[str, str] = {}
    requests: dict[str, str] = {}
    for item in one.spec.limits:
        if item.type == CONTAINER:
            limits |= item.default
            requests |= item.default_request
    written = container.resources
    resources = ResourceRequirements(
        requests={**requests, **written.limits, **written.requests},
        limits={**limits, **written.limits},
    )
    return msgspec.structs.replace(container, resources=resources)


def _refuses(item: LimitRangeItem, spec: PodSpec) -> bool:
    """Init containers get defaults like the others, but are not checked."""
    try:
        if item.type == CONTAINER:
            return any(_breaks(item, *_amounts(container)) for container in spec.containers)
        if item.type == POD:
            requests, limits = zip(*map(_amounts, spec.containers), strict=True)
            return _breaks(item, _sum(requests), _sum(limits))
    except (SpecError, ValueError):
        return False
    return False


def _amounts(container: Container) -> tuple[Amounts, Amounts]:
    resources = container.resources
    return parse_resources(resources.requests), parse_resources(resources.limits)


def _sum(many: Sequence[Amounts]) -> Amounts:
    """Only resources that every container names have a sum."""
    named = set.intersection(*(set(one) for one in many))
    return {name: sum(one[name] for one in many) for name in named}


def _breaks(item: LimitRangeItem, requests: Amounts, limits: Amounts) -> bool:
    def some(bounds: Mapping[str, str], broken: Callable[[str, int], bool]) -> bool:
        return any(broken(name, bound) for name, bound in parse_resources(bounds).items())

    def too_little(name: str, least: int) -> bool:
        return name not in requests or requests[name] < least or limits.get(name, least) < least

    def too_much(name: str, most: int) -> bool:
        return name not in limits or limits[name] > most or requests.get(name, 0) > most

    return some(item.min, too_little) or some(item.max, too_much) or _ratio(item, requests, limits)


def _ratio(item: LimitRangeItem, requests: Amounts, limits: Amounts) -> bool:
    """Whether a limit is more than ``ratio`` times its request; a ratio counts units."""
    for name, ratio in parse_resources(item.max_limit_request_ratio).items():
        request, limit = requests.get(name, 0), limits.get(name, 0)
        if not request or not limit or limit * UNIT > ratio * request:
            return True
    return False
