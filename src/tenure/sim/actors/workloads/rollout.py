"""How a Deployment moves from old ReplicaSets to the new one: the arithmetic alone.

Never more than ``wanted + surge`` pods, never fewer than ``wanted - unavailable`` available
ones. In order: the new one grows as far as the surge allows; otherwise the old ones shrink,
first pods that are not available anyway, then as many as are available beyond the minimum,
oldest ReplicaSet first.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tenure.sim.apiserver.objects.numbers import count_of


class Size(msgspec.Struct, frozen=True):
    """A ReplicaSet as a rollout sees it."""

    name: str
    replicas: int
    available: int


class Limits(msgspec.Struct, frozen=True):
    surge: int
    unavailable: int

    @classmethod
    def of(cls, wanted: int, surge: int | str = "25%", unavailable: int | str = "25%") -> Limits:
        """Surge rounds up, unavailable down; both zero would never move, so one may miss."""
        more = count_of(surge, wanted, round_up=True)
        fewer = count_of(unavailable, wanted, round_up=False)
        return cls(more, fewer or int(not more))


def next_sizes(wanted: int, limits: Limits, new: Size, old: Sequence[Size]) -> dict[str, int]:
    """The sizes to set now, by name; empty when there is nothing to do but wait."""
    grown = _grown(wanted, limits, new, old)
    if grown != new.replicas:
        return {new.name: grown}
    return _shrunk(wanted, limits, new, old)


def _grown(wanted: int, limits: Limits, new: Size, old: Sequence[Size]) -> int:
    if new.replicas >= wanted:
        return wanted
    room = wanted + limits.surge - new.replicas - sum(each.replicas for each in old)
    return new.replicas + max(0, min(room, wanted - new.replicas))


def _shrunk(wanted: int, limits: Limits, new: Size, old: Sequence[Size]) -> dict[str, int]:
    least = wanted - limits.unavailable
    unavailable_new = new.replicas - new.available
    spare = new.replicas + sum(each.replicas for each in old) - least - unavailable_new
    if spare <= 0:
        return {}
    sizes = {each.name: each.replicas for each in old}
    for each in old:  # Pods that do not work are not missed.
        broken = min(spare, max(0, each.replicas - each.available))
        sizes[each.name] -= broken
        spare -= broken
    surplus = new.available + sum(each.available for each in old) - least
    for each in old:
        fewer = min(max(0, surplus), sizes[each.name])
        sizes[each.name] -= fewer
        surplus -= fewer
    return {each.name: sizes[each.name] for each in old if sizes[each.name] != each.replicas}
