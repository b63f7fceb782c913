"""The launch: requested once, recorded in two steps, deleted or retried for a reason."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core.claim.decider import LifecycleDecider
from tenure.core.decision import Delete, Ground, Launch, Verdict
from tenure.core.reasons import Reason
from tenure.model.api import names
from tenure.model.api.node import Taint
from tenure.model.api.nodeclaim import NodeClaim, Requirement, ResourceRequests
from tenure.model.api.resource import NODE_CLAIMS
from tenure.model.cloud.instance import LaunchRequest
from tenure.model.matching.requirements import Requirement as Allowed
from tenure.model.matching.requirements import Requirements
from tenure.model.snapshot.observations import LaunchFailure, LaunchProblem
from tests.core.build import (
    CLASS_LABEL,
    NOW,
    OURS,
    SIZE,
    a_claim,
    ago,
    ahead,
    an_instance,
    body_of,
    condition,
    evaluated,
    said,
    units,
)

GIVE_UP = Delete(
    resource=NODE_CLAIMS, name="a", uid="uid-a", resource_version="7", ground=Ground.LAUNCH_FAILED
)


def verdict_on(claim: NodeClaim, **known: Any) -> Verdict:
    (verdict,) = evaluated(LifecycleDecider(), claim, **known)
    return verdict


def failed(problem: LaunchProblem = LaunchProblem.FAILED, **fields: Any) -> dict[str, Any]:
    failure = LaunchFailure(problem=problem, message="no answer", at=ago(1), **fields)
    return {"launch_failures": {"uid-a": failure}}


def test_the_request_contains_what_the_claim_requires() -> None:
    taint, agent = Taint(key="batch", effect="NoSchedule"), Taint(key="agent", effect="NoExecute")
    verdict = verdict_on(a_claim(stage=0, spec={"taints": (taint,), "startup_taints": (agent,)}))
    assert verdict.reason is Reason.LAUNCHING
    assert verdict.action == Launch(
        request=LaunchRequest(
            cluster="embedded",
            claim_name="a",
            claim_uid="uid-a",
            pool="general",
            node_class=OURS,
            requirements=Requirements.of([Allowed.of(names.INSTANCE_TYPE, "In", ["small"])]),
            requests=units(cpu=1, memory=2**30, pods=2),
            labels={names.NODEPOOL: "general", **CLASS_LABEL},
            taints=(taint, agent),
        )
    )


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            {"requirements": (Requirement(key="zone", operator="in", values=("a",)),)},
            "spec.requirements[0].operator: got 'in', expected one of In, NotIn",
            id="an operator that is none",
        ),
        pytest.param(
            {"resources": ResourceRequests(requests={"cpu": "four"})},
            "spec.resources.requests[cpu]: got 'four', expected a Kubernetes quantity",
            id="an amount that is none",
        ),
    ],
)
def test_an_invalid_claim_is_never_launched_and_reports_why(spec: Any, message: str) -> None:
    verdict = verdict_on(a_claim(stage=0, spec=spec))
    assert verdict.reason is Reason.LAUNCH_FAILED
    assert verdict.message.startswith(message)
    assert said(verdict)["Launched"] == ("Unknown", "LaunchFailed")
    assert verdict.recheck_at is None


def test_labels_of_the_instance_are_written_first_and_the_claims_own_win() -> None:
    instance = an_instance(labels={names.ZONE: "zone-a", names.NODEPOOL: "other"})
    verdict = verdict_on(a_claim(stage=0), instances={"uid-a": instance})
    assert verdict.reason is Reason.LAUNCHED
    assert verdict.message == "launched small in zone-a, spot"
    assert body_of(verdict)["metadata"]["labels"] == {names.ZONE: "zone-a"}


def test_then_the_identity_of_the_instance_is_written_down() -> None:
    verdict = verdict_on(a_claim(stage=0), instances={"uid-a": an_instance()})
    status = body_of(verdict)["status"]
    conditions = status.pop("conditions")
    assert verdict.reason is Reason.LAUNCHED
    assert status == {
        "providerID": "cloud://a",
        "imageID": "image-1",
        "capacity": SIZE,
        "allocatable": SIZE,
    }
    assert conditions == [
        _condition("Launched", "True", "Launched"),
        _condition(
            "Registered", "Unknown", "NodeNotFound", "the Node of the instance has not appeared yet"
        ),
        _condition(
            "Initialized",
            "Unknown",
            "AwaitingReconciliation",
            "object is awaiting reconciliation",
        ),
        _condition(
            "Ready",
            "Unknown",
            "ReconcilingDependents",
            "Registered=Unknown (the Node of the instance has not appeared yet), Initialized=Unknown",
        ),
    ]


def _condition(type_: str, status: str, reason: str, message: str = "") -> dict[str, object]:
    """As written: without a transition time, which the executor fills in."""
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": 1,
    }


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (LaunchProblem.OUT_OF_CAPACITY, Reason.INSUFFICIENT_CAPACITY),
        (LaunchProblem.MISCONFIGURED, Reason.NODE_CLASS_NOT_READY),
    ],
)
def test_a_claim_that_cannot_be_launched_is_deleted(problem: LaunchProblem, reason: Reason) -> None:
    verdict = verdict_on(a_claim(stage=0), **failed(problem))
    assert (verdict.reason, verdict.message) == (reason, "no answer")
    assert verdict.action == GIVE_UP


def test_a_failed_launch_is_reported_and_retried_later() -> None:
    verdict = verdict_on(a_claim(stage=0), **failed(retry_at=ahead(4)))
    assert verdict.reason is Reason.LAUNCH_FAILED
    assert verdict.message == "no answer; retrying at 2026-03-02T12:00:04Z"
    assert verdict.recheck_at == ahead(4)
    assert said(verdict)["Launched"] == ("Unknown", "LaunchFailed")


def test_a_failure_that_is_recorded_is_not_written_again() -> None:
    claim = a_claim(stage=0)
    first = verdict_on(claim, **failed(retry_at=ahead(4)))
    told = [
        condition(entry["type"], entry["status"], entry["reason"], entry["message"])
        for entry in body_of(first)["status"]["conditions"]
    ]
    again = verdict_on(a_claim(stage=0, conditions=told), **failed(retry_at=ahead(4)))
    assert (again.reason, again.action) == (Reason.LAUNCH_FAILED, None)


@pytest.mark.parametrize("retry_at", [NOW, None], ids=["its time has come", "no time was set"])
def test_then_the_launch_is_retried(retry_at: Any) -> None:
    verdict = verdict_on(a_claim(stage=0), **failed(retry_at=retry_at))
    assert verdict.reason is Reason.LAUNCHING


def test_an_answer_counts_more_than_an_older_failure() -> None:
    verdict = verdict_on(
        a_claim(stage=0), instances={"uid-a": an_instance()}, **failed(retry_at=ahead(4))
    )
    assert verdict.reason is Reason.LAUNCHED
