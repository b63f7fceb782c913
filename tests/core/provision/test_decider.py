"""Pending pods become claims: batched, placed, nominated, or the reason why not."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core.decision import Create, Subject, Verdict
from tenure.core.provision.decider import ProvisionDecider, may_wait
from tenure.core.provision.facts import (
    Batched,
    CheapestFit,
    DaemonSetsTooLarge,
    Fits,
    NamedPoolsMissing,
    NeededForPods,
    NeedsNewClaim,
    NodeReplaced,
    NodeTerminating,
    PoolClosed,
    PoolStatic,
    ProtectedUntil,
    SchedulerDisagrees,
    Target,
    TypesAwaited,
)
from tenure.core.reasons import Reason
from tenure.model.api.meta import FOR_EVER
from tenure.model.api.names import INSTANCE_TYPE, NODEPOOL, REPLACED_BY
from tenure.model.api.node import Node
from tenure.model.api.pod import (
    Container,
    PodSpec,
    ResourceRequirements,
    Volume,
)
from tenure.model.api.resource import (
    DAEMON_SETS,
    EVENTS,
    MAINTENANCE_WINDOWS,
    NODE_CLAIMS,
    NODE_POOLS,
    NODES,
    PODS,
)
from tenure.model.snapshot.snapshot import Change
from tenure.packing.demand.facts import VolumeClaimMissing
from tenure.packing.facts import (
    LimitReached,
    NoInstanceTypes,
    NoNodeFits,
    NoPool,
    Refusal,
    TooLarge,
    Why,
)
from tenure.packing.refusals.facts import TypesTooSmall
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES
from tests.core.build import (
    LAUNCHED,
    a_claim,
    a_class,
    a_daemon_set,
    a_leaving_claim,
    a_leaving_node,
    a_node,
    a_pending_pod,
    a_pod,
    a_pool,
    a_type,
    about,
    ago,
    ahead,
    condition,
    evaluated,
    types,
)
from tests.packing.build import uncounted
from tests.snapshots import snapshot_with

DECIDER = ProvisionDecider()
NODE_A = Target("Node", "node-a")
SMALL = CheapestFit("small", "zone-a", "spot", 50_000)


def verdicts(*objects: Any, **known: Any) -> list[Verdict]:
    known = {"instance_types": types()} | known
    return evaluated(DECIDER, a_class(), *objects, **known)


def verdict_on(pod: str, *objects: Any, **known: Any) -> Verdict:
    return about(verdicts(*objects, **known), f"Pod/default/{pod}")


def created(found: list[Verdict]) -> list[Create]:
    return [verdict.action for verdict in found if isinstance(verdict.action, Create)]


def of_pool(create: Create) -> str:
    pool: str = create.body["metadata"]["labels"]["karpenter.sh/nodepool"]
    return pool


def test_nothing_is_decided_while_no_pod_needs_capacity() -> None:
    assert verdicts(a_pool(), a_claim(), a_node(), a_pod()) == []


def test_pods_that_arrive_together_share_a_node_and_its_claim_names_them() -> None:
    found = verdicts(a_pool(), a_pending_pod("x"), a_pending_pod("y"))
    claim, *pods = found
    assert claim.reason is Reason.NEEDED_FOR_PODS
    assert claim.facts == (NeededForPods(2), SMALL)
    assert isinstance(claim.action, Create)
    assert (claim.action.resource, claim.action.name) == (NODE_CLAIMS, claim.subject.name)
    assert [(v.subject.name, v.reason) for v in pods] == [
        ("x", Reason.NOMINATED),
        ("y", Reason.NOMINATED),
    ]
    assert pods[0].facts == (NeedsNewClaim(claim.subject.name, SMALL),)


def test_a_pod_that_fits_a_node_is_nominated_there() -> None:
    waiting = a_pending_pod(since=ago(20))
    verdict = verdict_on("web", a_pool(), a_claim(), a_node(), waiting)
    assert (verdict.reason, verdict.facts) == (Reason.NOMINATED, (Fits(NODE_A),))
    assert verdict.recheck_at == ahead(10)


def test_a_pod_that_fits_a_node_that_reboots_says_so() -> None:
    rebooting = condition("Rebooting", "True", "RebootIssued")
    claim = a_claim(conditions=[rebooting])
    verdict = verdict_on("web", claim, a_node(), a_pending_pod())
    assert (verdict.reason, verdict.facts) == (Reason.NOMINATED, (Fits(NODE_A, rebooting=True),))


def test_a_node_that_is_ready_since_the_end_of_all_time_takes_pods() -> None:
    ready = condition("Ready", "True", at=FOR_EVER)
    verdict = verdict_on(
        "web", a_pool(), a_claim(), a_node(status={"conditions": (ready,)}), a_pending_pod()
    )
    assert (verdict.reason, verdict.facts) == (Reason.NOMINATED, (Fits(NODE_A),))


def test_a_pod_that_waits_since_the_end_of_all_time_waits_for_its_batch_and_no_other_does() -> None:
    found = verdicts(a_pool(), a_pending_pod(since=FOR_EVER))
    assert [verdict.reason for verdict in found] == [Reason.BATCHING]
    fits = verdict_on("web", a_pool(), a_claim(), a_node(), a_pending_pod(since=FOR_EVER))
    assert fits.reason is Reason.NOMINATED


def test_a_pod_that_fits_but_is_not_bound_quotes_the_scheduler() -> None:
    said = "0/1 nodes are available: 1 Insufficient luck."
    waiting = a_pending_pod(since=ago(30), said=said)
    verdict = verdict_on("web", a_pool(), a_claim(), a_node(), waiting)
    assert (verdict.reason, verdict.action) == (Reason.SCHEDULER_DISAGREES, None)
    assert verdict.facts == (SchedulerDisagrees(NODE_A, ago(30), said),)
    assert verdict.recheck_at is None


@pytest.mark.parametrize(
    ("node", "recheck_at"),
    [
        (a_node(ready=False), None),
        (a_node(creation_timestamp=ago(5)), ahead(25)),
        (a_node(status={"conditions": (condition("Ready", at=ago(10)),)}), ahead(20)),
    ],
    ids=["is not ready", "has just come", "has just become ready"],
)
def test_the_scheduler_does_not_disagree_about_a_node_that(node: Node, recheck_at: Any) -> None:
    verdict = verdict_on("web", a_pool(), a_claim(), node, a_pending_pod(since=ago(300)))
    assert verdict.reason is Reason.NOMINATED
    assert verdict.recheck_at == recheck_at


def test_a_pod_that_fits_a_claim_on_its_way_is_nominated_there() -> None:
    verdict = verdict_on("web", a_pool(), a_claim(stage=LAUNCHED), a_pending_pod())
    fits = Fits(Target("NodeClaim", "a"))
    assert (verdict.reason, verdict.facts) == (Reason.NOMINATED, (fits,))


@pytest.mark.parametrize(
    ("waited", "opens_at"),
    [
        ([ago(0)], ahead(2)),
        ([ago(5), ago(1)], ahead(1)),
        ([ago(9), ago(1)], ahead(1)),
        ([ago(9), ago(0)], ahead(1)),
    ],
    ids=[
        "a second after the second in which the only pod came",
        "a second after the second in which the last pod came",
        "ten seconds after the first pod, which is just as long",
        "ten seconds after the first pod at the latest",
    ],
)
def test_the_batch_is_gathered_until(waited: list[Any], opens_at: Any) -> None:
    pods = [a_pending_pod(f"p{i}", since=since) for i, since in enumerate(waited)]
    found = verdicts(a_pool(), *pods)
    assert {verdict.reason for verdict in found} == {Reason.BATCHING}
    assert {verdict.recheck_at for verdict in found} == {opens_at}
    assert found[0].facts == (Batched(opens_at),)


@pytest.mark.parametrize(
    ("seen", "opens_at"),
    [([ago(5), ago(0.5)], ahead(0.5)), ([ago(8.5), ago(0)], ahead(0.5))],
    ids=["a second after it told of the last pod", "nine seconds after the first at the latest"],
)
def test_a_batch_that_the_watch_shows_late_is_open_until(seen: list[Any], opens_at: Any) -> None:
    pods = [a_pending_pod(f"p{i}", since=ago(20)) for i in range(2)]
    told = {pod.uid: at for pod, at in zip(pods, seen, strict=True)}
    found = verdicts(a_pool(), *pods, waiting_seen=told)
    assert {verdict.reason for verdict in found} == {Reason.BATCHING}
    assert {verdict.recheck_at for verdict in found} == {opens_at}


SIZES = types(*(a_type(f"x{n}", cpu=str(n), price=10_000 * n) for n in (8, 16, 32)))


@pytest.mark.parametrize(
    ("last", "sizes"),
    [(5, [["x16", "x32"], ["x16", "x32", "x8"]]), (0, [["x32"]])],
    ids=["none came for a while: what they need now", "still arriving: the next ones share it"],
)
def test_six_pods_that_fit_a_node_and_a_half_get(last: float, sizes: list[list[str]]) -> None:
    pods = [a_pending_pod(f"p{i}", requests={"cpu": "3500m"}, since=ago(20)) for i in range(6)]
    told = {pod.uid: ago(15) for pod in pods} | {pods[0].uid: ago(last)}
    found = verdicts(a_pool(), *pods, instance_types=SIZES, waiting_seen=told)
    assert sorted(map(listed_types, created(found))) == sizes


def listed_types(create: Create) -> list[str]:
    wanted = create.body["spec"]["requirements"]
    (types_,) = (one for one in wanted if one["key"] == INSTANCE_TYPE)
    return sorted(types_["values"])


def test_a_plan_for_arriving_pods_is_made_again_when_no_more_arrive() -> None:
    pods = [a_pending_pod(f"p{i}", requests={"cpu": "3500m"}, since=ago(20)) for i in range(2)]
    told = dict.fromkeys((pod.uid for pod in pods), ago(0.5))
    found = verdicts(a_pool(), a_claim(), a_node(), *pods, instance_types=SIZES, waiting_seen=told)
    assert {verdict.recheck_at for verdict in found} == {ahead(0.5)}


@pytest.mark.parametrize("since", [ahead(600), FOR_EVER], ids=["ten minutes", "for ever"])
def test_a_scheduler_whose_clock_is_ahead_keeps_no_pod_waiting(since: Any) -> None:
    pod = a_pending_pod(since=since)
    early = verdict_on("web", a_pool(), pod, waiting_seen={pod.uid: ago(1)})
    assert (early.reason, early.recheck_at) == (Reason.BATCHING, ahead(1))
    seen_long_ago = verdicts(a_pool(), pod, waiting_seen={pod.uid: ago(10)})
    assert len(created(seen_long_ago)) == 1


def test_pods_that_fit_somewhere_keep_no_batch_waiting() -> None:
    small = a_pending_pod("fits", since=ago(0.1))
    large = a_pending_pod("large", requests={"cpu": "4"}, since=ago(5))
    found = verdicts(a_pool(), a_claim(), a_node(), a_pod(), small, large)
    assert about(found, "Pod/default/fits").reason is Reason.NOMINATED
    assert len(created(found)) == 1


def test_a_pod_that_fits_nowhere_says_why_pool_by_pool() -> None:
    verdict = verdict_on("web", a_pool(), a_pending_pod(requests={"cpu": "9"}))
    assert (verdict.reason, verdict.action) == (Reason.FAILED_SCHEDULING, None)
    counts = (TypesTooSmall(1, "cpu", "9", "4"),)
    assert verdict.facts == (Refusal("general", TooLarge("cpu", "9", "4"), counts=counts),)


def test_no_pod_is_refused_before_the_instance_types_are_known() -> None:
    found = verdicts(a_pool(), a_pending_pod(), instance_types={})
    assert not created(found)
    verdict = about(found, "Pod/default/web")
    assert verdict.reason is Reason.AWAITING_TYPES
    assert verdict.facts == (TypesAwaited(("general",)),)


def test_a_pool_for_which_the_cloud_offers_nothing_says_so() -> None:
    none = {"KWOKNodeClass/default": ()}
    verdict = verdict_on("web", a_pool(), a_pending_pod(), instance_types=none)
    assert verdict.reason is Reason.FAILED_SCHEDULING
    assert verdict.facts == (Refusal("general", NoInstanceTypes()),)


def test_pools_that_may_not_launch_are_named_with_their_reason() -> None:
    broken = a_pool("broken", replicas=2)
    verdict = verdict_on("web", broken, a_pending_pod())
    assert verdict.reason is Reason.FAILED_SCHEDULING
    assert verdict.facts == (NoPool(), PoolClosed("broken", PoolStatic()))


def test_a_pod_for_which_no_pool_could_launch_hears_of_none() -> None:
    volume = Volume(name="data", ephemeral={})
    pod = a_pending_pod(spec={"volumes": (volume,)})
    verdict = verdict_on("web", a_pool("broken", replicas=2), a_pool(), pod)
    assert [type(fact) for fact in verdict.facts] == [VolumeClaimMissing]


def test_a_pod_that_names_its_pool_hears_nothing_of_other_pools() -> None:
    pools = [a_pool("db"), a_pool("general"), a_pool("broken", replicas=2)]
    pod = a_pending_pod(requests={"cpu": "9"}, spec={"node_selector": {NODEPOOL: "db"}})
    (refusal,) = verdict_on("web", *pools, pod).facts
    assert uncounted((refusal,)) == (Refusal("db", TooLarge("cpu", "9", "4")),)
    pod = a_pending_pod(spec={"node_selector": {NODEPOOL: "broken"}})
    assert verdict_on("web", *pools, pod).facts == (PoolClosed("broken", PoolStatic()),)


@pytest.mark.parametrize(
    ("written", "similar", "hint"),
    [("genral", "general", "did you mean general?"), ("x", "", "see kubectl get nodepools")],
)
def test_a_pool_that_is_not_there_is_told_with_what_may_be_meant(
    written: str, similar: str, hint: str
) -> None:
    pools = [a_pool("db"), a_pool("general"), a_pool("broken", replicas=2)]
    found = verdict_on("web", *pools, a_pending_pod(spec={"node_selector": {NODEPOOL: written}}))
    assert found.reason is Reason.FAILED_SCHEDULING
    assert found.facts == (NamedPoolsMissing((written,), similar=similar),)
    assert found.message == (
        f"the pod names NodePool {written} in karpenter.sh/nodepool, but there is no such NodePool "
        f"({hint})"
    )


def test_a_named_pool_is_missing_although_there_is_none_at_all() -> None:
    found = verdict_on("web", a_pending_pod(spec={"node_selector": {NODEPOOL: "db"}}))
    assert found.facts == (NamedPoolsMissing(("db",)),)


def test_the_pool_of_the_highest_weight_is_used() -> None:
    pools = [a_pool("a"), a_pool("b", weight=10), a_pool("c", weight=5)]
    (claim,) = created(verdicts(*pools, a_pending_pod()))
    assert of_pool(claim) == "b"


@pytest.mark.parametrize(
    ("limits", "count"),
    [({"nodes": "2"}, 2), ({"cpu": "9"}, 2), ({"nodes": "3", "cpu": "100"}, 3)],
    ids=["nodes", "cpu", "both"],
)
def test_one_batch_stays_within_the_limits(limits: Any, count: int) -> None:
    pods = [a_pending_pod(f"p{i}", requests={"cpu": "3"}) for i in range(4)]
    found = verdicts(a_pool(limits=limits), *pods)
    refused = [v for v in found if v.reason is Reason.FAILED_SCHEDULING]
    assert len(created(found)) == count
    assert len(refused) == 4 - count
    causes = [one.cause for v in refused for one in v.facts if isinstance(one, Refusal)]
    assert len(causes) == len(refused)
    assert all(cause.why is Why.LIMIT_REACHED for cause in causes)


@pytest.mark.parametrize("stage", [0, LAUNCHED], ids=["unanswered", "launched"])
def test_several_turns_stay_within_the_limits_while_launches_are_under_way(stage: int) -> None:
    """Each claim was made for a pod of 3 cpus on a machine with 4."""
    under_way = [a_claim(name, stage=stage) for name in ("a", "b")]
    pods = [a_pending_pod(f"p{i}", requests={"cpu": "5"}) for i in range(2)]
    found = verdicts(
        a_pool(limits={"nodes": "3"}),
        *under_way,
        *pods,
        instance_types=types(a_type(), a_type("large", cpu="8")),
    )
    assert len(created(found)) == 1
    reached = LimitReached("nodes", "0", "large", "1")
    refused = about(found, "Pod/default/p1")
    assert uncounted(refused.facts) == (NoNodeFits(2), Refusal("general", reached))
    assert [blocker.fact for blocker in refused.blockers] == [reached]


def test_a_sold_out_offering_is_left_out_until_its_time_is_over() -> None:
    dry = {("small", "zone-a", "spot"): ahead(60), ("small", "zone-b", "spot"): ahead(90)}
    claim, pod = verdicts(a_pool(), a_pending_pod(), dry_offerings=dry)
    on_demand = CheapestFit("small", "zone-a", "on-demand", 100_000)
    assert claim.facts == (NeededForPods(1), on_demand)
    assert claim.recheck_at == pod.recheck_at == ahead(60)


def test_an_offering_is_used_again_after_its_pause() -> None:
    dry = {("small", "zone-a", "spot"): ago(0)}
    claim, _ = verdicts(a_pool(), a_pending_pod(), dry_offerings=dry)
    assert claim.facts == (NeededForPods(1), SMALL)
    assert claim.recheck_at is None


def test_pods_of_a_terminating_node_get_their_new_node_before_they_are_evicted() -> None:
    found = verdicts(a_pool(), a_leaving_claim(), a_leaving_node(), a_pod())
    (create,) = created(found)
    needs = NeedsNewClaim(create.name, SMALL)
    assert about(found, "Pod/default/web").facts == (NodeTerminating("node-a"), needs)


def test_pods_of_a_node_that_is_replaced_do_not_say_that_it_terminates() -> None:
    """Nothing is deleted before the replacement is initialized."""
    reason = condition("DisruptionReason", at=ago(60))
    claim = a_claim(annotations={REPLACED_BY: ""}, conditions=[reason])
    found = verdicts(a_pool(), claim, a_node(), a_pod())
    assert about(found, "Pod/default/web").facts[0] == NodeReplaced("node-a")


def test_a_protected_pod_of_a_terminating_node_stays_for_now() -> None:
    (verdict,) = verdicts(a_pool(), a_leaving_claim(), a_leaving_node(), a_pod(protected="2h"))
    assert (verdict.reason, verdict.action) == (Reason.STAYS_FOR_NOW, None)
    assert verdict.facts == (NodeTerminating("node-a"), ProtectedUntil(ahead(3600)))
    assert verdict.recheck_at == ahead(3600)


def test_a_claim_gets_an_unused_name_that_is_the_same_in_every_evaluation() -> None:
    pods = [a_pending_pod(f"p{i}", requests={"cpu": "4"}) for i in range(3)]
    first = [create.name for create in created(verdicts(a_pool(), *pods))]
    again = [create.name for create in created(verdicts(a_pool(), *pods))]
    assert first == again
    assert len(set(first)) == 3
    taken = a_leaving_claim(first[0])
    later = [create.name for create in created(verdicts(a_pool(), *pods, taken))]
    assert first[0] not in later
    assert set(first[1:]) < set(later)


def test_what_placing_pods_depends_on() -> None:
    snapshot = snapshot_with()
    concerned = {
        resource.kind
        for resource in (
            *(PODS, NODES, NODE_CLAIMS, NODE_POOLS, DAEMON_SETS, KWOK_NODE_CLASSES),
            *(EVENTS, MAINTENANCE_WINDOWS),
        )
        if list(DECIDER.touched(Change(resource, "x", None, None), snapshot))
    }
    assert concerned == {
        *("Pod", "Node", "NodeClaim", "NodePool", "DaemonSet", "KWOKNodeClass"),
    }


@pytest.mark.parametrize(
    ("kind", "keys"),
    [("NodeClass", ["cluster"]), ("NodeClaim", ["cluster"]), ("Pod", []), ("Instance", [])],
)
def test_answers_of_the_cloud_about_classes_and_claims_move_pods(kind: str, keys: Any) -> None:
    assert list(DECIDER.observed(Subject(kind, "x"), snapshot_with())) == keys


@pytest.mark.parametrize(
    ("change", "waits"),
    [
        (Change(PODS, "p", None, a_pod()), True),
        (Change(NODES, "n", a_node(), a_node()), True),
        (Change(NODE_CLAIMS, "a", a_claim(), a_claim()), True),
        (Change(NODE_CLAIMS, "a", None, a_claim()), False),
        (Change(NODE_CLAIMS, "a", a_claim(), None), False),
        (Change(NODE_POOLS, "general", None, a_pool()), False),
        (Change(NODE_POOLS, "general", a_pool(), a_pool(weight=2)), False),
        (Change(NODE_POOLS, "general", a_pool(), a_pool(status={"nodes": 2})), True),
    ],
    ids=[
        "a pod",
        "a node",
        "a claim changed",
        "a claim came",
        "a claim went",
        "a pool",
        "a pool is other than before",
        "a pool counts its nodes",
    ],
)
def test_a_burst_may_wait_but_an_answer_to_us_may_not(change: Change, waits: bool) -> None:
    assert may_wait(change) is waits


def test_daemon_sets_that_fit_no_type_block_no_pod_and_the_pool_names_them() -> None:
    wants = PodSpec(
        containers=(Container(resources=ResourceRequirements(requests={"cpu": "3500m"})),)
    )
    agents = [a_daemon_set(name, spec=wants) for name in ("agent", "log")]
    found = verdicts(a_pool(), a_pending_pod("x"), *agents)
    assert len(created(found)) == 1
    told = about(found, "NodePool/general")
    assert told.reason is Reason.DAEMON_SETS_TOO_LARGE
    assert told.facts == (DaemonSetsTooLarge(("default/agent",)),)
