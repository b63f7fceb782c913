"""Evaluates one key of one decider: its view, then its verdicts, unless the view is unchanged.

A decider that fails is a fault of ours. The object that it fails on is set aside (``isolation``), and
the key is evaluated without it. A key that fails all the same gets a verdict that says so, and is
tried again when its view changes or after a while.

A decider in steps may be suspended between two of them (``suspended``). If it fails after that, what it failed on may have
changed or be gone by now: it is begun anew once, before an object is suspected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from tenure.core.decider import AnyDecider, InSteps, Prepares
from tenure.core.decision import Verdict
from tenure.core.unreadable.failclosed import fail_closed
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.runtime.evaluate.blame import described
from tenure.runtime.evaluate.facts import EvaluationFails
from tenure.runtime.evaluate.failures import failed_verdicts
from tenure.runtime.evaluate.isolation import Isolation
from tenure.runtime.evaluate.results import Result, Results, Work
from tenure.runtime.evaluate.suspended import CONFIRMED, UNFINISHED, OnItsWay, Suspended
from tenure.runtime.evaluate.verdicts import VerdictId, VerdictsInForce, verdict_id

#: A recheck that is not in the future would make the loop spin: it is deferred by this much.
SPIN_PAUSE: Final = timedelta(seconds=1)

#: The view of a key that failed.
_BROKEN: Final = object()

Evaluated = tuple[Any, tuple[Verdict, ...]]


class KeyEvaluation:
    def __init__(
        self,
        deciders: Sequence[AnyDecider],
        settings: Settings,
        *,
        results: Results,
        isolation: Isolation,
        verdicts: VerdictsInForce,
    ) -> None:
        self._deciders = deciders
        #: By decider: itself, where it prepares views, and where it decides in steps.
        self._prepares = [one if isinstance(one, Prepares) else None for one in deciders]
        self._in_steps = [one if isinstance(one, InSteps) else None for one in deciders]
        self._settings = settings
        self._results = results
        self._isolation = isolation
        self._verdicts = verdicts
        self._failing: dict[Work, Verdict] = {}
        self.suspended = Suspended()
        #: Keys that failed after they had been suspended, and were begun anew.
        self._begun_anew: set[Work] = set()
        #: Keys whose verdicts in force are not all of one view.
        self._unfinished: set[Work] = set()

    def failing(self) -> list[Verdict]:
        """The verdicts on keys that fail as a whole."""
        return list(self._failing.values())

    def evaluate(
        self,
        work: Work,
        snapshot: Snapshot,
        now: datetime,
        *,
        force: bool,
        enough: Callable[[], bool] = lambda: False,
    ) -> list[Verdict] | None:
        """The verdicts that are new or different; None: repeat it, an object was set aside, or may have changed.

        ``force``: evaluate even where the view is unchanged. ``enough``: asked after each step of a decider in
        steps; then it is suspended, and the next call goes on with it.
        """
        one = self.suspended.get(work)
        began = one.began_at if one is not None else now
        try:
            evaluated = self._evaluated(work, snapshot, now, force=force, enough=enough)
            if work in self.suspended:
                return self._said(work, snapshot) if self.suspended.get(work) is not None else []
        except Exception as error:  # noqa: BLE001  # one bad object must not stop the others
            self.suspended.cut(work)
            if one is not None and work not in self._begun_anew:
                self._begun_anew.add(work)
                return None
            if self._isolation.failed(work, error, snapshot, now):
                return None
            evaluated = self._broken(work, error, snapshot, now)
        self._isolation.ended(work, partial(self._evaluate_again, work), now)
        self._begun_anew.discard(work)
        self._failing.pop(work, None)
        self.suspended.ended(work)
        return self._kept(work, evaluated, began, now) if evaluated is not None else []

    def _evaluated(
        self,
        work: Work,
        snapshot: Snapshot,
        now: datetime,
        *,
        force: bool,
        enough: Callable[[], bool],
    ) -> Evaluated | None:
        """The key's view and verdicts; None where the last result still holds."""
        if (on_its_way := self.suspended.get(work)) is not None:
            return self._stepped(work, on_its_way, snapshot, enough)
        position, key = work
        decider, old = self._deciders[position], self._results.get(work)
        if (prepares := self._prepares[position]) is not None:
            steps = prepares.preparing(snapshot, key)
            if not self.suspended.prepare(work, steps, enough):
                return None
        view = decider.view(snapshot, key)
        if old is not None and view == old.view and not (force or old.is_due(now)):
            return None
        if view is None:
            # Most keys have nothing to decide, before and now.
            return None if old is None else (None, ())
        if (in_steps := self._in_steps[position]) is not None:
            progress = self.suspended.progress_of(work)
            deciding = in_steps.deciding(view, self._settings, now, progress)
            begun = self.suspended.begun(work, view, deciding, progress, now)
            # A view of the whole cluster may take as long as is enough.
            return None if enough() else self._stepped(work, begun, snapshot, enough)
        return view, fail_closed(tuple(decider.decide(view, self._settings, now)), snapshot)

    def _stepped(
        self, work: Work, one: OnItsWay, snapshot: Snapshot, enough: Callable[[], bool]
    ) -> Evaluated | None:
        """None where it is suspended."""
        one.progress.view_now = partial(self._look, work, one, snapshot) if one.unseen else None
        found = one.step(enough)
        if found is None:
            return None
        self.suspended.ended(work)
        if not (one.stale or one.progress.remembers):
            return one.view, fail_closed(found, snapshot)
        if one.progress.confirms:
            return CONFIRMED, fail_closed(found, snapshot)
        # An older view has a part in it: the key is to be evaluated once more.
        self.suspended.note_said(work, one.take_said())
        return UNFINISHED, fail_closed(found, snapshot)

    def _look(self, work: Work, one: OnItsWay, snapshot: Snapshot) -> Any:
        """The view as it is by now."""
        one.seen()
        return self._deciders[work[0]].view(snapshot, work[1])

    def _said(self, work: Work, snapshot: Snapshot) -> list[Verdict]:
        """What a key that is suspended has said since it was suspended the last time is in force.

        Once a moment of that has come, its view counts as changed.
        """
        one = self.suspended.get(work)
        assert one is not None
        new, old = fail_closed(one.take_said(), snapshot), self._results.get(work)
        if not new and old is not None and work in self._unfinished:
            return []  # As it was.
        # Of a subject on which it has said nothing yet, the last verdict stays.
        before = old.verdicts if old is not None else ()
        verdicts = tuple({verdict_id(said): said for said in (*before, *new)}.values())
        self._results.keep(work, Result(UNFINISHED, verdicts, _next(verdicts, one.began_at)))
        self._unfinished.add(work)
        self.suspended.note_said(work, new)
        return self._verdicts.replace((), new)

    def is_unfinished(self, work: Work) -> bool:
        """Whether its verdicts in force are not all of one view, or of an older one."""
        result = self._results.get(work)
        return work in self._unfinished or (result is not None and result.view is CONFIRMED)

    def held_back(self, left_over: Iterable[Work] = ()) -> set[VerdictId]:
        """Verdicts that are not acted upon: of an evaluation that has not ended, and not said in this turn.

        ``left_over``: keys that are still to be evaluated.
        """
        results = (self._results.get(work) for work in left_over)
        held: set[VerdictId] = {
            verdict_id(one)
            for result in results
            if result is not None
            for one in result.verdicts
            if one.action is not None
        }
        for work in self._unfinished:
            result, said = self._results.get(work), self.suspended.said(work)
            verdicts = result.verdicts if result is not None else ()
            held |= {verdict_id(one) for one in verdicts if one.action is not None} - said
        return held

    def _evaluate_again(self, work: Work, snapshot: Snapshot, now: datetime) -> object:
        """Raises if it still fails."""
        decider = self._deciders[work[0]]
        view = decider.view(snapshot, work[1])
        return view and decider.decide(view, self._settings, now)

    def _broken(self, work: Work, error: Exception, snapshot: Snapshot, now: datetime) -> Evaluated:
        position, key = work
        concern = self._deciders[position].concern
        fails = EvaluationFails(concern, key, described(error))
        return _BROKEN, tuple(failed_verdicts(concern, key, key, fails, snapshot, now))

    def _kept(
        self, work: Work, evaluated: Evaluated, began: datetime, now: datetime
    ) -> list[Verdict]:
        """``began``: of which instant the verdicts are."""
        old, (view, verdicts) = self._results.get(work), evaluated
        self._unfinished.discard(work)
        if view is UNFINISHED:
            self._unfinished.add(work)
        if view is _BROKEN:
            self._failing[work] = verdicts[0]
            if old is not None and old.view is _BROKEN and not old.is_due(now):
                return []
        if view is None:
            self._results.drop(work)
        else:
            self._results.keep(work, Result(view, verdicts, _earliest(verdicts, began, now)))
        return self._verdicts.replace(old.verdicts if old else (), verdicts)


def _earliest(verdicts: Iterable[Verdict], began: datetime, now: datetime) -> datetime | None:
    """When the key is due. A moment that has come since it began has come too late for it: it is due at once."""
    earliest = min((v.recheck_at for v in verdicts if v.recheck_at is not None), default=None)
    return earliest if earliest is None or earliest > began else now + SPIN_PAUSE


def _next(verdicts: Iterable[Verdict], after: datetime) -> datetime | None:
    instants = (one.recheck_at for one in verdicts)
    return min((at for at in instants if at is not None and at > after), default=None)
