"""Every offering of a cloud, cheapest first.

Ties are broken by name, so that the same request launches the same instance type in every run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from tenure.model.api.names import CAPACITY_TYPE, ZONE
from tenure.model.cloud.offering import InstanceType, Offering, OfferingKey
from tenure.model.matching.requirements import Requirements
from tenure.model.values.quantity import fits


class Offer(msgspec.Struct, frozen=True):
    instance_type: InstanceType
    offering: Offering

    @property
    def key(self) -> OfferingKey:
        return (self.instance_type.name, self.offering.zone, self.offering.capacity_type)

    @property
    def labels(self) -> dict[str, str]:
        """What a node bought this way is labelled with."""
        offering = self.offering
        place = {ZONE: offering.zone, CAPACITY_TYPE: offering.capacity_type}
        return self.instance_type.requirements.labels() | place


class Market:
    def __init__(self, types: Sequence[InstanceType]) -> None:
        self.types = tuple(types)
        offers = (Offer(kind, offering) for kind in self.types for offering in kind.offerings)
        self._offers = sorted(offers, key=lambda offer: (offer.offering.price, offer.key))

    def suitable(self, wanted: Requirements, requests: Mapping[str, int]) -> Iterator[Offer]:
        """Offers that satisfy the requirements and hold the requests, cheapest first.

        Those that are not available are among them: where nothing else is found, a refusal can name
        them. A key that the type says nothing about (a pool's own label) is not the cloud's
        concern.
        """
        zone, capacity_type = wanted.allowed(ZONE), wanted.allowed(CAPACITY_TYPE)
        verdicts: dict[str, bool] = {}
        for offer in self._offers:
            kind, offering = offer.instance_type, offer.offering
            if kind.name not in verdicts:
                compatible = kind.requirements.is_compatible(wanted, allow_undefined=wanted)
                verdicts[kind.name] = compatible and fits(requests, kind.allocatable)
            if (
                verdicts[kind.name]
                and zone.has(offering.zone)
                and capacity_type.has(offering.capacity_type)
            ):
                yield offer
