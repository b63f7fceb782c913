"""The newest entries of the journal, in memory: so many in all, and so many of one subject.

Without the second bound, one object that changes many times a second pushes out what is known of all others.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from datetime import datetime
from typing import Final

import msgspec

from tenure.core.decision import Concern, Subject, Verdict
from tenure.ports.outcome import Outcome
from tenure.runtime.telemetry.logs import instant

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


class RingJournal:
    """A ``Journal`` that is only kept, and said to no log."""

    def __init__(self, size: int) -> None:
        self._entries = Ring(size)

    def decided(self, now: datetime, verdict: Verdict) -> None:
        self._entries.append(entry_of(now, verdict))

    def acted(self, now: datetime, verdict: Verdict, outcome: Outcome) -> None:
        entry = entry_of(now, verdict)
        self._entries.append(msgspec.structs.replace(entry, outcome=str(outcome)))

    def since(self, number: int) -> tuple[Iterator[Entry], int]:
        """Entries from that number on, oldest first; and the number of the next one."""
        return iter(self._entries.after(number)), self._entries.next


def entry_of(now: datetime, verdict: Verdict) -> Entry:
    return Entry(
        at=now,
        concern=verdict.concern,
        subject=str(verdict.subject),
        reason=verdict.reason.value,
        because=verdict.message,
        blockers=tuple(_blocker(b.subject, b.message, b.until) for b in verdict.blockers),
        action=type(verdict.action).__name__ if verdict.action is not None else "",
        recheck_at=instant(verdict.recheck_at),
    )


def _blocker(subject: Subject, message: str, until: datetime | None) -> str:
    ends = f" (until {instant(until)})" if until is not None else ""
    return f"{subject}: {message}{ends}"
