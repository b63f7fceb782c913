"""The voluntary methods: who is a candidate, from when on, in which order, and what ends a command."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tenure.core.decision import Create, Delete, Ground, Verdict
from tenure.core.disrupt.expiration import expires_at
from tenure.core.disrupt.facts.candidates import (
    NodeDrifted,
    NodeExpired,
    NodeIsEmpty,
    PendingPodsFit,
    PlannedOnto,
    RebalanceRecommended,
)
from tenure.core.disrupt.facts.commands import (
    CommandTakenOver,
    LeftOverInUse,
    LeftOverProtected,
    LeftOverRemoved,
    NoLongerDue,
    PodsCame,
    RolledBack,
)
from tenure.core.disrupt.facts.planning import CandidatesWait, ReplacementsCreated, StartRefused
from tenure.core.disrupt.orchestrate import ReplacementDecider
from tenure.core.disrupt.pipeline import DisruptionDecider
from tenure.core.gates.facts import DrainUnbounded, WindowClosesTooSoon
from tenure.core.gates.operations import Gate
from tenure.core.marks.command import begin
from tenure.core.protect.protection import Protection
from tenure.core.reasons import Reason
from tenure.core.windows.facts import WindowBlocks
from tenure.model.api.meta import FOR_EVER
from tenure.model.api.names import (
    DISRUPTION_REASON,
    DO_NOT_DISRUPT,
    NODEPOOL,
    NOMINATED_PODS,
    REPLACED_BY,
    REPLACES,
)
from tenure.model.api.nodepool import NodePool
from tenure.model.api.window import MaintenanceWindow
from tenure.model.snapshot.observations import WriteRefusal
from tenure.model.snapshot.unreadable import stand_in
from tenure.providers.kwok.repairs import kwok_statements
from tenure.runtime.executor.guard import veto
from tests.core.build import (
    DISRUPTED,
    INITIALIZED,
    LAUNCHED,
    NOW,
    REGISTERED,
    SETTINGS,
    a_claim,
    a_class,
    a_node,
    a_pdb,
    a_pod,
    a_pool,
    about,
    ago,
    ahead,
    body_of,
    condition,
    evaluated,
    fact_of,
    meta,
    types,
)
from tests.core.disrupt.test_emptiness import pending
from tests.snapshots import snapshot_with

#: More than half of a node.
BIG = {"cpu": "3", "memory": "1Gi"}
ANY = {"budgets": [{"nodes": "100%"}]}
REASONS = {
    "Empty": "Empty",
    "Expired": "Expired",
    "Drifted": "Drifted",
    "Rebalance": "RebalanceRecommended",
}
ALL = sorted(REASONS)
REPLACING = sorted(set(REASONS) - {"Empty"})


def a_candidate(reason: str, name: str = "a", *, since: float = 60, **fields: Any) -> Any:
    conditions = [condition(REASONS[reason], at=ago(since)), *fields.pop("conditions", ())]
    spec = {"expire_after": "10m", **fields.pop("spec", {})}
    return a_claim(name, conditions=conditions, spec=spec, **fields)


def full(reason: str, name: str = "a", **fields: Any) -> list[Any]:
    """With a pod that needs another node, unless the node is to be empty."""
    pods = [] if reason == "Empty" else [a_pod(f"web-{name}", node=f"node-{name}", requests=BIG)]
    return [a_candidate(reason, name, **fields), a_node(f"node-{name}", claim=name), *pods]


def a_window(**spec: Any) -> MaintenanceWindow:
    """Without schedules or dates it is always active."""
    window = msgspec.convert({"spec": spec}, MaintenanceWindow)
    return msgspec.structs.replace(window, metadata=meta("freeze"))


def verdicts(*objects: Any, **known: Any) -> list[Verdict]:
    pools = [] if any(isinstance(one, NodePool) for one in objects) else [a_pool(disruption=ANY)]
    usual: dict[str, Any] = {"instance_types": types()}
    return evaluated(DisruptionDecider(), a_class(), *pools, *objects, **usual | known)


def on_claim(*objects: Any, name: str = "a", **known: Any) -> Verdict:
    return about(verdicts(*objects, **known), f"NodeClaim/{name}")


# -- candidates ------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", REPLACING)
def test_its_replacement_is_launched_first(reason: str) -> None:
    found = verdicts(*full(reason))
    (created,) = [verdict.action for verdict in found if isinstance(verdict.action, Create)]
    assert created.body["metadata"]["annotations"][REPLACES] == "uid-a"
    assert created.disrupts_for == reason
    told = about(found, "NodeClaim/a")
    assert told.reason is Reason.REPLACING
    assert ReplacementsCreated((created.name,)) in told.facts


def test_candidates_that_a_gate_blocks_do_not_delay_another_pool() -> None:
    """One node is planned for in each pass, and few are looked at; blocked ones need no look."""
    blocked = a_pool("aaa", disruption={"budgets": [{"nodes": "0"}]})
    free = a_pool("zzz", disruption=ANY)
    waiting = [
        thing
        for index in range(60)
        for thing in full("Drifted", f"w{index}", labels={NODEPOOL: "aaa"}, since=600)
    ]
    due = full("Drifted", "z", labels={NODEPOOL: "zzz"})
    told = on_claim(blocked, free, *waiting, *due, name="z")
    assert told.reason is Reason.REPLACING


@pytest.mark.parametrize("reason", ALL)
def test_a_node_without_pods_needs_no_replacement(reason: str) -> None:
    told = on_claim(a_candidate(reason), a_node())
    marks = body_of(told)["metadata"]["annotations"]
    assert marks == {REPLACED_BY: "", DISRUPTION_REASON: reason}


def test_each_says_what_is_the_case_and_since_when() -> None:
    expires = expires_at(a_candidate("Expired"), "WhenAllowed")
    assert expires is not None
    whys = {reason: on_claim(*full(reason)).facts[0] for reason in ALL}
    assert whys == {
        "Empty": NodeIsEmpty("node-a", ago(60)),
        "Expired": NodeExpired("node-a", expires, "10m"),
        "Drifted": NodeDrifted("node-a", ago(60), "Drifted"),
        "Rebalance": RebalanceRecommended("node-a", ago(60)),
    }


def on_claim_expires() -> Any:
    from tenure.core.disrupt.expiration import expires_at

    return expires_at(a_candidate("Expired"), "WhenAllowed")


@pytest.mark.parametrize("reason", ALL)
@pytest.mark.parametrize(
    "change",
    [
        {"pool": a_pool(replicas=3)},
        {"pool": a_pool("other")},
        {"stage": 2},
        {"twin": True},
        {"rebooting": True},
    ],
    ids=["static", "no pool", "not initialized", "shared instance", "rebooting"],
)
def test_candidates_of_nothing(reason: str, change: dict[str, Any]) -> None:
    more: list[Any] = [change["pool"]] if "pool" in change else []
    fields: dict[str, Any] = {"stage": change["stage"]} if "stage" in change else {}
    if "rebooting" in change:
        fields["conditions"] = [condition("Rebooting")]
    if "twin" in change:
        more.append(a_claim("b", status={"provider_id": "cloud://a"}))
    found = verdicts(a_candidate(reason, **fields), a_node(), *more)
    assert [one for one in found if one.subject.name == "a"] == []


@pytest.mark.parametrize(("seconds", "due"), [(59, False), (60, True)])
def test_an_empty_node_is_due_after_consolidate_after(seconds: int, due: bool) -> None:
    pool = a_pool(disruption={**ANY, "consolidateAfter": "1m"})
    found = verdicts(pool, *full("Empty", since=seconds))
    assert any(str(one.subject) == "NodeClaim/a" for one in found) is due
    if not due:
        assert about(found, "NodePool/general").recheck_at == ahead(1)


def test_a_node_that_is_empty_for_a_moment_is_not_due() -> None:
    """Its last pod is replaced: the next one may be on its way."""
    found = verdicts(*full("Empty", since=14))
    assert about(found, "NodePool/general").recheck_at == ahead(1)
    assert verdicts(*full("Empty", since=15)) != found


@pytest.mark.parametrize(
    "pod", [a_pod(), a_pod(owner=""), pending(labels={"app": "web"})], ids=["new", "bare", "fits"]
)
def test_a_pod_that_is_there_or_fits_keeps_an_empty_node(pod: Any) -> None:
    found = verdicts(*full("Empty"), pod)
    told = [one for one in found if str(one.subject) == "NodeClaim/a"]
    assert all(one.action is None for one in told)
    if not pod.spec.node_name:
        assert PendingPodsFit("node-a") in told[0].facts


def test_a_nominated_node_is_not_empty() -> None:
    claim = a_candidate("Empty", annotations={NOMINATED_PODS: "uid-web"})
    waits = pending(requests={"cpu": "100"})
    found = verdicts(claim, a_node(status={"conditions": (condition("Ready", at=ago(5)),)}), waits)
    assert [one for one in found if str(one.subject) == "NodeClaim/a"] == []


def test_many_empty_nodes_go_at_once_and_one_replacement_is_planned_at_a_time() -> None:
    empty = [one for name in "abc" for one in full("Empty", name)]
    found = verdicts(*empty)
    assert all(about(found, f"NodeClaim/{name}").action is not None for name in "abc")
    drifted = [one for name in "abc" for one in full("Drifted", name)]
    found = verdicts(*drifted)
    assert len([one for one in found if isinstance(one.action, Create)]) == 1


@pytest.mark.parametrize(
    ("unread", "taints"),
    [
        pytest.param({"deletion_timestamp": ago(30)}, (), id="deleting"),
        pytest.param({"annotations": {REPLACED_BY: "z"}}, (), id="commanded"),
        pytest.param({}, (DISRUPTED,), id="tainted"),
    ],
)
def test_a_leaving_claim_that_cannot_be_read_uses_the_budget(unread: Any, taints: Any) -> None:
    pool = a_pool(disruption={"budgets": [{"nodes": "1"}]})
    gone = stand_in(a_claim("b", **unread), "Expected `object`", field="status")
    objects = [pool, *full("Drifted"), gone, a_node("node-b", claim="b", taints=taints)]
    told = on_claim(*objects)
    assert (told.reason, told.gate) == (Reason.DISRUPTION_BLOCKED, "budgets")
    snapshot = snapshot_with(a_class(), *objects)
    said = veto(begin(a_candidate("Drifted"), (), "Drifted", {}), snapshot, NOW)
    assert said is not None, "the guard counts for itself"
    assert "budget 1 allows 1 of 2 Nodes" in said


WITHIN = {"budgets": [{"nodes": "100%", "within": "1h"}]}


@pytest.mark.parametrize(
    ("refused", "subject"),
    [
        ("uid-a", "NodeClaim a"),
        ("uid-node-a", "Node node-a"),
        ("uid-aaa", "NodePool aaa"),
    ],
)
def test_a_candidate_whose_write_was_refused_waits_and_others_go_on(
    refused: str, subject: str
) -> None:
    """Its plan would come to nothing, and keep every other node waiting."""
    refusal = WriteRefusal(message="denied", at=ago(10), retry_at=ahead(50))
    pools = [a_pool("aaa", disruption=WITHIN), a_pool("bbb", disruption=ANY)]
    known: dict[str, Any] = {"refused_starts": {refused: refusal}}
    first = full("Drifted", "a", labels={NODEPOOL: "aaa"}, since=500)
    idle = [a_claim("x", creation_timestamp=ago(300), annotations={REPLACES: "uid-a"})]
    objects = [*pools, *first, *idle, a_node("node-x", claim="x")]
    told = on_claim(*objects, **known)
    assert (told.reason, told.recheck_at) == (Reason.DISRUPTION_WAITS, ahead(50))
    assert str(fact_of(told, StartRefused)).startswith(f"the write to {subject} ")
    assert isinstance(on_claim(*objects, name="x", **known).action, Delete)
    other = full("Drifted", "b", labels={NODEPOOL: "bbb"})
    assert on_claim(*objects, *other, name="b", **known).reason is Reason.REPLACING
    assert on_claim(*objects, now=ahead(50), **known).reason is Reason.REPLACING


@pytest.mark.parametrize(("policy", "launched"), [("WhenAllowed", 0), ("Always", 1)])
def test_a_node_that_expires_in_the_same_pass_is_no_capacity_either(
    policy: str, launched: int
) -> None:
    """A budget of its pool keeps the other node, unless its expiration waits for nothing."""
    old = a_pool("old", disruption={"budgets": [{"nodes": "0"}], "expirationPolicy": policy})
    expired = a_candidate("Expired", "b", labels={NODEPOOL: "old"})
    pools = [old, a_pool(disruption=ANY)]
    found = verdicts(*pools, *full("Drifted", "a"), expired, a_node("node-b", claim="b"))
    assert len([one for one in found if isinstance(one.action, Create)]) == launched


def test_a_pool_whose_pods_fit_nowhere_delays_no_other_pool() -> None:
    """Its candidates are drifted for longer, and come first."""
    objects: list[Any] = [a_pool("aaa", disruption=ANY), a_pool("bbb", disruption=ANY)]
    for number in range(40):
        name = f"a{number:02}"
        claim, node, _ = full("Drifted", name, labels={NODEPOOL: "aaa"}, since=500)
        huge = a_pod(f"web-{name}", node=f"node-{name}", requests={"cpu": "999"})
        objects += [claim, node, huge]
    other = full("Drifted", "b", labels={NODEPOOL: "bbb"})
    told = on_claim(*objects, *other, name="b")
    assert told.reason is Reason.REPLACING


@pytest.mark.parametrize(
    ("refused", "part", "taints", "cancelled"),
    [
        pytest.param("uid-node-a", "", [], True, id="the taint"),
        pytest.param("uid-a", "status", [DISRUPTED], True, id="the condition"),
        pytest.param("uid-a", "", [DISRUPTED], False, id="the command, before"),
    ],
)
def test_a_command_whose_mark_is_refused_is_rolled_back(
    refused: str, part: str, taints: list[Any], cancelled: bool
) -> None:
    """Else it would use the budget of its pool for ever."""
    denied = WriteRefusal(message="denied", at=ago(10), retry_at=ahead(50), subresource=part)
    marks = {REPLACED_BY: "", DISRUPTION_REASON: "Drifted"}
    claim = a_candidate("Drifted", annotations=marks)
    objects = [a_class(), a_pool(disruption=ANY), claim, a_node(claim="a", taints=taints)]
    known: dict[str, Any] = {"refused_starts": {refused: denied}}
    told = about(evaluated(ReplacementDecider(), *objects, **known), "NodeClaim/a")
    expected = Reason.DISRUPTION_CANCELLED if cancelled else Reason.REPLACING
    assert (told.reason, told.recheck_at) == (expected, ahead(50))
    again = about(evaluated(ReplacementDecider(), *objects, now=ahead(50), **known), "NodeClaim/a")
    assert (again.reason, again.recheck_at) == (Reason.REPLACING, None), "it is tried once more"


@pytest.mark.parametrize(
    ("reason", "since", "launched", "empty_waits"),
    [
        pytest.param("Empty", 60, 1, False, id="given up before"),
        pytest.param("Rebalance", 60, 0, True, id="planned onto before"),
    ],
)
def test_a_node_that_is_given_up_is_no_capacity_for_another_command(
    reason: str, since: float, launched: int, empty_waits: bool
) -> None:
    empty = [a_candidate(reason, "b", since=since), a_node("node-b", claim="b")]
    found = verdicts(*full("Drifted", "a"), *empty)
    assert len([one for one in found if isinstance(one.action, Create)]) == launched
    told = about(found, "NodeClaim/b")
    assert (PlannedOnto("node-b") in told.facts, told.action is None) == (empty_waits, empty_waits)


def test_an_empty_node_stays_that_pods_of_a_command_were_planned_onto() -> None:
    """Also before the claim says that it is disrupted: from then on its pods are demand."""
    marks = {REPLACED_BY: "", DISRUPTION_REASON: "Drifted"}
    drifted, *rest = full("Drifted", "a", annotations=marks)
    told = on_claim(drifted, *rest, *full("Empty", "b"), name="b")
    assert PendingPodsFit("node-b") in told.facts


def test_drifted_nodes_without_pods_come_first_then_the_oldest_drift() -> None:
    pool = a_pool(disruption={"budgets": [{"nodes": "1"}]})
    objects = [*full("Drifted", "a", since=500), a_candidate("Drifted", "b", since=5)]
    found = verdicts(pool, *objects, a_node("node-b", claim="b"))
    assert about(found, "NodeClaim/b").action is not None
    assert about(found, "NodeClaim/a").reason is Reason.DISRUPTION_BLOCKED
    older = [*full("Drifted", "a", since=5), *full("Drifted", "b", since=500)]
    found = verdicts(pool, *older)
    assert about(found, "NodeClaim/b").reason is Reason.REPLACING


def test_the_pool_says_how_many_candidates_wait_and_until_when() -> None:
    """The first day on a fleet that is all drifted: its budget allows one."""
    pool = a_pool(
        disruption={"budgets": [{"nodes": "1", "schedule": "0 11 * * *", "duration": "2h"}]}
    )
    fleet = [one for name in "abc" for one in full("Drifted", name)]
    told = about(verdicts(pool, *fleet), "NodePool/general")
    assert fact_of(told, CandidatesWait) == CandidatesWait(
        2, 3, ahead(3600), (("Drifted", 3),), (("budgets", 2),)
    )
    assert told.reason is Reason.CANDIDATES_WAIT
    assert told.recheck_at == ahead(3600)
    off = msgspec.structs.replace(SETTINGS, voluntary_disruption=False)
    told = about(verdicts(pool, *fleet, settings=off), "NodePool/general")
    assert fact_of(told, CandidatesWait) == CandidatesWait(
        3, 3, None, (("Drifted", 3),), (("switched off", 3),)
    )


@pytest.mark.parametrize("late", ["budget", "pod"])
def test_one_that_a_late_gate_blocks_is_evaluated_again_when_a_window_closes(late: str) -> None:
    """The pool names no chance then: nothing opens."""
    budget, pod = ("0", None) if late == "budget" else ("100%", "true")
    pool = a_pool(disruption={"budgets": [{"nodes": budget}]})
    window = a_window(actions=["Drift"], schedules=[{"cron": "0 13 * * *", "duration": "2h"}])
    found = verdicts(pool, window, a_candidate("Drifted"), a_node(), a_pod(protected=pod))
    told = about(found, "NodeClaim/a")
    assert (told.gate, told.recheck_at) == (
        Gate.BUDGET if late == "budget" else Gate.PODS,
        ahead(3600),
    )
    waits = fact_of(about(found, "NodePool/general"), CandidatesWait)
    assert waits is not None
    assert waits.until is None


@pytest.mark.parametrize(
    ("reason", "grace", "on", "said"),
    [
        ("Drifted", None, "pod", True),
        ("Drifted", "1h", "node", False),
        ("Drifted", None, "node", False),
        ("Rebalance", "1h", "pod", False),
        ("Rebalance", None, "pod", False),
    ],
)
def test_a_grace_period_is_missed_only_where_one_would_help(
    reason: str, grace: str | None, on: str, said: bool
) -> None:
    claim = a_candidate(reason, spec={"termination_grace_period": grace})
    node = a_node(annotations={DO_NOT_DISRUPT: "true"} if on == "node" else {})
    told = on_claim(claim, node, a_pod(protected="true" if on == "pod" else None))
    assert told.gate == Gate.PODS
    assert (DrainUnbounded("node-a") in told.facts) is said


# -- several reasons -------------------------------------------------------------------------


def test_of_two_reasons_the_first_that_no_gate_blocks_has_the_node() -> None:
    both = a_candidate("Expired", conditions=[condition("Drifted", at=ago(60))])
    pod = a_pod(requests=BIG)
    found = verdicts(both, a_node(), pod)
    (created,) = [one.action for one in found if isinstance(one.action, Create)]
    assert created.disrupts_for == "Expired"
    found = verdicts(both, a_node(), pod, a_window(actions=["Expiration"]))
    (created,) = [one.action for one in found if isinstance(one.action, Create)]
    assert created.disrupts_for == "Drifted"


def test_if_gates_block_all_reasons_the_first_is_told() -> None:
    both = a_candidate("Expired", conditions=[condition("Drifted", at=ago(60))])
    window = a_window(actions=["Expiration", "Drift"])
    told = on_claim(both, a_node(), a_pod(requests=BIG), window)
    assert told.reason is Reason.DISRUPTION_BLOCKED
    assert isinstance(told.facts[0], NodeExpired)


# -- gates -----------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ALL)
def test_the_switch_stops_all_of_them(reason: str) -> None:
    off = msgspec.structs.replace(SETTINGS, voluntary_disruption=False)
    told = on_claim(*full(reason), settings=off)
    assert (told.reason, told.action) == (Reason.VOLUNTARY_DISRUPTION_OFF, None)


@pytest.mark.parametrize("reason", ALL)
def test_do_not_disrupt_on_the_claim_or_a_pod_blocks(reason: str) -> None:
    told = on_claim(*full(reason, annotations={DO_NOT_DISRUPT: "true"}))
    assert told.reason is Reason.DISRUPTION_BLOCKED
    daemon = a_pod("agent", owner="DaemonSet", protected="true")
    assert on_claim(*full(reason), daemon).reason is Reason.DISRUPTION_BLOCKED


@pytest.mark.parametrize("reason", REPLACING)
def test_with_a_grace_period_protected_pods_do_not_block_expiry_and_drift(reason: str) -> None:
    bounded = full(reason, spec={"termination_grace_period": "1h"})
    pod = a_pod("kept", protected="true")
    eventual = reason in ("Expired", "Drifted")
    told = on_claim(*bounded, pod)
    assert (told.reason is Reason.REPLACING) is eventual


def test_no_command_starts_whose_replacement_would_come_after_the_window() -> None:
    """The candidate itself took fifty minutes."""
    dates = [{"from": "2026-03-02T11:00:00Z", "until": "2026-03-02T12:49:59Z"}]
    window = a_window(type="Allow", actions=["Drift"], dates=dates)
    told = on_claim(*full("Drifted"), window)
    assert told.reason is Reason.DISRUPTION_BLOCKED
    found = fact_of(told, WindowClosesTooSoon)
    assert (found.pool, found.takes) == ("general", timedelta(minutes=50))
    assert told.recheck_at == found.closes_at
    long = a_window(
        type="Allow", actions=["Drift"], dates=[{**dates[0], "until": "2026-03-02T12:50:01Z"}]
    )
    assert on_claim(*full("Drifted"), long).reason is Reason.REPLACING


def test_a_node_without_pods_may_go_just_before_a_window_closes() -> None:
    dates = [{"from": "2026-03-02T12:00:01Z", "until": "2026-03-03T12:00:00Z"}]
    window = a_window(actions=["Drift"], dates=dates)
    assert on_claim(a_candidate("Drifted"), a_node(), window).action is not None


# -- the policy Always -----------------------------------------------------------------------

ALWAYS = {"expirationPolicy": "Always", "budgets": [{"nodes": "0"}]}


def test_always_deletes_the_claim_whatever_budgets_and_pods_say() -> None:
    told = on_claim(a_pool(disruption=ALWAYS), *full("Expired"), a_pod("kept", protected="true"))
    assert told.reason is Reason.EXPIRATION_FORCED
    assert isinstance(told.action, Delete)
    assert told.action.ground is Ground.EXPIRED
    assert told.commits is not None
    assert told.commits.reason == "expired"


@pytest.mark.parametrize("on", ["node", "claim"])
def test_always_deletes_a_protected_node_as_karpenter_does(on: str) -> None:
    marks = {on: {DO_NOT_DISRUPT: "true"}}
    claim = a_candidate("Expired", annotations=marks.get("claim", {}))
    node = a_node(annotations=marks.get("node", {}))
    told = on_claim(a_pool(disruption=ALWAYS), claim, node)
    assert isinstance(told.action, Delete)


def test_a_window_for_expiration_and_the_switch_hold_it() -> None:
    pool, window = a_pool(disruption=ALWAYS), a_window(actions=["Expiration"])
    told = on_claim(pool, *full("Expired"), window)
    assert told.action is None
    assert isinstance(told.facts[-1], WindowBlocks)
    off = msgspec.structs.replace(SETTINGS, voluntary_disruption=False)
    assert on_claim(pool, *full("Expired"), settings=off).action is None


# -- commands under way ----------------------------------------------------------------------


def going(reason: str, **fields: Any) -> list[Any]:
    """A command of that reason whose replacement, where it has one, is initialized."""
    by = "" if reason == "Empty" else "b"
    claim = a_candidate(
        reason,
        annotations={REPLACED_BY: by, DISRUPTION_REASON: reason, **fields.pop("annotations", {})},
        conditions=[condition("DisruptionReason", reason=reason), *fields.pop("conditions", ())],
        **fields,
    )
    objects = [claim, a_node(taints=(DISRUPTED,))]
    if reason == "Empty":
        return objects
    new = [a_claim("b", annotations={REPLACES: "uid-a"}), a_node("node-b", claim="b")]
    return [*objects, *new, a_pod("web-a", requests=BIG)]


@pytest.mark.parametrize("reason", ALL)
def test_it_terminates_once_its_replacements_are_initialized(reason: str) -> None:
    told = on_claim(*going(reason))
    assert told.reason is Reason.REPLACED
    assert isinstance(told.action, Delete)
    assert told.commits is not None
    assert told.commits.reason == reason.lower()


def test_a_pod_that_came_to_an_empty_node_ends_its_command() -> None:
    told = on_claim(*going("Empty"), a_pod("late"))
    assert told.reason is Reason.DISRUPTION_CANCELLED
    assert told.facts == (PodsCame("node-a", ("default/late",)), RolledBack("node-a"))
    assert body_of(told)["metadata"]["annotations"] == {REPLACED_BY: None, DISRUPTION_REASON: None}


def progress(*objects: Any) -> Verdict:
    """What is done about the command, before its node terminates."""
    pools = [] if any(isinstance(one, NodePool) for one in objects) else [a_pool(disruption=ANY)]
    found = evaluated(ReplacementDecider(), a_class(), *pools, *objects, instance_types=types())
    return about(found, "NodeClaim/a")


def decided(reason: str, *, tainted: bool) -> list[Any]:
    """A command whose replacement has been launched."""
    claim, _, new, _, pod = going(reason)
    booting = msgspec.structs.replace(new, status=a_claim("b", stage=LAUNCHED).status)
    return [claim, a_node(taints=(DISRUPTED,) if tainted else ()), booting, pod]


#: The disruption controller has not counted its pods yet.
NEW_PDB: dict[str, Any] = {"expected_pods": 0, "current_healthy": 0, "desired_healthy": 0}
USED_UP_PDB: dict[str, Any] = {"expected_pods": 2, "current_healthy": 1, "desired_healthy": 1}
CLOSED_BY_A_USER: dict[str, list[Any]] = {
    "a protected pod": [a_pod("kept", protected="true")],
    "a protected node": [a_node(taints=(DISRUPTED,), annotations={DO_NOT_DISRUPT: "true"})],
    "budget 0": [a_pool(disruption={"budgets": [{"nodes": "0"}]})],
    "budget 0%": [a_pool(disruption={"budgets": [{"nodes": "0%"}]})],
    "a malformed budget": [a_pool(disruption={"budgets": [{"nodes": "many"}]})],
    "a budget that begins": [
        a_pool(disruption={"budgets": [{"nodes": "0", "schedule": "0 * * * *", "duration": "1h"}]})
    ],
}


@pytest.mark.parametrize("more", CLOSED_BY_A_USER.values(), ids=CLOSED_BY_A_USER)
@pytest.mark.parametrize("up", [True, False], ids=["replacement is up", "replacement boots"])
def test_a_gate_that_a_user_closes_rolls_it_back(more: list[Any], up: bool) -> None:
    told = progress(*(going("Drifted") if up else decided("Drifted", tainted=True)), *more)
    assert told.reason is Reason.DISRUPTION_CANCELLED
    assert RolledBack("node-a") in told.facts
    assert body_of(told)["metadata"]["annotations"] == {REPLACED_BY: None, DISRUPTION_REASON: None}


@pytest.mark.parametrize("tainted", [False, True])
def test_a_new_pdb_ends_a_command_only_before_the_taint(tainted: bool) -> None:
    """Afterwards the command waits until its pods are counted."""
    pod = a_pod("kept", conditions=[condition("Ready")])
    told = progress(*decided("Drifted", tainted=tainted), pod, a_pdb(**NEW_PDB))
    assert told.reason is (Reason.REPLACING if tainted else Reason.DISRUPTION_CANCELLED)
    without = progress(*decided("Drifted", tainted=tainted), pod)
    assert without.reason is Reason.REPLACING


def test_a_pdb_that_other_evictions_use_up_does_not_end_a_command() -> None:
    """It would begin again as soon as their pods are healthy, and count as another start."""
    pod = a_pod("kept", conditions=[condition("Ready")])
    told = progress(*decided("Drifted", tainted=False), pod, a_pdb(**USED_UP_PDB))
    assert told.reason is Reason.REPLACING


@pytest.mark.parametrize("more", CLOSED_BY_A_USER.values(), ids=CLOSED_BY_A_USER)
def test_a_gate_that_is_closed_is_not_carried_out(more: list[Any]) -> None:
    found = verdicts(*going("Drifted"), *more)
    assert not any(isinstance(verdict.action, Delete) for verdict in found)


def test_a_budget_that_others_use_lets_a_command_wait() -> None:
    one = a_pool(disruption={"budgets": [{"nodes": "1"}]})
    other = a_claim("c", deletion_timestamp=ago(5)), a_node("node-c", claim="c")
    assert on_claim(one, *going("Drifted"), *other).reason is Reason.DISRUPTION_BLOCKED
    assert progress(one, *going("Drifted"), *other).reason is Reason.REPLACING


@pytest.mark.parametrize("reason", ALL)
def test_it_is_rolled_back_when_its_condition_is_gone(reason: str) -> None:
    claim, *others = going(reason)
    kept = [one for one in claim.status.conditions if one.type != REASONS[reason]]
    status = msgspec.structs.replace(claim.status, conditions=tuple(kept))
    claim = msgspec.structs.replace(claim, status=status)
    found = evaluated(ReplacementDecider(), a_class(), a_pool(), claim, *others)
    told = about(found, "NodeClaim/a")
    assert told.reason is Reason.DISRUPTION_CANCELLED
    assert told.facts == (NoLongerDue("a", reason), RolledBack("node-a"))


@pytest.mark.parametrize("reason", ALL)
def test_the_switch_rolls_it_back(reason: str) -> None:
    off = msgspec.structs.replace(SETTINGS, voluntary_disruption=False)
    found = evaluated(ReplacementDecider(), a_class(), a_pool(), *going(reason), settings=off)
    assert about(found, "NodeClaim/a").reason is Reason.DISRUPTION_CANCELLED


# -- replacements that are left over ---------------------------------------------------------


def left_over(**fields: Any) -> list[Any]:
    """``b`` was launched for ``a``, which does not name it."""
    replacement = a_claim("b", annotations={REPLACES: "uid-a"}, **fields)
    pod = a_pod("old", requests=BIG)
    return [a_claim(), a_node(), pod, replacement, a_node("node-b", claim="b")]


def test_a_replacement_without_a_command_is_removed() -> None:
    told = on_claim(*left_over(), name="b")
    assert told.facts == (LeftOverRemoved("b", "a"),)
    assert isinstance(told.action, Delete)
    assert told.action.ground is Ground.LEFT_OVER


@pytest.mark.parametrize(
    "pod", [a_pod("there", node="node-b"), pending(requests=BIG)], ids=["bound", "fits"]
)
def test_one_that_pods_use_loses_its_mark_and_stays(pod: Any) -> None:
    told = on_claim(*left_over(), pod, name="b")
    assert told.facts == (LeftOverInUse("b", "a"),)
    assert body_of(told)["metadata"]["annotations"] == {REPLACES: None}


@pytest.mark.parametrize("on", ["node", "claim"])
def test_one_that_a_user_protects_loses_its_mark_and_stays(on: str) -> None:
    marks = {DO_NOT_DISRUPT: "true"}
    *others, claim, node = left_over()
    if on == "claim":
        claim = a_claim("b", annotations={REPLACES: "uid-a", **marks})
    else:
        node = a_node("node-b", claim="b", annotations=marks)
    told = on_claim(*others, claim, node, name="b")
    assert told.facts == (LeftOverProtected("b", "a", Protection("true", FOR_EVER)),)
    assert body_of(told)["metadata"]["annotations"] == {REPLACES: None}


def test_a_new_one_waits_for_its_command() -> None:
    told = on_claim(*left_over(creation_timestamp=ago(59)), name="b")
    assert (told.action, told.recheck_at) == (None, ahead(1))


def test_windows_and_budgets_do_not_keep_it() -> None:
    pool = a_pool(disruption={"budgets": [{"nodes": "0"}]})
    found = on_claim(pool, a_window(actions=["Drift", "Consolidation"]), *left_over(), name="b")
    assert isinstance(found.action, Delete)


def test_one_that_a_plan_counts_on_is_kept() -> None:
    new = [a_claim("b", annotations={REPLACES: "uid-a"}), a_node("node-b", claim="b")]
    found = verdicts(*full("Drifted"), *new)
    assert [one for one in found if str(one.subject) == "NodeClaim/b"] == []
    assert body_of(about(found, "NodeClaim/a"))["metadata"]["annotations"][REPLACED_BY] == "b"


def test_an_empty_node_does_not_wait_for_a_replacement_of_before() -> None:
    new = [a_claim("b", annotations={REPLACES: "uid-a"}), a_node("node-b", claim="b")]
    found = verdicts(*full("Empty"), *new)
    assert body_of(about(found, "NodeClaim/a"))["metadata"]["annotations"][REPLACED_BY] == ""
    assert isinstance(about(found, "NodeClaim/b").action, Delete)


def test_while_pods_are_planned_for_nothing_is_removed_that_they_may_count_on() -> None:
    other = full("Drifted", "c")
    found = verdicts(*left_over(), *other)
    assert about(found, "NodeClaim/c").reason is Reason.REPLACING
    assert [one for one in found if str(one.subject) == "NodeClaim/b"] == []


@pytest.mark.parametrize("budget", ["0", "100%"])
@pytest.mark.parametrize("reason", ALL)
def test_one_that_is_left_over_is_no_candidate(reason: str, budget: str) -> None:
    fields = {"conditions": [condition(REASONS[reason])], "spec": {"expire_after": "10m"}}
    pool = a_pool(disruption={"budgets": [{"nodes": budget}]})
    found = verdicts(pool, *left_over(**fields))
    told = [one for one in found if str(one.subject) == "NodeClaim/b"]
    assert [one.facts for one in told] == [(LeftOverRemoved("b", "a"),)]


@pytest.mark.parametrize(
    "old",
    [
        a_claim(annotations={REPLACED_BY: "b"}),
        a_claim(deletion_timestamp=ago(5)),
        a_claim("other"),
    ],
    ids=["named", "drains", "gone"],
)
def test_one_of_a_command_or_of_a_claim_that_goes_is_not_left_over(old: Any) -> None:
    _, *others = left_over()
    found = verdicts(old, *others)
    assert not any(one.reason is Reason.REPLACEMENT_LEFT_OVER for one in found)


# -- another reason takes a command over -----------------------------------------------------


ALWAYS = {**ANY, "expirationPolicy": "Always"}
FORBIDDEN_FOR_NOW: dict[str, Any] = {"expected_pods": 3, "current_healthy": 2, "desired_healthy": 2}


def waiting_for_a_pdb(*extra: Any, pool: NodePool) -> Verdict:
    return about(all_waiting_for_a_pdb(*extra, pool=pool), "NodeClaim/a")


def all_waiting_for_a_pdb(*extra: Any, pool: NodePool) -> list[Verdict]:
    """A drifted node whose replacement is up; a PDB has no room for its pod just now."""
    claim, _, *new = going("Drifted", conditions=[condition("Expired", at=ago(60))])
    pod = a_pod("kept", conditions=[condition("Ready")])
    objects = (claim, a_node(taints=(DISRUPTED,)), *new, pod, a_pdb(**FORBIDDEN_FOR_NOW))
    return verdicts(pool, *objects, *extra)


def test_expiration_that_waits_for_nothing_does_not_wait_for_another_command() -> None:
    allowed = waiting_for_a_pdb(pool=a_pool(disruption=ANY))
    assert allowed.reason is Reason.DISRUPTION_BLOCKED
    told = waiting_for_a_pdb(pool=a_pool(disruption=ALWAYS))
    assert told.reason is Reason.EXPIRATION_FORCED
    assert isinstance(told.action, Delete)
    assert told.action.ground is Ground.EXPIRED


def test_a_window_for_expiration_leaves_the_other_command_as_it_is() -> None:
    window = a_window(actions=["Expiration"])
    told = waiting_for_a_pdb(window, pool=a_pool(disruption=ALWAYS))
    assert told.reason is Reason.DISRUPTION_BLOCKED
    assert told.action is None


@pytest.mark.parametrize("stage", [REGISTERED, INITIALIZED])
def test_expiration_that_waits_for_nothing_does_not_wait_for_initialization(stage: int) -> None:
    claim = a_claim(stage=stage, conditions=[condition("Expired")], spec={"expire_after": "10m"})
    told = on_claim(a_pool(disruption=ALWAYS), claim, a_node(), a_pod())
    assert told.reason is Reason.EXPIRATION_FORCED


def test_a_command_that_may_be_taken_over_later_is_evaluated_again_then() -> None:
    """Whatever is said of the command itself: Always does not wait for that."""
    dates = [{"from": "2026-03-02T00:00:00Z", "until": "2026-03-02T13:00:00Z"}]
    window = a_window(actions=["Expiration"], dates=dates)
    found = all_waiting_for_a_pdb(window, pool=a_pool(disruption=ALWAYS))
    assert about(found, "NodeClaim/a").reason is Reason.DISRUPTION_BLOCKED
    assert about(found, "NodePool/general").recheck_at == ahead(3600)


def test_a_command_goes_on_as_a_repair_when_its_node_becomes_unhealthy() -> None:
    """The budget is used up by a NotReady node, which does not hold repair back."""
    graceful = {"maxUnhealthy": 9, "terminationMode": "Graceful"}
    pool = a_pool(disruption={"budgets": [{"nodes": "1"}]}, repair=graceful)
    claim, _, *new = going("Drifted")
    other = a_claim("c"), a_node("node-c", claim="c", ready=False)

    def told_of(node: Any, **known: Any) -> Verdict:
        known |= {"repair_statements": kwok_statements()}
        return on_claim(pool, claim, node, *new, *other, **known)

    waits = told_of(a_node(taints=(DISRUPTED,)))
    assert (waits.reason, waits.action) == (Reason.DISRUPTION_BLOCKED, None)
    unhealthy = condition("KWOKUnhealthy", "True", at=ago(60))
    status = {"conditions": (condition("Ready"), unhealthy)}
    told = told_of(a_node(taints=(DISRUPTED,), status=status))
    assert CommandTakenOver("Drifted") in told.facts
    assert body_of(told)["metadata"]["annotations"][DISRUPTION_REASON] == "Unhealthy"
    refusal = WriteRefusal(message="denied", at=ago(10), retry_at=ahead(50))
    refused = {"refused_starts": {"uid-a": refusal}}
    goes_on = told_of(a_node(taints=(DISRUPTED,), status=status), **refused)
    assert goes_on.reason is Reason.DISRUPTION_BLOCKED, "for the reason that it began for"
