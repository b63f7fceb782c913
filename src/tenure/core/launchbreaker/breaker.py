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
   launched for the owner for two hours;
4. of the launches for one owner in an hour at most 60, plus 4 for each of its pending pods, may be
   in vain: counted by rule 1, or their claims or Nodes deleted within 10m by others, or as empty;
5. for the owners of one family (their names differ only by a generated suffix) and for those of one
   namespace the same limit applies, but each owner counts with at most three launches: only many
   names reach it. In a namespace Nodes that no pod of the owner runs on any more count, too. It
   stops only owners that have no pod that has run for 10m.

Pods whose breaker is open get no claim, but may be placed on existing nodes, and pods of other
owners do not wait for them. The counts come from claims and pools, so a restart changes nothing;
only the first two removed claims of a family are known only to the process that saw them removed.

Rules 1 to 3 are in ``state``, 4 and 5 in ``bounds``; what pools record is in ``poolrecord``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from tenure.core.decision import Verdict
from tenure.core.launchbreaker.bounds import (
    Bound,
    in_vain,
    of_groups,
    of_owners,
    with_neighbours,
)
from tenure.core.launchbreaker.history import REMEMBERED, History
from tenure.core.launchbreaker.owners import family_of, namespace_of
from tenure.core.launchbreaker.poolrecord import on_pool
from tenure.core.launchbreaker.state import AHEAD_MAX, HOUR, QUIET, RUNS_FOR, TIMES, State, state_of
from tenure.model.api.meta import earlier, later
from tenure.model.settings import Settings
from tenure.packing.demand.steps import Steps
from tenure.packing.result import Packing, PlannedClaim

_NOTHING_PACKED: Final = Packing(placed={}, claims=(), unplaced={})


class Limited(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a batch that the breakers allow."""

    packing: Packing
    #: By pod UID: why no node is launched for it now.
    pods: Mapping[str, State] = {}
    verdicts: tuple[Verdict, ...] = ()
    #: When any of this may change although no object does.
    instants: tuple[datetime, ...] = ()


def limiting_launches(
    history: History,
    packing_: Callable[[frozenset[str]], Steps[Packing]],
    settings: Settings,
    now: datetime,
) -> Steps[Limited]:
    """In steps: pack the pods, without claims for those for which nothing may be launched now.

    ``packing_`` gets the UIDs of pods that get no claim. Open breakers are known before the first
    packing. The first packing shows which breakers open, or allow fewer nodes than are needed; a
    second packing follows only if their pods share claims with pods of other owners.
    """
    if not history:
        return Limited(packing=(yield from packing_(frozenset())))
    no_claim, _ = without_claims(history, settings, now)
    packing = yield from packing_(no_claim)
    yield
    breakers = _Breakers(history, packing, settings, now)
    over = breakers.over(packing)
    if any(
        not over.isdisjoint(one.pods) and not over.issuperset(one.pods) for one in packing.claims
    ):
        no_claim |= over
        yield
        packing = yield from packing_(no_claim)
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


def held_back(
    history: History, packing: Packing, settings: Settings, now: datetime
) -> frozenset[str]:
    """UIDs of pods on new claims of a packing for which these may not be launched, as is known by now."""
    return _Breakers(history, packing, settings, now).over(packing) if history else frozenset()


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
            owner: state_of(owner, known, packing, history, settings, now)
            for owner, known in history.owners.items()
        }
        wasted = in_vain(history, self._states, now)
        all_wasted = with_neighbours(wasted, history, settings, now)
        owners = list(history.owner_of.values())
        self._owners = of_owners(wasted, Counter(owners))
        self._families = of_groups(wasted, family_of, Counter(map(family_of, owners)))
        self._namespaces = of_groups(all_wasted, namespace_of, Counter(map(namespace_of, owners)))
        in_families: Counter[str] = Counter()
        for owner, launches in wasted.items():
            in_families[family_of(owner)] += len(launches)
        self._often = {family for family, count in in_families.items() if count >= TIMES}
        self.instants = tuple(sorted(_instants(history, self._states.values(), self._all())))

    def _all(self) -> list[Bound]:
        return [*self._owners.values(), *self._families.values(), *self._namespaces.values()]

    def of(self, uid: str) -> State | None:
        """The breaker that limits launches for the pod, if any."""
        return self._of_owner(self._history.owner_of.get(uid, ""))

    def most(self, uid: str) -> int | None:
        state = self.of(uid)
        return state.most(self._now) if state is not None else None

    def _of_owner(self, owner: str) -> State | None:
        family, namespace = family_of(owner), namespace_of(owner)
        if (bound := self._reached(self._owners, owner)) is not None:
            return bound.limits(owner)
        if not self._is_served(owner):
            if (bound := self._reached(self._families, family)) is not None:
                return bound.limits(owner, family=family)
            if (bound := self._reached(self._namespaces, namespace)) is not None:
                return bound.limits(owner, namespace=namespace)
        return self._states.get(owner)

    def _reached(self, bounds: Mapping[str, Bound], name: str) -> Bound | None:
        bound = bounds.get(name)
        return bound if bound is not None and bound.next_at > self._now else None

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
            if (verdict := on_pool(pool, self._states.values(), self._often, self._now)) is not None
        )


def _instants(history: History, states: Iterable[State], limits: Iterable[Bound]) -> set[datetime]:
    instants = {bound.next_at for bound in limits}
    instants |= {later(since, RUNS_FOR) for since in history.running.values()}
    for neighbours in history.neighbours.values():
        instants |= {earlier(one.at, AHEAD_MAX) for one in neighbours}
    for known in history.owners.values():
        spans = (HOUR, QUIET, REMEMBERED)
        instants |= {later(one.at, span) for one in known.launches for span in spans}
        instants |= {earlier(one.at, AHEAD_MAX) for one in known.launches}
        if known.running_since is not None:
            instants.add(later(known.running_since, RUNS_FOR))
        if known.closed is not None:
            instants |= {later(known.closed, REMEMBERED), earlier(known.closed, AHEAD_MAX)}
    return instants | {state.next_at for state in states if state.next_at is not None}
