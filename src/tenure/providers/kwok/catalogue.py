"""The instance types that Karpenter's KWOK provider makes up, and what every type has.

12 sizes × 3 families × 2 operating systems × 2 architectures, each sold in 4 zones, on
demand and as spot: ``c-4x-amd64-linux`` has 4 cpus and 2 GiB for each of them.

* price      2.5 cents per cpu and a tenth of a cent per gigabyte (10**9 bytes), per hour;
             spot costs 70 % of it. Rounded to micro-dollars once, at the end;
* pods       16 per cpu, at most 1024;
* overhead   of every type, those of a file included: 100m cpu and 10Mi memory for the kubelet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Final

from tenure.model.api.names import (
    ARCH,
    CAPACITY_ON_DEMAND,
    CAPACITY_SPOT,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    OS,
    ZONE,
)
from tenure.model.cloud.offering import MICRO_DOLLARS, InstanceType, Offering
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.model.values.quantity import UNIT, format_resources
from tenure.providers.kwok.labels import (
    INSTANCE_CPU,
    INSTANCE_FAMILY,
    INSTANCE_MEMORY,
    INSTANCE_SIZE,
)

CPUS: Final = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256)
#: Family → GiB per cpu: for computing, standard, with much memory.
FAMILIES: Final = {"c": 2, "s": 4, "m": 8}
SYSTEMS: Final = ("linux", "windows")
ARCHITECTURES: Final = ("amd64", "arm64")
ZONES: Final = ("test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d")

_MIB: Final = (1 << 20) * UNIT
_GIB: Final = 1024 * _MIB
_DISK: Final = 20 * _GIB
_PODS_PER_CPU: Final = 16
_PODS_MAX: Final = 1024
KUBE_RESERVED: Final = {"cpu": UNIT // 10, "memory": 10 * _MIB}

_DOLLARS_PER_CPU: Final = Fraction(25, 1000)
_DOLLARS_PER_BYTE: Final = Fraction(1, 1000 * 10**9)
_SPOT_SHARE: Final = Fraction(7, 10)

#: Names of the kind ``m5.2xlarge`` carry their size; the size of others is their cpus.
_SIZED: Final = re.compile(r"\w+\.(nano|micro|small|medium|large|\d*xlarge|metal)")
_FAMILY_END: Final = re.compile(r"[.-]")


@lru_cache(maxsize=1)
def built_in_types() -> tuple[InstanceType, ...]:
    """The instance types where no file is given."""
    every = product(CPUS, FAMILIES.items(), SYSTEMS, ARCHITECTURES)
    return tuple(
        _built_in(cpu, family, gib_per_cpu * cpu, system, architecture)
        for cpu, (family, gib_per_cpu), system, architecture in every
    )


def _built_in(cpu: int, family: str, gib: int, system: str, architecture: str) -> InstanceType:
    capacity = {
        "cpu": cpu * UNIT,
        "memory": gib * _GIB,
        "pods": min(cpu * _PODS_PER_CPU, _PODS_MAX) * UNIT,
        "ephemeral-storage": _DISK,
    }
    return instance_type(
        f"{family}-{cpu}x-{architecture}-{system}",
        architectures=(architecture,),
        systems=(system,),
        capacity=capacity,
        offerings=tuple(_offerings(cpu, gib << 30)),
    )


def _offerings(cpu: int, memory: int) -> Iterator[Offering]:
    price = cpu * _DOLLARS_PER_CPU + memory * _DOLLARS_PER_BYTE
    shares = {CAPACITY_SPOT: _SPOT_SHARE, CAPACITY_ON_DEMAND: Fraction(1)}
    for zone, (capacity_type, share) in product(ZONES, shares.items()):
        micro = round(price * share * MICRO_DOLLARS)
        yield Offering(zone=zone, capacity_type=capacity_type, price=micro)


def instance_type(
    name: str,
    *,
    architectures: Sequence[str],
    systems: Sequence[str],
    capacity: Mapping[str, int],
    offerings: tuple[Offering, ...],
    labels: Mapping[str, str] | None = None,
    volume_limits: Mapping[str, int] | None = None,
) -> InstanceType:
    """A type with its labels and its overhead; the last two are what a file says on top."""
    written = format_resources({key: capacity.get(key, 0) for key in ("cpu", "memory")})
    fixed = {
        **(labels or {}),
        INSTANCE_TYPE: name,
        INSTANCE_SIZE: size_of(name, written["cpu"]),
        INSTANCE_FAMILY: family_of(name),
        INSTANCE_CPU: written["cpu"],
        INSTANCE_MEMORY: written["memory"],
    }
    return InstanceType(
        name=name,
        requirements=Requirements.from_labels(fixed).add(
            _one_of(ARCH, architectures),
            _one_of(OS, systems),
            _one_of(ZONE, (offering.zone for offering in offerings)),
            _one_of(CAPACITY_TYPE, (offering.capacity_type for offering in offerings)),
        ),
        capacity=dict(capacity),
        allocatable={
            key: max(0, amount - KUBE_RESERVED.get(key, 0)) for key, amount in capacity.items()
        },
        offerings=offerings,
        volume_limits=dict(volume_limits or {}),
    )


def _one_of(key: str, values: Iterable[str]) -> Requirement:
    return Requirement.of(key, "In", sorted(set(values)))


def size_of(name: str, cpu: str) -> str:
    sized = _SIZED.fullmatch(name)
    return sized[1] if sized else cpu


def family_of(name: str) -> str:
    """What stands before the first dot or dash; for ``D4as`` and the like the first letter."""
    family, *rest = _FAMILY_END.split(name, maxsplit=1)
    return family if rest and family else name[:1]
