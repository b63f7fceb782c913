"""Evaluates one key of one decider: its view, then its verdicts, unless the view is unchanged.

A decider that fails is a fault of ours. The object that it fails on is set aside (``isolation``), and
the key is evaluated without it. A key that fails all the same gets a verdict that says so, and is
tried again when its view changes or after a while.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from tenure.core.decider import AnyDecider, InSteps
from tenure.core.decision import Verdict
from tenure.core.unreadable.failclosed import fail_closed
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.runtime.evaluate.blame import described
from tenure.runtime.evaluate.facts import EvaluationFails
from tenure.runtime.evaluate.failures import failed_verdicts
from tenure.runtime.evaluate.isolation import Isolation
from tenure.runtime.evaluate.results import Result, Results, Work
from tenure.runtime.evaluate.verdicts import VerdictsInForce

#: A recheck that is not in the future would make the loop spin: it is deferred by this much.
SPIN_PAUSE: Final = timedelta(seconds=1)

#: The view of a key that failed.
_BROKEN: Final = object()

Evaluated = tuple[Any, tuple[Verdict, ...]]
Steps = Iterator[Sequence[Verdict] | None]


class _Suspended(Exception):  # no error: it goes on in the next slice
    pass


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
        self._settings = settings
        self._results = results
        self._isolation = isolation
        self._verdicts = verdicts
        self._failing: dict[Work, Verdict] = {}
        #: The key that is suspended: its view, and the steps that are left.
        self._suspended: tuple[Work, Any, Steps] | None = None

    def begin(self) -> None:
        """A turn begins: what the last one left suspended is evaluated anew."""
        self._suspended = None

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
        """The verdicts that are new or different; None: repeat it, an object was set aside, or it is enough
        for now and the rest is to be done in another slice.

        ``force``: evaluate even where the view is unchanged.
        """
        try:
            evaluated = self._evaluated(work, snapshot, now, force=force, enough=enough)
        except _Suspended:
            return None
        except Exception as error:  # noqa: BLE001  # one bad object must not stop the others
            self._suspended = None
            if self._isolation.failed(work, error, snapshot, now):
                return None
            evaluated = self._broken(work, error, snapshot, now)
        self._isolation.ended(work, partial(self._evaluate_again, work), now)
        self._failing.pop(work, None)
        return self._kept(work, evaluated, now) if evaluated is not None else []

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
        if self._suspended is not None and self._suspended[0] == work:
            _, view, steps = self._suspended
            return view, fail_closed(self._stepped(work, view, steps, enough), snapshot)
        position, key = work
        decider, old = self._deciders[position], self._results.get(work)
        view = decider.view(snapshot, key)
        if old is not None and view == old.view and not (force or old.is_due(now)):
            return None
        if view is None:
            # Most keys have nothing to decide, before and now.
            return None if old is None else (None, ())
        if isinstance(decider, InSteps):
            steps = decider.deciding(view, self._settings, now)
            return view, fail_closed(self._stepped(work, view, steps, enough), snapshot)
        return view, fail_closed(tuple(decider.decide(view, self._settings, now)), snapshot)

    def _stepped(
        self, work: Work, view: Any, steps: Steps, enough: Callable[[], bool]
    ) -> tuple[Verdict, ...]:
        """What the last step gives. Meanwhile the cluster may change: the next turn sees that."""
        self._suspended = work, view, steps
        for found in steps:
            if found is not None:
                self._suspended = None
                return tuple(found)
            if enough():
                raise _Suspended
        raise AssertionError("the last step gives the verdicts")

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

    def _kept(self, work: Work, evaluated: Evaluated, now: datetime) -> list[Verdict]:
        old, (view, verdicts) = self._results.get(work), evaluated
        if view is _BROKEN:
            self._failing[work] = verdicts[0]
            if old is not None and old.view is _BROKEN and not old.is_due(now):
                return []
        if view is None:
            self._results.drop(work)
        else:
            self._results.keep(work, Result(view, verdicts, _earliest(verdicts, now)))
        return self._verdicts.replace(old.verdicts if old else (), verdicts)


def _earliest(verdicts: Iterable[Verdict], now: datetime) -> datetime | None:
    earliest = min((v.recheck_at for v in verdicts if v.recheck_at is not None), default=None)
    return earliest if earliest is None or earliest > now else now + SPIN_PAUSE
