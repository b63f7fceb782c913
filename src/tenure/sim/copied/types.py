"""The instance types of a copied cluster: what its Nodes are, and what its cloud would sell beside them.

* A type that the list knows (a public cloud's) has its list price; spot costs what the embedded cloud models.
* A type of Karpenter's KWOK provider is as that provider has it.
* Any other type is what its Nodes say: their capacity and allocatable, and the price that a label names. Without
  such a label the price is not known. It is 0 in an ``Offering``, which is no price for Tenure: it compares nothing
  with it. Where a type with a price does, none without is launched.

Where all Nodes are of types that no list knows, only these types are sold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from tenure.errors import TenureError
from tenure.model.api.names import (
    ARCH,
    CAPACITY_ON_DEMAND,
    CAPACITY_SPOT,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    OS,
    REGION,
    ZONE,
)
from tenure.model.api.resource import CSI_NODES, NODE_POOLS, NODES
from tenure.model.cloud.offering import InstanceType, Offering
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.model.values.quantity import parse_quantity
from tenure.providers.kwok.catalogue import built_in_types
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.cloud.awslabels import aws_labels
from tenure.sim.cloud.catalogue import VOLUMES_MAX, instance_types, price_list
from tenure.sim.copied.cloudlabels import Bought, bought, labels_of_type, price_in
from tenure.sim.copied.copy import ClusterCopy


class _Seen:
    """The Nodes of one type."""

    def __init__(self) -> None:
        self.node: Obj = {}
        self.prices: dict[tuple[str, str], int | None] = {}


def types_of(copy: ClusterCopy, *, seed: int = 0) -> tuple[InstanceType, ...]:
    """What the embedded cloud sells to this cluster."""
    seen = _seen(copy)
    zones = copy.zones()
    known = {kind.name: kind for kind in _sold(seen, zones, seed)}
    limits = _volume_limits(copy)
    made_up = {kind.name for kind in built_in_types()}
    found = {
        name: _as_seen(nodes, known.get(name), zones, limits)
        for name, nodes in seen.items()
        if name not in made_up
    }
    types = [
        *found.values(),
        *(_with_limits(kind, limits) for name, kind in known.items() if name not in found),
    ]
    return tuple(_unpriced_last(types, copy))


def unpriced(types: Sequence[InstanceType]) -> list[str]:
    """Names of types that have an offering without a price."""
    return sorted(kind.name for kind in types if any(not one.price for one in kind.offerings))


def price_at(types: Mapping[str, InstanceType], where: Bought) -> int | None:
    """Micro-dollars per hour; None where it is not known."""
    kind = types.get(where.type)
    for one in kind.offerings if kind is not None else ():
        if (one.zone, one.capacity_type) == (where.zone, where.capacity_type):
            return one.price or None
    return None


def _seen(copy: ClusterCopy) -> dict[str, _Seen]:
    found: dict[str, _Seen] = {}
    for node in sorted(
        copy.of(NODES), key=lambda one: str(one["metadata"].get("creationTimestamp"))
    ):
        labels = node["metadata"].get("labels") or {}
        where = bought(labels)
        if where.type and dig(node, "status", "capacity"):
            one = found.setdefault(where.type, _Seen())
            one.node = node  # The newest: it is what the next one will be like.
            one.prices.setdefault((where.zone, where.capacity_type), price_in(labels))
    return found


def _sold(seen: Mapping[str, _Seen], zones: Sequence[str], seed: int) -> Iterator[InstanceType]:
    """By those who know the types of some Nodes, or of a cluster that has none yet."""
    listed = {shape.name: shape for shape in price_list()}
    if any(name in listed for name in seen) or not seen:
        for kind in instance_types(tuple(listed.values()), seed=seed, zones=zones):
            yield _labelled(kind, aws_labels(kind, listed[kind.name].cpu), {REGION})
    if any(kind.name in seen for kind in built_in_types()):
        yield from built_in_types()


def _labelled(
    kind: InstanceType, labels: Mapping[str, str], without: frozenset[str] | set[str] = frozenset()
) -> InstanceType:
    kept = {key: value for key, value in kind.requirements.labels().items() if key not in without}
    fixed = {**kept, **labels}
    several = [
        Requirement.of(ZONE, "In", sorted({one.zone for one in kind.offerings})),
        Requirement.of(CAPACITY_TYPE, "In", sorted({one.capacity_type for one in kind.offerings})),
    ]
    for key in (ZONE, CAPACITY_TYPE):
        fixed.pop(key, None)
    requirements = Requirements.from_labels(fixed).add(*several)
    return msgspec.structs.replace(kind, requirements=requirements)


def _as_seen(
    seen: _Seen, known: InstanceType | None, zones: Sequence[str], limits: Mapping[str, int]
) -> InstanceType:
    """The type as its newest Node has it; what it costs by labels, else as it is listed."""
    labels: dict[str, str] = seen.node["metadata"].get("labels") or {}
    where = bought(labels)
    status = seen.node["status"]
    capacity = _amounts(status.get("capacity")) if known is None else dict(known.capacity)
    allocatable = _amounts(status.get("allocatable") or status.get("capacity"))
    fixed = labels_of_type(labels) | {INSTANCE_TYPE: where.type}
    fixed |= {key: labels[key] for key in (ARCH, OS) if key in labels}
    if where.region:
        fixed[REGION] = where.region
    if known is not None:
        fixed = {**known.requirements.labels(), **fixed}
    kind = InstanceType(
        name=where.type,
        requirements=Requirements.from_labels({}),
        capacity=capacity,
        allocatable=allocatable,
        offerings=tuple(_offerings(seen, known, zones)),
        volume_limits={**limits, **(known.volume_limits if known is not None else {})},
    )
    return _labelled(kind, fixed)


def _offerings(seen: _Seen, known: InstanceType | None, zones: Sequence[str]) -> Iterator[Offering]:
    listed = {} if known is None else {(o.zone, o.capacity_type): o.price for o in known.offerings}
    places = listed or {(zone, way): 0 for zone in zones for way in _ways(seen)}
    for zone, way in sorted({*places, *seen.prices}):
        price = seen.prices.get((zone, way)) or places.get((zone, way)) or 0
        yield Offering(zone=zone, capacity_type=way, price=price)


def _ways(seen: _Seen) -> list[str]:
    return sorted({CAPACITY_ON_DEMAND, CAPACITY_SPOT, *(way for _, way in seen.prices)})


def _amounts(resources: Mapping[str, str] | None) -> dict[str, int]:
    found = {}
    for name, amount in (resources or {}).items():
        try:
            found[name] = parse_quantity(str(amount))
        except TenureError:
            continue  # Others of its amounts can be read.
    return found


def _volume_limits(copy: ClusterCopy) -> dict[str, int]:
    """By driver, how many volumes a Node of this cluster attaches."""
    found: dict[str, int] = {}
    for one in copy.of(CSI_NODES):
        for driver in dig(one, "spec", "drivers") or ():
            count = dig(driver, "allocatable", "count")
            name = driver.get("name", "")
            found[name] = max(found.get(name, 0), count if isinstance(count, int) else VOLUMES_MAX)
    return found


def _with_limits(kind: InstanceType, limits: Mapping[str, int]) -> InstanceType:
    if not limits:
        return kind
    return msgspec.structs.replace(kind, volume_limits={**limits, **kind.volume_limits})


def _unpriced_last(types: Sequence[InstanceType], copy: ClusterCopy) -> Iterator[InstanceType]:
    """Without a price a type would count as the cheapest: it is sold where nothing else would do."""
    priced = [kind for kind in types if all(one.price for one in kind.offerings)]
    for kind in types:
        if kind in priced or not priced or _is_needed(kind, priced, copy):
            yield kind
            continue
        offerings = tuple(
            msgspec.structs.replace(one, available=bool(one.price)) for one in kind.offerings
        )
        yield msgspec.structs.replace(kind, offerings=offerings)


def _is_needed(kind: InstanceType, priced: Sequence[InstanceType], copy: ClusterCopy) -> bool:
    """Whether a pool admits the type and none that has a price."""
    for pool in copy.of(NODE_POOLS):
        try:
            given = dig(pool, "spec", "template", "spec", "requirements") or ()
            wanted = Requirements.of(
                Requirement.of(one["key"], one["operator"], one.get("values") or ())
                for one in given
            )
        except (TenureError, AttributeError, KeyError, TypeError):
            continue
        admitted = [
            one.name
            for one in (kind, *priced)
            if one.requirements.is_compatible(wanted, allow_undefined=wanted)
        ]
        if admitted == [kind.name]:
            return True
    return False
