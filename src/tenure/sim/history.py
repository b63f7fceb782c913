"""What happened, in order: the journal of a simulated cluster.

Entries come from Tenure (verdicts that changed, actions that ended), from the cluster
(what an observer would see) and from the script. The history is the product
of a simulation: the same seed and commit give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import msgspec

from tenure.core.decision import Verdict
from tenure.core.facts import Fact
from tenure.ports.clock import Clock
from tenure.ports.journal import Journal
from tenure.ports.outcome import Ended, Outcome


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    at: datetime
    #: ``tenure``, ``cluster``, ``cloud`` or ``script``.
    source: str
    #: ``Kind/name`` or ``Kind/namespace/name``.
    subject: str
    #: A stable code: a verdict's reason, or what happened in one word.
    reason: str
    message: str = ""
    #: What the message was made of, where it is a verdict's.
    facts: tuple[Fact, ...] = ()
    #: For an action: its verb and how it ended.
    action: str = ""
    outcome: str = ""
    ended: Ended | None = None


class History:
    """A ``Journal`` that keeps everything, and tells listeners as it happens."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.entries: list[Entry] = []
        self._listeners: list[Callable[[Entry], object]] = []
        self._journals: list[Journal] = []

    def listen(self, listener: Callable[[Entry], object]) -> None:
        self._listeners.append(listener)

    def tell(self, journal: Journal) -> None:
        """Another journal that hears the same of Tenure."""
        self._journals.append(journal)

    def decided(self, now: datetime, verdict: Verdict) -> None:
        for journal in self._journals:
            journal.decided(now, verdict)
        self._add(
            Entry(
                at=now,
                source="tenure",
                subject=str(verdict.subject),
                reason=verdict.reason,
                message=verdict.message,
                facts=verdict.facts,
                action=type(verdict.action).__name__ if verdict.action else "",
            )
        )

    def acted(self, now: datetime, verdict: Verdict, outcome: Outcome) -> None:
        for journal in self._journals:
            journal.acted(now, verdict, outcome)
        self._add(
            Entry(
                at=now,
                source="tenure",
                subject=str(verdict.subject),
                reason=verdict.reason,
                action=type(verdict.action).__name__,
                outcome=str(outcome),
                ended=outcome.ended,
            )
        )

    def note(self, source: str, subject: str, reason: str, message: str = "") -> None:
        """Something that the cluster, the cloud or the script did."""
        self._add(
            Entry(
                at=self._clock.now(), source=source, subject=subject, reason=reason, message=message
            )
        )

    def _add(self, entry: Entry) -> None:
        self.entries.append(entry)
        for listener in self._listeners:
            listener(entry)
