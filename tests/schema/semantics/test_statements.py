"""A provider's repair statements are understood, or refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tenure.model.cloud.repairs import RepairAction, RepairStatement
from tenure.providers.kwok.repairs import kwok_statements
from tenure.schema.semantics.statements import statement_problems

NONE = timedelta()


def stated(**fields: Any) -> RepairStatement:
    usual: dict[str, Any] = {"condition_type": "Ready", "status": "False", "toleration": NONE}
    return RepairStatement(**usual | fields)


def test_karpenters_set_is_sound_and_so_is_none_at_all() -> None:
    assert not list(statement_problems(kwok_statements()))
    assert not list(statement_problems(()))


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        ([stated(condition_type="")], "the type of a condition"),
        ([stated(status="Bad")], "True, False or Unknown"),
        ([stated(toleration=timedelta(seconds=-1))], "a duration of at least 0"),
        ([stated(grace_period=timedelta(seconds=-1))], "a duration of at least 0"),
        ([stated(priority=101)], "a number from 0 to 100"),
        ([stated(), stated(reason="(")], "an RE2 expression"),
        ([stated(), stated()], "exactly one statement without a reason"),
        ([stated(reason=".*")], "exactly one statement without a reason"),
        ([stated(action=RepairAction.REBOOT)], "Replace, in the one statement without a reason"),
    ],
)
def test_each_mistake_is_named(statements: list[RepairStatement], said: str) -> None:
    (problem,) = statement_problems(statements)
    assert said in str(problem)
