"""Work in a thread that gives way to the loop.

Two threads that compute share the interpreter half and half: a turn of the loop takes twice as long while an explanation
is made beside it. So the thread lets go of the interpreter after every short slice, for long enough that the loop
takes it. The loop keeps it for as long as it computes, up to the interpreter's own interval of 5 ms; then the thread has
one more slice. A turn so takes a few percent longer, and while the loop waits the thread has nearly everything.

A slice ends at the next call or return of a function, by the hook that profilers use, of this thread alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter, sleep
from typing import Final, TypeVar

T = TypeVar("T")

#: Seconds of computing, and of letting go.
SLICE: Final = 0.0003
PAUSE: Final = 0.0001


def giving_way(work: Callable[[], T]) -> T:
    """What the work returns. For one thread beside the loop, never for the loop's own."""
    end = perf_counter() + SLICE

    def hook(*_: object) -> None:
        nonlocal end
        if perf_counter() >= end:
            sleep(PAUSE)
            end = perf_counter() + SLICE

    before = sys.getprofile()
    sys.setprofile(hook)
    try:
        return work()
    finally:
        sys.setprofile(before)
