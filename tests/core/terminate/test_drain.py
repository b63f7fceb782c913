"""A drain, pod by pod: which pods are evicted, which wait for what, and which are ignored."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tenure.core.decision import Blocker, Evict, Subject, Verdict
from tenure.core.facts import RetriedAt
from tenure.core.protect.protection import Protection
from tenure.core.reasons import Reason
from tenure.core.terminate.drain import DrainDecider
from tenure.core.terminate.facts.pods import (
    Evicting,
    Ignored,
    PdbAllowsNoMore,
    PdbUnreadable,
    PodIgnored,
    PodOverdue,
    PodStops,
    PodStuck,
    TierWaits,
    TryingNow,
)
from tenure.core.terminate.pods import DrainView, PodView, evaluate_pods, tier_of
from tenure.model.api.meta import FOR_EVER
from tenure.model.api.pod import Pod, Toleration
from tenure.model.api.resource import (
    DAEMON_SETS,
    NODE_CLAIMS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
)
from tenure.model.settings import Settings
from tenure.model.snapshot.observations import EvictionAnswer
from tenure.model.snapshot.snapshot import Change
from tenure.model.snapshot.unreadable import stand_in
from tenure.model.values.unreadable import UnreadableObject
from tests.core.build import (
    FOREIGN,
    NOW,
    a_claim,
    a_leaving_claim,
    a_leaving_node,
    a_node,
    a_pdb,
    a_pod,
    about,
    ago,
    ahead,
    condition,
    evaluated,
)
from tests.snapshots import snapshot_with

DECIDER = DrainDecider()
CRITICAL = {"priority_class_name": "system-node-critical"}
NO = EvictionAnswer(at=ago(1), retry_at=ahead(9), message="Cannot evict pod: budget.")


def drained(*pods: Pod, node: Any = None, **known: Any) -> list[Verdict]:
    return evaluated(DECIDER, a_leaving_claim(), node or a_leaving_node(), *pods, **known)


def verdict_on(pod: Pod, *others: Any, **known: Any) -> Verdict:
    return about(drained(pod, *others, **known), f"Pod/default/{pod.name}")


def test_a_plain_pod_is_evicted_by_its_uid() -> None:
    verdict = verdict_on(a_pod())
    assert verdict.reason is Reason.EVICTING
    assert verdict.facts == (Evicting("node-a"),)
    assert verdict.action == Evict(name="web", namespace="default", uid="uid-web")


def test_a_pod_without_grace_gets_a_second_so_that_it_stops_before_it_is_gone() -> None:
    verdict = verdict_on(a_pod(spec={"termination_grace_period_seconds": 0}))
    assert verdict.action == Evict(
        name="web", namespace="default", uid="uid-web", grace_period_seconds=1
    )


def test_a_pod_without_an_owner_is_evicted_too() -> None:
    assert verdict_on(a_pod(owner="")).reason is Reason.EVICTING


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        pytest.param({"phase": "Succeeded"}, Ignored.SUCCEEDED, id="finished"),
        pytest.param({"phase": "Failed"}, Ignored.FAILED, id="failed"),
        pytest.param(
            {"owner": "Node"},
            Ignored.MIRROR,
            id="mirror",
        ),
        pytest.param(
            {"spec": {"tolerations": (Toleration(operator="Exists"),)}},
            Ignored.TOLERATES,
            id="tolerates everything",
        ),
        pytest.param(
            {"spec": {"tolerations": (Toleration(key="karpenter.sh/disrupted"),)}},
            Ignored.TOLERATES,
            id="tolerates exactly this",
        ),
    ],
)
def test_a_pod_is_left_alone_when(fields: dict[str, Any], why: Ignored) -> None:
    verdict = verdict_on(a_pod(**fields))
    assert (verdict.reason, verdict.action) == (Reason.LEFT_ALONE, None)
    assert verdict.facts == (PodIgnored(why, "node-a"),)


def test_tolerating_an_unschedulable_node_does_not_exempt_a_pod() -> None:
    tolerant = Toleration(key="node.kubernetes.io/unschedulable", operator="Exists")
    verdict = verdict_on(a_pod(spec={"tolerations": (tolerant,)}))
    assert verdict.reason is Reason.EVICTING


def test_a_terminating_pod_is_waited_for_until_a_minute_after_its_grace() -> None:
    verdict = verdict_on(a_pod(deletion_timestamp=ahead(20)))
    assert (verdict.reason, verdict.action) == (Reason.POD_TERMINATING, None)
    assert verdict.facts == (PodStops(ahead(20)),)
    assert verdict.recheck_at == ahead(20)
    late = verdict_on(a_pod(deletion_timestamp=ago(20), finalizers=("example.com/audit",)))
    assert (late.reason, late.recheck_at) == (Reason.POD_TERMINATING, ahead(40))
    assert late.facts == (PodOverdue(ago(20), ahead(40), ("example.com/audit",)),)


def test_a_pod_that_is_stuck_in_termination_is_no_longer_waited_for() -> None:
    verdict = verdict_on(a_pod(deletion_timestamp=ago(60)))
    assert (verdict.reason, verdict.recheck_at) == (Reason.LEFT_ALONE, None)
    assert verdict.facts == (PodStuck(ago(60), "node-a"),)


#: Seconds, and what the API server makes of them when it adds them to noon: its sum wraps around.
BEYOND_GO = [
    pytest.param(10**14, "2032-07-07T16:07:00Z", id="10^14, which wraps to a few years"),
    pytest.param(2**63 - 1, "2026-03-02T11:59:59Z", id="2^63 - 1, which wraps to the past"),
    pytest.param(5 * 10**17, "1907-09-02T00:00:00Z", id="wraps to a century ago"),
]


@pytest.mark.parametrize(("seconds", "written"), BEYOND_GO)
def test_a_grace_that_overflows_in_the_api_server_is_waited_for_without_end(
    seconds: int, written: str
) -> None:
    pod = a_pod(
        deletion_timestamp=datetime.fromisoformat(written),
        deletion_grace_period_seconds=seconds,
        spec={"termination_grace_period_seconds": seconds},
    )
    verdict = verdict_on(pod)
    assert (verdict.reason, verdict.action) == (Reason.POD_TERMINATING, None)
    assert verdict.facts == (PodStops(FOR_EVER),)


TIERS = [
    (a_pod("plain"), 0),
    (a_pod("daemon", owner="DaemonSet"), 1),
    (a_pod("critical", spec=CRITICAL), 2),
    (a_pod("critical-daemon", owner="DaemonSet", spec=CRITICAL), 3),
]


@pytest.mark.parametrize(("pod", "tier"), TIERS, ids=[pod.name for pod, _ in TIERS])
def test_pods_are_evicted_in_four_tiers(pod: Pod, tier: int) -> None:
    assert tier_of(pod) == tier


def test_a_later_tier_waits_for_an_earlier_one() -> None:
    found = {v.subject.name: v.facts for v in drained(*(pod for pod, _ in TIERS))}
    assert found == {
        "plain": (Evicting("node-a"),),
        "daemon": (TierWaits("daemon pods", "plain pods"),),
        "critical": (TierWaits("critical pods", "plain pods"),),
        "critical-daemon": (TierWaits("critical daemon pods", "plain pods"),),
    }


def test_ignored_pods_do_not_keep_a_tier_open() -> None:
    daemon = a_pod("daemon", owner="DaemonSet")
    done, stuck = a_pod("done", phase="Succeeded"), a_pod("stuck", deletion_timestamp=ago(90))
    assert verdict_on(daemon, done, stuck).reason is Reason.EVICTING


def test_a_terminating_pod_keeps_its_tier_open() -> None:
    verdict = verdict_on(a_pod("daemon", owner="DaemonSet"), a_pod(deletion_timestamp=ahead(5)))
    assert verdict.reason is Reason.TIER_WAITS


def test_a_protected_pod_stays_and_says_until_when() -> None:
    verdict = verdict_on(a_pod(protected="2h"))
    assert (verdict.reason, verdict.action) == (Reason.PROTECTED, None)
    assert verdict.facts == (Protection("2h", ahead(3600)),)
    assert verdict.recheck_at == ahead(3600)


def test_a_pod_that_is_protected_for_ever_stays() -> None:
    verdict = verdict_on(a_pod(protected="true"))
    assert (verdict.reason, verdict.recheck_at) == (Reason.PROTECTED, None)
    assert verdict.facts == (Protection("true", FOR_EVER),)


def test_an_invalid_value_protects_and_is_reported() -> None:
    verdict = verdict_on(a_pod(protected="1d"))
    assert (verdict.reason, verdict.action) == (Reason.PROTECTION_UNREADABLE, None)
    assert verdict.facts == (Protection("1d", FOR_EVER, unreadable=True),)


def test_a_protection_that_has_ended_has_no_effect() -> None:
    assert verdict_on(a_pod(protected="1h")).reason is Reason.EVICTING


def test_a_protected_pod_of_an_early_tier_blocks_the_later_ones() -> None:
    verdict = verdict_on(a_pod("daemon", owner="DaemonSet"), a_pod(protected="true"))
    assert verdict.reason is Reason.TIER_WAITS


def test_a_refused_pod_names_the_budget_with_its_numbers() -> None:
    budget = a_pdb(observed_generation=1, current_healthy=2, desired_healthy=2, expected_pods=3)
    other, ready = a_pdb("other", app="db"), [condition("Ready")]
    verdict = verdict_on(a_pod(conditions=ready), budget, other, evictions={"uid-web": NO})
    assert (verdict.reason, verdict.action) == (Reason.EVICTION_WAITS, None)
    why = PdbAllowsNoMore("default/web", "minAvailable 2", pods=3, healthy=2, must_be_healthy=2)
    assert verdict.facts == (why, RetriedAt(ahead(9)))
    assert verdict.recheck_at == ahead(9)
    assert verdict.blockers == (
        Blocker(subject=Subject("PodDisruptionBudget", "web", "default", "uid-web"), fact=why),
    )


NOT_SYNCED = condition("DisruptionAllowed", "False", "SyncFailed", "no scale")
EIGHT: dict[str, Any] = {
    "observed_generation": 1,
    "current_healthy": 8,
    "desired_healthy": 7,
    "expected_pods": 8,
}


@pytest.mark.parametrize(
    ("budget", "others", "used_up"),
    [
        pytest.param(
            a_pdb(disruptions_allowed=1, **EIGHT),
            [a_pod("a", conditions=[condition("Ready")])],
            {"evicted": ("default/a",)},
            id="granted in this evaluation",
        ),
        pytest.param(
            a_pdb(**EIGHT, disrupted_pods={"web-1": ago(1)}),
            [],
            {"evicted": ("default/web-1",)},
            id="evicted from another node",
        ),
        pytest.param(
            a_pdb(**EIGHT | {"current_healthy": 7}),
            [a_pod(f"a{i}", deletion_timestamp=ahead(20)) for i in range(5)],
            {"evicted": tuple(f"default/a{i}" for i in range(5))},
            id="terminating here",
        ),
        pytest.param(a_pdb(**EIGHT | {"current_healthy": 7}), [], {}, id="not known"),
        pytest.param(
            a_pdb(**EIGHT, conditions=(NOT_SYNCED,)), [], {"problem": "no scale"}, id="unread"
        ),
    ],
)
def test_a_refusal_says_what_has_used_the_allowance_up(
    budget: Any, others: list[Pod], used_up: dict[str, Any]
) -> None:
    pod = a_pod(conditions=[condition("Ready")])
    verdict = verdict_on(pod, budget, *others)
    healthy = budget.status.current_healthy
    assert verdict.reason is Reason.EVICTION_WAITS
    refused, retried = verdict.facts
    assert refused == PdbAllowsNoMore(
        *("default/web", "minAvailable 7"), pods=8, healthy=healthy, must_be_healthy=7, **used_up
    )
    assert isinstance(retried, TryingNow)


def test_a_pdb_over_pods_without_a_controller_is_not_counted_against_zero_pods() -> None:
    numbers: dict[str, Any] = {"current_healthy": 4, "desired_healthy": 0, "expected_pods": 0}
    bare = a_pdb(observed_generation=1, **numbers)
    refused = verdict_on(a_pod(conditions=[condition("Ready")]), bare).facts[0]
    assert str(refused) == (
        "PDB default/web allows 0 more disruptions: its pods have no controller that says how many "
        "there should be (minAvailable 0, 4 healthy)"
    )


def test_a_pod_that_can_never_be_evicted_is_a_failure_at_once() -> None:
    never = a_pdb(current_healthy=2, desired_healthy=2, expected_pods=2)
    ready = a_pod(conditions=[condition("Ready")])
    assert verdict_on(ready, never).reason is Reason.EVICTION_REFUSED
    assert verdict_on(a_pod(), a_pdb(), a_pdb("two")).reason is Reason.EVICTION_REFUSED


def test_a_retry_is_the_same_verdict_with_an_action() -> None:
    """Otherwise every retry would make a new event."""
    before = verdict_on(a_pod(), evictions={"uid-web": NO})
    (after,) = evaluated(
        DECIDER, a_leaving_node(), a_pod(), now=ahead(9), evictions={"uid-web": NO}
    )
    assert before.facts[1:] == (RetriedAt(ahead(9)),)
    assert after.facts[1:] == (TryingNow(),), "never an instant in the past"
    assert not any(fact.news for fact in (*before.facts[1:], *after.facts[1:]))
    assert (after.reason, after.facts[0]) == (before.reason, before.facts[0])
    assert isinstance(after.action, Evict)
    assert after.recheck_at is None


@pytest.mark.parametrize("left_at", [None, ago(600)], ids=["rebooting", "leaving for long"])
def test_a_first_try_that_is_due_says_no_instant_in_the_past(left_at: datetime | None) -> None:
    pod, budget = a_pod(conditions=[condition("Ready")]), a_pdb(desired_healthy=1)
    node = a_leaving_node(deletion_timestamp=left_at)
    drain = DrainView(node=node, pods=(PodView(pod, pdbs=(budget,)),))
    (verdict,) = evaluate_pods(drain, Settings(), NOW)
    assert (verdict.facts[1:], type(verdict.action)) == ((TryingNow(),), Evict)


def test_a_refusal_matters_no_more_once_the_pod_is_protected_or_terminating() -> None:
    known = {"evictions": {"uid-web": NO}}
    assert verdict_on(a_pod(protected="true"), **known).reason is Reason.PROTECTED
    gone = a_pod(deletion_timestamp=NOW)
    assert verdict_on(gone, **known).reason is Reason.POD_TERMINATING


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        ((a_claim(), a_node()), "the node is not leaving"),
        ((a_leaving_claim(), a_leaving_node(closed=False)), "the door is not closed yet"),
        ((a_leaving_claim(), a_leaving_node(finalizers=("x",))), "it does not wait for us"),
        ((a_leaving_claim(ref=FOREIGN), a_leaving_node()), "its claim is another provider's"),
        ((a_leaving_node(claim="gone", labels={"karpenter.kwok.sh/kwoknodeclass": ""}),), ""),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_no_pod_is_evicted_because(objects: Any, why: str) -> None:
    verdicts = evaluated(DECIDER, *objects, a_pod())
    assert bool(verdicts) is (why == ""), "a node without a claim is ours by its label"


def test_which_changes_touch_which_drain() -> None:
    node, quiet = a_leaving_node(), a_node("node-b", claim="b")
    pod, elsewhere = a_pod(), a_pod("other", node="node-b")
    snapshot = snapshot_with(a_leaving_claim(), node, quiet, pod, elsewhere)
    changes = {
        "node": Change(NODES, "node-a", None, node),
        "pod": Change(PODS, "default/web", pod, None),
        "pod elsewhere": Change(PODS, "default/other", None, elsewhere),
        "claim": Change(NODE_CLAIMS, "a", a_claim(), a_leaving_claim()),
        "budget": Change(POD_DISRUPTION_BUDGETS, "default/web", None, a_pdb()),
        "daemon set": Change(DAEMON_SETS, "default/agent", None, None),
    }
    touched = {what: set(DECIDER.touched(each, snapshot)) for what, each in changes.items()}
    assert touched == {
        "node": {"node-a"},
        "pod": {"node-a"},
        "pod elsewhere": set(),
        "claim": {"node-a"},
        "budget": {"node-a"},
        "daemon set": set(),
    }


@pytest.mark.parametrize(
    ("subject", "keys"),
    [
        (Subject("Pod", "web", "default"), ["node-a"]),
        (Subject("Pod", "other", "default"), []),
        (Subject("Pod", "gone", "default"), []),
        (Subject("NodeClaim", "web"), []),
    ],
    ids=str,
)
def test_an_answer_about_a_pod_concerns_the_drain_of_its_node(
    subject: Subject, keys: list[str]
) -> None:
    snapshot = snapshot_with(a_leaving_node(), a_pod(), a_pod("other", node="node-b"))
    assert list(DECIDER.observed(subject, snapshot)) == keys


def test_a_pdb_that_cannot_be_read_allows_no_eviction_and_says_so() -> None:
    pdb = stand_in(a_pdb(), "Expected `int`, got `str`", field="spec.minAvailable")
    odd = UnreadableObject(
        "PodDisruptionBudget", "default/web", "spec.minAvailable", expected="int", got="str"
    )
    verdict = verdict_on(a_pod(conditions=[condition("Ready")]), pdb)
    assert (verdict.reason, verdict.action) == (Reason.BLOCKED_BY_UNREADABLE, None)
    assert verdict.facts == (PdbUnreadable(odd),)
    assert [blocker.fact for blocker in verdict.blockers] == [PdbUnreadable(odd)]
