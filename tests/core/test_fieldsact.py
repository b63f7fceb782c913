"""A pool is told once which of its fields do nothing, or differ from Karpenter."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.core.decision import Verdict
from tenure.core.fieldsact import FIELDS_ACT
from tenure.core.reasons import REASONS, Reason
from tenure.model.api.nodepool import NodePool, NodePoolStatus
from tests.core.build import a_class, body_of
from tests.core.pool.test_status import stamped, verdict_on


def written(verdict: Verdict, pool: NodePool) -> NodePool:
    """The pool as it is once the verdict's patch was merged into its status."""
    status = {**msgspec.to_builtins(pool.status), **body_of(verdict)["status"]}
    return msgspec.structs.replace(pool, status=msgspec.convert(status, NodePoolStatus))


def settled(pool: NodePool) -> tuple[NodePool, list[Verdict]]:
    """The pool once there is nothing more to write, and what was said until then."""
    verdicts: list[Verdict] = []
    for _ in range(5):
        verdict = verdict_on(pool, a_class())
        if verdict.action is None:
            return pool, verdicts
        verdicts.append(verdict)
        pool = written(verdict, pool)
    raise AssertionError(f"the pool does not settle: {verdicts[-1]}")


@pytest.mark.parametrize(
    ("fields", "reason", "status"),
    [
        ({"replicas": 3}, Reason.FIELDS_IGNORED, "False"),
        ({"template": {"expireAfter": "168h"}}, Reason.FIELDS_DIFFER, "True"),
        ({"replicas": 3, "template": {"expireAfter": "168h"}}, Reason.FIELDS_IGNORED, "False"),
    ],
)
def test_a_pool_is_told_once_of_its_fields(fields: Any, reason: Reason, status: str) -> None:
    pool, verdicts = settled(stamped(**fields))
    assert [one.reason for one in verdicts] == [Reason.POOL_STATUS_CHANGED, reason]
    assert REASONS[reason].event, "and so there is an event"
    condition = pool.condition(FIELDS_ACT)
    assert condition is not None
    assert (condition.status, condition.reason) == (status, str(reason))
    assert condition.message == verdicts[-1].message


def test_a_message_names_the_field_and_what_karpenter_does() -> None:
    _, verdicts = settled(stamped(template={"expireAfter": "168h"}))
    assert verdicts[-1].message.startswith(
        "spec.template.spec.expireAfter differs from Karpenter: an expired node waits for windows"
    )


def test_a_pool_of_usual_fields_has_no_such_condition() -> None:
    pool, verdicts = settled(stamped())
    assert [one.reason for one in verdicts] == [Reason.POOL_STATUS_CHANGED]
    assert pool.condition(FIELDS_ACT) is None


def test_a_field_that_is_removed_is_not_told_any_more() -> None:
    pool, _ = settled(stamped(replicas=3))
    status = {"conditions": [{"type": FIELDS_ACT, "status": "False", "reason": "FieldsIgnored"}]}
    again, verdicts = settled(stamped(status=status))
    assert pool.condition(FIELDS_ACT) is not None
    assert all(REASONS[one.reason].event == "" for one in verdicts)
    condition = again.condition(FIELDS_ACT)
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", FIELDS_ACT)


def test_a_pool_with_a_mistake_is_told_of_that_first() -> None:
    budgets = [{"nodes": "ten"}]
    _, verdicts = settled(stamped(replicas=3, disruption={"budgets": budgets}))
    assert Reason.FIELDS_IGNORED not in [one.reason for one in verdicts]


def test_the_verdict_on_a_settled_pool_is_the_usual_one() -> None:
    pool, _ = settled(stamped(replicas=3))
    assert verdict_on(pool, a_class()).reason == Reason.POOL_CURRENT
