"""Says what is the case while claims and Nodes terminate: the facts of the room.

They are split by what they are about; ``EXAMPLES`` has all of them, in the order of the page.

Start reading: termination.py, then pods.py.
"""

from __future__ import annotations

from typing import Final

from tenure.core.facts import Fact
from tenure.core.terminate.facts import deadlines, pods, termination, workloads

EXAMPLES: Final[tuple[Fact, ...]] = (
    *termination.EXAMPLES,
    *pods.EXAMPLES,
    *deadlines.EXAMPLES,
    *workloads.EXAMPLES,
)
