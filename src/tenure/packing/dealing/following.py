"""Who must come before whom: pods that must be near to others come after these.

Each class gets a level. What a class must be near to has a lower one, as far as that is possible:
where classes need each other, one that finds some of the pods that it needs at a lower level comes
first, and then one that needs none but its own. In the order of levels each pod can be bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from tenure.packing.demand.classes import PodClass
from tenure.packing.demand.steps import PODS_A_STEP, Steps, some_at_a_time
from tenure.packing.demand.terms import Group

#: Sets of groups that are looked at in one step.
ASKED_A_STEP: Final = 200


class AskedGroups(msgspec.Struct, frozen=True):
    """The groups that constraints of waiting pods are about."""

    asked: frozenset[Group]
    #: Over the hostname: pods must be on one node with them.
    beside: frozenset[Group]
    #: Over other keys: their pods decide where others may go, so they have to come.
    followed: frozenset[Group]


def asked_groups(classes: Iterable[PodClass]) -> AskedGroups:
    rules = dict.fromkeys(one.rules for one in classes)
    near = {group for one in rules for group in one.near}
    spread = {spread.group for one in rules for spread in one.spreads}
    return AskedGroups(
        asked=frozenset(near | spread).union(*(one.far for one in rules)),
        beside=frozenset(group for group in near if group.on_hostname),
        followed=frozenset(group for group in near | spread if not group.on_hostname),
    )


#: The groups that classes must be near to: those with the same ones have one level.
Needs = frozenset[Group]


def levels_of(classes: Sequence[PodClass]) -> Steps[list[int]]:
    """In steps. By position; zero where nothing has to be near."""
    needs = [frozenset(one.rules.near) if one.rules.near else None for one in classes]
    waiting = dict.fromkeys(each for each in needs if each is not None)
    if not waiting:
        return [0] * len(classes)
    needed = frozenset[Group]().union(*waiting)
    by_group: dict[Group, set[Needs | None]] = {group: set() for group in needed}
    for number, (one, own) in enumerate(zip(classes, needs, strict=True), start=1):
        if not number % PODS_A_STEP:
            yield
        for group in one.member_of if len(one.member_of) < len(needed) else needed:
            if group in by_group and group in one.member_of:
                by_group[group].add(own)
    found: dict[Needs | None, int] = {None: 0}
    while waiting:
        level = len(found)
        ready: list[Needs] = []
        for some in some_at_a_time(list(waiting), ASKED_A_STEP):
            yield
            ready += [each for each in some if _all_came(each, by_group, found)]
        if not ready:
            ready = [(yield from _next(list(waiting), by_group, found))]
        for each in ready:
            found[each] = level
            del waiting[each]
    return [found[each] for each in needs]


Members = dict[Group, set[Needs | None]]


def _all_came(needs: Needs, by_group: Members, found: dict[Needs | None, int]) -> bool:
    return all(each in found or each == needs for group in needs for each in by_group[group])


def _next(waiting: list[Needs], by_group: Members, found: dict[Needs | None, int]) -> Steps[Needs]:
    """In steps: of those that need each other, the one that misses least."""

    def missing(needs: Needs) -> tuple[int, int]:
        without = [group for group in needs if by_group[group].isdisjoint(found)]
        return len(without), sum(needs not in by_group[group] for group in without)

    first = waiting[0]
    for some in some_at_a_time(waiting, ASKED_A_STEP):
        yield
        first = min((first, *some), key=missing)
    return first
