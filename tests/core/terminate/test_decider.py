"""Which claims and Nodes are terminated together, and which changes touch which keys."""

from __future__ import annotations

from typing import Any

from tenure.core.decision import Subject
from tenure.core.terminate.decider import TerminationDecider
from tenure.model.api.resource import (
    DAEMON_SETS,
    NODE_CLAIMS,
    NODE_POOLS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
)
from tenure.model.snapshot.observations import TerminationAnswer
from tenure.model.snapshot.snapshot import Change
from tests.core.build import (
    a_claim,
    a_leaving_claim,
    a_leaving_node,
    a_node,
    a_pdb,
    a_pod,
    ago,
    condition,
    evaluated,
)
from tests.snapshots import snapshot_with

DECIDER = TerminationDecider()
BOTH = {"node/node-a", "a"}


def test_a_claim_and_its_node_are_evaluated_together_each_once() -> None:
    verdicts = evaluated(DECIDER, a_leaving_claim(), a_leaving_node(), a_pod())
    assert [str(verdict.subject) for verdict in verdicts] == ["Node/node-a", "NodeClaim/a"]


def test_from_the_deletion_of_a_node_to_its_release_in_the_right_order() -> None:
    """Each line is the next state of the cluster; no step is skipped or repeated."""
    asked = {"terminations": {"uid-a": TerminationAnswer(asked_at=ago(1))}}
    gone = {"terminations": {"uid-a": TerminationAnswer(asked_at=ago(1), gone=True)}}
    began, ended = condition("Drained", "Unknown", at=ago(6)), condition("Drained", at=ago(1))
    ending = condition("InstanceTerminating")
    detached = condition("VolumesDetached")
    steps: list[tuple[list[Any], dict[str, Any]]] = [
        ([a_claim(), a_leaving_node(closed=False), a_pod()], {}),
        ([a_leaving_claim(), a_leaving_node(), a_pod()], {}),
        ([a_leaving_claim(conditions=[began]), a_leaving_node(), a_pod()], {}),
        ([a_leaving_claim(conditions=[began]), a_leaving_node()], {}),
        ([a_leaving_claim(conditions=[ended, detached]), a_leaving_node()], {}),
        ([a_leaving_claim(conditions=[ended, detached, ending]), a_leaving_node()], asked),
        ([a_leaving_claim(conditions=[ended, detached, ending]), a_leaving_node()], gone),
        ([a_leaving_claim(conditions=[ended, detached, ending])], gone),
    ]
    told = [
        [
            (v.subject.kind, v.reason, type(v.action).__name__)
            for v in evaluated(DECIDER, *o, **known)
        ]
        for o, known in steps
    ]
    assert told == [
        [("Node", "Tainting", "Patch"), ("NodeClaim", "NodeDeleted", "Delete")],
        [("Node", "Draining", "NoneType"), ("NodeClaim", "Draining", "Patch")],
        [("Node", "Draining", "NoneType"), ("NodeClaim", "Draining", "NoneType")],
        [("Node", "Drained", "NoneType"), ("NodeClaim", "Drained", "Patch")],
        [
            ("Node", "InstanceTerminating", "Terminate"),
            ("NodeClaim", "InstanceTerminating", "Patch"),
        ],
        [
            ("Node", "InstanceTerminating", "NoneType"),
            ("NodeClaim", "InstanceTerminating", "NoneType"),
        ],
        [("Node", "Releasing", "Patch"), ("NodeClaim", "InstanceTerminating", "NoneType")],
        [("NodeClaim", "Releasing", "Patch")],
    ]


def test_every_terminating_claim_and_node_has_a_key() -> None:
    snapshot = snapshot_with(a_leaving_claim("b"), a_claim(), a_leaving_node(), a_node("node-c"))
    assert set(DECIDER.keys(snapshot)) == {"b", *BOTH}


def test_which_changes_touch_which_keys() -> None:
    node, claim, pod = a_leaving_node(), a_leaving_claim(), a_pod()
    elsewhere = a_pod("other", node="node-b")
    snapshot = snapshot_with(claim, node, pod)
    changes = {
        "claim": Change(NODE_CLAIMS, "a", a_claim(), claim),
        "node": Change(NODES, "node-a", None, node),
        "pod": Change(PODS, "default/web", pod, None),
        "pod elsewhere": Change(PODS, "default/other", None, elsewhere),
        "budget": Change(POD_DISRUPTION_BUDGETS, "default/web", None, a_pdb()),
        "pool": Change(NODE_POOLS, "general", None, None),
        "daemon set": Change(DAEMON_SETS, "default/agent", None, None),
    }
    touched = {what: set(DECIDER.touched(each, snapshot)) for what, each in changes.items()}
    assert touched == {
        "claim": BOTH,
        "node": BOTH,
        "pod": BOTH,
        "pod elsewhere": set(),
        "budget": BOTH,
        "pool": BOTH,  # Its cap on protection.
        "daemon set": set(),
    }


def test_answers_about_claims_and_pods_touch_what_terminates() -> None:
    snapshot = snapshot_with(a_leaving_claim(), a_leaving_node(), a_pod())
    assert list(DECIDER.observed(Subject("NodeClaim", "a"), snapshot)) == ["a"]
    assert set(DECIDER.observed(Subject("Pod", "web", "default"), snapshot)) == BOTH
    assert list(DECIDER.observed(Subject("Instance", "cloud://a"), snapshot)) == []


def test_keys_of_what_is_gone_have_no_view() -> None:
    snapshot = snapshot_with(a_leaving_claim(), a_leaving_node())
    assert DECIDER.view(snapshot, "gone") is None
    assert DECIDER.view(snapshot, "node/gone") is None
    assert DECIDER.view(snapshot, "node/node-a") is None, "it is evaluated with its claim"


def test_the_drain_of_a_node_waits_for_its_claim_to_be_adopted() -> None:
    verdicts = evaluated(DECIDER, a_claim(finalizers=()), a_leaving_node())
    assert verdicts == []
