"""What a decider is: a concern, the keys it evaluates, the view of one key, the verdicts.

A view contains only what the verdicts may depend on, so a hidden dependency is impossible: if two
evaluations have equal views, the old verdicts stay valid until their ``recheck_at``. So the loop
evaluates again only what has changed or is due. The property test "incremental equals full"
checks this for every decider.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from tenure.core.decision import Concern, Subject, Verdict
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot

V = TypeVar("V")


class Decider(Protocol[V]):
    @property
    def concern(self) -> Concern: ...

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        """Every key that can be evaluated."""
        ...

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        """The keys whose view a change of the cluster may have altered; too many is fine."""
        ...

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        """The keys whose view an observation about this subject may have altered."""
        ...

    def view(self, snapshot: Snapshot, key: str) -> V | None:
        """What the verdicts on this key depend on; None when there is nothing to decide."""
        ...

    def decide(self, view: V, settings: Settings, now: datetime) -> Sequence[Verdict]:
        """One verdict per subject, in an order that does not depend on ``now``."""
        ...


AnyDecider = Decider[Any]


class Progress:
    """How far an evaluation in steps has come. It may be begun anew on another view before it has ended."""

    def __init__(self) -> None:
        #: Since it was begun the last time.
        self.said: list[Verdict] = []
        #: What was asked in vain, by what it was about, with the answer: nothing is done about it. Begun anew,
        #: it is not asked again, so that the evaluation ends however often the cluster changes.
        self.refused: dict[Hashable, Any] = {}
        #: Whether an answer of before it was begun anew has counted.
        self.remembers = False
        #: Gives the view as it is by now, where it may have changed since the evaluation was begun, or since it looked
        #: the last time; None: it has not.
        self.view_now: Callable[[], Any] | None = None
        #: It compares what it has found with the view by then, before it says so: that may be done although the view
        #: is another one than at the beginning. So it is never begun anew.
        self.confirms = False

    def begin_anew(self) -> None:
        self.said, self.remembers, self.confirms = [], False, False


@runtime_checkable
class InSteps(Protocol):
    """A decider that may take long over one key: it can be suspended between two steps."""

    def deciding(
        self, view: Any, settings: Settings, now: datetime, progress: Progress
    ) -> Iterator[Sequence[Verdict] | None]:
        """None for each step; the last gives what ``decide`` does.

        What was said until then is in ``progress``: a verdict that is there holds whatever comes after it, and
        to act upon it before the others are there is as if the process had crashed between two writes.
        """
        ...


@runtime_checkable
class Prepares(Protocol):
    """A decider whose view takes long where much has changed: it is prepared in steps, between which it can be suspended."""

    def preparing(self, snapshot: Snapshot, key: str) -> Iterator[None]:
        """Derive what the view consists of, some objects in each step; it is kept beside them (``Snapshot.derived``).

        The view is the same without it. Between two steps the cluster may change: what is new is for the view.
        """
        ...


class Patience(NamedTuple):
    """Which changes a concern may delay, so that a burst of them is evaluated once."""

    may_wait: Callable[[Change], bool]
    #: The delay, as a multiple of ``settings.placement_gap``.
    gaps: int = 1
    #: The same after an evaluation that had nothing to decide; 0: as long.
    gaps_at_rest: int = 0
    #: Kinds of subjects whose observations may wait as well.
    observed: frozenset[str] = frozenset()
    #: Changes for which a recheck waits, too: nothing falls due while more of them come.
    prolongs: Callable[[Change], bool] = lambda _: False
