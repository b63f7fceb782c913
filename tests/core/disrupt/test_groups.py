"""Commands with several candidates: three nodes are replaced by two, all or none of them.

Each of the nodes has 4 cpu and one pod of 1900m: two of these pods fit on a new node.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest

from tenure.core.decision import Create, Delete, Verdict
from tenure.core.disrupt.facts.candidates import CapacityNotInitialized
from tenure.core.disrupt.facts.commands import ReplacementGone, ReplacementsAwaited, RolledBack
from tenure.core.disrupt.facts.groups import (
    CommitsAwaited,
    CommittedInPart,
    NoCandidateTogether,
    NotReplacedTogether,
    ReplacedTogether,
    WaitsTogether,
)
from tenure.core.disrupt.facts.planning import ReplacedBy, ReplacementsCreated, StartRecorded
from tenure.core.disrupt.method import Methods
from tenure.core.disrupt.methods import SHIPPED
from tenure.core.disrupt.orchestrate import ReplacementDecider
from tenure.core.disrupt.pipeline import DisruptionDecider
from tenure.core.disrupt.simulate import LeavingNode, Plan, Simulation
from tenure.core.gates.facts import BlockedByObject
from tenure.core.provision.facts import TypesAwaited
from tenure.core.reasons import Reason
from tenure.model.api.meta import format_time
from tenure.model.api.names import (
    DISRUPTION_REASON,
    DO_NOT_DISRUPT,
    INTERRUPTION,
    REPLACED_BY,
    REPLACEMENT_FAILED,
    REPLACES,
)
from tenure.model.api.nodepool import NodePool
from tenure.model.settings import Settings
from tests.core.build import (
    DISRUPTED,
    NOW,
    REGISTERED,
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
    types,
)
from tests.core.disrupt.merged import (
    FORGETFUL,
    MERGE,
    MERGES,
    REASON,
    MergeMethod,
    NotFewer,
    NotMerged,
    ToBeMerged,
)

OLD = ("a", "b", "c")
NEW = ("x", "y")
#: The pods of two nodes fit on a new one.
HALF = {"cpu": "1900m", "memory": "1Gi"}
ANY = {"budgets": [{"nodes": "100%"}]}
UIDS = "uid-a,uid-b,uid-c"
COMMITTED = {REPLACED_BY: "x,y", DISRUPTION_REASON: REASON}


def old(name: str, *, committed: bool = False, **fields: Any) -> list[Any]:
    """A claim, its Node and its pod. ``committed``: with all marks."""
    marks = COMMITTED if committed else {}
    annotations = {**marks, **fields.pop("marks", {})}
    said = [condition("DisruptionReason", reason=REASON)] if committed else []
    node_says = {MERGE: "1", **fields.pop("node_says", {})}
    taints = (DISRUPTED,) if fields.pop("tainted", committed) else ()
    labels = {"karpenter.sh/nodepool": fields.pop("pool", "general")}
    claim = a_claim(name, annotations=annotations, conditions=said, labels=labels, **fields)
    node = a_node(f"node-{name}", claim=name, annotations=node_says, taints=taints)
    return [claim, node, a_pod(f"web-{name}", node=f"node-{name}", requests=HALF)]


def new(name: str, *, uids: str = UIDS, stage: int = 3, **fields: Any) -> list[Any]:
    fields.setdefault("annotations", {REPLACES: uids})
    fields["creation_timestamp"] = fields.pop("made", ago(3600))
    return [a_claim(name, stage=stage, **fields), a_node(f"node-{name}", claim=name)]


def coming() -> list[Any]:
    return [thing for name in NEW for thing in new(name, stage=REGISTERED)]


def came(**fields: Any) -> list[Any]:
    return [thing for name in NEW for thing in new(name, **fields)]


def all_old(**fields: Any) -> list[Any]:
    return [thing for name in OLD for thing in old(name, **fields)]


def pipeline(*objects: Any, methods: Methods = MERGES, **known: Any) -> list[Verdict]:
    usual: dict[str, Any] = {"instance_types": types()}
    pools = [] if any(isinstance(one, NodePool) for one in objects) else [a_pool(disruption=ANY)]
    decider = DisruptionDecider(methods=methods)
    return evaluated(decider, a_class(), *pools, *objects, **usual | known)


def progress(*objects: Any, methods: Methods = MERGES, **known: Any) -> list[Verdict]:
    pools = [] if any(isinstance(one, NodePool) for one in objects) else [a_pool(disruption=ANY)]
    return evaluated(ReplacementDecider(methods), a_class(), *pools, *objects, **known)


def on(found: list[Verdict], name: str) -> Verdict:
    return about(found, f"NodeClaim/{name}")


def marks_of(verdict: Verdict) -> Any:
    return body_of(verdict)["metadata"]["annotations"]


def others(name: str) -> ReplacedTogether:
    return ReplacedTogether(tuple(one for one in OLD if one != name))


# -- planning --------------------------------------------------------------------------------


def test_one_plan_is_made_for_all_of_them() -> None:
    found = pipeline(*all_old())
    created = [one.action for one in found if isinstance(one.action, Create)]
    assert len(created) == 2
    assert {one.body["metadata"]["annotations"][REPLACES] for one in created} == {UIDS}
    names = ReplacementsCreated(tuple(sorted(one.name for one in created)))
    for name in OLD:
        told = on(found, name)
        assert told.reason is Reason.REPLACING
        assert told.action is None
        assert (told.facts[0], told.facts[1]) == (ToBeMerged(f"node-{name}"), others(name))
        assert set(fact_of(told, ReplacementsCreated).claims) == set(names.claims)


def test_what_exists_is_counted_and_what_is_missing_is_created() -> None:
    found = pipeline(*all_old(), *new("x", stage=REGISTERED))
    (created,) = [one.action for one in found if isinstance(one.action, Create)]
    assert created.body["metadata"]["annotations"][REPLACES] == UIDS


def test_a_plan_is_revised_with_what_exists() -> None:
    """What was launched before a crash costs something, too."""
    seen: list[list[str]] = []

    class Looking(MergeMethod):
        def revised(
            self,
            leaving: Sequence[LeavingNode],
            plan: Plan,
            simulation: Simulation,
            settings: Settings,
            now: datetime,
        ) -> Plan:
            seen.append([one.name for one in plan.came])
            return plan

    methods = Methods((*SHIPPED, Looking()))
    pipeline(*all_old(), *new("x", stage=REGISTERED), methods=methods)
    assert seen == [["x"]]


def test_all_are_committed_once_everything_exists() -> None:
    found = pipeline(*all_old(), *coming())
    for name in OLD:
        told = on(found, name)
        assert told.reason is Reason.REPLACING
        assert told.facts[1:] == (others(name), ReplacedBy(NEW))
        assert marks_of(told) == COMMITTED
    counted = [one.command for one in found if one.command is not None]
    assert len(counted) == 1, "one command"


def test_what_was_launched_for_other_claims_is_not_counted() -> None:
    found = pipeline(*all_old(), *came(uids="uid-a,uid-b", stage=REGISTERED))
    assert {on(found, name).reason for name in OLD} == {Reason.DISRUPTION_WAITS}
    assert fact_of(on(found, "a"), CapacityNotInitialized).nodes == ("node-x", "node-y")


def test_a_gate_that_blocks_one_blocks_all() -> None:
    objects = [*old("a"), *old("b", node_says={DO_NOT_DISRUPT: "true"}), *old("c")]
    found = pipeline(*objects)
    assert not [one for one in found if one.action is not None]
    blocked = on(found, "b")
    assert blocked.reason is Reason.DISRUPTION_BLOCKED
    for name in ("a", "c"):
        told = on(found, name)
        assert told.reason is Reason.DISRUPTION_WAITS
        assert told.facts == (
            ToBeMerged(f"node-{name}"),
            WaitsTogether("b", blocked.facts[1:]),
        )


@pytest.mark.parametrize(("nodes", "goes"), [("2", False), ("3", True)])
def test_a_budget_counts_all_of_them(nodes: str, goes: bool) -> None:
    pool = a_pool(disruption={"budgets": [{"nodes": nodes}]})
    found = pipeline(pool, *all_old())
    assert bool([one for one in found if isinstance(one.action, Create)]) is goes
    reasons = {on(found, name).reason for name in OLD}
    blocked = {Reason.DISRUPTION_WAITS, Reason.DISRUPTION_BLOCKED}
    assert reasons == ({Reason.REPLACING} if goes else blocked)


def test_a_claim_that_is_no_candidate_keeps_back_the_others() -> None:
    third = old("c")
    third[0] = a_claim("c", deletion_timestamp=ago(1))
    found = pipeline(*old("a"), *old("b"), *third)
    assert not [one for one in found if one.action is not None]
    assert on(found, "a").facts[1:] == (NoCandidateTogether("c", REASON),)


def test_starts_are_recorded_before_any_of_them_is_committed() -> None:
    paced = {"budgets": [{"nodes": "100%"}, {"nodes": "5", "within": "1h"}]}
    pool = a_pool(disruption=paced)
    found = pipeline(pool, *all_old(), *coming())
    starts = body_of(about(found, "NodePool/general"))["status"]["disruptionStarts"]
    assert [one["claim"] for one in starts] == ["uid-a", "uid-b", "uid-c"]
    assert {on(found, name).facts[1:] for name in OLD} == {(StartRecorded("general"),)}
    recorded = [
        {"claim": f"uid-{name}", "reason": REASON, "at": format_time(ago(5)), "labels": {}}
        for name in ("a", "b")
    ]
    pool = a_pool(disruption=paced, status={"disruptionStarts": recorded})
    found = pipeline(pool, *all_old(), *coming())
    assert on(found, "c").facts[1:] == (StartRecorded("general"),)
    assert on(found, "a").facts[1:] == (WaitsTogether("c", (StartRecorded("general"),)),)
    assert on(found, "a").action is None


def test_a_plan_that_is_rejected_writes_nothing() -> None:
    found = pipeline(*old("a"), *old("b"), a_pod("more", node="node-a", requests=HALF))
    assert not [one for one in found if one.action is not None]
    for name in ("a", "b"):
        assert on(found, name).reason is Reason.DISRUPTION_BLOCKED
        assert fact_of(on(found, name), NotFewer) == NotFewer(2, 2)


def test_nodes_whose_pods_fit_elsewhere_are_commands_of_their_own() -> None:
    room = [a_claim("r"), a_node("node-r", claim="r")]
    found = pipeline(*old("a"), *old("b"), *room)
    for name in ("a", "b"):
        assert marks_of(on(found, name)) == {REPLACED_BY: "", DISRUPTION_REASON: REASON}
    assert len([one for one in found if one.command is not None]) == 2


def test_claims_of_two_pools_are_replaced_together() -> None:
    pools = [a_pool(disruption=ANY), a_pool("other", disruption={"budgets": [{"nodes": "0"}]})]
    objects = [*old("a"), *old("b"), *old("c", pool="other")]
    found = pipeline(*pools, *objects)
    assert on(found, "c").reason is Reason.DISRUPTION_BLOCKED
    assert fact_of(on(found, "a"), WaitsTogether).claim == "c"
    found = pipeline(a_pool(disruption=ANY), a_pool("other", disruption=ANY), *objects)
    assert len([one for one in found if isinstance(one.action, Create)]) == 2


# -- committed in part -----------------------------------------------------------------------


def in_part(**fields: Any) -> list[Any]:
    """The leader died after the first commit."""
    return [*old("a", committed=True, tainted=False), *old("b", **fields), *old("c"), *coming()]


@pytest.mark.parametrize("methods", [MERGES, FORGETFUL])
def test_the_others_are_committed_whether_their_method_remembers_them_or_not(
    methods: Methods,
) -> None:
    found = pipeline(*in_part(), methods=methods)
    for name in ("b", "c"):
        told = on(found, name)
        assert marks_of(told) == COMMITTED
        parts = tuple(one for one in OLD if one != name)
        assert told.facts == (CommittedInPart(parts), others(name), ReplacedBy(NEW))
    assert not [one for one in found if one.subject.name == "a"]


def test_until_all_are_committed_none_is_marked_further() -> None:
    told = on(progress(*in_part()), "a")
    assert told.reason is Reason.REPLACING
    assert told.action is None
    assert told.facts == (others("a"), CommitsAwaited(("b", "c")))


def test_it_is_rolled_back_where_one_of_the_others_is_blocked() -> None:
    found = pipeline(*in_part(node_says={DO_NOT_DISRUPT: "true"}), methods=FORGETFUL)
    told = on(found, "a")
    assert told.reason is Reason.DISRUPTION_CANCELLED
    why, rolled_back = told.facts
    assert isinstance(why, NotReplacedTogether)
    assert (why.claim, [type(fact) for fact in why.why]) == ("b", [BlockedByObject])
    assert rolled_back == RolledBack("node-a")
    assert marks_of(told) == {REPLACED_BY: None, DISRUPTION_REASON: None}
    assert not [one for one in found if one.action is not None and one.subject.name != "a"]


def test_it_is_rolled_back_where_one_of_the_others_is_not_wanted() -> None:
    objects = in_part()
    objects[4] = a_node("node-b", claim="b")
    told = on(pipeline(*objects, methods=FORGETFUL), "a")
    assert told.reason is Reason.DISRUPTION_CANCELLED
    assert told.facts[0] == NotReplacedTogether("b", (NotMerged("node-b"),))
    assert marks_of(told) == {REPLACED_BY: None, DISRUPTION_REASON: None}


def test_it_is_rolled_back_where_the_plan_does_not_hold_any_more() -> None:
    more = [a_pod(f"more-{name}", node=f"node-{name}", requests=HALF) for name in OLD]
    told = on(pipeline(*in_part(), *more, methods=FORGETFUL), "a")
    assert told.reason is Reason.DISRUPTION_CANCELLED
    why = fact_of(told, WaitsTogether)
    assert (why.claim, why.why) == ("b", (NotFewer(3, 3),))


def test_it_waits_a_while_for_what_passes_by_itself() -> None:
    fresh = [thing for name in NEW for thing in new(name, stage=REGISTERED, made=ago(60))]
    objects = [*old("a", committed=True, tainted=False), *old("b"), *old("c"), *fresh]
    unknown: dict[str, Any] = {"methods": FORGETFUL, "instance_types": {}}
    found = pipeline(*objects, **unknown)
    assert isinstance(on(found, "b").facts[-1], TypesAwaited)
    assert not [one for one in found if one.subject.name == "a"]
    at = about(found, "NodePool/general").recheck_at
    assert at is not None
    assert at <= ahead(14 * 60)
    late = on(pipeline(*objects, **unknown, now=ahead(14 * 60)), "a")
    assert late.reason is Reason.DISRUPTION_CANCELLED
    assert isinstance(fact_of(late, WaitsTogether).why[-1], TypesAwaited)


@pytest.mark.parametrize("gone", ["deleted", "interrupted"])
def test_a_claim_that_terminates_no_longer_holds_the_others(gone: str) -> None:
    objects = in_part()
    says = {INTERRUPTION: "kwok 2026-01-01T00:00:00Z"} if gone == "interrupted" else {}
    at = ago(1) if gone == "deleted" else None
    objects[3] = a_claim("b", annotations=says, deletion_timestamp=at)
    assert on(progress(*objects), "a").facts[0] == ReplacedTogether(("c",))
    found = pipeline(*objects, methods=FORGETFUL)
    assert fact_of(on(found, "c"), NotFewer) == NotFewer(2, 2), "two are left for two"
    assert on(found, "a").reason is Reason.DISRUPTION_CANCELLED


# -- waiting ---------------------------------------------------------------------------------


def test_each_says_which_claims_are_replaced_together_and_until_when() -> None:
    found = progress(*all_old(committed=True), *coming())
    for name in OLD:
        told = on(found, name)
        assert told.reason is Reason.REPLACING
        assert told.facts[0] == others(name)
        assert [one for one, _ in fact_of(told, ReplacementsAwaited).claims] == list(NEW)


def test_what_rolls_back_one_rolls_back_all() -> None:
    objects = [thing for name in ("a", "b") for thing in old(name, committed=True)]
    third = old("c", committed=True)
    third[1] = a_node("node-c", claim="c", taints=(DISRUPTED,))
    found = progress(*objects, *third, *coming())
    assert on(found, "c").facts == (NotMerged("node-c"), RolledBack("node-c"))
    for name in ("a", "b"):
        told = on(found, name)
        assert told.reason is Reason.DISRUPTION_CANCELLED
        why = NotReplacedTogether("c", (NotMerged("node-c"),))
        assert told.facts == (why, RolledBack(f"node-{name}"))
        assert marks_of(told) == {REPLACED_BY: None, DISRUPTION_REASON: None}


def test_a_failed_replacement_rolls_back_all_and_is_noted_on_each() -> None:
    found = progress(*all_old(committed=True), *new("x"))
    for name in OLD:
        told = on(found, name)
        assert told.reason is Reason.REPLACEMENT_FAILED
        assert told.facts[0] == ReplacementGone("y")
        assert marks_of(told)[REPLACEMENT_FAILED] == "1"
    counted = [one.command for one in found if one.command is not None]
    assert len(counted) == 1


def test_a_claim_with_another_command_is_not_waited_for() -> None:
    objects = [thing for name in ("a", "b") for thing in old(name, committed=True)]
    third = old("c", committed=True, marks={DISRUPTION_REASON: "Unhealthy"})
    found = progress(*objects, *third, *coming())
    assert on(found, "a").facts[0] == ReplacedTogether(("b",))


# -- carrying out ----------------------------------------------------------------------------


def deleted(found: list[Verdict]) -> set[str]:
    return {one.subject.name for one in found if isinstance(one.action, Delete)}


def test_all_terminate_in_the_same_turn() -> None:
    found = pipeline(*all_old(committed=True), *came())
    assert deleted(found) == set(OLD)
    for name in OLD:
        assert on(found, name).reason is Reason.REPLACED
        assert on(found, name).facts[0] == others(name)


def test_none_terminates_before_all_are_committed() -> None:
    objects = [*old("a", committed=True), *old("b", committed=True), *old("c"), *came()]
    found = pipeline(*objects)
    assert deleted(found) == set()
    assert marks_of(on(found, "c")) == COMMITTED


def test_none_terminates_before_all_replacements_are_initialized() -> None:
    found = pipeline(*all_old(committed=True), *new("x"), *new("y", stage=REGISTERED))
    assert deleted(found) == set()


def test_none_terminates_before_all_are_marked() -> None:
    objects = [*old("a", committed=True), *old("b", committed=True)]
    objects += [*old("c", committed=True, tainted=False), *came()]
    assert deleted(pipeline(*objects)) == set()


def test_a_gate_that_blocks_one_makes_all_wait() -> None:
    pdb = a_pdb("other", app="other", desired_healthy=2, current_healthy=2, expected_pods=3)
    ready = [condition("Ready")]
    pod = a_pod("other", node="node-b", labels={"app": "other"}, conditions=ready)
    found = pipeline(*all_old(committed=True), *came(), pdb, pod)
    assert deleted(found) == set()
    blocked = on(found, "b")
    assert blocked.reason is Reason.DISRUPTION_BLOCKED
    for name in ("a", "c"):
        told = on(found, name)
        assert told.reason is Reason.DISRUPTION_WAITS
        assert fact_of(told, WaitsTogether) == WaitsTogether("b", blocked.facts[2:])


def test_a_budget_that_was_lowered_makes_all_wait_and_then_rolls_them_back() -> None:
    pool = a_pool(disruption={"budgets": [{"nodes": "2"}]})
    found = pipeline(pool, *all_old(committed=True), *came())
    assert deleted(found) == set()
    assert on(found, "c").reason is Reason.DISRUPTION_BLOCKED
    at = min(one.recheck_at for one in found if one.recheck_at is not None)
    late = evaluated(
        DisruptionDecider(methods=MERGES),
        a_class(),
        pool,
        *all_old(committed=True),
        *came(),
        now=at,
        instance_types=types(),
    )
    assert at > NOW
    assert {on(late, name).reason for name in OLD} == {Reason.DISRUPTION_CANCELLED}
    assert all(REPLACED_BY in marks_of(on(late, name)) for name in OLD)


def test_the_method_is_asked_again_about_all_of_them() -> None:
    third = new("z")
    objects = [
        thing for name in OLD for thing in old(name, committed=True, marks={REPLACED_BY: "x,y,z"})
    ]
    found = pipeline(*objects, *came(), *third)
    assert deleted(found) == set()
    for name in OLD:
        told = on(found, name)
        assert told.reason is Reason.DISRUPTION_CANCELLED
        assert told.facts == (NotFewer(3, 3), RolledBack(f"node-{name}"))


@pytest.mark.parametrize("how", ["gone", "terminating"])
def test_once_one_terminates_the_others_follow(how: str) -> None:
    """Two are left for two replacements, which the method would reject."""
    objects = [*old("a", committed=True), *old("b", committed=True), *came()]
    if how == "terminating":
        objects += old("c", committed=True, deletion_timestamp=ago(1))
    found = pipeline(*objects)
    assert deleted(found) == {"a", "b"}


def test_a_replacement_that_only_one_names_is_named_by_all_first() -> None:
    objects = [*old("a", committed=True, marks={REPLACED_BY: "x"}), *old("b", committed=True)]
    objects += [*old("c", committed=True), *came()]
    found = pipeline(*objects)
    assert deleted(found) == set()
    assert marks_of(on(found, "a")) == {REPLACED_BY: "x,y"}
