"""What a Node is, by the labels that clouds put on it: its type, zone, and how it was bought.

Kubernetes' own labels come first, then Karpenter's, then those of node groups of EKS, GKE and AKS.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Final, NamedTuple

from tenure.model.api.names import (
    CAPACITY_ON_DEMAND,
    CAPACITY_RESERVED,
    CAPACITY_SPOT,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    NORMALIZED_LABELS,
    REGION,
    ZONE,
)
from tenure.model.cloud.offering import MICRO_DOLLARS
from tenure.providers.kwok.labels import PRICE

#: (label, value) → capacity type.
_BOUGHT: Final = {
    ("eks.amazonaws.com/capacityType", "SPOT"): CAPACITY_SPOT,
    ("eks.amazonaws.com/capacityType", "ON_DEMAND"): CAPACITY_ON_DEMAND,
    ("eks.amazonaws.com/capacityType", "CAPACITY_BLOCK"): CAPACITY_RESERVED,
    ("cloud.google.com/gke-spot", "true"): CAPACITY_SPOT,
    ("cloud.google.com/gke-preemptible", "true"): CAPACITY_SPOT,
    ("cloud.google.com/gke-provisioning", "spot"): CAPACITY_SPOT,
    ("cloud.google.com/gke-provisioning", "preemptible"): CAPACITY_SPOT,
    ("kubernetes.azure.com/scalesetpriority", "spot"): CAPACITY_SPOT,
    ("node.kubernetes.io/lifecycle", "spot"): CAPACITY_SPOT,
}
#: Labels that say something of the type itself, by the start of their names; whatever their group.
_OF_TYPE: Final = ("instance-", "sku-", "machine-family", "gke-accelerator")
_NOT_OF_TYPE: Final = frozenset({"instance-price", "instance-id"})


class Bought(NamedTuple):
    type: str
    zone: str
    region: str
    capacity_type: str


def bought(labels: Mapping[str, str]) -> Bought:
    """Empty where no label says it; what does not say how it was bought is on demand."""
    known = {new: labels[old] for old, new in NORMALIZED_LABELS.items() if old in labels} | {
        **labels
    }
    way = known.get(CAPACITY_TYPE) or next(
        (way for (key, value), way in _BOUGHT.items() if labels.get(key) == value),
        CAPACITY_ON_DEMAND,
    )
    return Bought(known.get(INSTANCE_TYPE, ""), known.get(ZONE, ""), known.get(REGION, ""), way)


def labels_of_type(labels: Mapping[str, str]) -> dict[str, str]:
    """Those that every node of the type has."""
    found = {}
    for key, value in labels.items():
        name = key.rpartition("/")[2]
        if name.startswith(_OF_TYPE) and name not in _NOT_OF_TYPE:
            found[key] = value
    return found


def price_in(labels: Mapping[str, str]) -> int | None:
    """Micro-dollars per hour, where a label says it."""
    try:
        price = int(Decimal(labels.get(PRICE, "")) * MICRO_DOLLARS)
    except (InvalidOperation, OverflowError, ValueError):
        return None
    return price if price > 0 else None
