"""The pipeline beside Karpenter: what is created, what is said, and which levers stand meanwhile."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.core.beside.facts.karpenter import KarpenterRepairs
from tenure.core.beside.replacing.facts import (
    CommandNotOurs,
    LikeForLike,
    LimitInTheWay,
    NodeIsReplaced,
    ReplacementReserved,
    ReplicasLaunched,
)
from tenure.core.decision import Concern, Create, Delete, Ground, Patch, Verdict
from tenure.core.disrupt.facts.planning import LaunchedAsReplacement
from tenure.core.gates.operations import Gate
from tenure.core.marks.starts import seen
from tenure.core.marks.templatehash import template_hash
from tenure.core.policy.deciders import beside_karpenter, decide_all
from tenure.core.reasons import Reason
from tenure.core.repair.facts import DeadlineNotOurs
from tenure.model.api import names
from tenure.model.api.meta import ApiObject, format_time
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import DisruptionStart
from tenure.model.api.resource import NODES
from tenure.model.snapshot.governed import starts_of, with_starts
from tenure.model.snapshot.snapshot import EVERY_CLASS
from tenure.runtime.executor.guard import veto
from tests.core.beside.scenes import SETTINGS, annotations_of, karpenter, marks
from tests.core.build import (
    DISRUPTED,
    FOREIGN,
    NOW,
    a_claim,
    a_node,
    a_pod,
    a_policy,
    a_pool,
    ago,
    condition,
    fact_of,
)
from tests.snapshots import snapshot_with

KNOWN = msgspec.structs.replace(SETTINGS, karpenter_feature_gates="NodeRepair=false")
DAY = 24 * 3600
SOFT = a_policy(expireAfter="24h")
POOL = a_pool(ref=FOREIGN, template={"expireAfter": "Never"})
LABELS = {names.ZONE: "zone-a"}
EXPIRED = {names.EXPIRED_AT: format_time(ago(DAY))}
COMMAND = {
    **EXPIRED,
    names.REPLACED_BY: "b",
    names.DISRUPTION_REASON: "Expired",
    names.DISRUPTED_BY: "tenure",
    names.DISRUPTED_SINCE: format_time(ago(60)),
}
REPLACEMENT = {names.REPLACES: "uid-a", names.CREATED_BY: "tenure"}


def old(**fields: Any) -> NodeClaim:
    spec = {"expire_after": "Never", **fields.pop("spec", {})}
    fields = {"annotations": EXPIRED, "creation_timestamp": ago(2 * DAY), **fields}
    return a_claim(ref=FOREIGN, spec=spec, **fields)


def new(stage: int = 3, **fields: Any) -> NodeClaim:
    fields = {"annotations": REPLACEMENT, "creation_timestamp": ago(120), **fields}
    return a_claim("b", stage=stage, ref=FOREIGN, spec={"expire_after": "Never"}, **fields)


def verdicts(*objects: ApiObject, settings: Any = KNOWN, now: Any = NOW) -> list[Verdict]:
    snapshot = snapshot_with(*objects, ours=EVERY_CLASS)
    return [
        verdict
        for decider in beside_karpenter(settings)
        for verdict in decide_all(decider, snapshot, settings, now)
        if verdict.concern not in (Concern.POOL_POLICY, Concern.STARTS, Concern.REPAIR)
    ]


def actions(found: list[Verdict], kind: type) -> list[Any]:
    return [one.action for one in found if isinstance(one.action, kind)]


def on(found: list[Verdict], name: str, reason: Reason) -> Verdict:
    (verdict,) = (one for one in found if one.subject.name == name and one.reason is reason)
    return verdict


def scene(*more: ApiObject, **fields: Any) -> list[ApiObject]:
    return [POOL, SOFT, old(**fields), a_node(labels=LABELS), a_pod(), *more]


def test_an_expired_node_with_pods_gets_a_claim_from_the_pools_template() -> None:
    pool = a_pool(
        ref=FOREIGN,
        template={
            "expireAfter": "Never",
            "taints": [{"key": "team", "value": "web", "effect": "NoSchedule"}],
            "terminationGracePeriod": "1h",
        },
        template_meta={
            "labels": {"team": "web"},
            "annotations": {"note": "a", names.REPLACES: "x"},
        },
    )
    found = verdicts(pool, SOFT, old(), a_node(labels=LABELS), a_pod())
    (create,) = actions(found, Create)
    metadata, spec = create.body["metadata"], create.body["spec"]
    assert "finalizers" not in metadata
    assert metadata["labels"][names.NODEPOOL] == "general"
    assert metadata["labels"]["team"] == "web"
    assert metadata["labels"][f"{FOREIGN.group}/{FOREIGN.kind.lower()}"] == FOREIGN.name
    assert metadata["ownerReferences"][0]["uid"] == pool.uid
    assert metadata["annotations"] == {
        "note": "a",
        **REPLACEMENT,
        names.DO_NOT_DISRUPT: "true",
        **marks("replaces NodeClaim a"),
        names.NODEPOOL_HASH: template_hash(pool.spec.template),
        names.NODEPOOL_HASH_VERSION: "v3",
    }
    assert spec["expireAfter"] == "Never", "as the pool says, not the policy"
    assert spec["taints"][0]["key"] == "team"
    assert spec["terminationGracePeriod"] == "1h"
    assert {"key": names.ZONE, "operator": "In", "values": ["zone-a"]} in spec["requirements"]
    launched = fact_of(on(found, create.name, Reason.NEEDED_AS_REPLACEMENT), LaunchedAsReplacement)
    assert isinstance(launched.fit, LikeForLike)
    assert launched.fit.zone == "zone-a"


def test_a_karpenter_that_hashes_otherwise_knows_its_hash_alone() -> None:
    theirs = {names.NODEPOOL_HASH: "42", names.NODEPOOL_HASH_VERSION: "v4"}
    pool = msgspec.structs.replace(
        POOL, metadata=msgspec.structs.replace(POOL.metadata, annotations=theirs)
    )
    (create,) = actions(verdicts(pool, SOFT, old(), a_node(labels=LABELS), a_pod()), Create)
    annotations = create.body["metadata"]["annotations"]
    assert {key: annotations[key] for key in theirs} == theirs


def test_a_users_protection_in_the_template_gets_no_mark_of_ours() -> None:
    pool = a_pool(
        ref=FOREIGN,
        template={"expireAfter": "Never"},
        template_meta={"annotations": {names.DO_NOT_DISRUPT: "true"}},
    )
    (create,) = actions(verdicts(pool, SOFT, old(), a_node(labels=LABELS), a_pod()), Create)
    annotations = create.body["metadata"]["annotations"]
    assert annotations[names.DO_NOT_DISRUPT] == "true"
    assert names.DO_NOT_DISRUPT_BY not in annotations


def test_the_command_says_by_which_program_and_since_when_and_nothing_is_tainted() -> None:
    found = verdicts(*scene(new(stage=1)))
    command = annotations_of(on(found, "a", Reason.REPLACING))
    assert command[names.REPLACED_BY] == "b"
    assert command[names.DISRUPTED_BY] == "tenure"
    (begins,) = (one for one in actions(found, Patch) if one.begins)
    assert begins.dated == names.DISRUPTED_SINCE
    found = verdicts(*scene(new(stage=1), annotations=COMMAND))
    assert not [one for one in actions(found, Patch) if one.subresource or "spec" in one.body]


def test_once_the_replacement_is_initialized_the_claim_is_deleted_on_its_version() -> None:
    found = verdicts(*scene(new(), a_node("node-b", claim="b"), annotations=COMMAND))
    (delete,) = actions(found, Delete)
    assert (delete.name, delete.ground) == ("a", Ground.REPLACED)
    assert delete.resource_version
    assert delete.pods_of == "node-a"


def test_the_replacement_is_reserved_until_what_it_replaces_is_gone() -> None:
    empty = a_node("node-b", claim="b", annotations={names.DO_NOT_DISRUPT: "true", **marks()})
    found = verdicts(*scene(new(), empty, annotations=COMMAND))
    kept = fact_of(on(found, "node-b", Reason.LEVER_SET), ReplacementReserved)
    assert kept.claims == ("a",)
    found = verdicts(POOL, SOFT, new(), empty)
    assert annotations_of(on(found, "node-b", Reason.LEVER_REMOVED))[names.DO_NOT_DISRUPT] is None
    assert annotations_of(on(found, "b", Reason.LEVER_REMOVED)) == dict.fromkeys(REPLACEMENT)


def test_the_claims_own_lever_goes_once_the_node_has_it() -> None:
    lever = {**REPLACEMENT, names.DO_NOT_DISRUPT: "true", **marks("replaces NodeClaim a")}
    node = a_node("node-b", claim="b", annotations=lever)
    found = verdicts(*scene(new(annotations=lever), node, annotations=COMMAND))
    gone = annotations_of(on(found, "b", Reason.LEVER_REMOVED))
    assert gone == dict.fromkeys({names.DO_NOT_DISRUPT: "", **marks()})
    unregistered = a_node("node-b", claim="b", registered=False)
    found = verdicts(*scene(new(stage=1, annotations=lever), unregistered, annotations=COMMAND))
    assert on(found, "b", Reason.LEVER_ON).action is None


def test_a_node_that_is_replaced_is_not_disrupted_by_karpenter_meanwhile() -> None:
    found = verdicts(*scene(new(stage=1), annotations=COMMAND))
    assert fact_of(on(found, "node-a", Reason.LEVER_SET), NodeIsReplaced).claims == ("b",)


def test_our_own_lever_does_not_block_our_own_expiration_and_a_users_does() -> None:
    lever = {names.DO_NOT_DISRUPT: "true", **marks()}
    ours, users = (
        a_node(labels=LABELS, annotations=it) for it in (lever, {names.DO_NOT_DISRUPT: "true"})
    )
    assert actions(verdicts(POOL, SOFT, old(), ours, a_pod()), Create)
    found = verdicts(POOL, SOFT, old(), users, a_pod())
    assert not actions(found, Create)
    assert on(found, "a", Reason.DISRUPTION_BLOCKED).gate == Gate.PODS


def test_a_node_that_karpenter_disrupts_is_left_to_it() -> None:
    node = a_node(labels=LABELS, taints=(DISRUPTED,))
    found = verdicts(POOL, SOFT, old(), node, a_pod())
    assert not actions(found, Create)
    assert not [one for one in found if one.concern is Concern.DISRUPTION]


def test_a_claim_with_a_deadline_of_another_program_is_left_alone() -> None:
    theirs = {names.TERMINATION_TIMESTAMP: format_time(ago(-3600))}
    found = verdicts(*scene(annotations={**EXPIRED, **theirs}))
    assert not actions(found, Create)
    blocked = on(found, "a", Reason.VOLUNTARY_DISRUPTION_OFF)
    assert fact_of(blocked, DeadlineNotOurs).claim == "a"
    ours = stamped_by_us(theirs[names.TERMINATION_TIMESTAMP])
    assert actions(verdicts(*scene(annotations={**EXPIRED, **ours})), Create)


def stamped_by_us(at: str) -> dict[str, str]:
    return {
        names.TERMINATION_TIMESTAMP: at,
        names.TERMINATION_BY: "tenure",
        names.TERMINATION_BECAUSE: "Replaced",
        names.TERMINATION_AT: at,
    }


def test_a_deadline_that_another_program_sets_meanwhile_ends_the_command_and_stays() -> None:
    theirs = {names.TERMINATION_TIMESTAMP: format_time(ago(-3600))}
    over_ours = {**stamped_by_us(format_time(ago(1))), **theirs}
    for written in (theirs, over_ours):
        for replacement in (new(stage=1), new()):
            world = scene(replacement, a_node("node-b", claim="b"))
            world[2] = old(annotations={**COMMAND, **written})
            found = verdicts(*world)
            assert not actions(found, Delete)
            cancelled = on(found, "a", Reason.DISRUPTION_CANCELLED)
            assert fact_of(cancelled, DeadlineNotOurs).claim == "a"
            gone = annotations_of(cancelled)
            assert names.TERMINATION_TIMESTAMP not in gone
            assert gone == dict.fromkeys({*COMMAND, *written} - {*EXPIRED, *theirs})
            snapshot = snapshot_with(*world, ours=EVERY_CLASS)
            assert cancelled.action is not None
            assert not veto(cancelled.action, snapshot, NOW, KNOWN)


def a_broken_node() -> list[ApiObject]:
    """Its drain is bounded by a minute, and its replacement is there."""
    entry = {"conditionType": "Broken", "status": "True", "toleration": "1m"}
    bound = {**entry, "terminationMode": "Graceful", "terminationGracePeriod": "1m"}
    policy = a_policy(repair={"policies": [bound], "maxUnhealthy": "100%"})
    conditions = (condition("Ready"), condition("Broken", at=ago(600)))
    node = a_node(labels=LABELS, status={"conditions": conditions})
    return [POOL, policy, node, a_pod(), new(), a_node("node-b", claim="b")]


REPAIRED = {**COMMAND, names.DISRUPTION_REASON: "Unhealthy"}


def test_the_deadline_of_a_command_has_our_marks() -> None:
    world = [*a_broken_node(), old(annotations=REPAIRED)]
    stamp = on(verdicts(*world), "a", Reason.REPLACED)
    assert annotations_of(stamp) == {**stamped_by_us(""), names.TERMINATION_BECAUSE: "Replaced"}
    assert isinstance(stamp.action, Patch)
    assert stamp.action.dated_mark == names.TERMINATION_AT
    assert not veto(stamp.action, snapshot_with(*world, ours=EVERY_CLASS), NOW, KNOWN)
    ours = stamped_by_us(format_time(ago(-59)))
    stamped = [*a_broken_node(), old(annotations={**REPAIRED, **ours})]
    (delete,) = actions(verdicts(*stamped), Delete)
    assert delete.name == "a"
    assert not veto(delete, snapshot_with(*stamped, ours=EVERY_CLASS), NOW, KNOWN)


def test_a_command_that_is_rolled_back_takes_its_own_deadline_with_it() -> None:
    ours = stamped_by_us(format_time(ago(-59)))
    healthy = a_node(labels=LABELS)
    world = [*a_broken_node(), old(annotations={**REPAIRED, **ours})]
    world[2] = healthy
    gone = annotations_of(on(verdicts(*world), "a", Reason.DISRUPTION_CANCELLED))
    assert gone == dict.fromkeys({*REPAIRED, *ours} - {*EXPIRED})


def test_a_command_without_our_mark_is_rolled_back() -> None:
    """As Tenure in charge leaves it when Karpenter takes over."""
    theirs = {key: value for key, value in COMMAND.items() if key != names.DISRUPTED_BY}
    found = verdicts(*scene(new(), a_node("node-b", claim="b"), annotations=theirs))
    assert not actions(found, Delete)
    cancelled = on(found, "a", Reason.DISRUPTION_CANCELLED)
    assert fact_of(cancelled, CommandNotOurs).claim == "a"


def test_limits_are_kept_while_both_nodes_are_there() -> None:
    pool = a_pool(ref=FOREIGN, template={"expireAfter": "Never"}, limits={"cpu": "5"})
    found = verdicts(pool, SOFT, old(), a_node(labels=LABELS), a_pod())
    blocked = on(found, "a", Reason.DISRUPTION_BLOCKED)
    assert fact_of(blocked, LimitInTheWay).resource == "cpu"
    assert not actions(found, Create)


def test_a_claim_is_marked_as_expired_once_and_unmarked_when_the_policy_is_gone() -> None:
    young = verdicts(POOL, SOFT, old(annotations={}), a_node())
    (mark,) = actions(young, Patch)
    assert list(mark.body["metadata"]["annotations"]) == [names.EXPIRED_AT]
    again = verdicts(POOL, SOFT, old(annotations=mark.body["metadata"]["annotations"]), a_node())
    assert not [one for one in actions(again, Patch) if names.EXPIRED_AT in str(one.body)]
    (gone,) = actions(verdicts(POOL, old(), a_node()), Patch)
    assert gone.body["metadata"]["annotations"] == {names.EXPIRED_AT: None}


def test_graceful_repair_waits_while_karpenter_may_repair() -> None:
    entry = {"conditionType": "Broken", "status": "True", "toleration": "1m"}
    policy = a_policy(repair={"policies": [entry], "terminationMode": "Graceful"})
    node = a_node(
        labels=LABELS, status={"conditions": (condition("Ready"), condition("Broken", at=ago(600)))}
    )
    world = (POOL, policy, old(annotations={}), node, a_pod())
    assert actions(verdicts(*world), Create)
    found = verdicts(*world, settings=SETTINGS)
    assert not actions(found, Create)
    assert not fact_of(on(found, "a", Reason.REPAIR_LEFT), KarpenterRepairs).known


def test_a_node_that_is_not_initialized_in_time_is_replaced_although_karpenter_repairs() -> None:
    policy = a_policy(initializationTTL="5m", repair={"terminationMode": "Graceful"})
    ready = {names.READY_ONCE_AT: format_time(ago(1000))}
    late = old(stage=2, annotations=ready, creation_timestamp=ago(1200))
    repairs = msgspec.structs.replace(KNOWN, karpenter_feature_gates="NodeRepair=true")
    world = (POOL, policy, late, a_node(labels=LABELS), a_pod())
    (create,) = actions(verdicts(*world, settings=repairs), Create)
    command = {**COMMAND, **ready, names.DISRUPTION_REASON: "Unhealthy"}
    late = old(stage=2, annotations=command, creation_timestamp=ago(1200))
    news = (new(), a_node("node-b", claim="b"))
    (delete,) = actions(verdicts(POOL, policy, late, *world[3:], *news, settings=repairs), Delete)
    assert (delete.name, delete.ground) == ("a", Ground.REPLACED)
    for action, objects in ((create, world), (delete, (POOL, policy, late, *world[3:], *news))):
        assert not veto(action, snapshot_with(*objects, ours=EVERY_CLASS), NOW, repairs)


def test_a_budget_with_within_counts_the_starts_that_can_be_seen() -> None:
    """A command under way, and a claim that Karpenter deletes; there is no record of others."""
    budgets = [{"nodes": "2", "within": "1h"}, {"nodes": "100%"}]
    pool = a_pool(ref=FOREIGN, template={"expireAfter": "Never"}, disruption={"budgets": budgets})
    command = {**COMMAND, names.REPLACED_BY: "r"}
    under_way = a_claim("b", ref=FOREIGN, annotations=command)
    leaving = a_claim("c", ref=FOREIGN, deletion_timestamp=ago(60))
    nodes = [a_node(f"node-{one}", claim=one, labels=LABELS) for one in "abc"]
    one_more = (pool, SOFT, old(), under_way, *nodes[:2], a_pod())
    assert actions(verdicts(*one_more), Create)
    found = verdicts(*one_more, leaving, nodes[2])
    assert not actions(found, Create)
    assert on(found, "a", Reason.DISRUPTION_BLOCKED).gate == Gate.BUDGET


def test_a_command_that_begins_anew_counts_before_the_policy_has_recorded_it() -> None:
    """What the policy remembers of the same claim may be a start that was rolled back."""
    budgets = [{"nodes": "2", "within": "1h"}]
    pool = a_pool(ref=FOREIGN, disruption={"budgets": budgets})
    under_way = a_claim(ref=FOREIGN, annotations=COMMAND)
    snapshot = snapshot_with(pool, under_way, a_node(), ours=EVERY_CLASS)

    def counted(seconds: float) -> int:
        start = DisruptionStart(claim="uid-a", reason="Expired", at=format_time(ago(seconds)))
        return len(starts_of(seen(with_starts(pool, (start,)), snapshot)))

    assert counted(1800) == 2
    assert counted(65) == 2, "one of Karpenter's that it rolled back a moment before"
    assert counted(60) == 1, "the same start"


def test_a_start_of_karpenter_that_was_rolled_back_a_moment_ago_counts_against_a_command_of_ours() -> (
    None
):
    """Of the same claim: two starts in the hour, and the budget allows one."""
    entry = {"pool": "general", "claim": "uid-a", "at": format_time(ago(5)), "reason": "Drifted"}

    def begun(nodes: str) -> list[Any]:
        content = {
            "spec": {"expireAfter": "24h", "budgets": [{"nodes": nodes, "within": "1h"}]},
            "status": {"disruptionStarts": [entry]},
        }
        policy = msgspec.convert(content, type(SOFT))
        policy = msgspec.structs.replace(policy, metadata=SOFT.metadata)
        return actions(verdicts(POOL, policy, *scene()[2:]), Create)

    assert not begun("1")
    assert len(begun("2")) == 1


def test_a_start_that_a_policy_remembers_does_not_delay_the_next_command_of_the_claim() -> None:
    """It was rolled back a moment ago; its mark would not be ours to write."""
    entry = {"pool": "general", "claim": "uid-a", "at": format_time(ago(5)), "reason": "Expired"}
    budgets = [{"nodes": "5", "within": "1h"}]
    content = {
        "spec": {"expireAfter": "24h", "budgets": budgets},
        "status": {"disruptionStarts": [entry]},
    }
    policy = msgspec.structs.replace(msgspec.convert(content, type(SOFT)), metadata=SOFT.metadata)
    world = [POOL, policy, *scene(new(stage=1))[2:]]
    begins = on(verdicts(*world), "a", Reason.REPLACING)
    assert begins.action is not None
    assert names.REPLACED_BY in annotations_of(begins)
    assert names.STARTED_AT not in annotations_of(begins)
    assert not veto(begins.action, snapshot_with(*world, ours=EVERY_CLASS), NOW, KNOWN)


def test_only_a_replacement_of_ours_is_removed_where_nothing_waits_for_it() -> None:
    node = a_node("node-b", claim="b")
    fresh = {"annotations": {}, "creation_timestamp": ago(3600)}
    (delete,) = actions(verdicts(*scene(new(), node, **fresh)), Delete)
    assert (delete.name, delete.ground) == ("b", Ground.LEFT_OVER)
    for theirs in (
        {names.REPLACES: "uid-a"},
        {**REPLACEMENT, names.CREATED_BY: "a user"},
        {**REPLACEMENT, names.TERMINATION_TIMESTAMP: format_time(ago(-3600))},
    ):
        assert not actions(verdicts(*scene(new(annotations=theirs), node, **fresh)), Delete)


@pytest.mark.parametrize("deployment", [karpenter(replicas=0), karpenter(old=1)])
def test_while_karpenter_does_not_act_nothing_is_launched_or_deleted(deployment: Any) -> None:
    settings = msgspec.structs.replace(SETTINGS, karpenter_version="")
    begins = verdicts(*scene(deployment), settings=settings)
    assert actions(begins, Create) == []
    ends = verdicts(*scene(new(), a_node("b"), deployment, annotations=COMMAND), settings=settings)
    assert actions(ends, Delete) == []
    assert {one.resource for one in actions(ends, Patch)} <= {NODES}, "levers go on"
    stands = on(ends, "a", Reason.LEVER_WAITS)
    assert stands.concern is Concern.REPLACEMENT, "the claim says why its command stands still"
    settled = verdicts(*scene(karpenter()), settings=settings)
    assert len(actions(settled, Create)) == 1


def test_the_guard_lets_nothing_end_while_karpenter_does_not_act() -> None:
    settings = msgspec.structs.replace(SETTINGS, karpenter_version="")
    snapshot = snapshot_with(*scene(karpenter(replicas=0)), ours=EVERY_CLASS)
    (create,) = actions(verdicts(*scene(karpenter()), settings=settings), Create)
    assert "no replica of kube-system/karpenter is ready" in (
        veto(create, snapshot, NOW, settings) or ""
    )


# -- pools with spec.replicas ----------------------------------------------------------

STATIC = a_pool(ref=FOREIGN, template={"expireAfter": "Never"}, replicas=3)
GRACEFUL = a_policy(
    repair={
        "terminationMode": "Graceful",
        "maxUnhealthy": "100%",
        "policies": [{"conditionType": "Broken", "status": "True", "toleration": "1m"}],
    },
)


def broken(gates: str, *more: ApiObject, **fields: Any) -> list[Verdict]:
    """A node of such a pool with a pod, whose graceful repair is due."""
    settings = msgspec.structs.replace(KNOWN, karpenter_feature_gates=gates)
    since = condition("Broken", "True", "Test", at=ago(600))
    node = a_node(labels=LABELS, status={"conditions": (condition("Ready", "True"), since)})
    claim = a_claim(ref=FOREIGN, spec={"expire_after": "Never"}, **fields)
    return verdicts(STATIC, GRACEFUL, claim, node, a_pod(), *more, settings=settings)


def test_a_node_of_a_pool_with_replicas_gets_no_replacement_of_ours() -> None:
    """Karpenter launches the next one itself: with ours it would be one too many."""
    gates = "NodeRepair=false,StaticCapacity=true"
    found = broken(gates)
    assert actions(found, Create) == []
    begins = on(found, "a", Reason.REPLACING)
    assert annotations_of(begins)[names.REPLACED_BY] == ""
    assert fact_of(begins, ReplicasLaunched).pool == "general"
    marked = {**COMMAND, names.REPLACED_BY: "", names.DISRUPTION_REASON: "Unhealthy"}
    marked.pop(names.EXPIRED_AT)
    ended = on(broken(gates, annotations=marked), "a", Reason.REPLACED)
    assert isinstance(ended.action, Delete)
    assert fact_of(ended, ReplicasLaunched).pool == "general"


@pytest.mark.parametrize("gates", ["NodeRepair=false", "NodeRepair=false,StaticCapacity=false"])
def test_where_karpenter_launches_no_replicas_such_a_node_stays(gates: str) -> None:
    found = broken(gates)
    assert actions(found, Create) == actions(found, Delete) == []
    facts = [one for verdict in found for one in verdict.facts]
    assert "the feature gate StaticCapacity of Karpenter is off" in " ".join(map(str, facts))
    assert not any(isinstance(one.action, Patch) and one.subject.name == "a" for one in found)
