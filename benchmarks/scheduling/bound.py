"""A lower bound on what any plan costs: buy fractions of instances that cover all requests.

The linear program has a row for each resource, and one for the number of nodes where pods that may
not share a node force it. Its dual (the most that resources can be worth without any instance being
a bargain) is solved by the simplex method on a table of floats: right to a few parts in 10**9.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tenure.model.api.pod import Pod
from tenure.model.cloud.offering import InstanceType
from tenure.packing.demand.requests import pod_requests

_TINY = 1e-12


def price_bound(pods: Iterable[Pod], types: Iterable[InstanceType], nodes_min: int = 0) -> float:
    """Micro-dollars per hour that no plan can undercut."""
    demand: dict[str, int] = {}
    for pod in pods:
        for name, nano in pod_requests(pod).items():
            demand[name] = demand.get(name, 0) + nano
    names = sorted(name for name, nano in demand.items() if nano)
    rows, prices = [], []
    for kind in types:
        offered = [offering.price for offering in kind.offerings if offering.available]
        if offered:
            rows.append([kind.allocatable.get(n, 0) / demand[n] for n in names] + [1.0])
            prices.append(float(min(offered)))
    return covering_cost(rows, prices, [*(1.0 for _ in names), float(nodes_min)])


def covering_cost(
    covers: Sequence[Sequence[float]], prices: Sequence[float], wanted: Sequence[float]
) -> float:
    """The least ``prices · x`` with ``x >= 0`` such that each column of ``covers`` is ``wanted``."""
    columns = len(wanted)
    table = [[*row, price] for row, price in zip(covers, prices, strict=True)]
    gain = [*wanted, 0.0]
    while True:
        enter = max(range(columns), key=gain.__getitem__)
        if gain[enter] <= _TINY:
            return -gain[columns]
        ratios = [
            (row[columns] / row[enter], i) for i, row in enumerate(table) if row[enter] > _TINY
        ]
        if not ratios:
            return float("inf")
        _pivot(table, gain, min(ratios)[1], enter)


def _pivot(table: list[list[float]], gain: list[float], leave: int, enter: int) -> None:
    """The slack of row ``leave`` takes the place of variable ``enter``."""
    pivot = table[leave][enter]
    row = [value / pivot for value in table[leave]]
    row[enter] = 1.0 / pivot
    for i, other in enumerate((*table, gain)):
        if i != leave:
            factor = other[enter]
            other[:] = [value - factor * mine for value, mine in zip(other, row, strict=True)]
            other[enter] = -factor / pivot
    table[leave] = row
