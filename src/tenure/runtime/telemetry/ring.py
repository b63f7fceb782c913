"""The newest entries of the journal, in memory: so many in all, and so many of one subject.

Without the second bound, one object that changes many times a second pushes out what is known of all others.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from datetime import datetime
from typing import Final

import msgspec

from tenure.core.decision import Concern

#: Entries of one subject.
SUBJECT_MAX: Final = 32


class Entry(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One line of the journal; actions by their verb only."""

    at: datetime
    concern: Concern
    subject: str
    reason: str
    because: str
    blockers: tuple[str, ...] = ()
    action: str = ""
    recheck_at: str | None = None
    outcome: str = ""


class Ring:
    def __init__(self, size: int) -> None:
        self._size = size
        self._entries: OrderedDict[int, Entry] = OrderedDict()
        self._next = 0
        #: The numbers of each subject's entries, oldest first.
        self._of: dict[str, deque[int]] = {}

    def append(self, entry: Entry) -> None:
        numbers = self._of.setdefault(entry.subject, deque())
        numbers.append(self._next)
        self._entries[self._next] = entry
        self._next += 1
        if len(numbers) > SUBJECT_MAX:
            del self._entries[numbers.popleft()]
        if len(self._entries) > self._size:
            _, oldest = self._entries.popitem(last=False)
            self._of[oldest.subject].popleft()
            if not self._of[oldest.subject]:
                del self._of[oldest.subject]

    @property
    def next(self) -> int:
        """The number of the next entry."""
        return self._next

    def after(self, number: int) -> list[Entry]:
        """Those from that number on, oldest first."""
        found: list[Entry] = []
        for one in reversed(self._entries):
            if one < number:
                break
            found.append(self._entries[one])
        return found[::-1]

    def __iter__(self) -> Iterator[Entry]:
        """Oldest first."""
        return iter(self._entries.values())
