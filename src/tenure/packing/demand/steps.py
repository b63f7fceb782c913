"""Long work in steps: between two of them the caller may do something else.

A generator yields after each step and returns what it made.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from typing import Any, Final, TypeVar

V = TypeVar("V")
#: Pods that are read in one step: a millisecond where many are alike, and a few where each is of a class of its own.
PODS_A_STEP: Final = 250
#: Nodes, with some 20 pods each.
NODES_A_STEP: Final = 50
#: Classes of pods that are worked out from others.
CLASSES_A_STEP: Final = 50
#: Classes and the like that are let go.
FREED_A_STEP: Final = 250

Steps = Generator[None, None, V]


def at_once(steps: Steps[V]) -> V:
    """All steps, one after the other."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            value: V = end.value
            return value


def letting_go(*parts: list[Any] | dict[Any, Any] | set[Any]) -> Iterator[None]:
    """Empty what is not needed any more, in steps: to free thousands of classes at once takes tens of milliseconds."""
    for part in parts:
        while part:
            for _ in range(min(len(part), FREED_A_STEP)):
                if isinstance(part, dict):
                    part.popitem()
                else:
                    part.pop()
            yield


def some_at_a_time(items: Iterable[V], count: int) -> Iterator[tuple[V, ...]]:
    """All of them, so many in each step."""
    rest = iter(items)
    while some := tuple(islice(rest, count)):
        yield some
