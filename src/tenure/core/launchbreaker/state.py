"""One owner's launch breaker at one instant: open or closed, and when the next launch may be.

Rules 1 to 3 of ``breaker``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.facts import Fact
from tenure.core.launchbreaker.facts import BreakerOpen, TooManyInVain
from tenure.core.launchbreaker.history import REMEMBERED, History, OwnerHistory
from tenure.core.launchbreaker.pastlaunch import PastLaunch
from tenure.model.api.meta import earlier, later
from tenure.model.settings import Settings
from tenure.packing.result import Packing

#: The breaker opens after this many launches in a row, …
TIMES: Final = 3
#: … the last at most this long after the first.
WITHIN: Final = timedelta(minutes=10)
#: More versions of an owner's template, all in vain within that time, are not a normal rollout.
REVISIONS_MAX: Final = 3
BACK_OFF_MIN: Final = timedelta(minutes=1)
BACK_OFF_MAX: Final = timedelta(minutes=30)
#: Nodes an hour while it is open.
NODES_MAX: Final = 12
HOUR: Final = timedelta(hours=1)
#: It closes, too, when nothing was launched for this long. While pods are pending, the next launch is
#: at most an hour after the last.
QUIET: Final = timedelta(hours=2)
#: A pod that has run for this long closes it.
RUNS_FOR: Final = timedelta(minutes=10)
#: A recorded launch that is further in the future than clocks may differ is ignored.
AHEAD_MAX: Final = timedelta(minutes=10)


class State(msgspec.Struct, frozen=True, kw_only=True):
    """An owner's breaker at one instant."""

    owner: str
    #: Those of the last hours, since it last closed; oldest first.
    launches: tuple[PastLaunch, ...] = ()
    #: By claim: when its Node appeared; only launches after which pods were pending again.
    returned: Mapping[str, datetime] = {}
    #: Claims on whose Nodes pods of owners with an open breaker run instead.
    taken: frozenset[str] = frozenset()
    opened: datetime | None = None
    closed: datetime | None = None
    #: The earliest time of the next launch; None if launches are not limited.
    next_at: datetime | None = None
    #: The limit that is reached although the owner's breaker is closed (``bounds``).
    reached: TooManyInVain | None = None
    #: How many nodes may be launched then; None: as many as are needed.
    allowed: int | None = None

    @property
    def fact(self) -> Fact:
        """Why launches are limited."""
        if self.reached is not None:
            return self.reached
        count, since = len(self.launches), min(one.at for one in self.launches)
        named = [one.claim for one in self.launches if one.claim in self.returned]
        last = named[-1] if named else ""
        return BreakerOpen(self.owner, len(self.returned), count, since, last, self.next_at)

    def most(self, now: datetime) -> int | None:
        """How many nodes may be launched for the owner now; None: as many as are needed."""
        if self.next_at is None:
            return None
        return max(self.allowed or 0, 0) if self.next_at <= now else 0


def state_of(
    owner: str,
    known: OwnerHistory,
    packing: Packing,
    history: History,
    settings: Settings,
    now: datetime,
) -> State:
    closed, opened = known.closed, known.opened
    if closed is not None and closed > later(now, AHEAD_MAX):
        closed = None
    if opened is not None and known.running_since is not None:
        runs_until = later(known.running_since, RUNS_FOR)
        if runs_until <= now:
            closed, opened = runs_until, None
    launches = _counted(known.launches, closed, now)
    returned = _returned(owner, launches, packing, history, settings)
    taken = _taken(owner, launches, packing, history)
    returned = {claim: at for claim, at in returned.items() if claim not in taken}
    opened = opened or _opens(launches, returned)
    if opened is not None and (not launches or later(launches[-1].at, QUIET) <= now):
        closed, opened = later(launches[-1].at, QUIET) if launches else closed, None
        launches, returned = (), {}
    state = State(
        owner=owner,
        launches=launches,
        returned=returned,
        taken=taken,
        opened=opened,
        closed=closed,
    )
    return _backed_off(state, now) if opened is not None else state


def _counted(
    launches: Iterable[PastLaunch], closed: datetime | None, now: datetime
) -> tuple[PastLaunch, ...]:
    return tuple(
        one
        for one in launches
        if earlier(now, REMEMBERED) < one.at <= later(now, AHEAD_MAX)
        and (closed is None or one.at >= closed)
    )


def _returned(
    owner: str,
    launches: Sequence[PastLaunch],
    packing: Packing,
    history: History,
    settings: Settings,
) -> dict[str, datetime]:
    """By claim: when its Node appeared; only claims on whose Node the owner's pods did not stay.

    Only pods of the same template count: a launch before a rollout was not in vain. But if no pod
    stayed on the nodes of more than three versions within 10m, each of them counts.
    """
    whose = history.owner_of
    without_node = [*(uid for one in packing.claims for uid in one.pods), *packing.no_claim]
    needs_node = {history.revision_of[uid] for uid in without_node if whose.get(uid) == owner}
    placed = {name for uid, name in packing.placed.items() if whose.get(uid) == owner}
    found = {one.claim: one.returned for one in launches if one.returned is not None}
    deserted = [
        one
        for one in launches
        if one.claim not in found
        and one.deserted is not None
        and not (one.missing_after and one.missing_after >= settings.garbage_period)
        and not one.places & placed
        and not any(uid in packing.placed for uid in one.waiting)
    ]
    churned = _churned(deserted) if needs_node else ()
    for one in deserted:
        if one.deserted is not None and (one.revision in needs_node or one.claim in churned):
            found[one.claim] = one.deserted
    return found


def _taken(
    owner: str, launches: Iterable[PastLaunch], packing: Packing, history: History
) -> frozenset[str]:
    """Claims on whose Nodes pods run that get no node of their own: kube-scheduler placed them first.

    That is no fault of the owner whose pods the Nodes were launched for.
    """
    waits = {history.owner_of.get(uid, "") for uid in packing.no_claim}
    waits |= {name for name, known in history.owners.items() if known.opened is not None}
    waits -= {owner}
    return frozenset(one.claim for one in launches if one.taken_by & waits)


def _churned(deserted: Sequence[PastLaunch]) -> set[str]:
    """Claims of more versions of one template than normal rollouts make in that time."""
    found: set[str] = set()
    if len({one.revision for one in deserted}) <= REVISIONS_MAX:
        return found
    for first in deserted:
        together = [one for one in deserted if first.at <= one.at <= later(first.at, WITHIN)]
        if len({one.revision for one in together}) > REVISIONS_MAX:
            found |= {one.claim for one in together}
    return found


def _rounds(launches: Iterable[PastLaunch], returned: Mapping[str, datetime]) -> list[datetime]:
    """When each round of launches began. Launches before the first Node of a round appears belong to
    that round: nodes for many pods are launched together, and count once."""
    rounds: list[datetime] = []
    came: list[datetime] = []
    for one in launches:
        if not rounds or (came and one.at >= min(came)):
            rounds.append(one.at)
            came = []
        if one.claim in returned:
            came.append(returned[one.claim])
    return rounds


def _opens(launches: Sequence[PastLaunch], returned: Mapping[str, datetime]) -> datetime | None:
    rounds = _rounds([one for one in launches if one.claim in returned], returned)
    for first, last in zip(rounds, rounds[TIMES - 1 :], strict=False):
        if last - first <= WITHIN:
            return last
    return None


def _backed_off(state: State, now: datetime) -> State:
    """Launches that helped are not limited: an owner of many pods needs many nodes. They end the doubling."""
    assert state.opened is not None
    since: list[PastLaunch] = []
    doubling: list[PastLaunch] = []
    for one in state.launches:
        if one.at <= state.opened:
            continue
        if one.helped and one.claim not in state.returned:
            doubling.clear()
        else:
            since.append(one)
            doubling.append(one)
    doubled = len(_rounds(doubling, state.returned))
    pause = min(BACK_OFF_MIN * (1 << min(doubled, 10)), BACK_OFF_MAX)
    next_at = later(max(one.at for one in state.launches), pause)
    lately = [one.at for one in since if later(one.at, HOUR) > now]
    if len(lately) >= NODES_MAX:
        next_at = max(next_at, later(lately[-NODES_MAX], HOUR))
    return msgspec.structs.replace(state, next_at=next_at, allowed=NODES_MAX - len(lately))
