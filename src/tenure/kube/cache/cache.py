"""The informers' objects and our own writes, merged by version, with a list of changes.

A write's answer is put in at once, so that the next turn sees what we did. Reads may be
stale but never go back; in order:

* an older version than the one that is here is dropped, from a watch or a write;
* an object that is gone stays gone: by the watch's word (its UID is remembered), or
  because a list of a later version lacked it;
* a list is the whole truth up to its version: what is newer than it stays.

A change of no field that we read (a heartbeat) does not wake the loop; it is kept here until an action
depends on that object, because then its version counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, Final

import msgspec

from tenure.kube.cache.changes import Changes, Place
from tenure.model.api.meta import ApiObject
from tenure.model.api.resource import Resource
from tenure.model.snapshot.governed import Govern, as_written
from tenure.model.snapshot.snapshot import Change, Tables

#: How many deletions are remembered; an answer that comes later than that many is lost anyway.
GONE_MAX: Final = 10_000


class Cache:
    def __init__(
        self,
        wake: Callable[[], None] = lambda: None,
        readers: Mapping[Resource, Sequence[Callable[[Any], object]]] = {},
        govern: Govern | None = None,
    ) -> None:
        self.tables = Tables(readers, govern=govern)
        #: Called whenever there is something new to evaluate.
        self.wake = wake
        self._changes = Changes()
        self._quiet: dict[Place, Change] = {}
        # UIDs that the watch said are gone: a late answer to a write must not bring them back.
        self._gone: dict[Place, str] = {}
        # The version of each kind's newest list.
        self._listed: dict[Resource, int] = {}

    def replace(self, resource: Resource, items: list[ApiObject], version: str) -> None:
        """A list is the whole truth about its version: what it lacks was deleted by then."""
        at = number_of(version)
        if at < self._listed.get(resource, 0):
            at = 0  # The server was set back to an older state: what we have is from no future.
        listed = {item.key for item in items}
        for key in self._keys(resource):
            known = self._current(resource, key)
            if key not in listed and known is not None and (not at or version_of(known) <= at):
                self._drop(resource, known)
        for item in items:
            current = self._current(resource, item.key)
            if current is None or not at or newer(item, current):
                self._put(resource, item, current)
        self._listed[resource] = number_of(version)
        self.list_failed(resource, "")

    def list_failed(self, resource: Resource, why: str) -> None:
        """What is here stays; there may be more. A list that succeeds ends it."""
        if self.tables.list_failed(resource, why):
            # No object: every decider that reads the kind has to look again.
            self._changes.note(Change(resource, "", None, None))
            self._note_followers()
            self.wake()

    def upsert(self, resource: Resource, item: ApiObject) -> None:
        """Take a version in, from the watch or from the answer to a write."""
        current = self._current(resource, item.key)
        if current is None:
            if not self._was_deleted(resource, item):
                self._put(resource, item, None)
        elif newer(item, current):
            self._put(resource, item, current)

    def remove(self, resource: Resource, item: ApiObject) -> None:
        current = self._current(resource, item.key)
        if current is not None and item.uid in ("", current.uid):
            self._drop(resource, current)
        else:  # A new object of the same name is already here, or none.
            self._remember_gone(resource, item)

    def versions(self, resource: Resource) -> dict[str, str]:
        """The version of everything that is here, by key."""
        known = {key: self._current(resource, key) for key in self._keys(resource)}
        return {key: one.metadata.resource_version for key, one in known.items() if one is not None}

    def take_changes(
        self, acted_upon: Iterable[Place] = (), most: int | None = None
    ) -> list[Change]:
        """What happened since the last call; changes of the version alone only of these places.

        ``most``: of each kind; the rest is for the next call. None: all.
        """
        places = dict.fromkeys(acted_upon)
        waited = (self._quiet.pop(place, None) for place in places)
        return self._changes.take(places, most) + [one for one in waited if one is not None]

    @property
    def behind(self) -> bool:
        """Whether there are changes that were not taken."""
        return bool(len(self._changes))

    def forget_changes(self) -> None:
        self._changes.clear()
        self._quiet.clear()

    def _keys(self, resource: Resource) -> list[str]:
        return [*self.tables.table(resource)]

    def _current(self, resource: Resource, key: str) -> ApiObject | None:
        current: ApiObject | None = self.tables.table(resource).get(key)
        return current

    def _was_deleted(self, resource: Resource, item: ApiObject) -> bool:
        if item.uid and self._gone.get((resource, item.key)) == item.uid:
            return True
        return 0 < version_of(item) <= self._listed.get(resource, 0)

    def _put(self, resource: Resource, item: ApiObject, current: ApiObject | None) -> None:
        if current is not None and item.uid and current.uid not in ("", item.uid):
            self._drop(resource, current)  # Its namesake: the old one went, a new one came.
        quiet = current is not None and _looks_the_same(as_written(current), item)
        self._note(self.tables.put(resource, item, unchanged=quiet), quiet=quiet)

    def _drop(self, resource: Resource, current: ApiObject) -> None:
        self._remember_gone(resource, current)
        self._note(self.tables.remove(resource, current.key))

    def _remember_gone(self, resource: Resource, item: ApiObject) -> None:
        if item.uid:
            self._gone[resource, item.key] = item.uid
        if len(self._gone) > GONE_MAX:
            del self._gone[next(iter(self._gone))]

    def _note(self, change: Change, *, quiet: bool = False) -> None:
        self._note_one(change, quiet=quiet)
        self._note_followers()

    def _note_followers(self) -> None:
        for follower in self.tables.take_followers():
            self._note_one(follower)

    def _note_one(self, change: Change, *, quiet: bool = False) -> None:
        if change.new is None and change.old is None:
            return
        place = (change.resource, change.key)
        earlier = self._changes.earlier(change)
        quiet = quiet and earlier is None
        earlier = earlier or self._quiet.pop(place, None)
        if earlier is not None:
            change = Change(change.resource, change.key, earlier.old, change.new)
        if quiet:
            self._quiet[place] = change
        elif change.old is not None or change.new is not None:
            self._changes.note(change)
            self.wake()
        elif earlier is not None:
            self._changes.drop(earlier)  # It came and went unseen.


def newer(item: ApiObject, than: ApiObject) -> bool:
    """Versions of one API server are numbers that grow; one that has none is taken as new."""
    version = version_of(item)
    return not version or version > version_of(than)


def version_of(item: ApiObject) -> int:
    return number_of(item.metadata.resource_version)


def number_of(version: str) -> int:
    """Versions of one API server are numbers that grow; 0 for what is none."""
    return int(version) if version.isdigit() else 0


#: Compared by itself, or said by a watch and left out by a list.
_BESIDE: Final = ("metadata", "kind", "api_version")


def _looks_the_same(old: ApiObject | None, new: ApiObject | None) -> bool:
    """Whether no evaluation can tell the two apart: of what we read, only the version differs."""
    if old is None or new is None or type(old) is not type(new):
        return False
    version = old.metadata.resource_version
    if msgspec.structs.replace(new.metadata, resource_version=version) != old.metadata:
        return False
    content = _content_of(type(new))
    return content(old) == content(new)


@cache
def _content_of(type_: type[ApiObject]) -> Callable[[ApiObject], object]:
    """Everything that an object of this type says beside who it is."""
    return attrgetter(*(field for field in type_.__struct_fields__ if field not in _BESIDE))
