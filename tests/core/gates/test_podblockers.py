"""Which pods block a disruption, and what a grace period changes about that."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tenure.core.gates.podblockers import blockers_of
from tenure.core.gates.reasons import TRAITS, Disruption
from tenure.core.protect.decider import SINCE
from tenure.core.terminate.drain import drain_until
from tenure.model.api.names import DO_NOT_DISRUPT
from tests.core.build import (
    NOW,
    SETTINGS,
    a_claim,
    a_node,
    a_pdb,
    a_pod,
    ahead,
    condition,
)
from tests.snapshots import snapshot_with

ALL = list(Disruption)
VOLUNTARY = [reason for reason in ALL if reason is not Disruption.UNHEALTHY]
EVENTUAL = {Disruption.EXPIRED, Disruption.DRIFTED, Disruption.UNHEALTHY}
READY = [condition("Ready")]


def blocking(
    reason: Disruption, *pods: Any, node: Any = None, claim: Any = None, **more: Any
) -> list[str]:
    claim, node = claim or a_claim(), node or a_node()
    drain = drain_until(node, None, snapshot_with(claim, node, *pods))
    found = blockers_of(TRAITS[reason], claim, drain, SETTINGS, NOW, **more)
    return [f"{blocker.subject}: {blocker.message}" for blocker in found]


PROTECTED = a_pod(protected="true")
UNDER_PDB = (
    a_pod(conditions=READY),
    a_pdb(current_healthy=1, desired_healthy=1, expected_pods=1),
)


@pytest.mark.parametrize("reason", ALL)
def test_pods_block_every_reason(reason: Disruption) -> None:
    assert blocking(reason, PROTECTED) == [
        'Pod/default/web: karpenter.sh/do-not-disrupt: "true" protects from disruption for ever'
    ]
    assert blocking(reason, *UNDER_PDB) == [
        "PodDisruptionBudget/default/web: PDB default/web can never allow an eviction (minAvailable 1 of 1 pod)"
    ]


@pytest.mark.parametrize("reason", ALL)
def test_with_a_grace_period_expired_drifted_and_unhealthy_nodes_start(
    reason: Disruption,
) -> None:
    bounded = a_claim(spec={"termination_grace_period": "15m"})
    assert (blocking(reason, PROTECTED, *UNDER_PDB[1:], claim=bounded) == []) is (
        reason in EVENTUAL
    )


def test_the_method_may_set_a_bound_of_its_own() -> None:
    bound = timedelta(minutes=1)
    assert blocking(Disruption.UNHEALTHY, PROTECTED, bound=bound) == []
    assert blocking(Disruption.EMPTY, PROTECTED, bound=bound) != []


@pytest.mark.parametrize("reason", VOLUNTARY)
@pytest.mark.parametrize("where", ["node", "claim"])
def test_an_annotation_of_the_node_or_claim_blocks(reason: Disruption, where: str) -> None:
    annotations = {DO_NOT_DISRUPT: "true"}
    things: dict[str, Any] = {"node": a_node, "claim": a_claim}
    assert blocking(reason, **{where: things[where](annotations=annotations)}) != []


def test_a_repair_does_not_ask_the_node() -> None:
    protected = a_node(annotations={DO_NOT_DISRUPT: "true"})
    assert blocking(Disruption.UNHEALTHY, node=protected) == []


def test_what_ends_says_when() -> None:
    annotations = {DO_NOT_DISRUPT: "2h", SINCE: "2h 2026-03-02T11:00:00Z"}
    claim, node = a_claim(), a_node(annotations=annotations)
    drain = drain_until(node, None, snapshot_with(claim, node, a_pod(protected="90m")))
    found = blockers_of(TRAITS[Disruption.DRIFTED], claim, drain, SETTINGS, NOW)
    assert [blocker.until for blocker in found] == [ahead(3600), ahead(1800)]


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(a_pod(protected="30m"), id="over"),
        pytest.param(a_pod(protected="true", phase="Succeeded"), id="finished"),
        pytest.param(a_pod(protected="true", deletion_timestamp=ahead(10)), id="on its way out"),
        pytest.param(a_pod(protected="true", owner="Node"), id="static"),
    ],
)
def test_what_protects_nothing_blocks_nothing(pod: Any) -> None:
    assert blocking(Disruption.DRIFTED, pod) == []
