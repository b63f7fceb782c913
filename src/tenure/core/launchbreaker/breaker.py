"""Decide whether another node may be launched for an owner's pods: the launch breaker.

A pod that loses its node again and again needs a new node each time, although the pod itself is
valid: a DaemonSet pod preempts it, an agent taints the nodes, a controller deletes it. So launches
are counted per owner:

1. three launches in a row within 10m, each after the Node of the previous one had appeared, and
   after each of them the owner's pods were pending again: the breaker opens. Nodes that Tenure,
   the cloud or an interruption removed do not count (``history``);
2. while it is open, the next launch is 1m after the last, then 2m, 4m, … 30m, and no more than 12
   nodes are launched in an hour;
3. it closes when a pod of the owner that started since has run for 10m, or when nothing was
   launched for the owner for an hour;
4. for the owners of one family (one owner, or owners whose names differ only by a generated suffix)
   at most 60 launches an hour, plus 4 for each pending pod, may be in vain: counted by rule 1, or
   their claims or Nodes deleted by others within 10m;
5. for the owners of one namespace the same limit applies, and Nodes that none of their pods runs on
   any more count, too. It stops only owners that have no pod that has run for 10m.

Pods whose breaker is open get no claim, but may be placed on existing nodes, and pods of other
owners do not wait for them. The counts come from claims and pools, so a restart changes nothing;
only the first two removed claims of a family are known only to the process that saw them removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.decision import Concern, Patch, Verdict
from tenure.core.facts import Fact
from tenure.core.launchbreaker.facts import (
    BreakerClosed,
    BreakerOpen,
    DeletedSoon,
    PendingAgain,
    TooManyInVain,
)
from tenure.core.launchbreaker.history import (
    IN_VAIN_MAX,
    REMEMBERED,
    History,
    OwnerHistory,
    PastLaunch,
)
from tenure.core.launchbreaker.ledger import Entry, Kept, Ledger, ledger_of, written
from tenure.core.launchbreaker.owners import family_of, namespace_of
from tenure.core.reasons import Reason
from tenure.core.writes import patch, subject_of
from tenure.model.api.meta import BEGINNING, earlier, later
from tenure.model.api.names import LAUNCH_BREAKER
from tenure.model.api.nodepool import NodePool
from tenure.model.settings import Settings
from tenure.packing.result import Packing, PlannedClaim

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
#: A pod that has run for this long closes it.
RUNS_FOR: Final = timedelta(minutes=10)
#: Additional launches in vain that are allowed for each pending pod of the family or namespace.
IN_VAIN_PER_POD: Final = 4
#: A recorded launch that is further in the future than clocks may differ is ignored.
AHEAD_MAX: Final = timedelta(minutes=10)

_NOTHING_PACKED: Final = Packing(placed={}, claims=(), unplaced={})


class State(msgspec.Struct, frozen=True, kw_only=True):
    """An owner's breaker at one instant."""

    owner: str
    #: Those of the last hours, since it last closed; oldest first.
    launches: tuple[PastLaunch, ...] = ()
    #: By claim: when its Node appeared; only launches after which pods were pending again.
    returned: Mapping[str, datetime] = {}
    opened: datetime | None = None
    closed: datetime | None = None
    #: The earliest time of the next launch; None if launches are not limited.
    next_at: datetime | None = None
    #: The family, or else the namespace, whose launches were in vain too often.
    family: str = ""
    namespace: str = ""
    #: How many nodes may be launched then; None: as many as are needed.
    allowed: int | None = None

    @property
    def fact(self) -> Fact:
        """Why launches are limited."""
        count, since = len(self.launches), min(one.at for one in self.launches)
        if self.opened is None:
            assert self.next_at is not None, "nothing else limits launches"
            return TooManyInVain(
                self.owner, self.family, self.namespace, count, since, self.next_at
            )
        named = [one.claim for one in self.launches if one.claim in self.returned]
        last = named[-1] if named else ""
        return BreakerOpen(self.owner, len(self.returned), count, since, last, self.next_at)

    def most(self, now: datetime) -> int | None:
        """How many nodes may be launched for the owner now; None: as many as are needed."""
        if self.next_at is None:
            return None
        return max(self.allowed or 0, 0) if self.next_at <= now else 0


class Limited(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a batch that the breakers allow."""

    packing: Packing
    #: By pod UID: why no node is launched for it now.
    pods: Mapping[str, State] = {}
    verdicts: tuple[Verdict, ...] = ()
    #: When any of this may change although no object does.
    instants: tuple[datetime, ...] = ()


def limit_launches(
    history: History,
    pack_: Callable[[frozenset[str]], Packing],
    settings: Settings,
    now: datetime,
) -> Limited:
    """Pack the pods, without claims for those for which nothing may be launched now.

    ``pack_`` gets the UIDs of pods that get no claim. Open breakers are known before the first
    packing. The first packing shows which breakers open, or allow fewer nodes than are needed; a
    second packing follows only if their pods share claims with pods of other owners.
    """
    if not history:
        return Limited(packing=pack_(frozenset()))
    no_claim, _ = without_claims(history, settings, now)
    packing = pack_(no_claim)
    breakers = _Breakers(history, packing, settings, now)
    over = breakers.over(packing)
    if any(
        not over.isdisjoint(one.pods) and not over.issuperset(one.pods) for one in packing.claims
    ):
        no_claim |= over
        packing = pack_(no_claim)
        over = breakers.over(packing)
    # Others may get no claim for another reason: the API server refused one.
    stopped = {uid: breakers.of(uid) for uid in sorted(packing.no_claim & no_claim | over)}
    return Limited(
        packing=_without(packing, over),
        pods={uid: state for uid, state in stopped.items() if state is not None},
        verdicts=breakers.verdicts(),
        instants=breakers.instants,
    )


def without_claims(
    history: History, settings: Settings, now: datetime
) -> tuple[frozenset[str], tuple[datetime, ...]]:
    """UIDs of pods that get no claim now, by the pools' records, and when that may change."""
    if not history:
        return frozenset(), ()
    known = _Breakers(history, _NOTHING_PACKED, settings, now)
    return frozenset(uid for uid in history.owner_of if known.most(uid) == 0), known.instants


def remembered(history: History, settings: Settings, now: datetime) -> tuple[Verdict, ...]:
    """The verdicts on pools while no pod needs a node."""
    return _Breakers(history, _NOTHING_PACKED, settings, now).verdicts() if history else ()


def _without(packing: Packing, pods: Collection[str]) -> Packing:
    """The packing without these pods on claims; a claim for no other pod is left out."""
    if not pods:
        return packing
    kept = (
        msgspec.structs.replace(planned, pods=left)
        for planned in packing.claims
        if (left := tuple(uid for uid in planned.pods if uid not in pods))
    )
    return msgspec.structs.replace(packing, claims=tuple(kept))


class _Breakers:
    """Every owner's breaker at one instant, for one packing."""

    def __init__(
        self, history: History, packing: Packing, settings: Settings, now: datetime
    ) -> None:
        self._history, self._now = history, now
        self._states = {
            owner: _state(owner, known, packing, history, settings, now)
            for owner, known in history.owners.items()
        }
        in_vain = _in_vain(history, self._states, now)
        waiting = Counter(map(family_of, history.owner_of.values()))
        self._families = _bounds(in_vain, waiting)
        waiting = Counter(map(namespace_of, history.owner_of.values()))
        self._namespaces = _bounds(_of_namespaces(in_vain, history, settings, now), waiting)
        self._often = {family for family, launches in in_vain.items() if len(launches) >= TIMES}
        self.instants = tuple(sorted(_instants(history, self._states.values(), self._all())))

    def _all(self) -> list[_Bound]:
        return [*self._families.values(), *self._namespaces.values()]

    def of(self, uid: str) -> State | None:
        """The breaker that limits launches for the pod, if any."""
        return self._of_owner(self._history.owner_of.get(uid, ""))

    def most(self, uid: str) -> int | None:
        state = self.of(uid)
        return state.most(self._now) if state is not None else None

    def _of_owner(self, owner: str) -> State | None:
        family, namespace = family_of(owner), namespace_of(owner)
        bound = self._families.get(family)
        if bound is None and not self._is_served(owner):
            bound, family = self._namespaces.get(namespace), ""
        if bound is None or bound.next_at <= self._now:
            return self._states.get(owner)
        return State(
            owner=owner,
            launches=bound.launches,
            next_at=bound.next_at,
            family=family,
            namespace="" if family else namespace,
        )

    def _is_served(self, owner: str) -> bool:
        since = self._history.running.get(owner)
        return since is not None and later(since, RUNS_FOR) <= self._now

    def over(self, packing: Packing) -> frozenset[str]:
        """Pods on new claims that exceed the number allowed for their owner."""
        whose = self._history.owner_of
        claims_of: dict[str, list[PlannedClaim]] = {}
        for planned in packing.claims:
            for owner in {whose.get(uid, "") for uid in planned.pods}:
                claims_of.setdefault(owner, []).append(planned)
        found: set[str] = set()
        for owner, wanted in claims_of.items():
            state = self._of_owner(owner)
            most = state.most(self._now) if state is not None else None
            for planned in wanted[most:] if most is not None else ():
                found |= {uid for uid in planned.pods if whose.get(uid) == owner}
        return frozenset(found)

    def verdicts(self) -> tuple[Verdict, ...]:
        recheck_at = next((at for at in self.instants if at > self._now), None)
        return tuple(
            msgspec.structs.replace(verdict, recheck_at=recheck_at)
            for pool in self._history.pools.values()
            if (verdict := _on_pool(pool, self._states.values(), self._often, self._now))
            is not None
        )


# -- one owner -------------------------------------------------------------------------


def _state(
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
    opened = opened or _opens(launches, returned)
    if opened is not None and (not launches or later(launches[-1].at, HOUR) <= now):
        closed, opened = later(launches[-1].at, HOUR) if launches else closed, None
        launches, returned = (), {}
    state = State(owner=owner, launches=launches, returned=returned, opened=opened, closed=closed)
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
    assert state.opened is not None
    since = [one for one in state.launches if one.at > state.opened]
    doubled = len(_rounds(since, state.returned))
    pause = min(BACK_OFF_MIN * (1 << min(doubled, 10)), BACK_OFF_MAX)
    next_at = later(max(one.at for one in state.launches), pause)
    lately = [one.at for one in since if later(one.at, HOUR) > now]
    if len(lately) >= NODES_MAX:
        next_at = max(next_at, later(lately[-NODES_MAX], HOUR))
    return msgspec.structs.replace(state, next_at=next_at, allowed=NODES_MAX - len(lately))


# -- all owners ------------------------------------------------------------------------


class _Bound(msgspec.Struct, frozen=True):
    """The limit of one family or namespace: when the next node may be launched for it."""

    launches: tuple[PastLaunch, ...]
    next_at: datetime


def _in_vain(
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


def _of_namespaces(
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


def _bounds(
    in_vain: Mapping[str, Mapping[str, PastLaunch]], waiting: Mapping[str, int]
) -> dict[str, _Bound]:
    """The families or namespaces whose launches were in vain too often."""
    bounds = {}
    for name, launches in in_vain.items():
        most = IN_VAIN_MAX + IN_VAIN_PER_POD * waiting.get(name, 0)
        if len(launches) >= most:
            ordered = tuple(sorted(launches.values(), key=lambda one: (one.at, one.claim)))
            bounds[name] = _Bound(ordered, later(ordered[-most].at, HOUR))
    return bounds


def _instants(history: History, states: Iterable[State], bounds: Iterable[_Bound]) -> set[datetime]:
    instants = {bound.next_at for bound in bounds}
    instants |= {later(since, RUNS_FOR) for since in history.running.values()}
    for neighbours in history.neighbours.values():
        instants |= {earlier(one.at, AHEAD_MAX) for one in neighbours}
    for known in history.owners.values():
        instants |= {later(one.at, span) for one in known.launches for span in (HOUR, REMEMBERED)}
        instants |= {earlier(one.at, AHEAD_MAX) for one in known.launches}
        if known.running_since is not None:
            instants.add(later(known.running_since, RUNS_FOR))
        if known.closed is not None:
            instants |= {later(known.closed, REMEMBERED), earlier(known.closed, AHEAD_MAX)}
    return instants | {state.next_at for state in states if state.next_at is not None}


# -- records and verdicts of pools ------------------------------------------------------


def _on_pool(
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
    action = None if text == pool.annotations.get(LAUNCH_BREAKER) else _write(pool, text)
    mine = [state for state in states if state.owner in ledger]
    are_open = [state for state in mine if state.opened is not None]
    again = [state for state in mine if state.opened is None and state.returned]
    if are_open:
        facts = tuple(state.fact for state in are_open)
        return _say(pool, Reason.LAUNCH_BREAKER_OPEN, facts, action)
    wasted = Counter(
        family_of(owner)
        for owner, entry in ledger.items()
        for one in entry.launches
        if one.wasted and entry.opened is None
    )
    if again or wasted:
        deleted = (DeletedSoon(*each, IN_VAIN_MAX) for each in sorted(wasted.items()))
        return _say(pool, Reason.PODS_PENDING_AGAIN, (*map(_again, again), *deleted), action)
    closed = BreakerClosed(tuple(sorted(before)))
    return _say(pool, Reason.LAUNCH_BREAKER_CLOSED, (closed,), action)


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


def _write(pool: NodePool, text: str | None) -> Patch:
    return patch(pool, {"annotations": {LAUNCH_BREAKER: text}})


def _again(state: State) -> PendingAgain:
    last = max(one.at for one in state.launches if one.claim in state.returned)
    return PendingAgain(state.owner, len(state.returned), last)


def _say(pool: NodePool, reason: Reason, facts: tuple[Fact, ...], action: Patch | None) -> Verdict:
    return Verdict(
        concern=Concern.PROVISIONING,
        subject=subject_of(pool),
        reason=reason,
        facts=facts,
        action=action,
    )
