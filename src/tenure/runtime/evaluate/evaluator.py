"""Evaluates only what changed or fell due: the deciders, their keys and the queue between them.

``dirtykeys`` finds the keys, ``onekey`` evaluates one of them, ``results`` has the last result of
each, ``deferral`` puts a burst of changes off, ``verdicts`` has what is in force. Here is the
order: what is left out, what is repeated, and where to stop for a moment.

A key that takes long is suspended and goes on in the next turns, after all other keys (``suspended``): no
other key waits for its end. Where there are very many keys, some are left over for the next turn (``leftover``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from tenure.core.decider import AnyDecider, Patience
from tenure.core.decision import Concern, Subject, Verdict
from tenure.model.api.resource import Resource
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.runtime.evaluate.blame import Place
from tenure.runtime.evaluate.deferral import Deferrals
from tenure.runtime.evaluate.dirtykeys import Dirty, DirtyKeys
from tenure.runtime.evaluate.isolation import Isolation
from tenure.runtime.evaluate.leftover import LeftOver
from tenure.runtime.evaluate.onekey import KeyEvaluation
from tenure.runtime.evaluate.results import Results, Work
from tenure.runtime.evaluate.suspended import SLICE, OnItsWay
from tenure.runtime.evaluate.verdicts import VerdictsInForce, verdict_id

#: So many rounds a turn makes because objects were set aside; the rest waits for the next turn.
ROUNDS_MAX: Final = 4


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
        self._deciders = tuple(deciders)
        self._stopwatch = stopwatch
        self._evaluated = evaluated
        self.verdicts = VerdictsInForce()
        self.results = Results(len(self._deciders))
        self._isolation = Isolation()
        self._deferrals = Deferrals(self._deciders, patience or {}, settings.placement_gap)
        self._dirty = DirtyKeys(
            self._deciders,
            unmoved or {},
            results=self.results,
            deferrals=self._deferrals,
            isolation=self._isolation,
            verdicts=self.verdicts,
        )
        self._one_key = KeyEvaluation(
            self._deciders,
            settings,
            results=self.results,
            isolation=self._isolation,
            verdicts=self.verdicts,
        )
        self._pending: deque[Work] = deque()
        #: Objects that were set aside and are to be tried again in this turn.
        self._retries: deque[Place] = deque()
        self._leave_out: Collection[Concern] = ()
        #: By decider, the keys that were left out of a turn.
        self._left_out: Dirty = [{} for _ in self._deciders]
        #: Keys that are to be evaluated again in the next turn.
        self._again: dict[Work, None] = {}
        self._left_over = LeftOver()
        #: By the stopwatch.
        self._turn_began = 0.0
        self._rounds = 0
        self._started = False
        #: Whether the next turn evaluates every key, even where the view is the same.
        self._everything = False
        self._force = False

    def evaluate(
        self,
        snapshot: Snapshot,
        changes: Iterable[Change],
        observed: Iterable[Subject],
        now: datetime,
        leave_out: Collection[Concern] = (),
    ) -> list[Verdict]:
        """One turn as a whole, however long it takes; return the verdicts that are new or different."""
        self.begin(snapshot, changes, observed, now, leave_out)
        self._left_over.leave_nothing()
        return self.resume(snapshot, now)

    def begin(
        self,
        snapshot: Snapshot,
        changes: Iterable[Change],
        observed: Iterable[Subject],
        now: datetime,
        leave_out: Collection[Concern] = (),
    ) -> None:
        """Find the keys to evaluate in this turn; ``resume`` evaluates them.

        The verdicts of a concern that is left out stay; its keys wait for a turn with it.
        """
        self._leave_out, self._rounds, self._turn_began = leave_out, 1, self._stopwatch()
        self._one_key.suspended.begin_turn()
        left_over = self._left_over.begin_turn(now)
        self._force = self._everything or (self._force and bool(left_over))
        self._retries.extend(self._isolation.asides.due(snapshot, now))
        aside = self._isolation.take_changes()
        dirty = self._find(snapshot, [*changes, *aside], observed, now)
        ready = self._deferrals.take_ready(now)
        due = [
            work for work in self.results.take_due(now) if not self._deferrals.is_prolonged(work)
        ]
        again, self._again = self._again, {}
        for position, key in (*due, *again):
            dirty[position].setdefault(key)
        waited: Dirty = [{} for _ in self._deciders]
        for position, key in left_over:
            waited[position][key] = None
        self._queue([old | new for old, new in zip(waited, dirty, strict=True)], ready, now)

    def resume(
        self, snapshot: Snapshot, now: datetime, enough: Callable[[], bool] = lambda: False
    ) -> list[Verdict]:
        """Evaluate until nothing is pending, or until it is enough for now: at least one key, or a step of one. After a
        while the rest is left over for the next turn, but for keys that are suspended.

        Between two calls the cluster may change: a key is evaluated on what is known then, and what
        changed is evaluated in the next turn.
        """
        changed = self._dirty.take_news()
        while self._pending or self._retries:
            if self._pending:
                changed += self._evaluate_next(snapshot, now, enough)
            else:
                self._retry(self._retries.popleft(), snapshot, now)
            if self._left_over.may_end(self._stopwatch() - self._turn_began):
                self._leave_over()
            if not self._pending:
                self._follow_asides(snapshot, now)
            if enough():
                break
        return self.verdicts.latest(changed)

    @property
    def unfinished(self) -> int:
        """How many keys of this turn are still to be evaluated."""
        return len(self._pending) + len(self._retries)

    @property
    def goes_on(self) -> bool:
        """Whether a key is suspended, left over, or to be evaluated again at once: the next turn is due."""
        return bool(self._one_key.suspended or self._left_over or self._again)

    @property
    def starts_over(self) -> bool:
        """Whether the clock was set during this turn: its verdicts do not count."""
        return self._everything

    def start_over(self) -> None:
        """The wall clock was set: the next turn evaluates everything."""
        self._everything = True
        self._deferrals.clear()

    def take_ended(self) -> list[Verdict]:
        return self.verdicts.take_ended()

    def aside(self) -> VerdictsInForce:
        """The verdicts as they are now, for a thread beside the loop."""
        return self.verdicts.aside()

    def in_force(self) -> Iterator[Verdict]:
        return iter(self.verdicts)

    def about(self, kind: str, name: str, namespace: str = "") -> list[Verdict]:
        return self.verdicts.about(kind, name, namespace)

    def touched_subjects(self, since: int) -> tuple[list[str] | None, int]:
        """Subjects (``Kind/namespace/name``) whose verdicts have changed after this change; None: any may have. And
        the last change."""
        return self.verdicts.touched.since(since), self.verdicts.touched.number

    def actionable(self) -> list[Verdict]:
        """Verdicts that ask for an action, the urgent ones first; none that a suspended key said in an
        earlier turn, and none of a key that is left over."""
        held = self._one_key.held_back(self._left_over)
        found = self.verdicts.actionable()
        return [one for one in found if verdict_id(one) not in held] if held else found

    def failing(self) -> list[Verdict]:
        """The verdicts on keys that fail as a whole, and on deciders that cannot list theirs."""
        return [*self._dirty.failing(), *self._one_key.failing()]

    def next_recheck(self) -> datetime | None:
        """When to evaluate again if nothing happens before."""
        instants = [
            self._deferrals.next_at(),
            self._dirty.next_at(),
            self.results.next_at(),
            self._isolation.asides.next_at(),
        ]
        return min((at for at in instants if at is not None), default=None)

    def _find(
        self,
        snapshot: Snapshot,
        changes: Iterable[Change],
        observed: Iterable[Subject],
        now: datetime,
    ) -> Dirty:
        if self._started and not self._everything:
            return self._dirty.found(snapshot, changes, observed, now)
        self._started, self._everything = True, False
        self._one_key.suspended.forget()
        return self._dirty.everything(snapshot, now)

    def _queue(self, dirty: Dirty, ready: Iterable[Work] = (), now: datetime | None = None) -> None:
        """``ready``: keys that changes concern which have waited; ``now``: where a turn begins."""
        self._touch(dirty, ready, now)
        for position, keys in enumerate(dirty):
            if not (due := self._left_out[position] | keys):
                continue  # Most of them.
            left_out = self._deciders[position].concern in self._leave_out
            self._left_out[position] = due if left_out else {}
            if not left_out:
                self._pending.extend((position, key) for key in due)
        if now is not None:  # After all others.
            self._pending.extend(
                work
                for work in self._one_key.suspended.works()
                if self._deciders[work[0]].concern not in self._leave_out
            )

    def _touch(self, dirty: Dirty, ready: Iterable[Work], now: datetime | None) -> None:
        """Keys that are suspended are not begun, unless it is time to begin them anew."""
        suspended = self._one_key.suspended
        for work in ready:
            if work in suspended:
                suspended.touch(work, may_wait=True)
            else:
                dirty[work[0]].setdefault(work[1])
        for position, key in suspended.works():
            if key in dirty[position]:
                suspended.touch((position, key))
                del dirty[position][key]
            # What is created meanwhile cannot be seen by it, unless it looks again at its end.
            left_out = self._deciders[position].concern in self._leave_out
            if suspended.confirms((position, key)):
                if left_out or self._deferrals.waits((position, key)):
                    suspended.touch((position, key), may_wait=not left_out)
            elif left_out or (now is not None and suspended.is_too_old((position, key), now)):
                suspended.cut((position, key))
                dirty[position][key] = None

    def _evaluate_next(
        self, snapshot: Snapshot, now: datetime, enough: Callable[[], bool]
    ) -> list[Verdict]:
        work = self._pending.popleft()
        began, going_on = self._stopwatch(), self._one_key.suspended.get(work)

        def is_over() -> bool:
            return self._stopwatch() - began >= SLICE or enough()

        changed = self._one_key.evaluate(work, snapshot, now, force=self._force, enough=is_over)
        if going_on is None:
            self._deferrals.evaluated(work, now, at_rest=self.results.get(work) is None)
        if changed is None:
            self._pending.appendleft(work)  # Repeated in a slice of its own.
        elif work not in self._one_key.suspended:
            self._ended(work, going_on, now)
        if took := self._stopwatch() - began:
            self._evaluated(self._deciders[work[0]].concern, work[1], took)
        return changed or []

    def _leave_over(self) -> None:
        """Keys that are suspended have a slice in each turn."""
        suspended = self._one_key.suspended
        self._left_over.leave(
            (*self._left_over, *(one for one in self._pending if one not in suspended))
        )
        self._pending = deque(one for one in self._pending if one in suspended)

    def _ended(self, work: Work, one: OnItsWay | None, now: datetime) -> None:
        """``one``: it was suspended."""
        again = self._one_key.is_unfinished(work)
        if one is None and not again:
            return
        waits = self._deferrals.ended(work, now, again=again)
        if again and (not waits or (one is not None and one.touched)):
            self._again[work] = None

    def _retry(self, place: Place, snapshot: Snapshot, now: datetime) -> None:
        changes = list(self._isolation.asides.try_again(place, snapshot, now))
        self._queue(self._dirty.changed(snapshot, changes, now))

    def _follow_asides(self, snapshot: Snapshot, now: datetime) -> None:
        """An object that was set aside makes a difference to other keys, in the same turn."""
        if self._rounds >= ROUNDS_MAX or not (aside := self._isolation.take_changes()):
            return
        self._rounds += 1
        self._queue(self._dirty.changed(snapshot, aside, now))
