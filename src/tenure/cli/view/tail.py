"""The history as readable lines: what happened, to which object, and why.

Shown are the steps of the story: what users did, and each new reason about a node or a
pod; again when something else is said about it. Of several subjects with the same news at the same instant, the first is named
and the others counted. A Node and its claim often have the same news; only one of them
tells it. Steps that only write something down are left out; ``--json`` has them all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.cli.view import labels as words
from tenure.core.disrupt.facts.candidates import NodeDrifted
from tenure.core.facts import sentence
from tenure.core.reasons import REASONS, Reason
from tenure.sim.history import Entry

#: News about one reason within this time is one line.
TOGETHER: Final = timedelta(milliseconds=500)

#: The same reason about an object is told again after this time at the earliest, if its news are others.
AGAIN: Final = timedelta(seconds=30)

#: Objects and reasons of which is known what was told.
_REMEMBERED: Final = 20_000

#: Verdicts worth a line although Kubernetes has no event for them.
_ALSO_TOLD: Final = frozenset(
    {
        Reason.LAUNCHED,
        Reason.REGISTERED,
        Reason.IN_SERVICE,
        Reason.TAINTING,
        Reason.SETTLING,
        Reason.INSTANCE_TERMINATING,
    }
)
#: Every pending pod has one of these; the claim it needs says the same more shortly.
_SAID_ELSEWHERE: Final = frozenset({Reason.NOMINATED})

TOLD: Final = _ALSO_TOLD | {r for r, info in REASONS.items() if info.event} - _SAID_ELSEWHERE

#: Whose verdict is told where a Node and its claim, or its pods, have the same reason.
SPEAKER: Final[Mapping[str, str]] = {
    Reason.DRAINING: "Node",
    Reason.SETTLING: "Node",
    Reason.INSTANCE_TERMINATING: "Node",
    Reason.RELEASING: "NodeClaim",
    Reason.EVICTION_REFUSED: "Node",
    Reason.IN_SERVICE: "NodeClaim",
    Reason.UNHEALTHY: "Node",
    Reason.DISRUPTION_BLOCKED: "NodeClaim",
    Reason.REPAIR_DUE: "Node",
    Reason.UNCONSOLIDATABLE: "Node",
    Reason.REPLACING: "Node",
    Reason.REPLACED: "Node",
}


class Line(msgspec.Struct, frozen=True, kw_only=True):
    at: datetime
    source: str
    subject: str
    reason: str
    message: str
    #: How many more subjects the same is said of.
    others: int = 0

    @property
    def who(self) -> str:
        name = self.subject.rpartition("/")[2]
        return f"{name} and {self.others} more" if self.others else name


class Tail:
    """Collects lines as entries come; ``recent`` keeps the newest for a screen."""

    def __init__(self, keep: int = 200) -> None:
        self.recent: deque[Line] = deque(maxlen=keep)
        #: By subject and reason: what was told of it, and when.
        self._told: dict[tuple[str, str], tuple[object, datetime]] = {}
        self._waiting: dict[object, Line] = {}

    def hear(self, entry: Entry) -> None:
        if entry.source == "tenure" and not self._news(entry):
            return
        key = (entry.subject.partition("/")[0], entry.reason, _alone(entry))
        same = self._waiting.get(key)
        if entry.source == "tenure" and same is not None:
            self._waiting[key] = msgspec.structs.replace(same, others=same.others + 1)
            return
        self._waiting[key] = Line(
            at=entry.at,
            source=entry.source,
            subject=entry.subject,
            reason=entry.reason,
            message=words.short(_news_of(entry), entry.at),
        )

    def take(self, now: datetime) -> list[Line]:
        """Lines that nothing can be added to any more, oldest first."""
        done = [key for key, line in self._waiting.items() if line.at + TOGETHER <= now]
        lines = [self._waiting.pop(key) for key in done]
        self.recent.extend(lines)
        return lines

    def _news(self, entry: Entry) -> bool:
        """A verdict (not its outcome) that says something else than the last one for its reason."""
        if entry.ended is not None or entry.reason not in TOLD:
            return False
        kind = entry.subject.partition("/")[0]
        if kind != SPEAKER.get(entry.reason, kind):
            return False
        key, news = (entry.subject, entry.reason), _gist(entry)
        known = self._told.get(key)
        if known is not None and (known[0] == news or entry.at < known[1] + AGAIN):
            return False
        self._told.pop(key, None)  # The one that was told last is forgotten last.
        self._told[key] = news, entry.at
        if len(self._told) > _REMEMBERED:
            del self._told[next(iter(self._told))]
        return True


def _gist(entry: Entry) -> object:
    """As for events: a new time of the next retry is no news."""
    return tuple(fact.gist() for fact in entry.facts if fact.news) or entry.message


def _alone(entry: Entry) -> object:
    """What several have to have in common to share a line: the cause, and of a warning all of it."""
    warns = entry.source == "tenure" and REASONS[Reason(entry.reason)].event == "Warning"
    return (entry.facts or entry.message) if warns else tuple(map(type, entry.facts))


def _news_of(entry: Entry) -> str:
    """Without how the node has drifted: its claim has told that already."""
    if len(entry.facts) > 1 and isinstance(entry.facts[0], NodeDrifted):
        return sentence(entry.facts[1:])
    return entry.message
