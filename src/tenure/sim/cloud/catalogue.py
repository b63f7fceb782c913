"""The instance types of the embedded cloud: what there is, how big, and for how much.

Shapes and list prices are a public cloud's (``data/instance-types.csv``). Ours to model:

* zones              every type is sold in every zone;
* spot               30 to 70 % of the list price, drawn per type and zone from the seed, so
                     that a longer catalogue does not move the prices of a shorter one;
* volumes            every machine attaches as many;
* GPUs               counts of the common families, as the extended resource of their plugin;
* what pods may use  capacity less a reserve for the kubelet and the system that grows more
                     slowly than the machine, in the steps managed clusters commonly use.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from importlib import resources
from random import Random
from typing import Final

import msgspec

from tenure.errors import SpecError
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
from tenure.model.cloud.offering import MICRO_DOLLARS, InstanceType, Offering
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.model.values.quantity import UNIT, parse_quantity, subtract
from tenure.providers.kwok.labels import (
    INSTANCE_CPU,
    INSTANCE_FAMILY,
    INSTANCE_MEMORY,
    INSTANCE_SIZE,
)
from tenure.sim.actors.nodestatus import STORAGE_DRIVER

REGION_NAME: Final = "embedded"
DEFAULT_ZONES: Final = ("zone-a", "zone-b", "zone-c")

#: What a pool asks for by the number of cpus.
CPU_LABEL: Final = INSTANCE_CPU

#: How many volumes a node attaches: what such machines have left beside their own disks.
VOLUMES_MAX: Final = 25

GPU: Final = "nvidia.com/gpu"

#: The short catalogue: the most common families, in common sizes.
_COMMON_FAMILIES: Final = ("c7i", "m7i", "r7i", "c7g", "m7g", "r7g")
_COMMON_SIZES: Final = (
    *("large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge"),
)
_COMMON_EXTRA: Final = (
    *("t3.small", "t3.medium", "t3.large", "t3.xlarge", "t3.2xlarge"),
    *("t4g.small", "t4g.medium", "t4g.large", "t4g.xlarge", "t4g.2xlarge"),
    *("c7i.24xlarge", "m7i.24xlarge", "r7i.24xlarge"),
    *("g5.xlarge", "g5.2xlarge", "g5.12xlarge", "g5.48xlarge"),
)
COMMON: Final = frozenset(
    {f"{family}.{size}" for family in _COMMON_FAMILIES for size in _COMMON_SIZES}
    | set(_COMMON_EXTRA)
)

#: GPUs per size, for families in which the size alone decides.
_FOUR_EIGHT: Final = {"12xlarge": 4, "24xlarge": 4, "48xlarge": 8, "metal": 8}
_GPUS: Final[Mapping[str, Mapping[str, int]]] = {
    "g4dn": _FOUR_EIGHT,
    "g5": _FOUR_EIGHT,
    "g6": _FOUR_EIGHT,
    "g6e": _FOUR_EIGHT,
    "p2": {"8xlarge": 8, "16xlarge": 16},
    "p3": {"8xlarge": 4, "16xlarge": 8},
    "p3dn": {"24xlarge": 8},
    "p4d": {"24xlarge": 8},
    "p5": {"48xlarge": 8},
}

#: Reserved per whole cpu or GiB, as (up to how many, nano-units each); the last has no end.
_MIB: Final = (1 << 20) * UNIT
_GIB: Final = 1024 * _MIB
_CPU_RESERVE: Final = (
    (1, UNIT * 60 // 1000),
    (2, UNIT * 10 // 1000),
    (4, UNIT * 5 // 1000),
    (None, UNIT * 5 // 2000),
)
_MEMORY_RESERVE: Final = (
    (4, 256 * _MIB),
    (8, 205 * _MIB),
    (16, 102 * _MIB),
    (128, 61 * _MIB),
    (None, 20 * _MIB),
)
_EVICTION_THRESHOLD: Final = 100 * _MIB
_DISK: Final = 20 * _GIB

_SPOT_PERCENT: Final = (30, 70)


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the price list."""

    name: str
    arch: str
    cpu: int
    memory: str
    pods: int
    #: Micro-dollars per hour, on demand.
    price: int

    @property
    def family(self) -> str:
        return self.name.partition(".")[0]

    @property
    def size(self) -> str:
        return self.name.partition(".")[2]

    @property
    def gpus(self) -> int:
        sizes = _GPUS.get(self.family)
        return 0 if sizes is None else sizes.get(self.size, 1)


@lru_cache(maxsize=1)
def price_list() -> tuple[Shape, ...]:
    """Every shape that can run a node, by name. Those listed with 0 memory cannot."""
    text = resources.files("tenure.sim").joinpath("data/instance-types.csv").read_text("utf-8")
    rows = csv.DictReader(text.splitlines())
    shapes = (
        Shape(
            name=row["name"],
            arch=row["arch"],
            cpu=int(row["cpu"]),
            memory=row["memory"],
            pods=int(row["pods"]),
            price=int(Decimal(row["on_demand_usd_per_hour"]) * MICRO_DOLLARS),
        )
        for row in rows
        if row["memory"] != "0"
    )
    return tuple(sorted(shapes, key=lambda shape: shape.name))


def select(names: str | Sequence[str] = "common") -> tuple[Shape, ...]:
    """``common`` (about 60 shapes), ``all``, or the shapes with these names."""
    if names == "all":
        return price_list()
    wanted = (
        COMMON if names == "common" else frozenset((names,) if isinstance(names, str) else names)
    )
    shapes = tuple(shape for shape in price_list() if shape.name in wanted)
    if unknown := sorted(wanted - {shape.name for shape in shapes}):
        expected = "'common', 'all' or names of instance types"
        raise SpecError("catalogue", unknown[0], expected, "For example m7i.large.")
    return shapes


def instance_types(
    shapes: Sequence[Shape], *, seed: int, zones: Sequence[str] = DEFAULT_ZONES
) -> tuple[InstanceType, ...]:
    """What the cloud sells, with the prices of that seed."""
    return tuple(_instance_type(shape, seed=seed, zones=zones) for shape in shapes)


def _instance_type(shape: Shape, *, seed: int, zones: Sequence[str]) -> InstanceType:
    capacity = _capacity(shape)
    labels = {
        INSTANCE_TYPE: shape.name,
        ARCH: shape.arch,
        OS: "linux",
        REGION: REGION_NAME,
        INSTANCE_FAMILY: shape.family,
        INSTANCE_SIZE: shape.size,
        INSTANCE_CPU: str(shape.cpu),
        INSTANCE_MEMORY: shape.memory,
    }
    return InstanceType(
        name=shape.name,
        requirements=Requirements.from_labels(labels).add(
            Requirement.of(ZONE, "In", zones),
            Requirement.of(CAPACITY_TYPE, "In", (CAPACITY_ON_DEMAND, CAPACITY_SPOT)),
        ),
        capacity=capacity,
        allocatable=subtract(capacity, reserve(shape.cpu, capacity["memory"])),
        offerings=tuple(_offerings(shape, seed=seed, zones=zones)),
        volume_limits={STORAGE_DRIVER: VOLUMES_MAX},
    )


def _capacity(shape: Shape) -> dict[str, int]:
    capacity = {
        "cpu": shape.cpu * UNIT,
        "memory": parse_quantity(shape.memory),
        "ephemeral-storage": _DISK,
        "pods": shape.pods * UNIT,
    }
    if shape.gpus:
        capacity[GPU] = shape.gpus * UNIT
    return capacity


def _offerings(shape: Shape, *, seed: int, zones: Sequence[str]) -> Iterator[Offering]:
    for zone in zones:
        yield Offering(zone=zone, capacity_type=CAPACITY_ON_DEMAND, price=shape.price)
        percent = Random(f"{seed}/spot/{shape.name}/{zone}").randint(*_SPOT_PERCENT)
        price = shape.price * percent // 100
        yield Offering(zone=zone, capacity_type=CAPACITY_SPOT, price=price)


def reserve(cpu: int, memory: int) -> dict[str, int]:
    """What pods may not use on such a machine; ``memory`` and the answer in nano-units."""
    return {
        "cpu": _stepped(cpu, _CPU_RESERVE),
        "memory": _stepped(memory // _GIB, _MEMORY_RESERVE) + _EVICTION_THRESHOLD,
    }


def _stepped(amount: int, steps: Sequence[tuple[int | None, int]]) -> int:
    reserved, below = 0, 0
    for up_to, each in steps:
        end = amount if up_to is None else min(amount, up_to)
        reserved += max(0, end - below) * each
        below = end
    return reserved
