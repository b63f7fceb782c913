"""What the guard asks before a node is taken away by choice, by arithmetic of its own."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.core.decision import Ground
from tenure.core.marks.stamp import stamp_for
from tenure.core.writes import delete_claim, patch
from tenure.model.api import names
from tenure.model.api.window import MaintenanceWindow
from tenure.model.settings import Settings
from tenure.model.snapshot.observations import Announcement, Observations
from tenure.runtime.executor.guard import veto
from tests.core.build import (
    DISRUPTED,
    NOW,
    SETTINGS,
    a_claim,
    a_node,
    a_pod,
    a_pool,
    ago,
    ahead,
    condition,
    meta,
)
from tests.core.disrupt.test_emptiness import pending
from tests.snapshots import snapshot_with

OFF = msgspec.structs.replace(SETTINGS, voluntary_disruption=False)
ANY = {"budgets": [{"nodes": "100%"}]}
CONDITIONS = {
    "Empty": "Empty",
    "Expired": "Expired",
    "Drifted": "Drifted",
    "Rebalance": "RebalanceRecommended",
}
ALL = sorted(CONDITIONS)


def a_candidate(reason: str, *, marked: bool = True, since: int = 60, **fields: Any) -> Any:
    marks = {names.REPLACED_BY: "", names.DISRUPTION_REASON: reason} if marked else {}
    told = fields.pop("conditions", [condition(CONDITIONS[reason], at=ago(since))])
    spec = {"expire_after": "1h", **fields.pop("spec", {})}
    return a_claim(annotations=marks, conditions=told, spec=spec, **fields)


def asked(
    claim: Any,
    *more: Any,
    ground: Ground = Ground.REPLACED,
    settings: Settings = SETTINGS,
    **disruption: Any,
) -> str | None:
    pool = a_pool(disruption=ANY | disruption)
    snapshot = snapshot_with(pool, claim, a_node(taints=(DISRUPTED,)), *more)
    return veto(delete_claim(claim, ground), snapshot, NOW, settings)


@pytest.mark.parametrize("reason", ALL)
def test_a_node_whose_reason_holds_may_go(reason: str) -> None:
    assert asked(a_candidate(reason)) is None


@pytest.mark.parametrize("reason", ALL)
def test_the_switch_forbids_it(reason: str) -> None:
    assert "voluntary disruption is switched off" in str(asked(a_candidate(reason), settings=OFF))


@pytest.mark.parametrize("reason", ["Drifted", "Empty", "Rebalance"])
def test_without_its_condition_it_must_not_go(reason: str) -> None:
    assert "is not True" in str(asked(a_candidate(reason, conditions=[])))


@pytest.mark.parametrize("reason", ALL)
def test_nodes_of_static_pools_and_of_none_are_candidates_of_nothing(reason: str) -> None:
    claim = a_candidate(reason)
    node = a_node(taints=(DISRUPTED,))
    for pools in ([a_pool(replicas=1)], []):
        found = veto(
            delete_claim(claim, Ground.REPLACED), snapshot_with(*pools, claim, node), NOW, SETTINGS
        )
        assert "no node of it is a candidate" in str(found)


@pytest.mark.parametrize("pod", [a_pod(), a_pod(owner="")], ids=["owned", "bare"])
def test_a_node_with_pods_is_not_empty(pod: Any) -> None:
    assert "is not empty" in str(asked(a_candidate("Empty"), pod))


def test_a_node_that_a_pod_is_about_to_be_bound_to_stays() -> None:
    comes = a_pod("db-0", node="", phase="Pending", nominated="node-a")
    told = "the scheduler is about to bind pod default/db-0 to Node node-a"
    assert told in str(asked(a_candidate("Empty"), comes))


@pytest.mark.parametrize(
    "pod", [a_pod(owner="DaemonSet"), a_pod(phase="Succeeded"), a_pod(deletion_timestamp=ago(5))]
)
def test_other_pods_do_not_count(pod: Any) -> None:
    assert asked(a_candidate("Empty"), pod) is None


@pytest.mark.parametrize(("after", "allowed"), [("60s", True), ("61s", False), ("Never", False)])
def test_an_empty_node_stays_for_consolidate_after(after: str, allowed: bool) -> None:
    assert (asked(a_candidate("Empty"), consolidateAfter=after) is None) is allowed


@pytest.mark.parametrize(
    ("age", "allowed"), [("66m", True), ("67m", False), ("Never", False), (None, False)]
)
def test_it_expires_a_tenth_of_its_age_early_at_the_most(age: str | None, allowed: bool) -> None:
    """It is an hour old."""
    assert (asked(a_candidate("Expired", spec={"expire_after": age})) is None) is allowed


@pytest.mark.parametrize("reason", ALL)
def test_protected_pods_block_it_unless_a_grace_period_bounds_expiry_or_drift(reason: str) -> None:
    kept = a_pod("kept", owner="DaemonSet", protected="true")
    assert "do-not-disrupt" in str(asked(a_candidate(reason), kept))
    bounded = a_candidate(reason, spec={"termination_grace_period": "1h"})
    assert (asked(bounded, kept) is None) is (reason in ("Expired", "Drifted"))


@pytest.mark.parametrize("reason", ALL)
def test_the_same_is_asked_when_a_command_begins(reason: str) -> None:
    marks = {names.REPLACED_BY: "", names.DISRUPTION_REASON: reason}
    told: dict[str, Any] = {"conditions": []}
    for more, allowed in (({}, True), (told, reason == "Expired")):
        claim = a_candidate(reason, marked=False, **more)
        begins = patch(claim, {"annotations": marks})
        snapshot = snapshot_with(a_pool(disruption=ANY), claim, a_node())
        assert (veto(begins, snapshot, NOW, SETTINGS) is None) is allowed


# -- the policy Always -----------------------------------------------------------------------


def expired(age: str = "1h", *more: Any, policy: str = "Always", **fields: Any) -> str | None:
    claim = a_candidate("Expired", marked=False, spec={"expire_after": age})
    closed: dict[str, Any] = {"budgets": [{"nodes": "0"}], "expirationPolicy": policy}
    return asked(claim, *more, ground=Ground.EXPIRED, **closed, **fields)


def test_always_asks_neither_budgets_nor_pods() -> None:
    assert expired("1h", a_pod(protected="true")) is None


def test_always_asks_age_policy_switch_and_windows() -> None:
    assert "it expires at" in str(expired("61m"))
    assert [str(expired(age)).endswith("it does not expire") for age in ("-1h", "0s")] == [True] * 2
    assert "is not Always" in str(expired(policy="WhenAllowed"))
    assert "switched off" in str(expired(settings=OFF))
    window = msgspec.convert({"spec": {"actions": ["Expiration"]}}, MaintenanceWindow)
    window = msgspec.structs.replace(window, metadata=meta("freeze"))
    assert "MaintenanceWindow freeze blocks Expired" in str(expired("1h", window))


# -- interruptions ---------------------------------------------------------------------------


def interrupted(*more: Any, announced: bool = True, **claim: Any) -> str | None:
    closed = [{"nodes": "0"}]
    said = {"uid-a": Announcement(by="acme", at=ago(5), deadline=ahead(60))} if announced else {}
    known = Observations(interruptions=said)
    one = a_claim(**claim)
    snapshot = snapshot_with(
        a_pool(disruption={"budgets": closed}), one, a_node(), *more, observations=known
    )
    return veto(delete_claim(one, Ground.INTERRUPTED), snapshot, NOW, OFF)


def test_an_interruption_asks_nothing_but_whether_it_was_announced() -> None:
    veto_marks = {names.DO_NOT_REPAIR: "true", names.DO_NOT_DISRUPT: "true"}
    window = msgspec.convert({"spec": {"actions": ["Rebalance", "Repair"]}}, MaintenanceWindow)
    window = msgspec.structs.replace(window, metadata=meta("freeze"))
    everything = (window, a_pod(protected="true"))
    assert interrupted(*everything, annotations=veto_marks) is None
    marked = {names.INTERRUPTION: "acme 2026-03-02T11:59:00Z"}  # By another leader.
    assert interrupted(announced=False, annotations=marked) is None
    assert "the cloud has not announced" in str(interrupted(announced=False))


@pytest.mark.parametrize(
    ("at", "leaving", "said"),
    [
        (ahead(60), False, ""),
        (ahead(90), False, ""),
        (ahead(30), False, "at 2026-03-02T12:01:00Z, and not before"),
        (ahead(60), True, ""),
        (ahead(900), True, "that is never put off"),
    ],
)
def test_its_deadline_is_what_was_announced(at: Any, leaving: bool, said: str) -> None:
    grace = {"termination_grace_period": "10m"}
    claim = a_claim(spec=grace, deletion_timestamp=ago(30) if leaving else None)
    heard = Observations(
        interruptions={"uid-a": Announcement(by="acme", at=ago(5), deadline=ahead(60))}
    )
    snapshot = snapshot_with(a_pool(), claim, a_node(), observations=heard)
    stamped = stamp_for(claim, at, Ground.INTERRUPTED, {})
    answer = veto(stamped, snapshot, NOW, SETTINGS)
    assert said in str(answer) if said else answer is None
    unheard = snapshot_with(a_pool(), claim, a_node())
    assert veto(stamped, unheard, NOW, SETTINGS) is not None


# -- replacements that are left over ---------------------------------------------------------


def left_over(*more: Any, named: str = "", protection: str = "false", **old: Any) -> str | None:
    marks = {names.REPLACED_BY: named} if named else {}
    replaced = a_claim("old", annotations=marks, **old)
    annotations = {names.REPLACES: "uid-old", names.NOMINATED_PODS: "uid-waits"}
    claim = a_claim(annotations=annotations | {names.DO_NOT_DISRUPT: protection})
    closed = [{"nodes": "0"}]
    return asked(claim, replaced, *more, ground=Ground.LEFT_OVER, budgets=closed)


def test_a_replacement_that_no_command_counts_on_may_go_whatever_budgets_say() -> None:
    assert left_over() is None


def test_one_that_is_counted_on_must_not_go() -> None:
    assert "it replaces NodeClaim old" in str(left_over(named="a"))
    assert "it replaces NodeClaim old" in str(left_over(deletion_timestamp=ago(5)))
    gone = a_claim(annotations={names.REPLACES: "uid-gone"})
    assert "no replacement of a claim" in str(asked(gone, ground=Ground.LEFT_OVER))


def test_one_that_a_user_protects_must_not_go() -> None:
    assert "do-not-disrupt" in str(left_over(protection="true"))
    node = a_node(annotations={names.DO_NOT_DISRUPT: "true"})
    assert "do-not-disrupt" in str(left_over(node))


def test_one_that_a_pod_uses_must_not_go() -> None:
    assert "pod default/web uses it" in str(left_over(a_pod()))
    assert "pod default/waits uses it" in str(left_over(pending(name="waits")))
