"""What a decider is: a concern, the keys it judges, the view of one key, the judgement.

A view holds only what the judgement may depend on, so a hidden dependency cannot be
written: if two looks give equal views, the old verdicts still hold until their
``recheck_at``. That is what lets the loop re-judge only what changed or fell due, and
the property "incremental equals full" holds every decider to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeVar

from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.unreadable.failclosed import fail_closed
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot

V = TypeVar("V")


class Decider(Protocol[V]):
    @property
    def concern(self) -> Concern: ...

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        """Every key there is to judge."""
        ...

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        """The keys whose view a change of the cluster may have altered; too many is fine."""
        ...

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        """The keys whose view an observation about this subject may have altered."""
        ...

    def view(self, snapshot: Snapshot, key: str) -> V | None:
        """What the judgement of this key depends on; None when there is nothing to judge."""
        ...

    def decide(self, view: V, settings: Settings, now: datetime) -> Sequence[Verdict]:
        """One verdict per subject, in an order that does not depend on ``now``."""
        ...


AnyDecider = Decider[Any]


class Patience(NamedTuple):
    """Which changes a concern may leave for a moment, so that a burst of them is judged once."""

    may_wait: Callable[[Change], bool]
    #: For so many times ``settings.placement_gap``.
    gaps: int = 1


def decide_all(
    decider: AnyDecider, snapshot: Snapshot, settings: Settings, now: datetime
) -> list[Verdict]:
    """Judge every key from nothing: what the incremental way must be equal to.

    What a decider raises is raised: who has to live with it asks ``isolation``.
    """
    verdicts: list[Verdict] = []
    for key in sorted(set(decider.keys(snapshot))):
        view = decider.view(snapshot, key)
        if view is not None:
            verdicts += fail_closed(tuple(decider.decide(view, settings, now)), snapshot)
    return verdicts
