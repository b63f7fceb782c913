"""Instance types and what they cost where.

Money is integer micro-dollars per hour: sums of floats would make ties and totals
depend on their order.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tenure.model.matching.requirements import Requirements

MICRO_DOLLARS = 1_000_000


class Offering(msgspec.Struct, frozen=True, kw_only=True):
    """A way to buy an instance type: in this zone, on these terms, at this price."""

    zone: str
    capacity_type: str
    #: Micro-dollars per hour.
    price: int
    available: bool = True
    #: Of reserved capacity: how many instances the cluster may have of it, those that run included; None: any
    #: number. Packing is given what the claims that there are leave of it.
    instances: int | None = None


class InstanceType(msgspec.Struct, frozen=True, kw_only=True):
    """An instance type. ``capacity`` and ``allocatable`` are in nano-units (see quantity)."""

    name: str
    #: What a node of this type may be labelled with: arch, os, zones, capacity types …
    requirements: Requirements
    capacity: Mapping[str, int]
    allocatable: Mapping[str, int]
    offerings: tuple[Offering, ...]
    #: By CSI driver, how many volumes a node of the type can attach; absent: not known.
    volume_limits: Mapping[str, int] = {}


#: Names one offering: (instance type, zone, capacity type).
OfferingKey = tuple[str, str, str]


def format_price(micro_dollars: int) -> str:
    """``$0.0816/h``."""
    return f"${micro_dollars / MICRO_DOLLARS:.4f}/h"


def format_known_price(micro_dollars: int) -> str:
    """Of an offering or an instance: 0 is no price, and is not shown as one."""
    return format_price(micro_dollars) if micro_dollars else "price unknown"
