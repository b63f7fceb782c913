"""Every validation rule with a good and a bad case: for this validator and a real API server.

A bad case names the field and a part of the message that must be reported there; what
else is reported is not its business.
"""

from __future__ import annotations

from tests.schema.cases.case import Case
from tests.schema.cases.change import CHANGES, NUMBERS, STATIC
from tests.schema.cases.duration import DURATIONS
from tests.schema.cases.pool import BUDGETS, POLICIES, REPAIR
from tests.schema.cases.poolpolicy import POOL_POLICIES
from tests.schema.cases.template import NODE_CLASS, POOL_LABELS, REQUIREMENTS, TAINTS
from tests.schema.cases.window import NODE_CLASSES, SELECTORS, WINDOWS

__all__ = ["CASES", "GOOD_CASES", "Case"]

CASES = [
    *POOL_LABELS,
    *REQUIREMENTS,
    *TAINTS,
    *NODE_CLASS,
    *CHANGES,
    *STATIC,
    *NUMBERS,
    *DURATIONS,
    *BUDGETS,
    *POLICIES,
    *REPAIR,
    *SELECTORS,
    *WINDOWS,
    *NODE_CLASSES,
    *POOL_POLICIES,
]

GOOD_CASES = [case for case in CASES if not case.field]
