"""What is known of a cluster that is read: its objects, what the cloud said, and what is missing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from copy import copy
from typing import TypeVar

from tenure.errors import SpecError, TenureError
from tenure.kube.cache.cache import Cache
from tenure.model.snapshot.snapshot import EVERY_CLASS, Snapshot
from tenure.ports.provider import Provider
from tenure.runtime.observe.store import ObservationStore

T = TypeVar("T")


class Seen:
    def __init__(
        self,
        cache: Cache,
        provider: Provider,
        notes: list[str],
        *,
        beside: bool = False,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """``beside``: Tenure runs beside Karpenter, and looks at every node class; ``wake``: something was observed."""
        self.observations = ObservationStore(wake)
        #: What could not be read, a sentence each.
        self.notes = notes
        self._tables = cache.tables
        served = frozenset(kind.group_kind for kind in provider.node_classes)
        self._ours = EVERY_CLASS if beside else served

    def noting(self, notes: list[str]) -> Seen:
        """The same, with other notes."""
        other = copy(self)
        other.notes = notes
        return other

    def snapshot(self) -> Snapshot:
        return Snapshot(self._tables, self.observations.current(), ours=self._ours)


async def or_note(
    attempt: Callable[[], Awaitable[T]], otherwise: T, what: str, notes: list[str]
) -> T:
    """Its answer; where there is none, a note says so."""
    try:
        return await attempt()
    except SpecError:
        raise
    except TenureError as error:
        notes.append(f"{what} could not be found out: {error}")
        return otherwise
