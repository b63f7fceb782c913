"""Objects that were set aside because evaluating them failed: which, and when they are tried again.

A stand-in stays until its object changes. It is tried again now and then all the same, because
what failed may have been about another object that has changed: behind the scenes, with the very
evaluation that failed, so that no decider sees the object come and go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.model.api.meta import ApiObject
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.runtime.evaluate.blame import Failure, Line, Place

#: From a failure to the next try, twice as long each time.
PAUSE_MIN: Final = timedelta(minutes=1)
PAUSE_MAX: Final = timedelta(hours=1)
#: So many are tried in one turn: each costs an evaluation. The others wait for a moment.
TRIES_MAX: Final = 4
LEFT_OVER_PAUSE: Final = timedelta(seconds=10)

#: Raises if the evaluation still fails.
Evaluation = Callable[[Snapshot, datetime], object]


class _Aside(msgspec.Struct):
    original: ApiObject
    stand_in: ApiObject
    failure: Failure
    evaluation: Evaluation
    again_at: datetime
    pause: timedelta = PAUSE_MIN


class Asides:
    def __init__(self) -> None:
        self._known: dict[Place, _Aside] = {}

    def note(self, change: Change, failure: Failure, evaluation: Evaluation, now: datetime) -> None:
        """It was set aside because that evaluation failed."""
        assert change.old is not None
        assert change.new is not None
        place = Place(change.resource, change.key)
        known = self._known.get(place)
        if known is not None and known.stand_in is change.old:
            known.stand_in = change.new  # One that says even less.
        else:
            again_at = now + PAUSE_MIN
            self._known[place] = _Aside(change.old, change.new, failure, evaluation, again_at)

    def at(self, line: Line) -> dict[Place, Failure]:
        """Those that were set aside because this line failed."""
        return {p: a.failure for p, a in self._known.items() if a.failure.line == line}

    def original(self, place: Place) -> ApiObject | None:
        """The object in whose place a stand-in is."""
        aside = self._known.get(place)
        return aside.original if aside is not None else None

    def next_at(self) -> datetime | None:
        return min((aside.again_at for aside in self._known.values()), default=None)

    def due(self, snapshot: Snapshot, now: datetime) -> Iterator[Place]:
        """Those to try again in this turn."""
        tried = 0
        for place, aside in list(self._known.items()):
            if not _stands(place, aside, snapshot):
                del self._known[place]  # It has changed, or is gone.
            elif aside.again_at <= now and tried < TRIES_MAX:
                tried += 1
                yield place
            elif aside.again_at <= now:
                aside.again_at = now + LEFT_OVER_PAUSE

    def try_again(self, place: Place, snapshot: Snapshot, now: datetime) -> Iterator[Change]:
        """The change of the snapshot if the object can be evaluated by now."""
        aside = self._known.get(place)
        if aside is None or not _stands(place, aside, snapshot):
            return
        change = snapshot.put_back(
            Change(place.resource, place.key, aside.original, aside.stand_in)
        )
        try:
            aside.evaluation(snapshot, now)
        except Exception:  # noqa: BLE001  # still, for whatever reason
            snapshot.put_back(Change(place.resource, place.key, aside.stand_in, None))
            aside.pause = min(2 * aside.pause, PAUSE_MAX)
            aside.again_at = now + aside.pause
        else:
            del self._known[place]
            yield change
        yield from snapshot.take_followers()

    def put_back(self, places: Iterable[Place], snapshot: Snapshot) -> Iterator[Change]:
        """They were set aside for a fault of ours."""
        for place in places:
            aside = self._known.pop(place, None)
            if aside is not None and _stands(place, aside, snapshot):
                yield snapshot.put_back(
                    Change(place.resource, place.key, aside.original, aside.stand_in)
                )
                yield from snapshot.take_followers()


def _stands(place: Place, aside: _Aside, snapshot: Snapshot) -> bool:
    return snapshot.objects(place.resource).get(place.key) is aside.stand_in
