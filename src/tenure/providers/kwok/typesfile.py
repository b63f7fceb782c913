"""``--instance-types-file``: instance types of your own, in Karpenter's JSON.

::

    [{"name": "m5.large", "architecture": "amd64", "operatingSystems": ["linux"],
      "resources": {"cpu": "2", "memory": "8Gi"},
      "offerings": [{"Price": 0.096, "Available": true, "Requirements": [
          {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
          {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a"]}]}]}]

``volumeLimits``, such as ``{"ebs.csi.aws.com": 25}``, is ours: how many volumes of each CSI driver a node
attaches, so that a plan knows before the CSINode is there. Karpenter skips it.

As Karpenter reads it: capitals in the names of fields do not matter, unknown fields are
skipped, ``pods`` is 110 where it is missing; older files may name ``Zone`` and
``CapacityType`` instead of ``Requirements``, and write the systems as an object; its lists of
public clouds have a type once for each architecture and system. Unlike there, ``Available: false`` means what it says, and a file with a slip in it is refused with
the path of the field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from tenure.errors import SpecError
from tenure.model.api.names import ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, OS, ZONE
from tenure.model.cloud.offering import MICRO_DOLLARS, InstanceType, Offering
from tenure.model.values.quantity import UNIT, format_resources, parse_resources
from tenure.providers.kwok.catalogue import KUBE_RESERVED, instance_type
from tenure.providers.kwok.written import (
    fields_of,
    label_key,
    label_value,
    list_of,
    read_json,
    shown,
)

#: The number of pods that Kubernetes supports on a node.
_PODS: Final = 110 * UNIT
#: More than any node has; the API server counts no further.
_AMOUNT_MAX: Final = 10**15 * UNIT
#: What a CSINode may say.
_VOLUMES_MAX: Final = 2**31 - 1
_PRICE_MAX: Final = 10**6
#: Without these no pod ever fits.
_NEEDED: Final = ("cpu", "memory", "pods")
#: Said by the type itself, or of each node alone.
_SAID_ELSEWHERE: Final = frozenset({INSTANCE_TYPE, ARCH, OS, HOSTNAME})

_TYPE_FIELDS: Final = (
    *("name", "offerings", "architecture", "operatingSystems", "resources"),
    "volumeLimits",
)
_OFFERING_FIELDS: Final = (
    *("Price", "Available", "Requirements"),
    *("Zone", "CapacityType", "ReservationCapacity"),
)
#: What an offering is sold with beside zone and capacity type: labels of its node.
_Labels = Mapping[str, str]


def load_types(path: str) -> tuple[InstanceType, ...]:
    """The types in the file. Raises ``SpecError`` with the place of the first slip."""
    return parse_types(read_json(path, "--instance-types-file"), Path(path).name)


def parse_types(written: Any, at: str) -> tuple[InstanceType, ...]:
    shapes: dict[str, _Shape] = {}
    for index, entry in enumerate(list_of(written, at, "instance types")):
        shape = _shape(entry, f"{at}[{index}]")
        known = shapes.get(shape.name)
        shapes[shape.name] = shape if known is None else _joined(known, shape)
    types = [_type(shape) for shape in shapes.values() if shape.holds_pods]
    return tuple(list_of(types, at, "instance types on which a pod can run"))


class _Shape(msgspec.Struct, frozen=True):
    """An entry of the file; or several of one name, which differ in what they run."""

    at: str
    name: str
    #: Each architecture with each operating system.
    runs: frozenset[tuple[str, str]]
    capacity: Mapping[str, int]
    offerings: tuple[Offering, ...]
    labels: _Labels
    #: By CSI driver.
    volume_limits: Mapping[str, int] = {}

    @property
    def holds_pods(self) -> bool:
        """Lists of public clouds count in whole gibibytes, so their smallest have none."""
        return all(self.capacity[name] for name in _NEEDED)


def _shape(written: Any, at: str) -> _Shape:
    fields = fields_of(written, at, _TYPE_FIELDS)
    offerings = [
        _offering(entry, f"{at}.offerings[{index}]")
        for index, entry in enumerate(list_of(fields["offerings"], f"{at}.offerings", "offerings"))
    ]
    architecture = label_value(fields["architecture"], f"{at}.architecture", "amd64 or arm64")
    systems = _systems(fields["operatingSystems"], f"{at}.operatingSystems")
    return _Shape(
        at=at,
        name=label_value(fields["name"], f"{at}.name", "a name such as m5.large"),
        runs=frozenset((architecture, system) for system in systems),
        capacity=_resources(fields["resources"], f"{at}.resources"),
        offerings=_unique([offering for offering, _ in offerings], f"{at}.offerings"),
        labels=_shared([labels for _, labels in offerings], f"{at}.offerings"),
        volume_limits=_volume_limits(fields["volumeLimits"], f"{at}.volumeLimits"),
    )


def _joined(one: _Shape, other: _Shape) -> _Shape:
    """Karpenter lists a type once for each architecture and system; here a name is one type."""
    alike = msgspec.structs.replace(other, at=one.at, runs=one.runs) == one
    if not alike or one.runs & other.runs:
        expected = "a name of its own, or all but architecture and operating system as in"
        raise SpecError(f"{other.at}.name", other.name, f"{expected} {one.at}")
    return msgspec.structs.replace(one, runs=one.runs | other.runs)


def _type(shape: _Shape) -> InstanceType:
    architectures = sorted({architecture for architecture, _ in shape.runs})
    systems = sorted({system for _, system in shape.runs})
    if len(shape.runs) < len(architectures) * len(systems):
        expected = f"each of {', '.join(architectures)} with each of {', '.join(systems)}"
        raise SpecError(f"{shape.at}.name", shape.name, expected)
    return instance_type(
        shape.name,
        architectures=architectures,
        systems=systems,
        capacity=shape.capacity,
        offerings=shape.offerings,
        labels=shape.labels,
        volume_limits=shape.volume_limits,
    )


def _systems(written: Any, at: str) -> list[str]:
    names = list(written) if isinstance(written, dict) else written
    return [
        label_value(name, f"{at}[{index}]", "linux or windows")
        for index, name in enumerate(list_of(names, at, "operating systems"))
    ]


def _resources(written: Any, at: str) -> dict[str, int]:
    if not isinstance(written, dict):
        raise SpecError(at, shown(written), "an object of quantities", 'E.g. {"cpu": "2", ...}.')
    for name, amount in written.items():
        label_key(name, at, "names of resources, such as cpu or nvidia.com/gpu")
        if not isinstance(amount, str | int | float) or isinstance(amount, bool):
            raise SpecError(f"{at}[{name}]", shown(amount), "a quantity such as 2 or 8Gi")
    resources = {"pods": _PODS, **parse_resources(written, at)}
    for name in _NEEDED:
        if name not in resources:
            raise SpecError(f"{at}[{name}]", None, "a quantity such as 2 or 8Gi")
    for name in resources:
        if expected := _wrong_amount(name, resources[name]):
            raise SpecError(f"{at}[{name}]", written.get(name), expected)
    return resources


def _volume_limits(written: Any, at: str) -> dict[str, int]:
    if written is None:
        return {}
    if not isinstance(written, dict):
        raise SpecError(at, shown(written), "an object of CSI drivers and how many volumes")
    for driver, count in written.items():
        label_key(driver, at, "names of CSI drivers, such as ebs.csi.aws.com")
        if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= _VOLUMES_MAX:
            raise SpecError(f"{at}[{driver}]", shown(count), f"a number from 0 to {_VOLUMES_MAX}")
    return dict(written)


def _wrong_amount(name: str, amount: int) -> str:
    """What was expected instead; empty where it is fine."""
    kept = KUBE_RESERVED.get(name, 0)
    if name in _NEEDED and amount <= kept and amount:
        keeps = format_resources({name: kept})[name]
        return f"a quantity above {keeps}" + (": the kubelet keeps as much" if kept else "")
    if not 0 <= amount <= _AMOUNT_MAX:
        return "a quantity from 0 to 1P"
    # Pods and devices come whole; the API server refuses a node with half of one.
    return "a whole number" if (name == "pods" or "/" in name) and amount % UNIT else ""


def _offering(written: Any, at: str) -> tuple[Offering, _Labels]:
    fields = fields_of(written, at, _OFFERING_FIELDS)
    available = fields["Available"]
    if not isinstance(available, bool | None):
        raise SpecError(f"{at}.Available", shown(available), "true or false")
    said = _requirements(fields["Requirements"], f"{at}.Requirements")
    for key, field in ((ZONE, "Zone"), (CAPACITY_TYPE, "CapacityType")):
        if fields[field] is not None:
            said.setdefault(
                key, label_value(fields[field], f"{at}.{field}", "the value of a label")
            )
        if key not in said:
            raise SpecError(f"{at}.Requirements", sorted(said), f"a requirement on {key}")
    offering = Offering(
        zone=said.pop(ZONE),
        capacity_type=said.pop(CAPACITY_TYPE),
        price=_price(fields["Price"], f"{at}.Price"),
        available=available is not False,
    )
    return offering, said


def _requirements(written: Any, at: str) -> dict[str, str]:
    if written is None:
        return {}
    values: dict[str, str] = {}
    for index, entry in enumerate(list_of(written, at, "requirements")):
        here = f"{at}[{index}]"
        fields = fields_of(entry, here, ("key", "operator", "values"))
        key = label_key(fields["key"], f"{here}.key", f"the key of a label, such as {ZONE}")
        if key in values or key in _SAID_ELSEWHERE:
            expected = "a key that is not said already: by the type, by its node, or here"
            raise SpecError(f"{here}.key", key, expected)
        listed = fields["values"]
        if fields["operator"] != "In":
            raise SpecError(f"{here}.operator", fields["operator"], "In: an offering is one thing")
        if not isinstance(listed, list) or len(listed) != 1:
            hint = "Write one offering for each."
            raise SpecError(f"{here}.values", listed, "a list of exactly one value", hint)
        values[key] = label_value(listed[0], f"{here}.values[0]", "the value of a label")
    return values


def _price(written: Any, at: str) -> int:
    is_number = isinstance(written, int | float) and not isinstance(written, bool)
    if not is_number or not 0 <= written <= _PRICE_MAX:
        raise SpecError(
            at, shown(written), "dollars per hour as a number, 0 or more", "E.g. 0.096."
        )
    return round(float(written) * MICRO_DOLLARS)


def _unique(offerings: Sequence[Offering], at: str) -> tuple[Offering, ...]:
    seen: set[tuple[str, str]] = set()
    for index, offering in enumerate(offerings):
        place = (offering.zone, offering.capacity_type)
        if place in seen:
            raise SpecError(f"{at}[{index}]", " ".join(place), "each zone and capacity type once")
        seen.add(place)
    return tuple(offerings)


def _shared(labels: Sequence[_Labels], at: str) -> _Labels:
    """What all offerings of a type say beside zone and capacity type is said of the type."""
    for index, said in enumerate(labels):
        for key in sorted({*said, *labels[0]}):
            if said.get(key) != labels[0].get(key):
                expected = (
                    f"the same {key} as in offerings[0]: "
                    f"offerings of one type differ in {ZONE} and {CAPACITY_TYPE} only"
                )
                raise SpecError(f"{at}[{index}].Requirements", said.get(key), expected)
    return labels[0]
