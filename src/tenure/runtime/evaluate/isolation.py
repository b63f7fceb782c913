"""One object must never stop another: find the object that an evaluation fails on.

A decider may look at every object of the cluster under one key. If that raises, whatever it raises:

1. suspect     the innermost frame of the traceback that has an object in hand (``blame``);
2. set aside   a stand-in takes the object's place in the snapshot (``model.unreadable``): from then
               on it counts as one that cannot be read, so it protects what belongs to it;
3. again       the evaluation is repeated, in its own slice of the turn.

Where the frame has one narrowest object, that one is set aside. Where it has several, each is set
aside alone, and put back if the same line fails again.

One mistake makes many objects: the pods of a Deployment, the Deployments of a tenant. So objects
that fail at one line are counted by their sources (``widened``): a namespace, or the object itself
where it has none. With a second pod of one owner, all pods of that owner are set aside; with a third
owner in one namespace, all objects of that kind there. Where more than ``ALIKE_MAX`` sources fail
at one line, the wider object that all have in common is tried in their stead (the pool of Nodes).

Else the line is a fault of ours and no object's: everything that was set aside for it is put back,
and the caller says so loudly. The same after ``TRIES_MAX`` repeats, and where objects of
several owners fail and none of the kind would be left.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.model.api.meta import ApiObject
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.runtime.evaluate.blame import Failure, Line, Place, failure_of
from tenure.runtime.evaluate.setaside import Asides, Evaluation
from tenure.runtime.evaluate.sources import source_of, widened

#: So often one evaluation is repeated before it fails as a whole.
TRIES_MAX: Final = 32
#: So many sources of objects of one kind may fail at one line; with more it is the line that is
#: wrong.
ALIKE_MAX: Final = 4
#: How long no object is suspected for a line that is a fault of ours.
OURS_FOR: Final = timedelta(minutes=10)

#: The position of a decider, and its key.
Work = tuple[int, str]


class _Suspicion(msgspec.Struct):
    """An object that was set aside for a failure."""

    failure: Failure
    #: What it was before.
    original: ApiObject
    stand_in: ApiObject


class _Search(msgspec.Struct):
    """For the objects that one evaluation fails on."""

    tries: int = 0
    set_aside: dict[Place, _Suspicion] = {}
    #: Set aside to see whether the failure is its own, and who else has to be tried.
    trial: Place | None = None
    untried: tuple[Place, ...] = ()


class Isolation:
    def __init__(self) -> None:
        self.asides = Asides()
        self._searches: dict[Work, _Search] = {}
        self._ours: dict[Line, datetime] = {}
        #: What others have not been told yet.
        self._changes: list[Change] = []

    def failed(self, work: Work, error: Exception, snapshot: Snapshot, now: datetime) -> bool:
        """Whether to repeat it, because something was set aside; else all of that is put back."""
        search = self._searches.setdefault(work, _Search())
        search.tries += 1
        failure = failure_of(error, snapshot)
        if search.tries <= TRIES_MAX and self._go_on(search, failure, snapshot, now):
            return True
        self._put_back(search, list(search.set_aside), snapshot)
        return False

    def ended(self, work: Work, evaluation: Evaluation, now: datetime) -> None:
        """The evaluation was done, or has failed for good."""
        search = self._searches.pop(work, None)
        for place, found in search.set_aside.items() if search is not None else ():
            change = Change(place.resource, place.key, found.original, found.stand_in)
            self.asides.note(change, found.failure, evaluation, now)
            self._changes.append(change)

    def take_changes(self) -> list[Change]:
        """Of the snapshot, by what was set aside and put back."""
        changes, self._changes = self._changes, []
        return changes

    def _go_on(self, search: _Search, failure: Failure, snapshot: Snapshot, now: datetime) -> bool:
        if now < self._ours.get(failure.line, now):
            return False
        if search.trial is not None:
            tried = search.set_aside.get(search.trial)
            if tried is not None and tried.failure.line == failure.line:
                self._put_back(search, [search.trial], snapshot)
                return self._try_next(search, failure, snapshot, now)
        search.trial, search.untried = None, ()
        if failure.narrowest > 1:
            search.untried = failure.suspects
            return self._try_next(search, failure, snapshot, now)
        return bool(failure.suspects) and self._suspect(search, failure, snapshot, now)

    def _try_next(
        self, search: _Search, failure: Failure, snapshot: Snapshot, now: datetime
    ) -> bool:
        """Set the next of them aside, alone."""
        if not search.untried:
            self._ours[failure.line] = now + OURS_FOR
            return False
        search.trial, *untried = search.untried
        search.untried = tuple(untried)
        self._set_aside(search, search.trial, failure, snapshot)
        return True

    def _suspect(
        self, search: _Search, failure: Failure, snapshot: Snapshot, now: datetime
    ) -> bool:
        """Set the one narrowest object aside, unless too many have failed at this line by now."""
        suspect = failure.suspects[0]
        alike = {**self.asides.at(failure.line), **self._at(search, failure.line)}
        alike = {p: f for p, f in alike.items() if p != suspect and p.resource == suspect.resource}
        if len({source_of(place) for place in (*alike, suspect)}) <= ALIKE_MAX or failure.of_spec:
            before = {place: self._original(place, search, snapshot) for place in alike}
            places = widened(suspect, before, snapshot)
            if places is None and failure.of_spec:
                places = [suspect]
            if places is None:
                self._put_back(search, alike, snapshot)
                self._changes += self.asides.put_back(alike, snapshot)
                return False
            narrower = [
                p for p, f in self._at(search, failure.line).items() if suspect in f.suspects
            ]
            self._put_back(search, (p for p in narrower if p != suspect), snapshot)  # In vain.
            for place in places:
                self._set_aside(search, place, failure, snapshot)
            return True
        common = set(failure.suspects[1:]).intersection(*(set(f.suspects) for f in alike.values()))
        self._put_back(search, alike, snapshot)
        self._changes += self.asides.put_back(alike, snapshot)
        search.untried = tuple(one for one in failure.suspects if one in common)
        return self._try_next(search, failure, snapshot, now)

    def _original(self, place: Place, search: _Search, snapshot: Snapshot) -> ApiObject | None:
        found = search.set_aside.get(place)
        if found is not None:
            return found.original
        return self.asides.original(place) or snapshot.objects(place.resource).get(place.key)

    @staticmethod
    def _at(search: _Search, line: Line) -> dict[Place, Failure]:
        return {p: s.failure for p, s in search.set_aside.items() if s.failure.line == line}

    def _set_aside(
        self, search: _Search, place: Place, failure: Failure, snapshot: Snapshot
    ) -> None:
        change = snapshot.set_aside(place.resource, place.key, failure.problem, failure.field)
        assert change.old is not None
        assert change.new is not None
        known = search.set_aside.get(place)
        original = known.original if known is not None else change.old
        search.set_aside[place] = _Suspicion(failure, original, change.new)
        self._changes += snapshot.take_followers()

    def _put_back(self, search: _Search, places: Iterable[Place], snapshot: Snapshot) -> None:
        """Those of this search, which no other key was told of."""
        for place in places:
            found = search.set_aside.pop(place, None)
            known = snapshot.objects(place.resource).get(place.key)
            if found is not None and known is found.stand_in:  # Else it has changed meanwhile.
                snapshot.put_back(Change(place.resource, place.key, found.original, None))
        self._changes += snapshot.take_followers()
