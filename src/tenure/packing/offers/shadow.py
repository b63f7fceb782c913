"""What a unit of each resource is worth: the shadow prices of covering all requests with instances.

Buying fractions of instances for all that is asked for is a linear program. Its dual says how much
each resource is worth: as much as possible in total, without any instance being worth more than it
costs. A pod's worth is the sum over its requests, and an instance is well filled when the worth of
its pods comes close to its price. There are few resources, so the simplex method needs few steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import nsmallest
from typing import Final

#: Smaller numbers are rounding errors of larger ones.
_TINY: Final = 1e-12
#: More steps than resources are hardly ever needed; a degenerate program is left as it is.
_STEPS_MAX: Final = 64
#: Offers that are kept of those that are cheapest for one resource.
_KEPT: Final = 16


def shadow_prices(
    available: Sequence[Sequence[int]], prices: Sequence[float], demand: Sequence[int]
) -> list[float]:
    """By resource: the price of one unit. ``available``, ``prices``: of each offer."""
    columns = [i for i, wanted in enumerate(demand) if wanted > 0]
    # Scaled to the demand, so that all numbers are of one size.
    scaled = [
        [*(max(there[i], 0) / demand[i] for i in columns), float(price)]
        for there, price in zip(available, prices, strict=True)
    ]
    table = _bargains(scaled)
    width = len(columns)
    gain = [1.0] * width + [0.0]
    basis = list(range(width, width + len(table)))
    inside = list(range(width))
    for _ in range(_STEPS_MAX):
        enter = max(range(width), key=gain.__getitem__, default=0)
        if not columns or gain[enter] <= _TINY:
            break
        ratios = [(row[width] / row[enter], i) for i, row in enumerate(table) if row[enter] > _TINY]
        if not ratios:
            break  # No instance has any: worth without bound is worth nothing.
        leave = min(ratios)[1]
        _pivot(table, gain, leave, enter)
        basis[leave], inside[enter] = inside[enter], basis[leave]
    worth = [0.0] * len(demand)
    for row, variable in zip(table, basis, strict=True):
        if variable < width:
            worth[columns[variable]] = max(row[width], 0.0) / demand[columns[variable]]
    return worth


def _bargains(offers: list[list[float]]) -> list[list[float]]:
    """Those that are cheap for one of the resources, or for all of them together."""
    if len(offers) <= 3 * _KEPT or not offers:
        return offers
    width = len(offers[0]) - 1
    kept: set[int] = set()
    measures: list[Callable[[list[float]], float]] = [lambda row: sum(row[:width])]
    measures += [lambda row, i=i: row[i] for i in range(width)]  # type: ignore[misc]
    for measure in measures:
        ratios = [
            (row[width] / measure(row), i) for i, row in enumerate(offers) if measure(row) > 0
        ]
        kept.update(i for _, i in nsmallest(_KEPT, ratios))
    return [offers[i] for i in sorted(kept)]


def _pivot(table: list[list[float]], gain: list[float], leave: int, enter: int) -> None:
    pivot = table[leave][enter]
    mine = [value / pivot for value in table[leave]]
    mine[enter] = 1.0 / pivot
    for i, row in enumerate((*table, gain)):
        factor = row[enter]
        if i != leave and factor:
            row[:] = [value - factor * own for value, own in zip(row, mine, strict=True)]
            row[enter] = -factor / pivot
    table[leave] = mine
