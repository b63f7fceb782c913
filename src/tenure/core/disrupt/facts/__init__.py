"""Says what is the case while nodes are disrupted: the facts of the room.

They are split by what they are about; ``EXAMPLES`` has all of them, in the order of the page.

Start reading: candidates.py, then planning.py, commands.py and groups.py.
"""

from __future__ import annotations

from typing import Final

from tenure.core.disrupt.facts import candidates, commands, consolidation, groups, planning
from tenure.core.facts import Fact

EXAMPLES: Final[tuple[Fact, ...]] = (
    *candidates.EXAMPLES,
    *consolidation.EXAMPLES,
    *planning.EXAMPLES,
    *commands.EXAMPLES,
    *groups.EXAMPLES,
)
