"""The journal of a replica in service: the last few thousand entries in memory, and log lines.

A verdict that changed is one line at info, unless only what it would write or when it is looked
at again has changed. What came of an action is debug when it is as expected (done, or the object moved under us), info when the
API or the cloud said no, and a warning when it failed or our own guard refused it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import msgspec

from tenure.core.decision import Concern, Subject, Verdict
from tenure.model.api.meta import BEGINNING
from tenure.ports.outcome import Ended, Outcome
from tenure.runtime.telemetry.logs import Log, Sparing, instant

#: Subjects whose last line is remembered.
REMEMBERED: Final = 10_000
_EXPECTED: Final = frozenset({Ended.OK, Ended.DROPPED, Ended.NO_EFFECT})
_ANSWERS: Final = frozenset({Ended.REFUSED, Ended.HELD})


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


class LoggedJournal:
    def __init__(self, log: Log, sparing: Sparing, size: int) -> None:
        self._log = log
        self._sparing = sparing
        self._entries: deque[Entry] = deque(maxlen=size)
        self._last: OrderedDict[tuple[Concern, Subject], Entry] = OrderedDict()

    def decided(self, now: datetime, verdict: Verdict) -> None:
        entry = _entry(now, verdict)
        name = (verdict.concern, verdict.subject)
        last = self._last.pop(name, None)
        self._last[name] = entry
        if len(self._last) > REMEMBERED:
            self._last.popitem(last=False)
        if last is not None and _words(last) == _words(entry):
            self._log.debug("verdict", **_fields(entry))
            return
        self._entries.append(entry)
        self._log.info("verdict", **_fields(entry))

    def acted(self, now: datetime, verdict: Verdict, outcome: Outcome) -> None:
        entry = msgspec.structs.replace(_entry(now, verdict), outcome=str(outcome))
        self._entries.append(entry)
        if outcome.ended in _EXPECTED:
            self._log.debug("acted", **_fields(entry))
            return
        family = f"{entry.action} {outcome.ended}"
        unsaid = self._sparing.times_unsaid(f"{family} {entry.subject}", family)
        if unsaid is not None:
            say = self._log.info if outcome.ended in _ANSWERS else self._log.warning
            more = {"timesUnsaid": unsaid} if unsaid else {}
            say("acted", **_fields(entry), **more)

    def entries(self, subject: str = "") -> Iterator[Entry]:
        """Oldest first; of one subject, by a part of its name, if asked for."""
        return (entry for entry in self._entries if subject in entry.subject)


def _entry(now: datetime, verdict: Verdict) -> Entry:
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


def _words(entry: Entry) -> Entry:
    """Without what says nothing new."""
    return msgspec.structs.replace(entry, at=BEGINNING, recheck_at=None)


def _blocker(subject: Subject, message: str, until: datetime | None) -> str:
    ends = f" (until {instant(until)})" if until is not None else ""
    return f"{subject}: {message}{ends}"


def _fields(entry: Entry) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(entry)
    del fields["at"]
    return fields
