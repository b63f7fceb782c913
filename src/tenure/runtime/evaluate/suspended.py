"""Evaluations that are suspended: they go on in later turns, on the view that they began with.

What is said until then is in force, and acted upon in the turn in which it is said, and in no later one: what the
action was about may have changed, and only the end of the evaluation would tell. An evaluation whose key may
have another view by now is begun anew after a while. What it asked in vain it does not ask again (``Progress``), so
it ends, however often the cluster changes; then it is evaluated once more, without what it remembers.

Before it begins, what its view consists of is prepared, which can be suspended as well: then there is no view yet.

An evaluation that says nothing of use before its end is never begun anew: it compares what it found with the view by
then (``Progress.view_now``), and what still holds is acted upon until it is evaluated once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from tenure.core.decider import Progress
from tenure.core.decision import Verdict
from tenure.runtime.evaluate.results import Work
from tenure.runtime.evaluate.verdicts import VerdictId, verdict_id

#: So long an evaluation goes on although its view may have changed.
AGE_MAX: Final = timedelta(seconds=2)
#: Seconds after which it begins no further step in one turn. A step takes a few milliseconds, so that a slice takes 20.
SLICE: Final = 0.015

#: The view of a key whose verdicts are not all of that view.
UNFINISHED: Final = object()
#: The view of a key that was decided on an older one and compared with the latest: its verdicts are acted upon.
CONFIRMED: Final = object()

Steps = Iterator[Sequence[Verdict] | None]


class OnItsWay(msgspec.Struct):
    view: Any
    steps: Steps
    progress: Progress
    began_at: datetime
    #: How much was refused before it was begun.
    known: int
    #: How much of what it said is in force.
    in_force: int = 0
    #: Whether its view may have changed: by a change that may not wait, or by any.
    touched: bool = False
    stale: bool = False
    #: Whether it may have changed since the evaluation looked at it the last time (``Progress.view_now``).
    unseen: bool = False

    def step(self, enough: Callable[[], bool]) -> tuple[Verdict, ...] | None:
        """What the last step gives; None: it is enough for now."""
        for found in self.steps:
            if found is not None:
                return tuple(found)
            if enough():
                return None
        raise AssertionError("the last step gives the verdicts")

    def seen(self) -> None:
        """It has looked at the view as it is by now."""
        self.unseen, self.progress.view_now = False, None

    def take_said(self) -> tuple[Verdict, ...]:
        """What is not in force yet."""
        new = tuple(self.progress.said[self.in_force :])
        self.in_force += len(new)
        return new


class Suspended:
    def __init__(self) -> None:
        self._on_its_way: dict[Work, OnItsWay] = {}
        #: Of those that are to be begun anew.
        self._earlier: dict[Work, Progress] = {}
        #: By key: the verdicts that were said in this turn.
        self._said: dict[Work, set[VerdictId]] = {}
        #: Those whose view is being prepared.
        self._preparing: dict[Work, Iterator[None]] = {}

    def __contains__(self, work: Work) -> bool:
        return work in self._on_its_way or work in self._preparing

    def __bool__(self) -> bool:
        return bool(self._on_its_way or self._preparing)

    def works(self) -> list[Work]:
        return [*self._on_its_way, *self._preparing]

    def get(self, work: Work) -> OnItsWay | None:
        """None: there is no view yet, or it is not suspended."""
        return self._on_its_way.get(work)

    def prepare(self, work: Work, steps: Iterator[None], enough: Callable[[], bool]) -> bool:
        """Whether the view is prepared. ``steps``: where it has not begun yet."""
        steps = self._preparing.setdefault(work, steps)
        for _ in steps:
            if enough():
                return False
        del self._preparing[work]
        return True

    def begin_turn(self) -> None:
        self._said.clear()

    def progress_of(self, work: Work) -> Progress:
        """Of an evaluation that is begun."""
        progress = self._earlier.pop(work, None) or Progress()
        progress.begin_anew()
        return progress

    def begun(
        self, work: Work, view: Any, steps: Steps, progress: Progress, now: datetime
    ) -> OnItsWay:
        one = OnItsWay(view, steps, progress, now, len(progress.refused))
        self._on_its_way[work] = one
        return one

    def ended(self, work: Work) -> None:
        self._on_its_way.pop(work, None)
        self._earlier.pop(work, None)
        self._preparing.pop(work, None)

    def confirms(self, work: Work) -> bool:
        """Whether it compares what it has found with the view by then."""
        one = self._on_its_way.get(work)
        return one is not None and one.progress.confirms

    def touch(self, work: Work, *, may_wait: bool = False) -> None:
        """Its view may have changed."""
        if (one := self._on_its_way.get(work)) is None:
            return  # It has none yet.
        one.stale = one.unseen = True
        one.touched |= not may_wait

    def is_too_old(self, work: Work, now: datetime) -> bool:
        """Never before it has found out something that it need not ask again: so it ends."""
        if (one := self._on_its_way.get(work)) is None:
            return False
        found = len(one.progress.refused) > one.known
        return one.stale and found and not timedelta(0) <= now - one.began_at < AGE_MAX

    def cut(self, work: Work) -> None:
        """It is to be begun anew."""
        self._preparing.pop(work, None)
        one = self._on_its_way.pop(work, None)
        if one is not None:
            self._earlier[work] = one.progress

    def forget(self) -> None:
        """The wall clock was set."""
        self._on_its_way.clear()
        self._earlier.clear()
        self._preparing.clear()

    def note_said(self, work: Work, verdicts: Sequence[Verdict]) -> None:
        self._said.setdefault(work, set()).update(map(verdict_id, verdicts))

    def said(self, work: Work) -> set[VerdictId]:
        """In this turn."""
        return self._said.get(work, set())
