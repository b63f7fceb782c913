"""The cluster as it is now, for a thread beside the loop: a second set of tables, with the same objects.

A copy for each question would keep the loop for as long as it takes, and what a copy is made of is collected as garbage
in the loop's turns. So one twin is kept: the loop only notes what changes, and the thread catches up before it reads. The
first time the loop copies what is by key alone, and the thread makes the indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from tenure.model.api.resource import Resource
from tenure.model.snapshot.observations import Observations
from tenure.model.snapshot.snapshot import Noted, Snapshot, Tables


class Twin:
    """Empty until it is asked for the first time."""

    def __init__(self, behind: Callable[[], object] = lambda: None) -> None:
        """``behind``: told, in the thread that changes the tables, when the twin should catch up."""
        self._behind = behind
        self._original: Tables | None = None
        self._noted = Noted(behind)
        self._tables = Tables()

    @property
    def exists(self) -> bool:
        return self._original is not None

    @property
    def is_behind(self) -> bool:
        return self._noted.is_many

    def look(self, snapshot: Snapshot) -> Callable[[], Snapshot]:
        """Called by the loop; what it returns is called once, by the thread, and gives the cluster as it is now: until the
        next look is called there."""
        original = snapshot.tables
        objects: Mapping[Resource, dict[str, Any]] | None = None
        if original is not self._original:
            self.forget()
            self._original, self._tables = original, Tables()
            original.noted.append(self._noted)
            objects = {resource: dict(table) for resource, table in original.objects.items()}
        changed, tables = self._noted.take(), self._tables
        unlisted, unreadable = dict(original.unlisted), dict(original.unreadable)
        observations, ours = _aside(snapshot.observations), snapshot.ours

        def caught_up() -> Snapshot:
            if objects is not None:
                tables.fill(objects, original.derived)
            tables.follow(changed, original.derived)
            if tables.unlisted != unlisted:
                tables.derived.of_all.clear()
            tables.unlisted, tables.unreadable = unlisted, unreadable
            return Snapshot(tables, observations, ours=ours)

        return caught_up

    def forget(self) -> None:
        """What it keeps, objects that are gone among it, is let go. A thread may still read what it has."""
        if self._original is not None:
            self._original.noted.remove(self._noted)
        self._original, self._noted, self._tables = None, Noted(self._behind), Tables()


def _aside(known: Observations) -> Observations:
    """Their mappings change with the loop."""
    mappings = {
        name: dict(value)
        for name in known.__struct_fields__
        if isinstance(value := getattr(known, name), Mapping)
    }
    return msgspec.structs.replace(known, **mappings)
