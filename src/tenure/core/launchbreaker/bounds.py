"""The limits of families and namespaces: how many launches for their pods may be in vain.

Rules 4 and 5 of ``breaker``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from tenure.core.launchbreaker.history import IN_VAIN_MAX, History, PastLaunch
from tenure.core.launchbreaker.owners import family_of, namespace_of
from tenure.core.launchbreaker.state import AHEAD_MAX, HOUR, State
from tenure.model.api.meta import earlier, later
from tenure.model.settings import Settings

#: Additional launches in vain that are allowed for each pending pod of the family or namespace.
IN_VAIN_PER_POD: Final = 4


class Bound(msgspec.Struct, frozen=True):
    """The limit of one family or namespace: when the next node may be launched for it."""

    launches: tuple[PastLaunch, ...]
    next_at: datetime


def in_vain(
    history: History, states: Mapping[str, State], now: datetime
) -> dict[str, dict[str, PastLaunch]]:
    """By family and claim: launches of the last hour that were of no use to the family's pods."""
    found: dict[str, dict[str, PastLaunch]] = {}
    for owner, known in history.owners.items():
        lately = [
            one for one in known.launches if earlier(now, HOUR) < one.at <= later(now, AHEAD_MAX)
        ]
        returned = states[owner].returned
        of_family = found.setdefault(family_of(owner), {})
        of_family |= {one.claim: one for one in lately if one.claim in returned or one.wasted}
    return found


def of_namespaces(
    in_vain: Mapping[str, Mapping[str, PastLaunch]],
    history: History,
    settings: Settings,
    now: datetime,
) -> dict[str, dict[str, PastLaunch]]:
    """By namespace and claim: also unused Nodes of owners that have been deleted since."""
    found: dict[str, dict[str, PastLaunch]] = {}
    for family, launches in in_vain.items():
        found.setdefault(namespace_of(family), {}).update(launches)
    for namespace, neighbours in history.neighbours.items():
        found.setdefault(namespace, {}).update(
            (one.claim, one)
            for one in neighbours
            if earlier(now, HOUR) < one.at <= later(now, AHEAD_MAX)
            and not (one.missing_after and one.missing_after >= settings.garbage_period)
        )
    return found


def bounds(
    in_vain: Mapping[str, Mapping[str, PastLaunch]], waiting: Mapping[str, int]
) -> dict[str, Bound]:
    """The families or namespaces whose launches were in vain too often."""
    bounds = {}
    for name, launches in in_vain.items():
        most = IN_VAIN_MAX + IN_VAIN_PER_POD * waiting.get(name, 0)
        if len(launches) >= most:
            ordered = tuple(sorted(launches.values(), key=lambda one: (one.at, one.claim)))
            bounds[name] = Bound(ordered, later(ordered[-most].at, HOUR))
    return bounds
