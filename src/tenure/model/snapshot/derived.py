"""The one place where what was derived from objects is kept, beside the objects themselves.

Objects never change, they are replaced: what follows from one object alone is derived once.

1. Only what is derived from an object in the tables is kept. ``Tables`` admits an object when it
   comes, and drops it with everything derived from it when it is replaced or deleted.
2. A version that differs from the former in nothing that we read (a heartbeat) takes over what was
   derived from it.
3. What follows from many objects and is kept up by those who ask for it is ``lasting``: each time that it is asked, it
   compares what it was made of with what is there, by identity, or is told which Nodes to look at (``touched``).
4. This spares work and nothing else: verdicts are the same without it. For an object that is not in
   the tables, everything is derived anew each time.

It may be asked beside the loop: what is derived from an object that has just been dropped is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar, TypeVarTuple

from tenure.model.api.meta import ApiObject

T = TypeVar("T", bound=ApiObject)
V = TypeVar("V")
T_contra = TypeVar("T_contra", bound=ApiObject, contravariant=True)
V_co = TypeVar("V_co", covariant=True)
Given = TypeVarTuple("Given")


class Derivation(Generic[T_contra, V_co, *Given]):
    """A pure function of an object, and of what else is given. It must not read the version."""

    __slots__ = ("derive", "name")

    def __init__(self, name: str, derive: Callable[[T_contra, *Given], V_co]) -> None:
        self.name = name
        self.derive = derive

    def __repr__(self) -> str:
        return f"Derivation({self.name!r})"


#: What was given, and what was derived with it.
_Kept = tuple[tuple[Any, ...], Any]


class Derived:
    """An empty one keeps nothing: nothing was admitted."""

    __slots__ = ("_rows", "lasting", "of_all", "of_kind")

    def __init__(self) -> None:
        #: What follows from all objects together, until any of them changes: ``Snapshot.once``.
        self.of_all: dict[Any, Any] = {}
        #: What follows from all objects of a kind, until one of these changes: ``Snapshot.once_of``.
        self.of_kind: dict[Any, dict[Any, Any]] = {}
        #: What is kept up over changes, by its kind.
        self.lasting: dict[type, Any] = {}
        # By identity. A row holds its object, so that no other object can have the same identity.
        self._rows: dict[int, tuple[ApiObject, dict[Derivation[Any, Any, *tuple[Any, ...]], _Kept]]]
        self._rows = {}

    def of(self, derivation: Derivation[T, V, *Given], item: T, *given: *Given) -> V:
        """Derived again if something else is given than the last time."""
        row = self._rows.get(id(item))
        if row is None:
            return derivation.derive(item, *given)
        kept = row[1].get(derivation)
        if kept is None or kept[0] != given:
            kept = row[1][derivation] = given, derivation.derive(item, *given)
        value: V = kept[1]
        return value

    def known(self, derivation: Derivation[T, V], item: T) -> V | None:
        """For callers that derive it in another way, for many objects at once."""
        row = self._rows.get(id(item))
        kept = None if row is None else row[1].get(derivation)
        value: V | None = None if kept is None else kept[1]
        return value

    def keep(self, derivation: Derivation[T, V], item: T, value: V) -> None:
        """``value``: equal to what the derivation finds."""
        row = self._rows.get(id(item))
        if row is not None:
            row[1][derivation] = (), value

    def admit(self, item: ApiObject, former: ApiObject | None = None) -> None:
        """``former``: a version in the tables that no derivation can tell from the new one."""
        row = None if former is None else self._rows.get(id(former))
        self._rows[id(item)] = item, {} if row is None else row[1]

    def drop(self, item: ApiObject) -> None:
        self._rows.pop(id(item), None)

    def share(self, item: ApiObject, other: Derived) -> None:
        """What is, or will be, derived from it there is derived here, too."""
        row = other._rows.get(id(item))
        self._rows[id(item)] = row if row is not None and row[0] is item else (item, {})

    def __len__(self) -> int:
        """How many objects it keeps something for, or would."""
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        """Views that differ in nothing else are equal: this spares work and nothing else."""
        return isinstance(other, Derived)

    def __hash__(self) -> int:
        return hash(Derived)


#: For callers without a snapshot.
NOTHING_KEPT: Final = Derived()
