"""Re-judges only what changed or fell due, and remembers every verdict in force.

For each decider and key the last view and its verdicts are kept. A change in the
cluster touches keys; a touched key whose view is still the same is left alone, unless
its ``recheck_at`` has come.

A decider that fails is a fault of ours. The object that it fails on is set aside, and every key
is judged without it (``core.isolation``). A key that fails all the same gets a verdict that says
so, is tried again when its view changes or after a while, and the others go on.
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

from tenure.core.decider import AnyDecider, Patience
from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.isolation import described, fail_closed, isolated
from tenure.core.places import CLUSTER
from tenure.core.reasons import Reason
from tenure.model.pod import Pod
from tenure.model.resource import NODE_POOLS, NODES, PODS, Resource
from tenure.model.settings import Settings
from tenure.model.snapshot import Change, Snapshot
from tenure.model.unreadable import UNKNOWN, is_unreadable
from tenure.runtime.asides import Asides, Evaluation

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


class _Entry(msgspec.Struct):
    view: Any
    verdicts: tuple[Verdict, ...]
    recheck_at: datetime | None


class Judge:
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
        self._asides = Asides()
        #: Changes of the snapshot by setting objects aside that have not been looked at yet.
        self._set_aside: list[Change] = []
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
        again = [*self._set_aside, *self._asides.tried_again(snapshot, now)]
        self._set_aside.clear()
        touched = self._touched(snapshot, [*changes, *again], observed, now)
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
        changed: list[Verdict] = []
        while self._pending:
            position, key = self._pending.popleft()
            began = self._stopwatch()
            changed += self._judge(position, key, snapshot, now)
            if took := self._stopwatch() - began:
                self._evaluated(self._deciders[position].concern, key, took)
            if not self._pending:
                self._look_at_asides(snapshot, now)
            if enough():
                break
        return self._latest(changed)

    def _look_at_asides(self, snapshot: Snapshot, now: datetime) -> None:
        """What was set aside makes a difference to other keys, in the same turn."""
        if not self._set_aside or self._rounds >= ROUNDS_MAX:
            return
        self._rounds += 1
        aside, self._set_aside = self._set_aside, []
        self._queue(self._touched(snapshot, aside, (), now))

    @property
    def unfinished(self) -> int:
        """How many keys of this turn are still to be judged."""
        return len(self._pending)

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
        instants = [*self._put_off.values(), self._next_due(), self._asides.next_at()]
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
            known = self._entries if self._started else [{} for _ in self._deciders]
            self._started, self._anew = True, False
            return [
                dict.fromkeys(
                    sorted({*self._ask(partial(_keys, d, snapshot), snapshot, now), *entries})
                )
                for d, entries in zip(self._deciders, known, strict=True)
            ]
        touched: list[dict[str, None]] = [{} for _ in self._deciders]
        for change in [told for one in changes for told in as_told(one, snapshot)]:
            for position, decider in self._asked_about(change.resource):
                found = self._ask(partial(_touched_by, decider, change, snapshot), snapshot, now)
                patience = self._patience.get(decider.concern)
                if patience is not None and patience.may_wait(change):
                    found = [key for key in found if not self._waits(position, key, now)]
                for key in found:
                    touched[position][key] = None
        for subject in observed:
            for keys, decider in zip(touched, self._deciders, strict=True):
                found = self._ask(partial(_observed_by, decider, subject, snapshot), snapshot, now)
                keys |= dict.fromkeys(found)  # noqa: PLW2901  # in place
        return touched

    def _ask(self, work: Callable[[], list[str]], snapshot: Snapshot, now: datetime) -> list[str]:
        """Keys, by whatever can be evaluated; none where nobody can be blamed for the failure."""
        outcome = isolated(work, snapshot)
        if outcome.changes:
            self._note_aside(outcome.changes, lambda _, __: work(), now)
        return outcome.result or []

    def _note_aside(self, changes: Sequence[Change], evaluation: Evaluation, now: datetime) -> None:
        self._asides.note(changes, evaluation, now)
        self._set_aside += changes

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

    def _judge(self, position: int, key: str, snapshot: Snapshot, now: datetime) -> list[Verdict]:
        decider, entries = self._deciders[position], self._entries[position]
        old = entries.get(key)
        if decider.concern in self._patience:
            self._judged_at[position, key] = now
            self._put_off.pop((position, key), None)
        outcome = isolated(lambda: self._evaluate(position, key, snapshot, now), snapshot)
        if outcome.changes:
            evaluation = partial(self._evaluate_anew, position, key)
            self._note_aside(outcome.changes, evaluation, now)
        self._failing.pop((position, key), None)
        if outcome.error is not None:
            view: Any = _BROKEN
            pause = SPIN_PAUSE if outcome.unfinished else FAILURE_PAUSE
            verdicts = tuple(_failed(decider.concern, key, outcome.error, snapshot, now + pause))
            self._failing[position, key] = verdicts[0]
            if old is not None and old.view is _BROKEN and not _due(old, now):
                return []
        elif outcome.result is None:
            return []
        else:
            view, verdicts = outcome.result
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
    concern: Concern, key: str, error: Exception, snapshot: Snapshot, again_at: datetime
) -> Iterator[Verdict]:
    """On the key itself, and on the pools that it is about: people look at objects."""
    pools = snapshot.pools if key == CLUSTER else {key} & snapshot.pools.keys()
    subjects = [Subject.of(NODE_POOLS.kind, snapshot.pools[name]) for name in sorted(pools)]
    for subject in (Subject("Judgement", f"{concern}/{key}"), *subjects):
        yield Verdict(
            concern=concern,
            subject=subject,
            reason=Reason.JUDGEMENT_FAILED,
            message=f"the evaluation of {concern}/{key} fails: {described(error)}",
            recheck_at=again_at,
        )


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


def _keys(decider: AnyDecider, snapshot: Snapshot) -> list[str]:
    return list(decider.keys(snapshot))


def _touched_by(decider: AnyDecider, change: Change, snapshot: Snapshot) -> list[str]:
    return list(decider.touched(change, snapshot))


def _observed_by(decider: AnyDecider, subject: Subject, snapshot: Snapshot) -> list[str]:
    return list(decider.observed(subject, snapshot))
