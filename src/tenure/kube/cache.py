"""The informers' objects and our own writes, merged by version, with a list of changes.

A write's answer is put in at once, so that the next turn sees what we did. An older
version that the watch delivers afterwards is dropped: reads may be stale, never go back.
"""

from __future__ import annotations

from collections.abc import Callable

from tenure.model.meta import ApiObject
from tenure.model.resource import Resource
from tenure.model.snapshot import Change, Tables

#: How many deletions are remembered; an answer that comes later than that many is lost anyway.
GONE_MAX = 10_000


class Cache:
    def __init__(self, wake: Callable[[], None] = lambda: None) -> None:
        self.tables = Tables()
        self._changes: list[Change] = []
        #: Called whenever there is something new to judge.
        self.wake = wake
        # UIDs that the watch said are gone: a late answer to a write must not bring them back.
        self._gone: dict[tuple[Resource, str], str] = {}

    def replace(self, resource: Resource, items: list[ApiObject]) -> None:
        """A list is the whole truth: what it lacks was deleted."""
        listed = {item.key for item in items}
        known = [*self.tables.table(resource)]
        known += [key for kind, key in self.tables.unreadable if kind == resource]
        for key in known:
            if key not in listed:
                self._note(self.tables.remove(resource, key))
        for item in items:
            self.upsert(resource, item)

    def upsert(self, resource: Resource, item: ApiObject) -> None:
        key = item.key
        current: ApiObject | None = self.tables.table(resource).get(key)
        if current is not None and current.uid == item.uid and not newer(item, current):
            return
        if self._gone.get((resource, key)) == item.uid:
            return
        self._note(self.tables.put(resource, item))

    def remove(self, resource: Resource, item: ApiObject) -> None:
        key = item.key
        self._remember_gone(resource, key, item.uid)
        current: ApiObject | None = self.tables.table(resource).get(key)
        if current is not None and current.uid != item.uid:
            return  # A new object of the same name is already here.
        self._note(self.tables.remove(resource, key))

    def take_changes(self) -> list[Change]:
        """What happened since the last call."""
        changes, self._changes = self._changes, []
        return changes

    @property
    def changed(self) -> bool:
        return bool(self._changes)

    def _remember_gone(self, resource: Resource, key: str, uid: str) -> None:
        self._gone[resource, key] = uid
        if len(self._gone) > GONE_MAX:
            del self._gone[next(iter(self._gone))]

    def _note(self, change: Change) -> None:
        if change.old is not None or change.new is not None:
            self._changes.append(change)
            self.wake()


def newer(item: ApiObject, than: ApiObject) -> bool:
    """Versions of one API server are numbers that grow."""
    return int(item.metadata.resource_version or 0) > int(than.metadata.resource_version or 0)
