"""Preferences as requirements that are given up one by one, in Karpenter's order.

A class with preferences is placed as if all of them were required, of preferred node affinity only
the heaviest term at a time. The pods that find no place are tried again without the first one: the
heaviest preferred pod affinity, then anti-affinity, then node affinity, then a spread that says
``ScheduleAnyway``, at last nodes with ``PreferNoSchedule`` taints.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tenure.packing.demand.classes import PodClass
from tenure.packing.demand.terms import NO_SOFT_TAINTS, Group, Wish


def groups_of(wishes: Iterable[Wish]) -> Iterable[Group]:
    for wish in wishes:
        if wish.near is not None:
            yield wish.near
        if wish.far is not None:
            yield wish.far
        if wish.spread is not None:
            yield wish.spread.group


def with_wishes(one: PodClass) -> PodClass:
    """The class with its preferences as requirements."""
    if not one.wishes:
        return one
    rules, signature = one.rules, one.demand.signature
    rules = msgspec.structs.replace(
        rules,
        near=(*rules.near, *(w.near for w in one.wishes if w.near is not None)),
        far=(*rules.far, *(w.far for w in one.wishes if w.far is not None)),
        spreads=(*rules.spreads, *(w.spread for w in one.wishes if w.spread is not None)),
    )
    heaviest = next((w.node for w in one.wishes if w.node is not None), None)
    if heaviest is not None:
        narrowed = tuple(wanted.intersect(heaviest) for wanted in signature.alternatives)
        signature = signature.narrowed(narrowed)
    if NO_SOFT_TAINTS in one.wishes:
        signature = msgspec.structs.replace(signature, soft_taints=True)
    demand = msgspec.structs.replace(one.demand, signature=signature)
    return msgspec.structs.replace(one, demand=demand, rules=rules)


def relaxed(one: PodClass) -> PodClass:
    """The class without the preference that is given up next."""
    return msgspec.structs.replace(one, wishes=one.wishes[1:])


def every_level(one: PodClass) -> tuple[PodClass, ...]:
    """The class with all its preferences as requirements, without the first, … and without any."""
    levels = [one]
    while levels[-1].wishes:
        levels.append(relaxed(levels[-1]))
    return tuple(map(with_wishes, levels)) if one.wishes else (one,)
