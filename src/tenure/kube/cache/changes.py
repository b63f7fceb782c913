"""The changes that no turn has taken yet.

Changes of one object between two turns are one change. A turn takes so many of each kind, the oldest first, and the next
turn follows at once: thousands of pods that come in the same instant make no turn long, and what
happens to a Node or a claim does not wait behind them.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice
from typing import Final

from tenure.model.api.resource import Resource
from tenure.model.snapshot.snapshot import Change

#: So many changes of each kind one turn takes: some 15 ms.
CHANGES_MAX: Final = 500

#: Where an object is kept.
Place = tuple[Resource, str]
#: An object that went and its namesake that came are two changes: by key and UID.
_Name = tuple[str, str]


class Changes:
    def __init__(self) -> None:
        self._by_kind: dict[Resource, dict[_Name, Change]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_kind.values()))

    def earlier(self, change: Change) -> Change | None:
        """A change of the same object that was not taken yet."""
        return self._by_kind.get(change.resource, {}).get(_name(change))

    def note(self, change: Change) -> None:
        """In the place of an earlier one, if there is: an object that changes all the time has its turn, too."""
        self._by_kind.setdefault(change.resource, {})[_name(change)] = change

    def drop(self, change: Change) -> None:
        """The object came and went unseen."""
        self._by_kind.get(change.resource, {}).pop(_name(change), None)

    def take(
        self, acted_upon: Collection[Place] = (), most: int | None = CHANGES_MAX
    ) -> list[Change]:
        """``acted_upon``: places whose changes are taken in any case. ``most``: of each kind; None: all."""
        taken: list[Change] = []
        for resource, waiting in self._by_kind.items():
            if most is None or len(waiting) <= most:
                taken += waiting.values()
                waiting.clear()
                continue
            first = set(islice(waiting, most))
            names = [one for one in waiting if one in first or (resource, one[0]) in acted_upon]
            taken += [waiting.pop(name) for name in names]
        return taken

    def clear(self) -> None:
        self._by_kind.clear()


def _name(change: Change) -> _Name:
    side = change.new or change.old
    return change.key, side.uid if side is not None else ""
