"""Lets Python's cyclic garbage collector rest while a simulation runs.

A world is a large heap of values that stay, and almost nothing in it forms cycles: the
collector walks all of it again and again and finds nothing, for a fifth of the run.
What there is at the start is taken out of its sight, and it looks at the rest rarely.
Called by the owner of the process (the command line, the benchmarks), never by a library.
"""

from __future__ import annotations

import gc
from typing import Final

#: New containers before the young are looked at, and how often the older ones are.
THRESHOLDS: Final = (50_000, 20, 100)


def rest_collector() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
