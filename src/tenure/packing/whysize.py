"""A pod that is too large for every instance type: of what it asks too much, and which DaemonSets take it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tenure.packing.demand.classes import PodClass
from tenure.packing.facts import Cause, DaemonsTake, TooLarge, TooLargeTogether
from tenure.packing.offers.catalogue import Catalogue
from tenure.packing.refusals.tally import free_of
from tenure.packing.refusals.texts import amount_text

#: Pods may request thousands of resources that no instance type has; so many are named.
NAMED: Final = 3


def too_large(one: PodClass, catalogue: Catalogue, types: Sequence[int]) -> Cause:
    units = catalogue.units
    sizes = [
        (
            units.names[i],
            amount * units.sizes[i],
            max(free_of(catalogue, type_, i) for type_ in types),
        )
        for i, amount in one.wants
    ]
    sizes = sorted([*sizes, *((*each, 0) for each in one.missing[:1])])
    wanting = [each for each in sizes if each[2] < each[1]]
    if not wanting:
        return TooLargeTogether(tuple((amount_text(name, n), name) for name, n, _ in sizes))
    name, amount, largest = wanting[0]
    missing, more = _missing(one, but=name)
    return TooLarge(
        name,
        amount_text(name, amount),
        amount_text(name, max(largest, 0)),
        missing,
        more,
        _taken(catalogue, types, name, amount),
        tuple(
            (amount_text(other, n), other, amount_text(other, most))
            for other, n, most in wanting[1 : NAMED + 1]
            if most > 0
        ),
    )


def _taken(
    catalogue: Catalogue, types: Sequence[int], name: str, wanted: int
) -> DaemonsTake | None:
    """Which DaemonSets leave too little of a type that would be large enough without them."""
    sizes = [(catalogue.types[i].allocatable.get(name, 0), i) for i in types]
    size, largest = max(sizes, default=(0, 0))
    daemons = [(d.requests.get(name, 0), d.name) for d in catalogue.daemons_on(largest)]
    daemons = sorted(((nano, by) for nano, by in daemons if nano), key=lambda d: (-d[0], d[1]))
    if wanted > size or not daemons:
        return None
    return DaemonsTake(
        tuple(by for _, by in daemons[:NAMED]),
        max(len(daemons) - NAMED, 0),
        amount_text(name, sum(nano for nano, _ in daemons)),
        name,
        catalogue.types[largest].name,
    )


def _missing(one: PodClass, *, but: str) -> tuple[tuple[str, ...], int]:
    """The first few of the resources that nothing offers, without ``but``; how many more."""
    told = int(any(name == but for name, _ in one.missing[:1]))
    names = tuple(name for name, _ in one.missing[told : told + NAMED])
    return names, len(one.missing) - told - len(names)
