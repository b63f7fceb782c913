"""What is wrong with a provider's repair statements: Karpenter's rules for such a set.

A provider that states nothing is fine: then only pools say what means unhealthy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

import re2

from tenure.errors import SpecError
from tenure.model.cloud.repairs import RepairAction, RepairStatement

_AT = "repair_statements"


def statement_problems(statements: Sequence[RepairStatement]) -> Iterator[SpecError]:
    for index, statement in enumerate(statements):
        yield from _problems(statement, f"{_AT}[{index}]")
    fallbacks = [statement for statement in statements if not statement.reason]
    if statements and len(fallbacks) != 1:
        expected = "exactly one statement without a reason, for every reason that no other matches"
        yield SpecError(_AT, len(fallbacks), expected, "Give all but one of them a reason.")
    for fallback in fallbacks:
        if fallback.action is not RepairAction.REPLACE:
            expected = "Replace, in the one statement without a reason"
            yield SpecError(f"{_AT}.action", str(fallback.action), expected)


def _problems(statement: RepairStatement, at: str) -> Iterator[SpecError]:
    if not statement.condition_type:
        yield SpecError(f"{at}.condition_type", "", "the type of a condition", "E.g. Ready.")
    if statement.status not in ("True", "False", "Unknown"):
        expected = "True, False or Unknown"
        yield SpecError(f"{at}.status", statement.status, expected)
    for field in ("toleration", "grace_period"):
        span = getattr(statement, field)
        if span is not None and span < timedelta():
            yield SpecError(f"{at}.{field}", str(span), "a duration of at least 0")
    if not 0 <= statement.priority <= 100:
        yield SpecError(f"{at}.priority", statement.priority, "a number from 0 to 100")
    if not _is_readable(statement.reason):
        yield SpecError(f"{at}.reason", statement.reason, "an RE2 expression", "E.g. ^Kubelet.")


def _is_readable(expression: str) -> bool:
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(expression, options)
    except re2.error:
        return False
    return True
