"""Decide whether another node may be launched for an owner's pods: the launch breaker.

A pod that loses its node again and again makes a new node necessary each time, and nothing about
that pod is wrong by itself: a daemon preempts it, an agent taints the nodes, a controller deletes
it. So launches are counted per owner:

1. three launches in a row within 10m, each after the Node of the one before had come, and after
   each of them the owner's pods were pending again: the breaker opens. What Tenure, the cloud or
   an interruption took away does not count (``launchhistory``);
2. while it is open, the next launch is 1m after the last, then 2m, 4m, … 30m, and no more than 12
   nodes are launched in an hour;
3. it closes when a pod of the owner that started since has run for 10m, or when nothing was
   launched for the owner for an hour;
4. whatever the cause: of owners of one family (one owner, or those whose names differ only by a
   generated end) no more than 60 nodes an hour, and 4 for each pod that waits, may come to nothing.

Pods that are held are taken out of the batch, so no other owner's pods wait for them; they may
still go to nodes that exist. Counted is what claims and pools say, so a restart changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.decision import Concern, Patch, Verdict
from tenure.core.launchhistory import REMEMBERED, History, Launch, OwnerHistory
from tenure.core.launchledger import Entry, Kept, Ledger, ledger_of, written
from tenure.core.owners import family_of, in_words
from tenure.core.reasons import Reason
from tenure.core.writes import patch, subject_of
from tenure.model.meta import BEGINNING, format_time, later
from tenure.model.names import LAUNCH_BREAKER
from tenure.model.nodepool import NodePool
from tenure.model.pod import Pod
from tenure.packing.result import Packing

#: The breaker opens after so many launches in a row, …
TIMES: Final = 3
#: … the last at most this long after the first.
WITHIN: Final = timedelta(minutes=10)
BACK_OFF_MIN: Final = timedelta(minutes=1)
BACK_OFF_MAX: Final = timedelta(minutes=30)
#: Nodes an hour while it is open.
NODES_MAX: Final = 12
HOUR: Final = timedelta(hours=1)
#: A pod that has run for this long closes it.
RUNS_FOR: Final = timedelta(minutes=10)
#: Whatever the cause: launches of one family in an hour that came to nothing, …
FAMILY_MAX: Final = 60
#: … and so many more for each of its pods that needs a node.
FAMILY_PER_POD: Final = 4
#: Packing again after pods were held may need other claims; so often, then all of them are held.
_TRIES: Final = 3


class State(msgspec.Struct, frozen=True, kw_only=True):
    """An owner's breaker at one instant."""

    owner: str
    #: Of the last hour, and since it was closed; oldest first.
    launches: tuple[Launch, ...] = ()
    #: When the Node of each came after which pods were pending again, by claim.
    returned: Mapping[str, datetime] = {}
    opened: datetime | None = None
    closed: datetime | None = None
    #: From when on the next launch may be made; None while nothing holds it.
    next_at: datetime | None = None
    #: How many nodes that launch may have; None: as many as are needed.
    allowed: int | None = None

    @property
    def message(self) -> str:
        who, at = in_words(self.owner), format_time(self.next_at or BEGINNING)
        since = format_time(min(one.at for one in self.launches))
        held = f"launches for {who} are held, the next may be made from {at} on"
        if self.opened is None:
            return (
                f"{held}: {_nodes(len(self.launches))} launched for it since {since} and run none "
                "of its pods"
            )
        named = [one.claim for one in self.launches if one.claim in self.returned]
        last = f", last after NodeClaim {named[-1]}" if named else ""
        return (
            f"{held}: its pods were pending again after {len(self.returned)} of "
            f"{len(self.launches)} launches since {since}{last}"
        )


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What the breakers leave of a batch."""

    packing: Packing
    #: By pod UID: why no node is launched for it now.
    pods: Mapping[str, State] = {}
    verdicts: tuple[Verdict, ...] = ()
    #: When any of this may change although nothing happens.
    instants: tuple[datetime, ...] = ()


def hold_launches(
    history: History,
    pods: Sequence[Pod],
    pack_: Callable[[Sequence[Pod]], Packing],
    now: datetime,
) -> Held:
    """Pack the pods, without those for which nothing may be launched now."""
    packing = pack_(pods)
    if not history:
        return Held(packing=packing)
    states = {
        owner: _state(owner, known, packing, history, now)
        for owner, known in history.owners.items()
    }
    bounds = _families(history, states, packing, now)
    held: dict[str, State] = {}
    for attempt in range(_TRIES):
        more = _held(packing, history.owner_of, states, bounds, now, strict=attempt == _TRIES - 1)
        if not more:
            break
        held |= more
        packing = pack_([pod for pod in pods if pod.uid not in held])
    instants = tuple(sorted(_instants(history, states.values(), bounds)))
    recheck_at = next((at for at in instants if at > now), None)
    verdicts = [
        msgspec.structs.replace(verdict, recheck_at=recheck_at)
        for pool in history.pools.values()
        if (verdict := _on_pool(pool, states.values(), now)) is not None
    ]
    return Held(packing=packing, pods=held, verdicts=tuple(verdicts), instants=instants)


# -- one owner -------------------------------------------------------------------------


def _state(
    owner: str,
    known: OwnerHistory,
    packing: Packing,
    history: History,
    now: datetime,
) -> State:
    closed, opened = known.closed, known.opened
    if opened is not None and known.running_since is not None:
        runs_until = later(known.running_since, RUNS_FOR)
        if runs_until <= now:
            closed, opened = runs_until, None
    launches = _counted(known.launches, closed, now)
    returned = _returned(owner, launches, packing, history)
    opened = opened or _opens(launches, returned)
    if opened is not None and (not launches or launches[-1].at + HOUR <= now):
        closed, opened = launches[-1].at + HOUR if launches else closed, None
        launches, returned = (), {}
    state = State(owner=owner, launches=launches, returned=returned, opened=opened, closed=closed)
    return _backed_off(state, now) if opened is not None else state


def _counted(
    launches: Iterable[Launch], closed: datetime | None, now: datetime
) -> tuple[Launch, ...]:
    return tuple(
        one
        for one in launches
        if one.at + REMEMBERED > now and (closed is None or one.at >= closed)
    )


def _returned(
    owner: str, launches: Iterable[Launch], packing: Packing, history: History
) -> dict[str, datetime]:
    """By claim: when the Node came that the owner's pods did not stay on.

    Only pods of the same template say so: what a rollout replaces has not come to nothing.
    """
    whose = history.owner_of
    needs_node = {
        history.revision_of[uid]
        for one in packing.claims
        for uid in one.pods
        if whose.get(uid) == owner
    }
    placed = {name for uid, name in packing.placed.items() if whose.get(uid) == owner}
    found: dict[str, datetime] = {}
    for one in launches:
        if one.returned is not None:
            found[one.claim] = one.returned
        elif (
            one.revision in needs_node
            and one.deserted is not None
            and not one.places & placed
            and not any(uid in packing.placed for uid in one.waiting)
        ):
            found[one.claim] = one.deserted
    return found


def _rounds(launches: Iterable[Launch], returned: Mapping[str, datetime]) -> list[datetime]:
    """When each launch was made, those left out that were made before the Node of one before came:
    nodes for many pods are launched together, and together they come to nothing once."""
    rounds: list[datetime] = []
    came: list[datetime] = []
    for one in launches:
        if not rounds or (came and one.at >= min(came)):
            rounds.append(one.at)
            came = []
        if one.claim in returned:
            came.append(returned[one.claim])
    return rounds


def _opens(launches: Sequence[Launch], returned: Mapping[str, datetime]) -> datetime | None:
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
    next_at = max(one.at for one in state.launches) + pause
    lately = [one.at for one in since if one.at + HOUR > now]
    if len(lately) >= NODES_MAX:
        next_at = max(next_at, lately[-NODES_MAX] + HOUR)
    return msgspec.structs.replace(state, next_at=next_at, allowed=NODES_MAX - len(lately))


# -- all owners ------------------------------------------------------------------------


class _Bound(msgspec.Struct, frozen=True):
    """Of one family: when it may have nodes again, if it may have none now."""

    launches: tuple[Launch, ...]
    next_at: datetime


def _families(
    history: History, states: Mapping[str, State], packing: Packing, now: datetime
) -> dict[str, _Bound]:
    """The families whose launches have come to nothing too often, whatever the cause."""
    wasted: dict[str, dict[str, Launch]] = {}
    for owner, known in history.owners.items():
        lately = [one for one in known.launches if one.at + HOUR > now]
        returned = states[owner].returned
        of_family = wasted.setdefault(family_of(owner), {})
        of_family |= {one.claim: one for one in lately if one.claim in returned or one.gone}
    waiting: dict[str, int] = {}
    for planned in packing.claims:
        for uid in planned.pods:
            family = family_of(history.owner_of.get(uid, ""))
            waiting[family] = waiting.get(family, 0) + 1
    bounds = {}
    for family, launches in wasted.items():
        most = FAMILY_MAX + FAMILY_PER_POD * waiting.get(family, 0)
        if len(launches) >= most:
            ordered = tuple(sorted(launches.values(), key=lambda one: (one.at, one.claim)))
            bounds[family] = _Bound(ordered, ordered[-most].at + HOUR)
    return bounds


def _held(
    packing: Packing,
    owner_of: Mapping[str, str],
    states: Mapping[str, State],
    bounds: Mapping[str, _Bound],
    now: datetime,
    *,
    strict: bool,
) -> dict[str, State]:
    """Pods that the packing has on new claims although nothing may be launched for them.

    ``strict``: hold every pod of an owner that wants more claims than it may have.
    """
    claims_of: dict[str, list[int]] = {}
    for number, planned in enumerate(packing.claims):
        for owner in {owner_of.get(uid, "") for uid in planned.pods}:
            claims_of.setdefault(owner, []).append(number)
    held: dict[str, State] = {}
    for owner, wanted in claims_of.items():
        state, bound = states.get(owner), bounds.get(family_of(owner))
        allowed = len(wanted)
        if bound is not None and bound.next_at > now:
            state = State(owner=owner, launches=bound.launches, next_at=bound.next_at)
            allowed = 0
        elif state is not None and state.next_at is not None:
            allowed = state.allowed or 0 if state.next_at <= now else 0
        if state is None or allowed >= len(wanted):
            continue
        over = wanted if strict else wanted[max(allowed, 0) :]
        for number in over:
            uids = packing.claims[number].pods
            held |= {uid: state for uid in uids if owner_of.get(uid) == owner}
    return held


def _instants(
    history: History, states: Iterable[State], bounds: Mapping[str, _Bound]
) -> set[datetime]:
    instants = {bound.next_at for bound in bounds.values()}
    for known in history.owners.values():
        instants |= {one.at + span for one in known.launches for span in (HOUR, REMEMBERED)}
        if known.running_since is not None:
            instants.add(later(known.running_since, RUNS_FOR))
        if known.closed is not None:
            instants.add(known.closed + REMEMBERED)
    return instants | {state.next_at for state in states if state.next_at is not None}


# -- what is remembered, and said of pools ----------------------------------------------


def _on_pool(pool: NodePool, states: Collection[State], now: datetime) -> Verdict | None:
    before = ledger_of(pool)
    ledger = {s.owner: entry for s in states if (entry := _entry(s, pool.name, now))}
    text = written(ledger)
    if text is None and not before:
        return None
    action = None if text == pool.annotations.get(LAUNCH_BREAKER) else _write(pool, text)
    mine = [state for state in states if state.owner in ledger]
    held = [state for state in mine if state.opened is not None]
    again = [state for state in mine if state.opened is None and state.returned]
    if held:
        return _say(pool, Reason.LAUNCHES_HELD, "; ".join(s.message for s in held), action)
    if again:
        return _say(pool, Reason.PODS_PENDING_AGAIN, "; ".join(map(_again, again)), action)
    owners = ", ".join(in_words(owner) for owner in sorted(before)) or "any owner"
    return _say(pool, Reason.LAUNCHES_RESUMED, f"no launches are held for {owners}", action)


def _entry(state: State, pool: str, now: datetime) -> Entry | None:
    closed = state.closed if state.closed and state.closed + REMEMBERED > now else None
    kept: tuple[Kept, ...] = ()
    if state.returned or state.opened is not None:
        kept = tuple(
            Kept(one.claim, one.at, state.returned.get(one.claim))
            for one in state.launches
            if one.pool == pool
        )
    opened = state.opened if kept else None
    return Entry(kept, opened, closed) if kept or closed else None


def open_owners(ledger: Ledger) -> list[str]:
    return sorted(owner for owner, entry in ledger.items() if entry.opened is not None)


def owner_held(owner: str, entry: Entry) -> str:
    """For a pool's condition: what the pool itself remembers, without a clock."""
    returned = [kept for kept in entry.launches if kept.returned is not None]
    since = format_time(min((kept.at for kept in entry.launches), default=BEGINNING))
    return (
        f"launches for {in_words(owner)} back off: its pods were pending again after "
        f"{len(returned)} of {len(entry.launches)} launches since {since}"
    )


def _write(pool: NodePool, text: str | None) -> Patch:
    return patch(pool, {"annotations": {LAUNCH_BREAKER: text}})


def _again(state: State) -> str:
    last = format_time(max(one.at for one in state.launches if one.claim in state.returned))
    return (
        f"pods of {in_words(state.owner)} are pending again although "
        f"{_nodes(len(state.returned))} launched for them, last at {last}"
    )


def _say(pool: NodePool, reason: Reason, message: str, action: Patch | None) -> Verdict:
    return Verdict(
        concern=Concern.PROVISIONING,
        subject=subject_of(pool),
        reason=reason,
        message=message,
        action=action,
    )


def _nodes(count: int) -> str:
    return "1 node was" if count == 1 else f"{count} nodes were"
