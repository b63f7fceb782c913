"""The disruption methods, in the order in which they are asked. It reads like a policy.

To disrupt nodes for another reason, write a method (``core/disrupt/method.py``) and put it into
this list: the pipeline does not change. A reason that is not in ``core/gates/reasons.py`` yet gets
its traits there; the guard and the checkers have tables of their own.

Start reading: unhealthy.py; then voluntary.py, which the others share.
"""

from __future__ import annotations

from typing import Final

from tenure.core.disrupt.method import Method, Methods
from tenure.core.disrupt.methods.drifted import DriftedMethod
from tenure.core.disrupt.methods.empty import EmptyMethod
from tenure.core.disrupt.methods.expired import ExpiredMethod
from tenure.core.disrupt.methods.rebalance import RebalanceMethod
from tenure.core.disrupt.methods.underutilized import UnderutilizedMethod
from tenure.core.disrupt.methods.unhealthy import UnhealthyMethod

#: Graceful repair is the shipped method of repair; ``explain`` shows its budgets.
GRACEFUL_REPAIR: Final = UnhealthyMethod()

SHIPPED: Final[tuple[Method, ...]] = (
    GRACEFUL_REPAIR,  # Unhealthy nodes first: their pods are at risk.
    EmptyMethod(),  # No pod moves, and limits get room.
    ExpiredMethod(),
    DriftedMethod(),
    RebalanceMethod(),
    UnderutilizedMethod(),  # Last: nothing is wrong with these nodes.
)

METHODS: Final = Methods(SHIPPED)
