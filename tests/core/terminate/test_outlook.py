"""Whether a drain would be graceful is reported when it is configured, not when it happens."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tenure.core.decision import Patch, Verdict
from tenure.core.gates.explained import info_of
from tenure.core.reasons import Reason
from tenure.core.terminate.facts.workloads import (
    DrainFinding,
    GracePeriodCut,
    MoreFindings,
    NeverEvicted,
    ProtectionCut,
)
from tenure.core.terminate.outlook import CONDITION, OutlookDecider
from tenure.model.api.meta import ApiObject
from tests.core.build import (
    HOUR_AGO,
    a_claim,
    a_leaving_claim,
    a_node,
    a_pdb,
    a_pod,
    a_pool,
    body_of,
    condition,
    evaluated,
    said,
)


def told(*objects: ApiObject) -> list[Verdict]:
    return evaluated(OutlookDecider(), *objects)


def bounded(period: str = "5m", **fields: Any) -> Any:
    return a_claim(spec={"termination_grace_period": period}, **fields)


def with_grace(seconds: int, name: str = "web", **fields: Any) -> Any:
    return a_pod(name, spec={"termination_grace_period_seconds": seconds}, **fields)


NEVER = a_pdb(desired_healthy=1, current_healthy=1, expected_pods=1)
SECOND = timedelta(seconds=1)
REPLICA_SET, CLAIM = "ReplicaSet/default/o", "NodeClaim a"

CASES: list[tuple[str, tuple[ApiObject, ...], str, DrainFinding]] = [
    (
        "a grace above the period",
        (bounded(), with_grace(600)),
        "GraceLongerThanPeriod",
        DrainFinding(REPLICA_SET, GracePeriodCut(600 * SECOND, "5m", CLAIM, 300 * SECOND)),
    ),
    (
        "a protection above the period",
        (bounded(), a_pod(protected="4h")),
        "ProtectionLongerThanPeriod",
        DrainFinding(REPLICA_SET, ProtectionCut("4h", 14_400 * SECOND, "5m", CLAIM, 270 * SECOND)),
    ),
    (
        "a budget that never allows an eviction",
        (a_claim(), NEVER, a_pod()),
        "BudgetNeverAllows",
        DrainFinding(
            "PodDisruptionBudget/default/web",
            NeverEvicted("minAvailable 1", 1, (REPLICA_SET,), bounded=False),
        ),
    ),
    (
        "the same with a deadline",
        (bounded(), NEVER, a_pod()),
        "BudgetNeverAllows",
        DrainFinding(
            "PodDisruptionBudget/default/web",
            NeverEvicted("minAvailable 1", 1, (REPLICA_SET,), bounded=True),
        ),
    ),
]


@pytest.mark.parametrize(
    ("objects", "code", "finding"), [pytest.param(*case, id=says) for says, *case in CASES]
)
def test_the_claim_says_what_would_not_be_graceful(
    objects: tuple[ApiObject, ...], code: str, finding: DrainFinding
) -> None:
    (verdict,) = told(a_node(), *objects)
    assert str(verdict.subject) == "NodeClaim/a"
    assert verdict.reason is Reason.DRAIN_NOT_GRACEFUL
    assert verdict.facts == (finding,)
    assert said(verdict)[CONDITION] == ("False", code)
    assert said(verdict)["Ready"][0] == "True", "the node is as good as before"


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param((bounded("10m"), with_grace(600)), id="a grace that just fits"),
        pytest.param((bounded(), a_pod(protected="5m")), id="a protection that just fits"),
        pytest.param(
            (bounded(), a_pod(protected="true")), id="protected for ever, which is intended"
        ),
        pytest.param((a_claim(), with_grace(9999)), id="no period"),
        pytest.param((a_claim(), NEVER), id="a PDB without pods on the node"),
        pytest.param((bounded(), with_grace(600, phase="Succeeded")), id="a finished pod"),
        pytest.param((bounded("nonsense"), with_grace(600)), id="an invalid period"),
        pytest.param(
            (a_leaving_claim(spec={"termination_grace_period": "5m"}), with_grace(600)),
            id="it is terminating already",
        ),
        pytest.param(
            (bounded(), a_pool(disruption={"maxPodProtection": "4m"}), a_pod(protected="4h")),
            id="the pool caps the protection",
        ),
    ],
)
def test_a_graceful_drain_is_not_reported(objects: tuple[ApiObject, ...]) -> None:
    assert told(a_node(), *objects) == []


def test_replicas_that_come_and_go_write_nothing() -> None:
    one = told(a_node(), bounded(), with_grace(600))
    two = told(a_node(), bounded(), with_grace(600), with_grace(600, "web-2"))
    assert one == two


def test_a_finding_is_written_once_and_removed_when_it_is_fixed() -> None:
    (first,) = told(a_node(), bounded(), with_grace(600))
    written = body_of(first)["status"]["conditions"]
    (entry,) = (one for one in written if one["type"] == CONDITION)
    noted = condition(CONDITION, "False", entry["reason"], entry["message"], at=HOUR_AGO)
    (again,) = told(a_node(), bounded(conditions=[noted]), with_grace(600))
    assert (again.reason, again.action) == (Reason.DRAIN_NOT_GRACEFUL, None)

    (mended,) = told(a_node(), bounded(conditions=[noted]), with_grace(60))
    assert mended.reason is Reason.DRAIN_GRACEFUL
    assert isinstance(mended.action, Patch)
    assert said(mended)[CONDITION] == ("True", CONDITION)
    assert told(a_node(), bounded(conditions=[condition(CONDITION)]), with_grace(60)) == []


def test_many_findings_are_counted() -> None:
    pods = [with_grace(600, f"web-{index}", owner="") for index in range(5)]
    (verdict,) = told(a_node(), bounded(), *pods)
    *named, more = verdict.facts
    assert [type(fact) for fact in named] == 3 * [DrainFinding]
    assert more == MoreFindings(2)


def test_advice_names_what_to_change_of_each_finding() -> None:
    (verdict,) = told(a_node(), bounded(), NEVER, with_grace(600, protected="4h"))
    assert info_of(verdict).advice == (
        "Raise terminationGracePeriod of the NodePool, for new NodeClaims, or lower "
        "terminationGracePeriodSeconds of ReplicaSet default/o. "
        "Raise terminationGracePeriod of the NodePool, for new NodeClaims, or shorten "
        "karpenter.sh/do-not-disrupt of ReplicaSet default/o. "
        "Run one pod more, or let PodDisruptionBudget default/web allow one to be missing: maxUnavailable 1."
    )
