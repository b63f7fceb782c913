"""The journal of a replica in service: the last few thousand entries in memory, and log lines.

A verdict that changed is one line at info, unless only what it would write or when it is looked
at again has changed. Lines are limited (``linelimit``): what is above the limit is said later by its newest verdict
alone, with the number of those left out. What came of an action is debug when it is as expected (done, or the object
moved under us), info when the API or the cloud said no, and a warning when it failed or our own guard refused it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import msgspec

from tenure.core.decision import Concern, Subject, Verdict
from tenure.ports.outcome import Ended, Outcome
from tenure.runtime.telemetry.linelimit import LineLimit, LineRate
from tenure.runtime.telemetry.logs import Log, Sparing, instant
from tenure.runtime.telemetry.ring import Entry, Ring, entry_of

#: Subjects whose last line is remembered.
REMEMBERED: Final = 10_000
#: Seconds between two lines that say how many others were left out.
SUMMARY_PERIOD: Final = 10.0
_EXPECTED: Final = frozenset({Ended.OK, Ended.DROPPED, Ended.NO_EFFECT})
_ANSWERS: Final = frozenset({Ended.REFUSED, Ended.HELD})

_Name = tuple[Concern, Subject]


class _Told(msgspec.Struct):
    """What the log knows of one concern of a subject."""

    #: The newest, said or not.
    entry: Entry
    verdict: Verdict
    #: What another verdict is compared with.
    gist: object
    rate: LineRate
    #: Changes since the last line.
    unsaid: int = 0


class LoggedJournal:
    def __init__(self, log: Log, sparing: Sparing, limit: LineLimit, size: int) -> None:
        self._log = log
        self._debug = log.is_enabled_for(logging.DEBUG)
        self._sparing = sparing
        self._limit = limit
        self._entries = Ring(size)
        self._told: OrderedDict[_Name, _Told] = OrderedDict()
        #: Whose newest verdict is not in the log yet, in the order in which they came.
        self._waiting: dict[_Name, None] = {}
        self._left_out = 0

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(SUMMARY_PERIOD)
            self.catch_up()

    def decided(self, now: datetime, verdict: Verdict) -> None:
        name = (verdict.concern, verdict.subject)
        told = self._told.get(name)
        if told is not None and not self._debug and _is_same(told.verdict, verdict):
            # Only when it is looked at again: the case of nearly all pods while others arrive.
            self._told.move_to_end(name)
            return
        entry = entry_of(now, verdict)
        self._told.pop(name, None)
        gist = _gist(verdict, entry)
        changed = told is None or told.gist != gist
        rate, unsaid = (told.rate, told.unsaid) if told else (LineRate(), 0)
        told = _Told(entry, verdict, gist, rate, unsaid)
        self._remember(name, told)
        if not changed:
            self._say_to_debug(entry)
            return
        self._entries.append(entry)
        told.unsaid += 1
        if not self._say(name, told):
            self._waiting[name] = None
            self._limit.withheld()
            self._say_to_debug(entry)

    def _say_to_debug(self, entry: Entry) -> None:
        if self._debug:
            self._log.debug("verdict", **_fields(entry))

    def acted(self, now: datetime, verdict: Verdict, outcome: Outcome) -> None:
        entry = msgspec.structs.replace(entry_of(now, verdict), outcome=str(outcome))
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

    def catch_up(self) -> None:
        """Say the newest verdict of each subject that had to wait, as far as the limit allows, and
        in one line how many were left out and how many still wait."""
        for name in list(self._waiting):
            told = self._told[name]
            decided_at = instant(told.entry.at)
            self._say(name, told, decidedAt=decided_at)
        if self._left_out or self._waiting:
            self._log.info(
                "verdicts left out", leftOut=self._left_out, stillWaiting=len(self._waiting)
            )
        self._left_out = 0

    def entries(self, subject: str = "") -> Iterator[Entry]:
        """Oldest first; of one subject, by a part of its name, if asked for."""
        return (entry for entry in self._entries if subject in entry.subject)

    def since(self, number: int) -> tuple[Iterator[Entry], int]:
        """Entries from that number on, oldest first; and the number of the next one."""
        return iter(self._entries.after(number)), self._entries.next

    def _say(self, name: _Name, told: _Told, **more: Any) -> bool:
        _, subject = name
        if not self._limit.take(told.rate, subject.kind):
            return False
        if left_out := told.unsaid - 1:
            more["timesUnsaid"] = left_out
        self._log.info("verdict", **_fields(told.entry), **more)
        self._forget(name, told, left_out)
        return True

    def _remember(self, name: _Name, told: _Told) -> None:
        self._told[name] = told
        if len(self._told) > REMEMBERED:
            oldest, forgotten = self._told.popitem(last=False)
            self._forget(oldest, forgotten, forgotten.unsaid)

    def _forget(self, name: _Name, told: _Told, left_out: int) -> None:
        self._left_out += left_out
        told.unsaid = 0
        self._waiting.pop(name, None)


def _is_same(old: Verdict, new: Verdict) -> bool:
    """Whether an entry would differ in nothing but instants of ours."""
    return (
        old.reason is new.reason
        and old.facts == new.facts
        and old.blockers == new.blockers
        and type(old.action) is type(new.action)
    )


def _gist(verdict: Verdict, entry: Entry) -> object:
    """Without what says nothing new."""
    facts = tuple(fact.gist() for fact in verdict.facts)
    blockers = tuple((one.subject, one.fact.gist(), one.until) for one in verdict.blockers)
    return entry.reason, facts, blockers, entry.action


def _fields(entry: Entry) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(entry)
    del fields["at"]
    return fields
