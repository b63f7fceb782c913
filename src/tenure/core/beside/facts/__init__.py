"""Says what is the case beside Karpenter: the facts of the room.

They are split by what they are about; ``EXAMPLES`` has all of them, in the order of the page.

Start reading: levers.py, then karpenter.py and budgets.py.
"""

from __future__ import annotations

from typing import Final

from tenure.core.beside.facts import budgets, karpenter, levers
from tenure.core.beside.leftover import facts as leftoverfacts
from tenure.core.beside.replacing import facts as replacingfacts
from tenure.core.facts import Fact

EXAMPLES: Final[tuple[Fact, ...]] = (
    *karpenter.EXAMPLES,
    *levers.EXAMPLES,
    *budgets.EXAMPLES,
    *replacingfacts.EXAMPLES,
    *leftoverfacts.EXAMPLES,
)
