"""Initialization: the claim reports the first thing that its Node lacks, in Karpenter's order."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core.claim.decider import LifecycleDecider
from tenure.core.claim.initialize import is_ephemeral
from tenure.core.decision import Verdict
from tenure.core.reasons import Reason
from tenure.model.api import names
from tenure.model.api.meta import Condition
from tenure.model.api.node import Taint
from tenure.model.api.nodeclaim import ResourceRequests
from tests.core.build import REGISTERED, SIZE, a_claim, a_node, body_of, evaluated, said

AGENT = Taint(key="example.com/agent", value="x", effect="NoExecute")
LASTING = Taint(key="batch", effect="NoSchedule")
GPU = ResourceRequests(requests={"cpu": "1", "nvidia.com/gpu": "1"})


def verdict_on(*objects: Any) -> Verdict:
    (verdict,) = evaluated(LifecycleDecider(), *objects)
    return verdict


@pytest.mark.parametrize(
    ("node", "reason", "message"),
    [
        pytest.param(
            {"ready": False, "taints": (AGENT,)},
            Reason.NODE_NOT_READY,
            "Node node-a is not Ready: Ready=False (Ready) since 2026-03-02T11:50:00Z",
            id="it is not Ready, whatever else is missing",
        ),
        pytest.param(
            {"ready": None, "status": {"conditions": (Condition(type="Ready"),)}},
            Reason.NODE_NOT_READY,
            "Node node-a is not Ready: Ready=Unknown",
            id="its kubelet does not say why",
        ),
        pytest.param(
            {"ready": None},
            Reason.NODE_NOT_READY,
            "Node node-a is not Ready: the kubelet has not reported yet",
            id="its kubelet has not reported",
        ),
        pytest.param(
            {"taints": (Taint(key=names.NOT_READY_TAINT, effect="NoExecute"), AGENT)},
            Reason.STARTUP_TAINTS_EXIST,
            "startup taint example.com/agent=x:NoExecute is still there",
            id="a startup taint is reported before others",
        ),
        pytest.param(
            {"taints": (LASTING, Taint(key=names.NOT_READY_TAINT, effect="NoExecute"))},
            Reason.EPHEMERAL_TAINTS_EXIST,
            "taint node.kubernetes.io/not-ready:NoExecute is still there",
            id="Kubernetes has not taken its own taint off",
        ),
        pytest.param(
            {},
            Reason.RESOURCE_NOT_REGISTERED,
            "nvidia.com/gpu was requested and Node node-a does not offer it yet",
            id="a device is missing",
        ),
        pytest.param(
            {"status": {"allocatable": {**SIZE, "nvidia.com/gpu": "0"}}},
            Reason.RESOURCE_NOT_REGISTERED,
            "nvidia.com/gpu was requested and Node node-a does not offer it yet",
            id="a device is announced as none, as the kubelet does at start",
        ),
        pytest.param(
            {"status": {"allocatable": {**SIZE, "nvidia.com/gpu": "one"}}},
            Reason.RESOURCE_NOT_REGISTERED,
            "nvidia.com/gpu was requested and Node node-a does not offer it yet",
            id="an amount that cannot be read is none",
        ),
    ],
)
def test_the_first_thing_that_is_missing_is_reported(
    node: Any, reason: Reason, message: str
) -> None:
    claim = a_claim(stage=REGISTERED, spec={"startup_taints": (AGENT,), "resources": GPU})
    verdict = verdict_on(claim, a_node(**node))
    assert (verdict.reason, verdict.message) == (reason, message)
    assert said(verdict)["Initialized"] == ("Unknown", str(reason))


def test_a_resource_that_was_requested_as_none_may_be_missing() -> None:
    none = ResourceRequests(requests={"nvidia.com/gpu": 0})
    verdict = verdict_on(a_claim(stage=REGISTERED, spec={"resources": none}), a_node())
    assert verdict.reason is Reason.INITIALIZING


def test_a_complete_node_is_labelled_first() -> None:
    verdict = verdict_on(a_claim(stage=REGISTERED), a_node())
    assert verdict.reason is Reason.INITIALIZING
    assert verdict.message == "Node node-a is Ready and complete"
    assert body_of(verdict)["metadata"]["labels"] == {names.INITIALIZED: "true"}


def test_then_the_claim_is_initialized_and_ready() -> None:
    node = a_node(labels={names.INITIALIZED: "true"})
    verdict = verdict_on(a_claim(stage=REGISTERED), node)
    assert verdict.reason is Reason.INITIALIZING
    assert said(verdict) == {
        "Launched": ("True", "Launched"),
        "Registered": ("True", "Registered"),
        "Initialized": ("True", "Initialized"),
        "ReadyOnce": ("True", "NodeReady"),
        "Ready": ("True", "Ready"),
    }


EPHEMERAL = [
    (names.NOT_READY_TAINT, "NoSchedule", True),
    (names.NOT_READY_TAINT, "NoExecute", True),
    (names.UNREACHABLE_TAINT, "NoSchedule", True),
    (names.UNREACHABLE_TAINT, "NoExecute", False),
    (names.CLOUD_UNINITIALIZED_TAINT, "NoSchedule", True),
    (names.CLOUD_UNINITIALIZED_TAINT, "NoExecute", False),
    (names.UNREGISTERED_TAINT, "NoExecute", True),
    ("readiness.k8s.io/cni", "NoSchedule", True),
    (names.UNSCHEDULABLE_TAINT, "NoSchedule", False),
    (names.DISRUPTED_TAINT, "NoSchedule", False),
    ("example.com/agent", "NoSchedule", False),
]


@pytest.mark.parametrize(
    ("key", "effect", "ephemeral"), EPHEMERAL, ids=[f"{k}:{e}" for k, e, _ in EPHEMERAL]
)
def test_only_taints_that_every_node_starts_with_pass_by_themselves(
    key: str, effect: str, ephemeral: bool
) -> None:
    assert is_ephemeral(Taint(key=key, effect=effect)) is ephemeral
