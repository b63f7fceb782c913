"""How many pods of a class may join the pods of a planned claim: host ports and hostname rules.

The same answers as ``filler`` gives by masks, for claims of different rounds: one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tenure.packing.demand.classes import PodClass
from tenure.packing.demand.requests import ports_conflict
from tenure.packing.demand.terms import Group

Members = Sequence[tuple[PodClass, int]]


def allowed_beside(there: Members, one: PodClass, most: int) -> int:
    """``there``: classes on the claim, and how many pods of each."""
    if any((one.apart or other.apart) and other is not one for other, _ in there):
        return 0
    if one.demand.ports:
        taken = (other.demand.ports for other, _ in there)
        if any(ports_conflict(one.demand.ports, ports) is not None for ports in taken):
            return 0
        most = min(most, 1)
    return max(0, _topology(there, one, most)) if most else 0


def _topology(there: Members, one: PodClass, most: int) -> int:
    rules, member_of = one.rules, one.member_of
    for group in _on_hostname(rules.far):
        if group in member_of:
            most = min(most, 1)
        if _count(there, group):
            return 0
    for group in _on_hostname(rules.near):
        if not _count(there, group):
            return 0
    for spread in rules.spreads:
        if spread.group.on_hostname:
            left = spread.skew - _count(there, spread.group)
            if spread.group in member_of:
                most = min(most, left)
            elif left < 0:
                return 0
    for other, _ in there:
        if any(group in member_of for group in _on_hostname(other.repels)):
            return 0
        for spread in other.rules.spreads:
            if spread.group.on_hostname and spread.group in member_of:
                most = min(most, spread.skew - _count(there, spread.group))
    return most


def _on_hostname(groups: Iterable[Group]) -> Iterable[Group]:
    return (group for group in groups if group.on_hostname)


def _count(there: Members, group: Group) -> int:
    return sum(count for other, count in there if group in other.member_of)
