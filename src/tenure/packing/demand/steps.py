"""Long work in steps: between two of them the caller may do something else.

A generator yields after each step and returns what it made.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, TypeVar

V = TypeVar("V")
#: Pods that are read in one step: a few milliseconds.
PODS_A_STEP: Final = 1000
#: Nodes, with some 20 pods each.
NODES_A_STEP: Final = 100
#: Classes of pods that are worked out from others.
CLASSES_A_STEP: Final = 200

Steps = Generator[None, None, V]


def at_once(steps: Steps[V]) -> V:
    """All steps, one after the other."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            value: V = end.value
            return value
