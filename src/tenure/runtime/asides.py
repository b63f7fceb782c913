"""Objects that were set aside because evaluating them failed: who, and when they are tried again.

A stand-in stays until its object changes. It is tried again now and then all the same, because
what failed may have been about another object that has changed: behind the scenes, with the very
evaluation that failed, so that nobody sees the object come and go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.isolation import Place
from tenure.model.meta import ApiObject
from tenure.model.snapshot import Change, Snapshot
from tenure.model.unreadable import is_unreadable

#: From a failure to the next try, twice as long each time.
PAUSE_MIN: Final = timedelta(minutes=1)
PAUSE_MAX: Final = timedelta(hours=1)
#: So many are tried at once: each costs an evaluation.
TRIES_MAX: Final = 4

#: Raises if the evaluation still fails.
Evaluation = Callable[[Snapshot, datetime], object]


class _Aside(msgspec.Struct):
    original: ApiObject
    stand_in: ApiObject
    evaluation: Evaluation
    again_at: datetime
    pause: timedelta = PAUSE_MIN


class Asides:
    def __init__(self) -> None:
        self._known: dict[Place, _Aside] = {}

    def note(self, changes: Iterable[Change], evaluation: Evaluation, now: datetime) -> None:
        """These were set aside by that evaluation, or put back."""
        for change in changes:
            place = Place(change.resource, change.key)
            known = self._known.get(place)
            if change.new is None or not is_unreadable(change.new):
                self._known.pop(place, None)
            elif known is not None and known.stand_in is change.old:
                known.stand_in = change.new
            elif change.old is not None:
                self._known[place] = _Aside(change.old, change.new, evaluation, now + PAUSE_MIN)

    def next_at(self) -> datetime | None:
        return min((aside.again_at for aside in self._known.values()), default=None)

    def tried_again(self, snapshot: Snapshot, now: datetime) -> Iterator[Change]:
        """Who can be evaluated by now, as changes of the snapshot."""
        tried = 0
        for place, aside in list(self._known.items()):
            if snapshot.objects(place.resource).get(place.key) is not aside.stand_in:
                del self._known[place]  # It has changed, or is gone.
            elif aside.again_at <= now and tried < TRIES_MAX:
                tried += 1
                yield from self._try(place, aside, snapshot, now)

    def _try(
        self, place: Place, aside: _Aside, snapshot: Snapshot, now: datetime
    ) -> Iterator[Change]:
        there = Change(place.resource, place.key, aside.original, aside.stand_in)
        change = snapshot.put_back(there)
        try:
            aside.evaluation(snapshot, now)
        except Exception:  # noqa: BLE001  # still, for whatever reason
            snapshot.put_back(Change(place.resource, place.key, aside.stand_in, None))
            aside.pause = min(2 * aside.pause, PAUSE_MAX)
            aside.again_at = now + aside.pause
        else:
            del self._known[place]
            yield change
