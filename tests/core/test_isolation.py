"""Whom a failed evaluation is about, and what is said of those that were set aside."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tenure.core.decider import decide_all
from tenure.core.decision import Concern, Delete, Evict, Patch, Subject, Terminate, Verdict
from tenure.core.drain import DrainDecider
from tenure.core.isolation import COMMON_AFTER, SET_ASIDE_MAX, fail_closed, isolated
from tenure.core.reasons import Reason
from tenure.core.repair import RepairDecider
from tenure.core.termination import TerminationDecider
from tenure.core.unreadables import UnreadableDecider
from tenure.model.pod import Pod
from tenure.model.repairs import peers_statements
from tenure.model.resource import NODE_POOLS, NODES, PODS
from tenure.model.settings import Settings
from tenure.model.snapshot import Snapshot
from tenure.model.unreadable import stand_in
from tests.core.build import (
    NOW,
    a_budget,
    a_claim,
    a_leaving_claim,
    a_leaving_node,
    a_node,
    a_pod,
    a_pool,
    about,
    ago,
    ahead,
    condition,
    judged,
)

PROBLEM = "Expected `int`, got `str`"
SICK = condition("Ready", "False", "KubeletNotReady", at=ago(3600))


def unread(item: Any) -> Any:
    return stand_in(item, PROBLEM, field="spec.priority")


def failing(bad: Callable[[Pod], bool]) -> Callable[[Snapshot], list[str]]:
    def look(snapshot: Snapshot) -> list[str]:
        return [look_at(pod) for pod in snapshot.pods.values()]

    def look_at(pod: Pod) -> str:
        if bad(pod):
            raise OverflowError("date value out of range")
        return pod.name

    return look


# -- whom it is about -------------------------------------------------------------------------


def test_the_object_that_the_work_fails_on_is_set_aside_and_the_work_is_done_again() -> None:
    snapshot = Snapshot.of(a_pod("good"), a_pod("bad", protected="4h"))
    work = failing(lambda pod: bool(pod.annotations))
    outcome = isolated(lambda: work(snapshot), snapshot)
    assert outcome.result == ["good", "bad"], "its stand-in has no annotations"
    assert list(snapshot.unreadable()) == [(PODS, "default/bad")]
    (verdict,) = decide_all(UnreadableDecider(), snapshot, Settings(), NOW)
    assert verdict.reason is Reason.EVALUATION_FAILED
    assert str(verdict.subject) == "Pod/default/bad"
    assert "OverflowError: date value out of range (test_isolation.py:" in verdict.message


def test_many_bad_objects_are_set_aside_a_few_at_a_time() -> None:
    pods = [a_pod(f"p{n}", protected="4h") for n in range(SET_ASIDE_MAX + 4)]
    snapshot = Snapshot.of(*pods)
    work = failing(lambda pod: bool(pod.annotations))
    first = isolated(lambda: work(snapshot), snapshot)
    assert first.unfinished
    assert len(snapshot.unreadable()) == SET_ASIDE_MAX
    assert isolated(lambda: work(snapshot), snapshot).error is None


def test_what_nobody_can_be_blamed_for_fails_as_a_whole() -> None:
    snapshot = Snapshot.of(a_pod())

    def work() -> None:
        raise ZeroDivisionError

    outcome = isolated(work, snapshot)
    assert isinstance(outcome.error, ZeroDivisionError)
    assert not snapshot.unreadable()


def test_who_was_blamed_in_vain_is_put_back() -> None:
    snapshot = Snapshot.of(a_pod("a"), a_pod("b"))
    work = failing(lambda pod: pod.name == "b")  # However little its stand-in says.
    assert isolated(lambda: work(snapshot), snapshot).error is not None
    assert not snapshot.unreadable()


def test_a_pool_whose_nodes_fail_one_after_the_other_is_blamed_in_their_stead() -> None:
    nodes = [a_node(f"n{n}", claim=f"c{n}") for n in range(COMMON_AFTER + 2)]
    snapshot = Snapshot.of(a_pool(limits={"cpu": "1"}), *nodes)

    def work() -> None:
        for pool in snapshot.pools.values():
            for node in snapshot.nodes.values():
                look_at(pool, node)

    def look_at(pool: Any, node: Any) -> None:
        if pool.spec.limits:
            raise KeyError(node.name)

    assert isolated(work, snapshot).error is None
    assert list(snapshot.unreadable()) == [(NODE_POOLS, "general")]


# -- what is said of it -----------------------------------------------------------------------


def a_verdict(action: Any) -> Verdict:
    subject = Subject("NodeClaim", "a")
    return Verdict(
        concern=Concern.LIFECYCLE, subject=subject, reason=Reason.INITIALIZING, message="x",
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
    snapshot = Snapshot.of(unread(a_node()), unread(a_pod()))
    (found,) = fail_closed((a_verdict(action),), snapshot)
    assert (found.reason, found.action) == (Reason.BLOCKED_BY_UNREADABLE, None)


# -- what it holds ----------------------------------------------------------------------------


def repaired(*objects: Any) -> list[Verdict]:
    statements = peers_statements(ready=timedelta(minutes=30))
    return judged(RepairDecider(), *objects, repair_statements=statements)


UNREADABLE_PARTS = [
    pytest.param(a_claim(), a_node(ready=False, status={"conditions": (SICK,)}), unread(a_pod()), id="pod"),
    pytest.param(unread(a_claim()), a_node(ready=False, status={"conditions": (SICK,)}), a_pod(), id="claim"),
]  # fmt: skip


@pytest.mark.parametrize(("claim", "node", "pod"), UNREADABLE_PARTS)
def test_a_forceful_repair_waits_for_what_cannot_be_read(claim: Any, node: Any, pod: Any) -> None:
    pool = a_pool(repair={"terminationMode": "Forceful", "maxUnhealthy": "100%"})
    verdict = about(repaired(pool, claim, node, pod), "NodeClaim/a")
    assert (verdict.reason, verdict.action) == (Reason.BLOCKED_BY_UNREADABLE, None)


def test_a_pool_that_cannot_be_read_repairs_nothing() -> None:
    node = a_node(ready=False, status={"conditions": (SICK,)})
    verdict = about(repaired(unread(a_pool()), a_claim(), node), "NodeClaim/a")
    assert (verdict.reason, verdict.action) == (Reason.BLOCKED_BY_UNREADABLE, None)
    assert (
        "NodePool general cannot be read: Expected `int`, got `str` at spec.pri" in verdict.message
    )


def test_a_claim_whose_node_cannot_be_read_is_not_lost() -> None:
    assert repaired(a_pool(), a_claim(), unread(a_node())) == []


def test_a_budget_of_which_nobody_can_tell_whom_it_covers_holds_its_whole_namespace() -> None:
    claim, node = a_leaving_claim(), a_leaving_node()
    budget = unread(a_budget(app="others"))
    nobody = stand_in(budget, PROBLEM)  # Not even its selector.
    (verdict,) = judged(DrainDecider(), claim, node, a_pod(), nobody)
    assert (verdict.reason, verdict.action) == (Reason.BLOCKED_BY_UNREADABLE, None)


@pytest.mark.parametrize("part", ["node", "claim"])
def test_a_deadline_that_is_over_holds_for_what_cannot_be_read(part: str) -> None:
    period = {"termination_grace_period": "10m"}
    claim, node = a_leaving_claim(spec=period), a_leaving_node()
    objects = (unread(claim), node) if part == "claim" else (claim, unread(node))
    before = about(judged(TerminationDecider(), *objects, now=ahead(600)), "NodeClaim/a")
    assert (before.reason, before.action) == (Reason.BLOCKED_BY_UNREADABLE, None)
    assert before.recheck_at == ahead(630), "deleted half a minute ago, and a minute more"
    over = about(judged(TerminationDecider(), *objects, now=ahead(630)), "NodeClaim/a")
    assert isinstance(over.action, Terminate)
