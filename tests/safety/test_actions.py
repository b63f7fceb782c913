"""What must never happen: each promise, kept and broken, with the sentence that says so."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.model.api import names
from tenure.model.api.node import Taint
from tenure.safety import actions
from tests.core.build import (
    CLASS_LABEL,
    FOREIGN,
    OURS,
    a_claim,
    a_leaving_claim,
    a_leaving_node,
    a_node,
    a_pod,
    condition,
)

SERVED = frozenset({(OURS.group, OURS.kind)})


def test_only_our_own_classes_objects_are_written_to() -> None:
    assert actions.foreign_class(OURS, SERVED) is None
    assert actions.foreign_class(FOREIGN, SERVED) == (
        "its node class OtherClass.example.com is not served here: nothing foreign is written to"
    )


@pytest.mark.parametrize(
    ("node", "claim", "foreign"),
    [
        pytest.param(a_node(registered=False), a_claim(), False, id="our claim's"),
        pytest.param(a_node(), a_claim(ref=FOREIGN), True, id="another provider's claim's"),
        pytest.param(a_node(labels=CLASS_LABEL), None, False, id="no claim, with our label"),
        pytest.param(a_node(registered=False), None, True, id="no claim, without it"),
    ],
)
def test_a_node_is_foreign_or_not(node: Any, claim: Any, foreign: bool) -> None:
    assert (actions.foreign_node(node, claim, SERVED) is not None) is foreign


def test_a_node_is_deleted_only_because_its_claim_is() -> None:
    assert actions.early_node_deletion(a_node(), a_leaving_claim()) is None
    assert actions.early_node_deletion(a_node(), a_claim()) == (
        "Node node-a would be deleted while its claim a lives"
    )


@pytest.mark.parametrize(
    ("node", "sentence"),
    [
        pytest.param(None, "pod default/web is not on a node that is being deleted", id="none"),
        pytest.param(
            a_node(), "pod default/web is not on a node that is being deleted", id="staying"
        ),
        pytest.param(
            a_leaving_node(closed=False), "node node-a is not closed for new pods yet", id="open"
        ),
        pytest.param(
            a_leaving_node(
                closed=False, taints=(Taint(key=names.DISRUPTED_TAINT, effect="NoExecute"),)
            ),
            "node node-a is not closed for new pods yet",
            id="tainted otherwise",
        ),
        pytest.param(a_leaving_node(), None, id="leaving and closed"),
    ],
)
def test_pods_are_evicted_only_from_a_closed_leaving_node(node: Any, sentence: Any) -> None:
    assert actions.early_eviction(a_pod(), node) == sentence


REBOOTING = a_claim(conditions=(condition("Rebooting", "True", "RebootRequested"),))
CLOSED = a_node(taints=(Taint(key=names.REBOOTING_TAINT, effect="NoSchedule"),))


def test_pods_are_evicted_from_a_closed_node_whose_claim_says_that_it_reboots() -> None:
    assert actions.early_eviction(a_pod(), CLOSED, REBOOTING) is None
    assert actions.early_eviction(a_pod(), a_node(), REBOOTING) == (
        "node node-a is not closed for new pods yet"
    )
    not_said = "pod default/web is not on a node that is being deleted"
    assert actions.early_eviction(a_pod(), CLOSED, a_claim()) == not_said
    assert actions.early_eviction(a_pod(), CLOSED, None) == not_said


def test_only_the_instance_of_a_claim_that_says_so_is_rebooted() -> None:
    assert actions.uncalled_reboot(REBOOTING, "cloud://a") is None
    assert actions.uncalled_reboot(REBOOTING, "cloud://b") == (
        "instance cloud://b belongs to no claim that could ask for its reboot"
    )
    assert actions.uncalled_reboot(None, "cloud://a") is not None
    for claim in (a_claim(), a_leaving_claim(conditions=REBOOTING.status.conditions)):
        assert actions.uncalled_reboot(claim, "cloud://a") == (
            "the instance of a would be rebooted while its claim does not say so"
        )


def test_a_finalizer_goes_after_the_instance() -> None:
    assert actions.early_release("a", instance_running=False) is None
    assert actions.early_release("a", instance_running=True) == (
        "the finalizer of a would go while its instance may still run"
    )


def test_the_instance_of_a_living_claim_is_never_ended() -> None:
    assert actions.live_termination(None) is None
    assert actions.live_termination(a_leaving_claim()) is None
    assert actions.live_termination(a_claim()) == (
        "the instance of a would be ended while the claim lives"
    )


def test_an_instance_without_a_claims_uid_is_not_ours() -> None:
    assert actions.untagged_termination("cloud://a", "uid-a") is None
    assert actions.untagged_termination("cloud://a", "") == (
        "instance cloud://a carries no claim's UID: it is not ours to end"
    )


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        pytest.param(None, "there is no such claim to launch for", id="gone"),
        pytest.param(
            a_leaving_claim(stage=0),
            "claim a is being deleted: nothing is launched for it",
            id="leaving",
        ),
        pytest.param(
            a_claim(stage=0, finalizers=()),
            "claim a lacks our finalizer: its instance could outlive it unseen",
            id="not held by us",
        ),
        pytest.param(a_claim(), "claim a has an instance already", id="launched"),
        pytest.param(a_claim(stage=0), None, id="waiting for one"),
    ],
)
def test_nothing_is_launched_for_a_claim_that_is(claim: Any, sentence: Any) -> None:
    assert actions.late_launch(claim) == sentence
