"""What is reported about objects that cannot be read, and what they block."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tenure.core.decision import Concern, Delete, Evict, Patch, Subject, Terminate, Verdict
from tenure.core.facts import Quoted
from tenure.core.policy.deciders import decide_all
from tenure.core.reasons import Reason
from tenure.core.repair.decider import RepairDecider
from tenure.core.terminate.decider import TerminationDecider
from tenure.core.terminate.drain import DrainDecider
from tenure.core.unreadable.decider import UnreadableDecider, in_the_way
from tenure.core.unreadable.failclosed import fail_closed
from tenure.model.api.resource import NODES, Resource
from tenure.model.snapshot.kinds import decode
from tenure.model.snapshot.snapshot import Snapshot, Tables
from tenure.model.snapshot.unreadable import UNKNOWN, stand_in
from tenure.providers.kwok.repairs import kwok_statements
from tenure.runtime.executor.guard import veto
from tests.core.build import (
    NOW,
    SETTINGS,
    a_claim,
    a_leaving_claim,
    a_leaving_node,
    a_node,
    a_pdb,
    a_pod,
    a_pool,
    about,
    ago,
    ahead,
    condition,
    evaluated,
)
from tests.snapshots import snapshot_with

PROBLEM = "Expected `int`, got `str`"
UNHEALTHY = condition("Ready", "False", "KubeletNotReady", at=ago(3600))


def unread(item: Any) -> Any:
    return stand_in(item, PROBLEM, field="spec.priority")


# -- what is reported -------------------------------------------------------------------------


def a_verdict(action: Any) -> Verdict:
    subject = Subject("NodeClaim", "a")
    return Verdict(
        concern=Concern.LIFECYCLE, subject=subject, reason=Reason.INITIALIZING, facts=(Quoted("x"),),
        action=action,
    )  # fmt: skip


@pytest.mark.parametrize(
    "action",
    [
        Patch(resource=NODES, name="node-a", uid="u", resource_version="1", body={}),
        Delete(resource=NODES, name="node-a", uid="u"),
        Evict(name="web", namespace="default", uid="uid-web"),
    ],
    ids=["patch", "delete", "evict"],
)
def test_nothing_is_written_to_what_cannot_be_read(action: Any) -> None:
    snapshot = snapshot_with(unread(a_node()), unread(a_pod()))
    (found,) = fail_closed((a_verdict(action),), snapshot)
    assert (found.reason, found.action) == (Reason.BLOCKED_BY_UNREADABLE, None)


# -- what it blocks ---------------------------------------------------------------------------


def repaired(*objects: Any) -> list[Verdict]:
    statements = kwok_statements(ready=timedelta(minutes=30))
    return evaluated(RepairDecider(), *objects, repair_statements=statements)


UNREADABLE_PARTS = [
    pytest.param(a_claim(), a_node(ready=False, status={"conditions": (UNHEALTHY,)}), unread(a_pod()), id="pod"),
    pytest.param(unread(a_claim()), a_node(ready=False, status={"conditions": (UNHEALTHY,)}), a_pod(), id="claim"),
]  # fmt: skip


@pytest.mark.parametrize(("claim", "node", "pod"), UNREADABLE_PARTS)
def test_a_forceful_repair_waits_for_what_cannot_be_read(claim: Any, node: Any, pod: Any) -> None:
    pool = a_pool(repair={"terminationMode": "Forceful", "maxUnhealthy": "100%"})
    verdict = about(repaired(pool, claim, node, pod), "NodeClaim/a")
    assert (verdict.reason, verdict.action) == (Reason.BLOCKED_BY_UNREADABLE, None)


def test_a_pool_that_cannot_be_read_repairs_nothing() -> None:
    node = a_node(ready=False, status={"conditions": (UNHEALTHY,)})
    verdict = about(repaired(unread(a_pool()), a_claim(), node), "NodeClaim/a")
    assert (verdict.reason, verdict.action) == (Reason.BLOCKED_BY_UNREADABLE, None)
    assert (
        "NodePool general cannot be read: Expected `int`, got `str` at spec.pri" in verdict.message
    )


def test_a_claim_whose_node_cannot_be_read_is_not_lost() -> None:
    assert repaired(a_pool(), a_claim(), unread(a_node())) == []


def test_a_pdb_with_an_unreadable_selector_blocks_its_whole_namespace() -> None:
    claim, node = a_leaving_claim(), a_leaving_node()
    budget = unread(a_pdb(app="others"))
    unknown = stand_in(budget, PROBLEM)  # Not even its selector can be read.
    (verdict,) = evaluated(DrainDecider(), claim, node, a_pod(), unknown)
    assert (verdict.reason, verdict.action) == (Reason.BLOCKED_BY_UNREADABLE, None)


@pytest.mark.parametrize("part", ["node", "claim"])
def test_a_deadline_that_has_passed_applies_to_unreadable_objects(part: str) -> None:
    period = {"termination_grace_period": "10m"}
    claim, node = a_leaving_claim(spec=period), a_leaving_node()
    objects = (unread(claim), node) if part == "claim" else (claim, unread(node))
    before = about(evaluated(TerminationDecider(), *objects, now=ahead(600)), "NodeClaim/a")
    assert (before.reason, before.action) == (Reason.BLOCKED_BY_UNREADABLE, None)
    assert before.recheck_at == ahead(630), "deleted half a minute ago, and a minute more"
    over = about(evaluated(TerminationDecider(), *objects, now=ahead(630)), "NodeClaim/a")
    assert isinstance(over.action, Terminate)


def test_an_unreadable_pod_blocks_termination_reboot_and_replacement() -> None:
    claim, node, pool = a_claim(), a_node(), a_pool()
    here, elsewhere = unread(a_pod()), unread(a_pod(node="node-b"))
    somewhere = unread(a_pod(node=UNKNOWN))
    for pod, blocks in ((here, True), (elsewhere, False), (somewhere, True)):
        snapshot = snapshot_with(pool, claim, node, pod)
        assert bool(in_the_way(claim, (node,), pool, snapshot)) is blocks
        assert not in_the_way(claim, (node,), pool, snapshot, pods=False)
        terminate = Terminate(provider_id=claim.provider_id, claim_uid=claim.uid)
        leaving = snapshot_with(pool, a_leaving_claim(), a_leaving_node(), pod)
        why = veto(terminate, leaving, NOW) or ""
        assert ("cannot be read" in why) is blocks, "the guard is the last line of defence"


def test_the_view_of_a_key_is_the_stand_in_that_it_names() -> None:
    snapshot = snapshot_with(*(unread(a_pod(f"p{n}")) for n in range(3)))
    decider = UnreadableDecider()
    keys = list(decider.keys(snapshot))
    found = [decider.view(snapshot, key) for key in keys]
    assert [view.stand_in.name for view in found if view is not None] == ["p0", "p1", "p2"]
    assert decider.view(snapshot, "pods:default/other") is None


def test_a_node_class_of_any_provider_that_cannot_be_read_is_named_by_its_kind() -> None:
    kind = Resource("acme.example.com", "v1", "AcmeNodeClass", "acmenodeclasses", False)
    tables = Tables()
    tables.put(kind, decode(kind, b'{"metadata": {"name": "default", "uid": "u"}, "spec": 7}'))
    (verdict,) = decide_all(UnreadableDecider(), Snapshot(tables), SETTINGS, NOW)
    assert str(verdict.subject) == "AcmeNodeClass/default"
    assert verdict.message.startswith("AcmeNodeClass default cannot be read: ")
