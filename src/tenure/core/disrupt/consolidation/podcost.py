"""What a user says that the eviction of a pod costs: two annotations, of which the first that is there counts.

Figures and names are Karpenter's. ``ONE_POD`` counts as one more pod; a whole number of 32 bits, else nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from tenure.model.api.names import POD_DELETION_COST, POD_DISRUPTION_COST

#: So much counts as one more pod.
ONE_POD: Final = 2**27

_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,10}")
_INT32: Final = range(-(2**31), 2**31)


def written_cost(annotations: Mapping[str, str]) -> int:
    """What cannot be read is ignored, and the other annotation with it."""
    for name in (POD_DISRUPTION_COST, POD_DELETION_COST):
        if name in annotations:
            return read_cost(annotations[name]) or 0
    return 0


def read_cost(written: str) -> int | None:
    """None: it is no such number."""
    cost = int(written) if _NUMBER.fullmatch(written) else None
    return cost if cost is not None and cost in _INT32 else None
