"""Every Node that stays gets a sentence: whose it is, and how it does."""

from __future__ import annotations

from typing import Any

from tenure.core.claim.node import NodeDecider
from tenure.core.decision import Verdict
from tenure.core.reasons import Reason
from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS
from tenure.model.snapshot.snapshot import Change
from tests.core.build import FOREIGN, a_claim, a_leaving_node, a_node, a_pod, condition, evaluated
from tests.snapshots import snapshot_with

DECIDER = NodeDecider()


def said_of(*objects: Any) -> tuple[Reason, str]:
    (verdict,) = evaluated(DECIDER, *objects)
    assert verdict.action is None
    return verdict.reason, verdict.message


def test_a_node_in_service_names_its_claim_and_since_when() -> None:
    reason, message = said_of(a_claim(), a_node())
    assert reason is Reason.IN_SERVICE
    assert message.startswith("initialized at 2026-03-02T11:50:00Z (NodeClaim a)")


def test_a_cordoned_node_says_so() -> None:
    _, message = said_of(a_claim(), a_node(unschedulable=True))
    assert message.endswith("; cordoned: the Node takes no new pods")


def test_a_node_that_is_no_longer_ready_reports_since_when() -> None:
    reason, message = said_of(a_claim(), a_node(ready=False))
    assert reason is Reason.NODE_NOT_READY
    assert message.startswith("Ready=False")


def test_a_node_that_is_rebooted_says_since_when() -> None:
    claim = a_claim(conditions=(condition("Rebooting", "True", "RebootIssued"),))
    assert said_of(claim, a_node(ready=False)) == (
        Reason.REBOOTING,
        "rebooted in place since 2026-03-02T11:50:00Z",
    )


def test_a_node_that_drains_before_its_reboot_is_not_said_to_be_rebooted() -> None:
    claim = a_claim(conditions=(condition("Rebooting", "True", "RebootRequested"),))
    assert said_of(claim, a_node()) == (
        Reason.REBOOTING,
        "reboot requested at 2026-03-02T11:50:00Z; draining first",
    )


def test_a_booting_node_says_what_it_still_lacks() -> None:
    reason, _ = said_of(a_claim(stage=2), a_node(ready=False))
    assert reason is Reason.NODE_NOT_READY


def test_a_complete_node_waits_for_its_claim_to_note_that() -> None:
    assert said_of(a_claim(stage=2), a_node()) == (
        Reason.INITIALIZING,
        "the Node is complete; NodeClaim a is marked as initialized",
    )


def test_a_node_without_a_claim_or_of_another_provider_is_not_ours() -> None:
    expected = (
        Reason.NOT_OURS,
        "the Node belongs to no NodeClaim of ours, so Tenure never writes to it",
    )
    assert said_of(a_node()) == expected
    assert said_of(a_claim(ref=FOREIGN), a_node()) == expected


def test_two_claims_with_one_provider_id_are_named() -> None:
    reason, message = said_of(
        a_claim("a"), a_claim("b", status={"provider_id": "cloud://a"}), a_node()
    )
    assert reason is Reason.MULTIPLE_NODES_FOUND
    assert message == "more than one Node or NodeClaim has the same provider id (a, b)"


def test_a_terminating_node_is_evaluated_by_its_drain() -> None:
    found: list[Verdict] = evaluated(DECIDER, a_claim(), a_leaving_node())
    assert found == []


def test_what_a_nodes_state_depends_on() -> None:
    claim, node, pod = a_claim(), a_node(), a_pod()
    snapshot = snapshot_with(claim, node, pod)
    assert set(DECIDER.touched(Change(NODES, node.key, None, node), snapshot)) == {node.name}
    assert set(DECIDER.touched(Change(NODE_CLAIMS, "a", claim, None), snapshot)) == {node.name}
    assert not set(DECIDER.touched(Change(PODS, pod.key, None, pod), snapshot))
    assert not set(DECIDER.observed(_subject(), snapshot))
    assert DECIDER.view(snapshot, "unknown") is None


def _subject() -> Any:
    (verdict,) = evaluated(DECIDER, a_claim(), a_node())
    return verdict.subject
