"""In which domains a new node for a class can be had: values of node labels that pools sell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final

import msgspec

from tenure.model.api.names import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, OS, ZONE
from tenure.model.api.taints import untolerated
from tenure.model.matching.requirements import Requirement
from tenure.packing.demand.asked import Signature
from tenure.packing.demand.classes import PodClass, Wants
from tenure.packing.demand.requests import HostPort
from tenure.packing.index.domains import CERTAINLY, NOT, PERHAPS, Filter
from tenure.packing.offers.catalogue import Catalogue
from tenure.packing.offers.narrowing import Narrowing

#: Keys and values that a node must have.
Pins = tuple[tuple[str, str], ...]
#: Labels that follow from the offer that is bought.
OFFERED: Final = (ZONE, CAPACITY_TYPE, ARCH, OS, INSTANCE_TYPE)
#: Combinations of values of several keys that are looked at, for one class.
COMBINATIONS_MAX: Final = 256


class Sites:
    """All pools, asked for domains."""

    def __init__(self, catalogues: Sequence[Catalogue]) -> None:
        self._catalogues = catalogues
        self._entrances: dict[tuple[Signature, Pins], list[tuple[Catalogue, Narrowing]]] = {}
        self._narrowed: dict[tuple[Signature, Pins, Pins, tuple[str, ...]], Signature] = {}
        self._may_have: dict[str, bool] = {}
        self._options: dict[tuple[Signature, tuple[str, ...]], list[Pins]] = {}
        self._fitting: dict[tuple[object, ...], list[Pins]] = {}
        self._holds: dict[tuple[Wants, tuple[HostPort, ...]], dict[int, int]] = {}

    def options(self, one: PodClass, keys: tuple[str, ...]) -> list[Pins]:
        """Values of these keys that a new node for the class could have."""
        signature = one.demand.signature
        size = signature, keys, one.wants, one.demand.ports
        fitting = self._fitting.get(size)
        if fitting is None:
            found = self._options.get((signature, keys))
            if found is None:
                found = self._options[signature, keys] = list(self._combinations(signature, keys))
            fitting = self._fitting[size] = [pins for pins in found if self._fits(one, pins)]
        return fitting

    def may_have(self, key: str) -> bool:
        """Whether a new node may have the label."""
        known = self._may_have.get(key)
        if known is None:
            known = self._may_have[key] = any(
                key in OFFERED or key in pool.known_keys or key in pool.defined
                for pool in self._catalogues
            )
        return known

    def for_sale(self, one: PodClass) -> dict[str, list[str]]:
        """By key that the class is spread over: the domains in which a new node can be had."""
        keys = {spread.group.key for spread in one.rules.spreads if not spread.group.on_hostname}
        return {key: [pins[0][1] for pins in self.options(one, (key,))] for key in keys}

    def _combinations(self, signature: Signature, keys: tuple[str, ...]) -> Iterator[Pins]:
        seen: set[Pins] = set()
        for catalogue, narrowing in self._entering(signature, ()):
            values = [sorted(values_of(catalogue, narrowing, key)) for key in keys]
            for number, combination in enumerate(product(*values)):
                pins = tuple(zip(keys, combination, strict=True))
                if number >= COMBINATIONS_MAX:
                    break
                if pins not in seen and self._entering(signature, pins):
                    seen.add(pins)
        yield from sorted(seen)

    def _entering(self, signature: Signature, pins: Pins) -> list[tuple[Catalogue, Narrowing]]:
        found = self._entrances.get((signature, pins))
        if found is None:
            pinned = self.pinned(signature, pins)
            found = self._entrances[signature, pins] = [
                (catalogue, narrowing)
                for catalogue in self._catalogues
                for wanted in pinned.alternatives
                if (narrowing := catalogue.entrance(pinned, wanted)) is not None and narrowing.sold
            ]
        return found

    def passes(self, filter_: Filter, signature: Signature, pins: Pins) -> int:
        """Whether nodes for such pods, with these labels, pass the filter of a spread."""
        found = {
            _passes(filter_, catalogue, narrowing)
            for catalogue, narrowing in self._entering(signature, pins)
        }
        if not found:
            return NOT
        return found.pop() if len(found) == 1 else PERHAPS

    def _fits(self, one: PodClass, pins: Pins) -> bool:
        """Whether some type that is sold there holds a pod of the class."""
        holding = self._holding(one)
        return any(
            narrowing.sold & holding[id(catalogue)]
            for catalogue, narrowing in self._entering(one.demand.signature, pins)
        )

    def _holding(self, one: PodClass) -> dict[int, int]:
        """By catalogue, the types that hold a pod of the class."""
        key = one.wants, one.demand.ports
        found = self._holds.get(key)
        if found is None:
            found = self._holds[key] = {id(c): _holding(c, one) for c in self._catalogues}
        return found

    def without(self, one: PodClass, keys: tuple[str, ...]) -> PodClass:
        """The class, for nodes that have none of these labels."""
        signature = self.pinned(one.demand.signature, (), absent=keys)
        demand = msgspec.structs.replace(one.demand, signature=signature)
        return msgspec.structs.replace(one, demand=demand)

    def pinned(
        self, signature: Signature, pins: Pins, off: Pins = (), absent: tuple[str, ...] = ()
    ) -> Signature:
        """The signature with these values, without those, and without these labels."""
        if not pins and not off and not absent:
            return signature
        known = self._narrowed.get((signature, pins, off, absent))
        if known is None:
            more = [Requirement.of(key, "In", (value,)) for key, value in pins]
            values: dict[str, list[str]] = {}
            for key, value in off:
                values.setdefault(key, []).append(value)
            more += [Requirement.of(key, "NotIn", there) for key, there in values.items()]
            more += [Requirement.of(key, "DoesNotExist") for key in absent]
            narrowed = (wanted.add(*more) for wanted in signature.alternatives)
            possible = tuple(w for w in narrowed if not any(w[one.key].impossible for one in more))
            known = self._narrowed[signature, pins, off, absent] = msgspec.structs.replace(
                signature, alternatives=possible
            )
        return known


def _passes(filter_: Filter, catalogue: Catalogue, narrowing: Narrowing) -> int:
    tolerations = filter_.tolerations
    if tolerations is not None and untolerated(catalogue.template.taints, tolerations):
        return NOT
    if filter_.alternatives is None:
        return CERTAINLY
    found = NOT
    for wanted in filter_.alternatives:
        narrowed = catalogue.narrow(narrowing, wanted)
        if narrowed is None or not narrowed.sold:
            continue
        found = PERHAPS
        undecided = [
            key for key in wanted if narrowed.requirements[key] != narrowing.requirements.get(key)
        ]
        same = narrowed.sold == narrowing.sold and narrowed.places == narrowing.places
        if not undecided or (same and all(key in OFFERED for key in undecided)):
            return CERTAINLY
    return found


def values_of(catalogue: Catalogue, narrowing: Narrowing, key: str) -> set[str]:
    """What nodes of the pool may have as the label's value, as far as that can be listed."""
    if key in (ZONE, CAPACITY_TYPE):
        return {place[0 if key == ZONE else 1] for place in narrowing.places}
    wanted = narrowing.requirements.allowed(key)
    known = catalogue.values_of(key)
    values = known if known is not None else ()
    if not wanted.complement:
        return {v for v in wanted.listed if known is None or v in known} or set(wanted.listed)
    return {value for value in values if wanted.has(value)}


def _holding(catalogue: Catalogue, one: PodClass) -> int:
    used = [0] * len(catalogue.units.names)
    for index, amount in one.wants:
        used[index] = amount
    return catalogue.holding(used) & catalogue.clear_of(one.demand.ports)
