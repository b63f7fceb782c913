"""The limits for launches in vain: of one owner, of its family, and of its namespace.

Rules 4 and 5 of ``breaker``. In a family or namespace each owner counts with at most as many
launches as open its own breaker: an owner alone cannot reach the limit of others, however many
pods it has or had. Many names are needed for that, as of a controller that makes ever new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from tenure.core.launchbreaker.facts import TooManyInVain
from tenure.core.launchbreaker.history import IN_VAIN_MAX, History
from tenure.core.launchbreaker.pastlaunch import PastLaunch
from tenure.core.launchbreaker.state import AHEAD_MAX, HOUR, TIMES, State
from tenure.model.api.meta import earlier, later
from tenure.model.settings import Settings

#: Additional launches in vain that are allowed for each pending pod of the owner or group.
IN_VAIN_PER_POD: Final = 4

#: By owner: launches of the last hour that were of no use to its pods.
InVain = Mapping[str, Collection[PastLaunch]]


class Bound(msgspec.Struct, frozen=True):
    """A limit that is reached: when the next node may be launched."""

    launches: tuple[PastLaunch, ...]
    #: How many owners these launches were for.
    owners: int
    most: int
    next_at: datetime

    def limits(self, owner: str, *, family: str = "", namespace: str = "") -> State:
        """The state of an owner that has to wait for it."""
        fact = TooManyInVain(
            owner,
            family,
            namespace,
            len(self.launches),
            self.owners,
            self.most,
            self.launches[0].at,
            self.next_at,
        )
        return State(owner=owner, launches=self.launches, next_at=self.next_at, reached=fact)


def in_vain(history: History, states: Mapping[str, State], now: datetime) -> InVain:
    return {
        owner: [
            one
            for one in _of_last_hour(known.launches, now)
            if one.claim in states[owner].returned or one.claim in states[owner].taken or one.wasted
        ]
        for owner, known in history.owners.items()
    }


def with_neighbours(in_vain: InVain, history: History, settings: Settings, now: datetime) -> InVain:
    """Also unused Nodes of owners that need none now."""
    found = {owner: list(launches) for owner, launches in in_vain.items()}
    for neighbours in history.neighbours.values():
        for one in _of_last_hour(neighbours, now):
            if not (one.missing_after and one.missing_after >= settings.garbage_period):
                found.setdefault(one.owner, []).append(one)
    return found


def _of_last_hour(launches: Iterable[PastLaunch], now: datetime) -> list[PastLaunch]:
    return [one for one in launches if earlier(now, HOUR) < one.at <= later(now, AHEAD_MAX)]


def of_owners(in_vain: InVain, waiting: Mapping[str, int]) -> dict[str, Bound]:
    """By owner: the limits that its own launches have reached."""
    return {
        owner: bound
        for owner, launches in in_vain.items()
        if (bound := _bound(launches, waiting.get(owner, 0)))
    }


def of_groups(
    in_vain: InVain, group_of: Callable[[str], str], waiting: Mapping[str, int]
) -> dict[str, Bound]:
    """By family or namespace: the limits that the launches of its owners have reached together."""
    groups: dict[str, list[PastLaunch]] = {}
    for owner, launches in in_vain.items():
        each_once = {one.claim: one for one in launches}.values()
        groups.setdefault(group_of(owner), []).extend(_ordered(each_once)[-TIMES:])
    return {
        group: bound
        for group, launches in groups.items()
        if (bound := _bound(launches, waiting.get(group, 0)))
    }


def _bound(launches: Iterable[PastLaunch], waiting: int) -> Bound | None:
    launches = list(launches)
    most = IN_VAIN_MAX + IN_VAIN_PER_POD * waiting
    # A node that was launched for several owners is one node.
    nodes = _ordered({one.claim: one for one in launches}.values())
    if len(nodes) < most:
        return None
    owners = len({one.owner for one in launches})
    return Bound(tuple(nodes), owners, most, later(nodes[-most].at, HOUR))


def _ordered(launches: Iterable[PastLaunch]) -> list[PastLaunch]:
    return sorted(launches, key=lambda one: (one.at, one.claim))
