"""A history as readable lines: time, object, reason, and the message.

The short form keeps what moves the story on. A subject is heard of again when its reason
changes; the stations that every node passes are left out, and so are actions that went
well; and what happens to many within a second is one line. The long form is everything,
in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final

from tenure.cli.view.columns import hanging
from tenure.cli.view.tail import SPEAKER
from tenure.core.facts import Fact
from tenure.core.reasons import Reason
from tenure.ports.outcome import Ended
from tenure.sim.history import Entry
from tenure.sim.scenario.context import clock

#: Stations on the usual way, or nothing new: in the long form only.
QUIET: Final = frozenset(
    {
        *(Reason.POOL_CURRENT, Reason.POOL_STATUS_CHANGED),
        *(Reason.WINDOW_CURRENT, Reason.WINDOW_STATUS_CHANGED),
        *(Reason.POOL_POLICY_CURRENT, Reason.POOL_POLICY_STATUS_CHANGED),
        *(Reason.ADOPTING, Reason.LAUNCHING, Reason.LAUNCHED, Reason.NODE_NOT_FOUND),
        *(Reason.REGISTERING, Reason.REGISTERED, Reason.NODE_NOT_READY),
        *(Reason.EPHEMERAL_TAINTS_EXIST, Reason.INITIALIZING, Reason.INSTANCE_KNOWN),
        *(Reason.TAINTING, Reason.SETTLING, Reason.RELEASING),
        *(Reason.BATCHING, Reason.ROOM_SOON, Reason.LEFT_ALONE, Reason.POD_TERMINATING),
    }
)
#: More than so many alike in one second are one line; pods are cattle.
_ALIKE: Final = {"Pod": 1}
_ALIKE_OTHERS: Final = 3
_SUBJECT_WIDTH: Final = 34
_REASON_WIDTH: Final = 22
#: On a narrower terminal there are no columns.
_NARROW: Final = 75


class Lines:
    """Takes entries as they come; gives lines to ``write`` once their instant is over."""

    def __init__(
        self,
        start: datetime,
        write: Callable[[str], object],
        *,
        all_: bool,
        width: int | None = None,
    ) -> None:
        self._start = start
        self._write = write
        self._all = all_
        #: Of the terminal; None where the output is none.
        self._width = width
        self._waiting: list[Entry] = []
        self._last: dict[str, str] = {}
        #: By subject and reason: the last sentence.
        self._heard: dict[tuple[str, str], tuple[Fact, ...]] = {}

    def add(self, entry: Entry) -> None:
        if self._waiting and not self._belongs(entry):
            self.flush()
        self._waiting.append(entry)

    def _belongs(self, entry: Entry) -> bool:
        """Whether it may share a line with what waits."""
        first = self._waiting[0].at
        same = first.replace(microsecond=0) == entry.at.replace(microsecond=0)
        return not self._all and same and entry.source != "script"

    def flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        for line in self._every(waiting) if self._all else self._short(waiting):
            self._write(line)

    def _every(self, entries: list[Entry]) -> Iterator[str]:
        for entry in entries:
            done = f"[{entry.action}{' ' + entry.outcome if entry.outcome else ''}]"
            message = f"{entry.message} {done if entry.action else ''}".strip()
            yield self._line(entry, entry.subject, message)

    def _short(self, entries: list[Entry]) -> Iterator[str]:
        alike: dict[tuple[str, str], list[Entry]] = {}
        for entry in filter(self._is_news, entries):
            alike.setdefault((_kind(entry), entry.reason), []).append(entry)
        shown: list[tuple[datetime, str]] = []
        for (kind, _), group in alike.items():
            # One that is heard of twice is still one object.
            newest = list({entry.subject: entry for entry in group}.values())
            if len(newest) > _ALIKE.get(kind, _ALIKE_OTHERS):
                shown.append((group[0].at, self._together(kind, newest)))
                continue
            for entry in group:
                line = self._line(entry, entry.subject, entry.message or entry.outcome)
                shown.append((entry.at, line))
        yield from (line for _, line in sorted(shown, key=lambda item: item[0]))

    def _together(self, kind: str, group: list[Entry]) -> str:
        first = group[0]
        named = ": ".join(part for part in (_name(first), first.message) if part)
        return self._line(first, f"{len(group)} {kind}s", f"{named}; and {len(group) - 1} more")

    def _is_news(self, entry: Entry) -> bool:
        if entry.source != "tenure":
            return True
        if entry.ended is not None:
            return entry.ended in (Ended.FAILED, Ended.VETOED)
        # A claim is first planned, then lives: the two concerns share a subject.
        if _kind(entry) != SPEAKER.get(entry.reason, _kind(entry)):
            return False  # A Node and its claim have the same news.
        known = self._last.get(entry.subject)
        self._last[entry.subject] = entry.reason
        return entry.reason not in QUIET and entry.reason != known and not self._is_old(entry)

    def _is_old(self, entry: Entry) -> bool:
        """The same facts again, or a pod that is evicted again and again."""
        key = (entry.subject, entry.reason)
        last = self._heard.get(key)
        self._heard[key] = entry.facts
        return last is not None and (_kind(entry) == "Pod" or last == entry.facts)

    def _line(self, entry: Entry, subject: str, message: str) -> str:
        at = clock(entry.at)
        if entry.at.date() != self._start.date():
            at = f"{entry.at:%m-%d} {at}"
        reason = entry.reason
        subject_width, reason_width = _SUBJECT_WIDTH, _REASON_WIDTH
        if self._width is not None and self._width < _NARROW:
            subject_width = reason_width = 0  # The message stands beneath both.
        lead = f"{at}  {subject:<{subject_width}} {reason:<{reason_width}} "
        return "\n".join(hanging(lead, message, self._width))


def _name(entry: Entry) -> str:
    return entry.subject.partition("/")[2]


def _kind(entry: Entry) -> str:
    return entry.subject.partition("/")[0]
