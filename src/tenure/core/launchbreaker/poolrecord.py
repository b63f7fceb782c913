"""What a pool records of open and recent launch breakers, and its verdict and condition on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import datetime
from functools import partial

from tenure.core.decision import Concern, Verdict
from tenure.core.launchbreaker.facts import BreakerClosed, BreakerOpen, DeletedSoon, PendingAgain
from tenure.core.launchbreaker.history import IN_VAIN_MAX, REMEMBERED
from tenure.core.launchbreaker.ledger import Entry, Kept, Ledger, ledger_of, written
from tenure.core.launchbreaker.owners import family_of
from tenure.core.launchbreaker.state import HOUR, State
from tenure.core.reasons import Reason
from tenure.core.verdicts import say
from tenure.core.writes import patch
from tenure.model.api.meta import BEGINNING, later
from tenure.model.api.names import LAUNCH_BREAKER
from tenure.model.api.nodepool import NodePool

_say = partial(say, Concern.PROVISIONING)


def on_pool(
    pool: NodePool, states: Collection[State], often: Collection[str], now: datetime
) -> Verdict | None:
    """``often``: families with several launches in vain; these launches are recorded."""
    before = ledger_of(pool)
    ledger = {
        s.owner: entry
        for s in states
        if (entry := _entry(s, pool.name, often, now)) and (entry.launches or s.owner in before)
    }
    text = written(ledger)
    if text is None and not before:
        return None
    known = pool.annotations.get(LAUNCH_BREAKER)
    action = None if text == known else patch(pool, {"annotations": {LAUNCH_BREAKER: text}})
    mine = [state for state in states if state.owner in ledger]
    are_open = [state for state in mine if state.opened is not None]
    again = [state for state in mine if state.opened is None and state.returned]
    if are_open:
        facts = (state.fact for state in are_open)
        return _say(pool, Reason.LAUNCH_BREAKER_OPEN, *facts, action=action)
    wasted = Counter(
        family_of(owner)
        for owner, entry in ledger.items()
        for one in entry.launches
        if one.wasted and entry.opened is None
    )
    if again or wasted:
        deleted = (DeletedSoon(*each, IN_VAIN_MAX) for each in sorted(wasted.items()))
        return _say(pool, Reason.PODS_PENDING_AGAIN, *map(_again, again), *deleted, action=action)
    closed = BreakerClosed(tuple(sorted(before)))
    return _say(pool, Reason.LAUNCH_BREAKER_CLOSED, closed, action=action)


def _entry(state: State, pool: str, often: Collection[str], now: datetime) -> Entry | None:
    closed = state.closed if state.closed and later(state.closed, REMEMBERED) > now else None
    all_count = bool(state.returned) or state.opened is not None
    wasted_count = family_of(state.owner) in often
    kept = tuple(
        Kept(one.claim, one.at, state.returned.get(one.claim), one.wasted)
        for one in state.launches
        if one.pool == pool
        and (all_count or (wasted_count and one.wasted and later(one.at, HOUR) > now))
    )
    opened = state.opened if kept else None
    return Entry(kept, opened, closed) if kept or closed else None


def open_owners(ledger: Ledger) -> list[str]:
    return sorted(owner for owner, entry in ledger.items() if entry.opened is not None)


def open_breaker(owner: str, entry: Entry) -> BreakerOpen:
    """For a pool's condition: what the pool's own record says, without the current time."""
    returned = sum(kept.returned is not None for kept in entry.launches)
    since = min((kept.at for kept in entry.launches), default=BEGINNING)
    return BreakerOpen(owner, returned, len(entry.launches), since)


def _again(state: State) -> PendingAgain:
    last = max(one.at for one in state.launches if one.claim in state.returned)
    return PendingAgain(state.owner, len(state.returned), last)
