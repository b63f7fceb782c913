"""The status of a pool: its hash first, then its size and whether it may launch."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.core.decision import Patch, Subject, Verdict
from tenure.core.marks.facts import ConsolidationUndone
from tenure.core.marks.templatehash import template_hash
from tenure.core.marks.undone import PAUSE
from tenure.core.pool.status import PoolDecider
from tenure.core.reasons import REASONS, Reason
from tenure.model.api import names
from tenure.model.api.nodepool import NodePool, NodePoolStatus
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, NODES, PODS
from tenure.model.snapshot.snapshot import Change
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES
from tenure.providers.kwok.repairs import kwok_statements
from tests.core.build import (
    FOREIGN,
    LAUNCHED,
    a_claim,
    a_class,
    a_leaving_claim,
    a_node,
    a_pod,
    a_pool,
    ago,
    body_of,
    condition,
    evaluated,
    said,
)
from tests.snapshots import snapshot_with

DECIDER = PoolDecider()


def stamped(**fields: Any) -> NodePool:
    """A pool that carries its hash."""
    bare = a_pool(**fields)
    stamps = {
        names.NODEPOOL_HASH: template_hash(bare.spec.template),
        names.NODEPOOL_HASH_VERSION: "v3",
    }
    return a_pool(annotations=stamps, **fields)


def verdict_on(*objects: Any, **known: Any) -> Verdict:
    (verdict,) = evaluated(DECIDER, *objects, **known)
    return verdict


def told(verdict: Verdict, pool: NodePool) -> NodePool:
    """The pool as it is once the verdict's patch was written."""
    status = body_of(verdict)["status"]
    for entry in status["conditions"]:
        entry.setdefault("lastTransitionTime", "2026-03-02T12:00:00Z")
    return msgspec.structs.replace(pool, status=msgspec.convert(status, NodePoolStatus))


def test_another_providers_pool_is_left_alone() -> None:
    verdict = verdict_on(a_pool(ref=FOREIGN))
    assert (verdict.reason, verdict.action) == (Reason.NODE_CLASS_NOT_SERVED, None)
    assert verdict.message == "node class OtherClass.example.com is not served here"


@pytest.mark.parametrize(
    "annotations",
    [
        {},
        {names.NODEPOOL_HASH: "1", names.NODEPOOL_HASH_VERSION: "v3"},
        {names.NODEPOOL_HASH_VERSION: "v2"},
    ],
    ids=["none", "another hash", "another version"],
)
def test_the_hash_is_written_first(annotations: Any) -> None:
    pool = a_pool(annotations=annotations)
    verdict = verdict_on(a_class(), pool)
    assert verdict.reason is Reason.POOL_STATUS_CHANGED
    assert verdict.action == Patch(
        resource=NODE_POOLS,
        name="general",
        uid="uid-general",
        resource_version="7",
        body={
            "metadata": {
                "annotations": {
                    names.NODEPOOL_HASH: template_hash(pool.spec.template),
                    names.NODEPOOL_HASH_VERSION: "v3",
                },
                "resourceVersion": "7",
                "uid": "uid-general",
            }
        },
    )


def test_an_empty_pool_says_that_it_is_ready_and_has_nothing() -> None:
    verdict = verdict_on(a_class(), stamped())
    assert (verdict.reason, verdict.message) == (Reason.POOL_STATUS_CHANGED, "0 nodes")
    assert said(verdict) == {
        "ValidationSucceeded": ("True", "ValidationSucceeded"),
        "NodeClassReady": ("True", "NodeClassReady"),
        "NodeRegistrationHealthy": ("Unknown", "AwaitingReconciliation"),
        "DisruptionValid": ("True", "DisruptionValid"),
        "RepairValid": ("True", "RepairValid"),
        "Ready": ("True", "Ready"),
    }
    status = body_of(verdict)["status"]
    assert status["resources"] == dict.fromkeys(
        ("cpu", "memory", "pods", "ephemeral-storage", "nodes"), "0"
    )
    assert status["nodeClassObservedGeneration"] == 1
    assert "nodes" not in status, "it is 0 already"


def test_the_status_is_written_once() -> None:
    objects = [a_class(), a_claim(), a_node()]
    pool = stamped(limits={"cpu": "100", "nvidia.com/gpu": 2})
    first = verdict_on(*objects, pool)
    again = verdict_on(*objects, told(first, pool))
    assert (again.reason, again.action) == (Reason.POOL_CURRENT, None)
    assert again.message == "1 node; cpu 4 of 100; nvidia.com/gpu 0 of 2"


@pytest.mark.parametrize("after", ["30s", "Never"])
def test_a_pool_says_until_when_it_is_not_consolidated(after: str) -> None:
    """Where it is at all."""
    undone = a_claim(creation_timestamp=ago(60), annotations={names.CONSOLIDATION_UNDONE: "1"})
    pool = stamped(disruption={"consolidateAfter": after})
    objects = [a_class(), undone, a_node()]
    again = verdict_on(*objects, told(verdict_on(*objects, pool), pool))
    until = undone.created_at + PAUSE
    if after == "Never":
        assert (again.reason, again.recheck_at) == (Reason.POOL_CURRENT, None)
    else:
        assert (again.reason, again.recheck_at) == (Reason.CONSOLIDATION_PAUSED, until)
        assert again.facts[-1] == ConsolidationUndone("general", until)


def test_it_counts_its_resources_in_kubernetes_units() -> None:
    size = {"cpu": "12600m", "memory": "22656Mi", "pods": "9"}
    claims = [
        a_claim(name, stage=LAUNCHED, status={"capacity": size, "provider_id": name})
        for name in "abcdef"
    ]
    status = body_of(verdict_on(a_class(), stamped(), *claims, a_leaving_claim("g")))["status"]
    assert status["resources"] == {
        "cpu": "75600m",
        "memory": "135936Mi",
        "pods": "54",
        "ephemeral-storage": "0",
        "nodes": "6",
    }
    assert status["nodes"] == 6


def test_a_resource_that_is_gone_is_removed_from_the_list() -> None:
    pool = stamped(status={"resources": {"nvidia.com/gpu": "1"}, "nodes": 1})
    status = body_of(verdict_on(a_class(), pool))["status"]
    assert status["resources"]["nvidia.com/gpu"] is None
    assert status["nodes"] == 0


def test_a_node_that_registered_makes_registration_healthy() -> None:
    assert said(verdict_on(a_class(), stamped(), a_claim()))["NodeRegistrationHealthy"] == (
        "True",
        "NodeRegistrationHealthy",
    )


def test_registration_health_is_not_taken_back_when_the_nodes_are_gone() -> None:
    was = msgspec.to_builtins(condition("NodeRegistrationHealthy"))
    pool = stamped(status={"conditions": [was]})
    assert said(verdict_on(a_class(), pool))["NodeRegistrationHealthy"][0] == "True"


def test_without_its_class_it_launches_nothing_and_says_why() -> None:
    verdict = verdict_on(stamped())
    assert verdict.reason is Reason.POOL_NOT_READY
    assert verdict.message == (
        "no node is launched: NodeClassReady=False (KWOKNodeClass default does not exist)"
    )
    assert said(verdict)["NodeClassReady"] == ("False", "NodeClassNotFound")
    assert said(verdict)["Ready"] == ("False", "UnhealthyDependents")
    assert "nodeClassObservedGeneration" not in body_of(verdict)["status"]


def test_a_template_that_cannot_be_read_is_not_ready_and_has_no_hash() -> None:
    verdict = verdict_on(a_class(), a_pool(template={"expireAfter": "1d"}))
    assert verdict.reason is Reason.POOL_NOT_READY
    assert "spec.template.spec.expireAfter: got '1d'" in verdict.message
    assert said(verdict)["ValidationSucceeded"] == ("False", "NodePoolValidationFailed")
    assert said(verdict)["Ready"] == ("False", "UnhealthyDependents")


@pytest.mark.parametrize(
    ("spec", "type_", "reason", "means"),
    [
        (
            {"disruption": {"budgets": [{"nodes": "10%", "schedule": "x", "duration": "1h"}]}},
            "DisruptionValid",
            Reason.DISRUPTION_INVALID,
            (
                "no node is disrupted voluntarily or repaired gracefully: "
                "spec.disruption.budgets[0].schedule: got 'x'"
            ),
        ),
        (
            {"repair": {"policies": [{"conditionType": "Odd", "toleration": "5m"}]}},
            "RepairValid",
            Reason.REPAIR_INVALID,
            "these fields are not used for repair: spec.repair.policies[0]",
        ),
    ],
    ids=["disruption", "repair"],
)
def test_an_invalid_block_is_reported_with_a_warning_and_does_not_stop_provisioning(
    spec: Any, type_: str, reason: Reason, means: str
) -> None:
    pool = stamped(**spec)
    verdict = verdict_on(a_class(), pool)
    assert said(verdict)[type_] == ("False", str(reason))
    assert said(verdict)["Ready"] == ("True", "Ready")
    assert verdict.reason is reason
    assert verdict.message.startswith(means)
    assert REASONS[reason].event == "Warning"
    again = verdict_on(a_class(), told(verdict, pool))
    assert (again.reason, again.message, again.action) == (reason, verdict.message, None)


def test_two_bad_blocks_are_one_verdict_that_names_both() -> None:
    repair = {"policies": [{"conditionType": "Odd", "toleration": "5m"}]}
    verdict = verdict_on(
        a_class(), stamped(disruption={"budgets": [{"nodes": "x"}]}, repair=repair)
    )
    assert verdict.reason is Reason.DISRUPTION_INVALID
    assert "spec.disruption.budgets[0]" in verdict.message
    assert "spec.repair.policies[0]" in verdict.message


def test_which_changes_touch_a_pool() -> None:
    snapshot = snapshot_with(a_pool(), a_claim(), a_node())
    changes = {
        "pool": Change(NODE_POOLS, "general", None, a_pool()),
        "claim": Change(NODE_CLAIMS, "a", a_claim(), None),
        "its node, which has no label yet": Change(NODES, "n", None, a_node(registered=False)),
        "class": Change(KWOK_NODE_CLASSES, "default", None, a_class()),
        "pod": Change(PODS, "default/web", None, a_pod()),
    }
    touched = {what: set(DECIDER.touched(each, snapshot)) for what, each in changes.items()}
    assert touched == {what: {"general"} for what in changes} | {"pod": set()}
    assert list(DECIDER.observed(Subject("NodeClaim", "a"), snapshot)) == []
    assert DECIDER.view(snapshot, "gone") is None


def test_a_policy_may_leave_the_status_to_a_provider_that_watches_the_condition() -> None:
    policies = [{"conditionType": "KWOKUnhealthy", "toleration": "5m"}]
    pool = stamped(repair={"policies": policies})
    assert said(verdict_on(a_class(), pool))["RepairValid"][0] == "False"
    known = {"repair_statements": kwok_statements()}
    assert said(verdict_on(a_class(), pool, **known))["RepairValid"][0] == "True"
