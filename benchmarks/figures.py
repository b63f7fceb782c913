"""What a benchmark hands back: figures that mean the same on every machine, then seconds."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import TypeVar

import msgspec

from tenure.cli.replica.operate import COLLECTOR

T = TypeVar("T")


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    what: str
    value: float
    unit: str = ""
    #: Where the limit comes from stands beside the figure that has one.
    limit: float | None = None

    @property
    def kept(self) -> bool:
        return self.limit is None or self.value <= self.limit

    def __str__(self) -> str:
        limit = ""
        if self.limit is not None:
            limit = f"   limit {self.limit:g}{'' if self.kept else '   EXCEEDED'}"
        return f"{self.what:<58} {self.value:>12,.4g} {self.unit:<8}{limit}"


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    title: str
    #: Ratios, growth, counts: they hardly depend on the machine.
    relative: tuple[Figure, ...]
    #: Seconds on this machine.
    absolute: tuple[Figure, ...]

    @property
    def kept(self) -> bool:
        return all(figure.kept for figure in (*self.relative, *self.absolute))


def best_of(times: int, work: Callable[[], T]) -> tuple[float, T]:
    """Seconds of processor time in the quickest run; the others measure what disturbed it."""
    best = float("inf")
    for _ in range(times):
        gc.collect()
        start = time.process_time()
        result = work()
        best = min(best, time.process_time() - start)
    return best, result


def collect_as_in_production() -> None:
    """What there is so far is left alone; the rest is collected with the thresholds of a running controller."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR)
