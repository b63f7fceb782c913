"""Re-judges only what changed or fell due, and remembers every verdict in force.

For each decider and key the last view and its verdicts are kept. A change in the
cluster touches keys; a touched key whose view is still the same is left alone, unless
its ``recheck_at`` has come.

A decider that fails is a fault of ours. The object that it fails on is set aside, and every key
is judged without it (``runtime.isolation``). A key that fails all the same gets a verdict that says
so, is tried again when its view changes or after a while, and the others go on. Where a decider
cannot even tell its keys, those that are known are judged, and it is asked again after a while.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from tenure.core.decider import AnyDecider, Patience
from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.facts import as_fact
from tenure.core.provision.placement import CLUSTER
from tenure.core.reasons import Reason
from tenure.core.unreadable.failclosed import fail_closed
from tenure.model.api.names import NODEPOOL
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODE_POOLS, NODES, PODS, Resource
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import UNKNOWN, is_unreadable
from tenure.runtime.evaluate.blame import Place, described
from tenure.runtime.evaluate.isolation import Isolation

#: How long a key whose judgement failed is left alone.
FAILURE_PAUSE: Final = timedelta(minutes=1)

#: A recheck that is not in the future would make the loop spin: it is put off by this much.
SPIN_PAUSE: Final = timedelta(seconds=1)

#: So often a turn looks again because objects were set aside; the rest has its turn in the next.
ROUNDS_MAX: Final = 4

#: The heap of rechecks is swept when it is this much longer than what it stands for.
STALE_MAX: Final = 1000

#: The view of a key whose view could not even be made.
_BROKEN: Final = object()
#: Stands for finding the keys of a decider; no key has such a name.
_KEYS: Final = "(keys)"


class _Entry(msgspec.Struct):
    view: Any
    verdicts: tuple[Verdict, ...]
    recheck_at: datetime | None


class Evaluator:
    def __init__(
        self,
        deciders: Sequence[AnyDecider],
        settings: Settings,
        patience: Mapping[Concern, Patience] | None = None,
        unmoved: Mapping[Resource, Collection[Concern]] | None = None,
        stopwatch: Callable[[], float] = lambda: 0.0,
        evaluated: Callable[[Concern, str, float], None] = lambda *_: None,
    ) -> None:
        """``patience``: which changes a concern may leave for a moment.

        ``unmoved``: by kind, the concerns to which its changes make no difference. ``evaluated``
        is told how many seconds each key took; in virtual time none takes any.
        """
        self._stopwatch = stopwatch
        self._evaluated = evaluated
        self._deciders = tuple(deciders)
        self._patience = patience or {}
        self._unmoved = unmoved or {}
        self._asked: dict[Resource, tuple[tuple[int, AnyDecider], ...]] = {}
        #: When a patient concern was last judged, and what it has put off until when.
        self._judged_at: dict[tuple[int, str], datetime] = {}
        self._put_off: dict[tuple[int, str], datetime] = {}
        #: Keys of each decider that were left out of a turn.
        self._left_out: list[dict[str, None]] = [{} for _ in deciders]
        self._settings = settings
        self._entries: list[dict[str, _Entry]] = [{} for _ in self._deciders]
        self._due: list[tuple[datetime, int, int, str]] = []
        self._sequence = itertools.count()
        self._in_force: dict[tuple[Concern, str], Verdict] = {}
        self._actionable: dict[tuple[Concern, str], Verdict] = {}
        self._ended: list[Verdict] = []
        self._started = False
        #: Whether every verdict is made anew, even where the view is the same.
        self._anew = False
        #: Keys to judge in this turn, by the position of their decider.
        self._pending: deque[tuple[int, str]] = deque()
        self._forced = False
        self._leave_out: Collection[Concern] = ()
        self._rounds = 0
        self._isolation = Isolation()
        #: Objects that were set aside and are to be tried again in this turn.
        self._retries: deque[Place] = deque()
        #: Deciders that could not tell their keys: the verdicts that say so, until when.
        self._unasked: dict[int, tuple[Verdict, ...]] = {}
        #: Verdicts that are new since the last call of ``go_on``.
        self._news: list[Verdict] = []
        #: Verdicts on keys that fail as a whole.
        self._failing: dict[tuple[int, str], Verdict] = {}

    def turn(
        self,
        snapshot: Snapshot,
        changes: Iterable[Change],
        observed: Iterable[Subject],
        now: datetime,
        leave_out: Collection[Concern] = (),
    ) -> list[Verdict]:
        """Judge; return the verdicts that are new or different.

        What is left out stands as it is, and is judged in the next turn that does not do so.
        """
        self.begin(snapshot, changes, observed, now, leave_out)
        return self.go_on(snapshot, now)

    def begin(
        self,
        snapshot: Snapshot,
        changes: Iterable[Change],
        observed: Iterable[Subject],
        now: datetime,
        leave_out: Collection[Concern] = (),
    ) -> None:
        """Find what there is to judge in this turn; ``go_on`` judges it."""
        self._leave_out, self._rounds = leave_out, 1
        self._retries.extend(self._isolation.asides.due(snapshot, now))
        aside = self._isolation.take_changes()
        touched = self._touched(snapshot, [*changes, *aside], observed, now)
        for position, key in [*self._take_put_off(now), *self._take_due(now)]:
            touched[position].setdefault(key)
        self._queue(touched)

    def _queue(self, touched: Sequence[dict[str, None]]) -> None:
        for position, keys in enumerate(touched):
            due = self._left_out[position] | keys
            left_out = self._deciders[position].concern in self._leave_out
            self._left_out[position] = due if left_out else {}
            if not left_out:
                self._pending.extend((position, key) for key in due)

    def go_on(
        self, snapshot: Snapshot, now: datetime, enough: Callable[[], bool] = lambda: False
    ) -> list[Verdict]:
        """Judge until all is judged, or until it is enough for now: at least one key.

        Between two calls the cluster may change: a key is judged on what is known then, and what
        changed is judged in the next turn.
        """
        changed, self._news = self._news, []
        while self._pending or self._retries:
            if self._pending:
                changed += self._judge_next(snapshot, now)
            else:
                self._try_again(self._retries.popleft(), snapshot, now)
            if not self._pending:
                self._look_at_asides(snapshot, now)
            if enough():
                break
        return self._latest(changed)

    def _judge_next(self, snapshot: Snapshot, now: datetime) -> list[Verdict]:
        position, key = self._pending.popleft()
        began = self._stopwatch()
        changed = self._evaluate_key(position, key, snapshot, now)
        if took := self._stopwatch() - began:
            self._evaluated(self._deciders[position].concern, key, took)
        return changed

    def _try_again(self, place: Place, snapshot: Snapshot, now: datetime) -> None:
        changes = list(self._isolation.asides.try_again(place, snapshot, now))
        self._queue(self._touched_by_changes(snapshot, changes, now))

    def _look_at_asides(self, snapshot: Snapshot, now: datetime) -> None:
        """What was set aside makes a difference to other keys, in the same turn."""
        if self._rounds >= ROUNDS_MAX or not (aside := self._isolation.take_changes()):
            return
        self._rounds += 1
        self._queue(self._touched_by_changes(snapshot, aside, now))

    @property
    def unfinished(self) -> int:
        """How many keys of this turn are still to be judged."""
        return len(self._pending) + len(self._retries)

    @property
    def reconsiders(self) -> bool:
        """Whether the clock was set during this turn: what it found does not count."""
        return self._anew

    def reconsider(self) -> None:
        """The wall clock was set: in the next turn everything is judged anew."""
        self._anew = True
        self._judged_at.clear()
        self._put_off.clear()

    def _latest(self, changed: list[Verdict]) -> list[Verdict]:
        """Without those that another has taken the place of within the same turn."""
        return [one for one in changed if self._in_force.get(_verdict_id(one)) is one]

    def take_ended(self) -> list[Verdict]:
        """Verdicts that ceased to hold since the last call, with no other in their place."""
        ended, self._ended = self._ended, []
        return ended

    def in_force(self) -> Iterator[Verdict]:
        """Every verdict that holds now."""
        return iter(self._in_force.values())

    def about(self, kind: str, name: str, namespace: str = "") -> list[Verdict]:
        """The verdicts on one subject, the governing one first."""
        found = [
            verdict
            for concern in Concern
            if (verdict := self._in_force.get((concern, _id(kind, namespace, name)))) is not None
        ]
        # That a node may take its time is less to say than what it lacks.
        return sorted(found, key=lambda v: (v.action is None, v.reason is Reason.BOOTING))

    def actionable(self) -> list[Verdict]:
        """Verdicts in force that ask for something to be done."""
        return list(self._actionable.values())

    def failing(self) -> list[Verdict]:
        """The verdicts on keys that fail as a whole."""
        return list(self._failing.values())

    def next_recheck(self) -> datetime | None:
        """When to judge again if nothing happens before."""
        unasked = (verdicts[0].recheck_at for verdicts in self._unasked.values())
        aside = self._isolation.asides.next_at()
        instants = [*self._put_off.values(), *unasked, self._next_due(), aside]
        return min((at for at in instants if at is not None), default=None)

    def _next_due(self) -> datetime | None:
        while self._due:
            at, _, position, key = self._due[0]
            entry = self._entries[position].get(key)
            if entry is not None and entry.recheck_at == at:
                return at
            heapq.heappop(self._due)
        return None

    def _touched(
        self,
        snapshot: Snapshot,
        changes: Iterable[Change],
        observed: Iterable[Subject],
        now: datetime,
    ) -> list[dict[str, None]]:
        """Keys to look at, per decider; a dict keeps their order and has each once."""
        self._forced = self._anew
        if not self._started or self._anew:
            self._started, self._anew = True, False
            return [self._all_keys(at, snapshot, now) for at in range(len(self._deciders))]
        touched = self._touched_by_changes(snapshot, changes, now)
        for position, keys in enumerate(touched):
            if position in self._unasked and _over(self._unasked[position], now):
                keys |= self._all_keys(position, snapshot, now)  # noqa: PLW2901  # in place
        for subject in observed:
            for position, decider in enumerate(self._deciders):
                work = partial(decider.observed, subject, snapshot)
                try:
                    found = dict.fromkeys(work())
                except Exception:  # noqa: BLE001  # a fault of ours
                    found = self._found_anyway(position, work, snapshot, now)
                touched[position] |= found
        return touched

    def _touched_by_changes(
        self, snapshot: Snapshot, changes: Iterable[Change], now: datetime
    ) -> list[dict[str, None]]:
        touched: list[dict[str, None]] = [{} for _ in self._deciders]
        for change in [told for one in changes for told in as_told(one, snapshot)]:
            for position, decider in self._asked_about(change.resource):
                try:
                    found = list(decider.touched(change, snapshot))
                except Exception:  # noqa: BLE001  # a fault of ours
                    work = partial(_touched_by, decider, change, snapshot)
                    found = list(self._found_anyway(position, work, snapshot, now))
                patience = self._patience.get(decider.concern)
                if patience is not None and patience.may_wait(change):
                    found = [key for key in found if not self._waits(position, key, now)]
                for key in found:
                    touched[position][key] = None
        return touched

    # -- deciders that cannot tell their keys ------------------------------------------------------

    def _all_keys(self, position: int, snapshot: Snapshot, now: datetime) -> dict[str, None]:
        """Those that there are, and those that were."""
        decider = self._deciders[position]
        found, error = self._asked_for(position, lambda: decider.keys(snapshot), snapshot, now)
        if error is not None:
            return self._unfound(position, error, snapshot, now, anew=True)
        self._failing.pop((position, _KEYS), None)
        self._replace(self._unasked.pop(position, ()), ())
        return dict.fromkeys(sorted({*found, *self._entries[position]}))

    def _found_anyway(
        self, position: int, work: Callable[[], Iterable[str]], snapshot: Snapshot, now: datetime
    ) -> dict[str, None]:
        """What it says with the bad object set aside; and all known keys, to be on the safe side."""
        found, error = self._asked_for(position, work, snapshot, now)
        if error is not None:
            return self._unfound(position, error, snapshot, now)
        return dict.fromkeys([*found, *self._entries[position]])

    def _asked_for(
        self, position: int, work: Callable[[], Iterable[str]], snapshot: Snapshot, now: datetime
    ) -> tuple[list[str], Exception | None]:
        """The keys, by whatever can be evaluated, or what is raised all the same."""
        asked, raised = (position, _KEYS), None
        while True:
            try:
                found = list(work())
            except Exception as error:  # noqa: BLE001  # one bad object must not stop the others
                if self._isolation.failed(asked, error, snapshot, now):
                    continue
                found, raised = [], error
            self._isolation.ended(asked, lambda _, __: list(work()), now)
            return found, raised

    def _unfound(
        self,
        position: int,
        error: Exception,
        snapshot: Snapshot,
        now: datetime,
        *,
        anew: bool = False,
    ) -> dict[str, None]:
        """All known keys; and somebody is told that there may be others."""
        known = self._unasked.get(position, ())
        if not known or anew:
            concern = self._deciders[position].concern
            message = f"the keys of {concern} cannot be told: {described(error)}"
            said = tuple(_failed(concern, CLUSTER, _KEYS, message, snapshot, now + FAILURE_PAUSE))
            silent = [v for v in said[1:] if _verdict_id(v) not in self._in_force]
            self._failing[position, _KEYS] = said[0]
            self._unasked[position] = (said[0], *silent)
            self._news += self._replace(known, self._unasked[position])
        return dict.fromkeys(self._entries[position])

    def _asked_about(self, resource: Resource) -> tuple[tuple[int, AnyDecider], ...]:
        """The deciders whose keys a change of this kind may touch, with their positions."""
        asked = self._asked.get(resource)
        if asked is None:
            unmoved = self._unmoved.get(resource, ())
            everybody = enumerate(self._deciders)
            asked = tuple(one for one in everybody if one[1].concern not in unmoved)
            self._asked[resource] = asked
        return asked

    def _take_due(self, now: datetime) -> Iterator[tuple[int, str]]:
        while (at := self._next_due()) is not None and at <= now:
            _, _, position, key = heapq.heappop(self._due)
            yield position, key

    def _waits(self, position: int, key: str, now: datetime) -> bool:
        """Whether a key was judged so lately that this change is left for a moment later."""
        last = self._judged_at.get((position, key))
        gaps = self._patience[self._deciders[position].concern].gaps
        if last is None or now >= (until := last + gaps * self._settings.placement_gap):
            return False
        self._put_off[position, key] = until
        return True

    def _take_put_off(self, now: datetime) -> Iterator[tuple[int, str]]:
        ready = [name for name, until in self._put_off.items() if until <= now]
        for name in ready:
            del self._put_off[name]
        return iter(ready)

    def _evaluate_key(
        self, position: int, key: str, snapshot: Snapshot, now: datetime
    ) -> list[Verdict]:
        decider, entries = self._deciders[position], self._entries[position]
        old = entries.get(key)
        if decider.concern in self._patience:
            self._judged_at[position, key] = now
            self._put_off.pop((position, key), None)
        try:
            judged = self._evaluate(position, key, snapshot, now)
        except Exception as error:  # noqa: BLE001  # one bad object must not stop the others
            if self._isolation.failed((position, key), error, snapshot, now):
                self._pending.appendleft((position, key))  # Repeated in its own slice of the turn.
                return []
            message = f"the evaluation of {decider.concern}/{key} fails: {described(error)}"
            again_at = now + FAILURE_PAUSE
            said = tuple(_failed(decider.concern, key, key, message, snapshot, again_at))
            judged = _BROKEN, said
        self._isolation.ended((position, key), partial(self._evaluate_anew, position, key), now)
        self._failing.pop((position, key), None)
        if judged is None:
            return []
        view, verdicts = judged
        if view is _BROKEN:
            self._failing[position, key] = verdicts[0]
            if old is not None and old.view is _BROKEN and not _due(old, now):
                return []
        if view is None:
            entries.pop(key, None)
        else:
            self._remember(position, key, _Entry(view, verdicts, _earliest(verdicts, now)), old)
        return self._replace(old.verdicts if old else (), verdicts)

    def _evaluate(
        self, position: int, key: str, snapshot: Snapshot, now: datetime
    ) -> tuple[Any, tuple[Verdict, ...]] | None:
        """The key's view and verdicts; None where what was said before still holds."""
        decider, old = self._deciders[position], self._entries[position].get(key)
        view = decider.view(snapshot, key)
        if old is not None and view == old.view and not (self._forced or _due(old, now)):
            return None
        if view is None:
            return None, ()
        return view, fail_closed(tuple(decider.decide(view, self._settings, now)), snapshot)

    def _evaluate_anew(self, position: int, key: str, snapshot: Snapshot, now: datetime) -> object:
        view = self._deciders[position].view(snapshot, key)
        return view and self._deciders[position].decide(view, self._settings, now)

    def _remember(self, position: int, key: str, entry: _Entry, old: _Entry | None) -> None:
        self._entries[position][key] = entry
        if entry.recheck_at is None or (old is not None and old.recheck_at == entry.recheck_at):
            return  # What is in the heap stands for the new entry as well.
        heapq.heappush(self._due, (entry.recheck_at, next(self._sequence), position, key))
        if len(self._due) > STALE_MAX + 2 * sum(map(len, self._entries)):
            self._sweep()

    def _sweep(self) -> None:
        """Most of the heap is about entries that have changed since: begin it anew."""
        self._due = [
            (entry.recheck_at, next(self._sequence), position, key)
            for position, entries in enumerate(self._entries)
            for key, entry in entries.items()
            if entry.recheck_at is not None
        ]
        heapq.heapify(self._due)

    def _replace(self, old: tuple[Verdict, ...], new: tuple[Verdict, ...]) -> list[Verdict]:
        kept = {_verdict_id(verdict) for verdict in new}
        for verdict in old:
            gone = _verdict_id(verdict)
            # Another key may have taken the subject over in the meantime: a Node whose claim went.
            if gone not in kept and self._in_force.get(gone) is verdict:
                self._ended.append(self._in_force.pop(gone))
                self._actionable.pop(gone, None)
        changed = []
        for verdict in new:
            name = _verdict_id(verdict)
            if self._in_force.get(name) != verdict:
                changed.append(verdict)
            self._in_force[name] = verdict
            if verdict.action is not None:
                self._actionable[name] = verdict
            else:
                self._actionable.pop(name, None)
        return changed


def _due(entry: _Entry, now: datetime) -> bool:
    return entry.recheck_at is not None and entry.recheck_at <= now


def _earliest(verdicts: Iterable[Verdict], now: datetime) -> datetime | None:
    earliest = min((v.recheck_at for v in verdicts if v.recheck_at is not None), default=None)
    return earliest if earliest is None or earliest > now else now + SPIN_PAUSE


def _id(kind: str, namespace: str, name: str) -> str:
    return f"{kind}/{namespace}/{name}"


def _verdict_id(verdict: Verdict) -> tuple[Concern, str]:
    subject = verdict.subject
    return verdict.concern, _id(subject.kind, subject.namespace, subject.name)


def _failed(
    concern: Concern, key: str, name: str, message: str, snapshot: Snapshot, again_at: datetime
) -> Iterator[Verdict]:
    """On the key itself, and on the pools that it is about: people look at objects."""
    pools = snapshot.pools if key == CLUSTER else _pool_of(key, snapshot)
    subjects = [Subject.of(NODE_POOLS.kind, snapshot.pools[pool]) for pool in sorted(pools)]
    for subject in (Subject("Judgement", f"{concern}/{name}"), *subjects):
        yield Verdict(
            concern=concern,
            subject=subject,
            reason=Reason.JUDGEMENT_FAILED,
            facts=(as_fact(message),),
            recheck_at=again_at,
        )


def _pool_of(key: str, snapshot: Snapshot) -> set[str]:
    """The pool that the key names, or the one of the claim or Node that it names."""
    thing = snapshot.claims.get(key) or snapshot.nodes.get(key)
    return {thing.labels.get(NODEPOOL, "") if thing is not None else key} & snapshot.pools.keys()


def _over(verdicts: Sequence[Verdict], now: datetime) -> bool:
    return verdicts[0].recheck_at is not None and verdicts[0].recheck_at <= now


def as_told(change: Change, snapshot: Snapshot) -> Iterator[Change]:
    """What deciders are told of it. A pod that can be read no more, or again, makes a difference to
    all that may become of its Node, so they are told of that, too."""
    yield change
    if change.resource != PODS or not any(map(is_unreadable, change.versions())):
        return
    for pod in change.versions():
        assert isinstance(pod, Pod)
        name = pod.spec.node_name
        nodes = snapshot.nodes.values() if name == UNKNOWN else [snapshot.nodes.get(name)]
        yield from (Change(NODES, one.name, one, one) for one in nodes if one is not None)


def _touched_by(decider: AnyDecider, change: Change, snapshot: Snapshot) -> Iterable[str]:
    """As it is by now: the object may have been set aside. What it was before fails then, too."""
    if change.new is not None:
        new = snapshot.objects(change.resource).get(change.key)
        change = replace(change, old=None if is_unreadable(new) else change.old, new=new)
    return decider.touched(change, snapshot)
