"""Graceful repair and soft expiration beside Karpenter: replacement first, within windows and budgets.

Karpenter is played (``karpenterplayed``). Stories begin on a Monday at 08:00 UTC.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import msgspec

from tenure.model.api import names
from tenure.model.api import resource as r
from tenure.sim.apiserver.objects.tree import Obj
from tests.builders import (
    HOUR,
    MINUTE,
    SECOND,
    Manifest,
    a_deployment,
    a_node_class,
    a_pdb,
    a_pool,
    a_requirement,
)
from tests.scenarios.karpenterplayed import BESIDE, KNOWN, Accompanied, a_soft_policy

BROKEN = "KernelDeadlock"
#: Graceful, after a minute.
REPAIR = {
    "conditionType": BROKEN,
    "status": "True",
    "toleration": "1m",
    "terminationMode": "Graceful",
}
SMALL = a_requirement("node.kubernetes.io/instance-type", "m7i.large")


def a_cluster(
    *more: Manifest, replicas: int = 1, policy: Manifest | None = None, **spec: Any
) -> list[Manifest]:
    """One pod on each node; the pool says ``Never``, as Karpenter's CRD stores it."""
    budgets = {"budgets": [{"nodes": "1"}], "consolidateAfter": "Never"}
    return [
        a_node_class(),
        a_pool(
            requirements=[SMALL],
            template={"expireAfter": "Never"},
            **{"disruption": budgets, **spec},
        ),
        a_deployment(replicas=replicas, cpu="1500m"),
        policy or a_soft_policy(),
        *more,
    ]


@contextmanager
def told(*manifests: Manifest, **options: Any) -> Iterator[Accompanied]:
    story = Accompanied(*manifests, **options)
    try:
        yield story
        story.checkers.assert_kept()
    finally:
        story.close()


def claims(story: Accompanied) -> list[str]:
    return [one["metadata"]["name"] for one in story.all(r.NODE_CLAIMS)]


def marks_of(story: Accompanied) -> set[str]:
    """Annotations of ours, on any claim or Node."""
    found: set[str] = set()
    for resource in (r.NODE_CLAIMS, r.NODES):
        for one in story.all(resource):
            found |= set(one["metadata"].get("annotations") or {})
    commands = {names.REPLACES, names.REPLACED_BY, names.DISRUPTION_REASON, names.DO_NOT_DISRUPT}
    return {key for key in found if key.startswith("tenure.dev/") or key in commands}


def order_of(story: Accompanied, *reasons: str) -> list[str]:
    """Those of the reasons that were given, by when each was given first."""
    first = {reason: story.when(reason)[0] for reason in reasons if story.when(reason)}
    return sorted(first, key=lambda reason: first[reason])


def break_node(story: Accompanied) -> str:
    name: str = story.the(r.NODES)["metadata"]["name"]
    story.kubelets.set_condition(name, BROKEN, "True", "Test", "tasks hang")
    return name


# -- soft expiration -------------------------------------------------------------------


def test_an_expired_node_is_replaced_first_and_no_trace_is_left() -> None:
    with told(*a_cluster()) as story:
        story.play(20 * MINUTE)
        (old,) = claims(story)
        story.play(25 * MINUTE)
        (new,) = claims(story)
        assert new != old
        assert (story.running("web"), story.cloud.launch_count) == (1, 2)
        assert order_of(story, "Expired", "NeededAsReplacement", "Replaced") == [
            "Expired",
            "NeededAsReplacement",
            "Replaced",
        ]
        assert marks_of(story) == set()


def test_the_pods_are_never_without_a_node_to_go_to() -> None:
    """Of two pods at most one is missing for the time that it takes to start."""
    with told(*a_cluster(replicas=3)) as story:
        story.play(20 * MINUTE)
        old = set(claims(story))
        least = 3
        for _ in range(30):
            story.play(30 * SECOND)
            least = min(least, len([c for c in story.all(r.NODE_CLAIMS) if is_up(c)]))
        story.play(15 * MINUTE)
        assert not old & set(claims(story))
        assert least >= 3, "a node goes only once its replacement is initialized"
        assert story.running("web") == 3


def is_up(claim: Obj) -> bool:
    conditions = claim.get("status", {}).get("conditions", ())
    up = any((c["type"], c["status"]) == ("Initialized", "True") for c in conditions)
    return up and "deletionTimestamp" not in claim["metadata"]


def test_a_budget_lets_one_go_at_a_time() -> None:
    with told(*a_cluster(replicas=3)) as story:
        story.play(20 * MINUTE)
        old = claims(story)
        most = 0
        for _ in range(120):
            story.play(5 * SECOND)
            stay = [c["metadata"] for c in story.all(r.NODE_CLAIMS)]
            stay = [one for one in stay if "deletionTimestamp" not in one]
            most = max(most, sum(names.REPLACED_BY in one["annotations"] for one in stay))
        story.play(10 * MINUTE)
        assert most == 1
        assert not set(old) & set(claims(story))


def test_expiration_waits_for_its_window() -> None:
    evening = {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "MaintenanceWindow",
        "metadata": {"name": "evening"},
        "spec": {
            "type": "Allow",
            "actions": ["Expiration"],
            "schedules": [{"cron": "0 10 * * *", "duration": "1h"}],
        },
    }
    with told(*a_cluster(evening)) as story:
        story.play(20 * MINUTE)
        old = claims(story)
        story.play(95 * MINUTE)
        assert claims(story) == old
        assert "DisruptionBlocked" in story.reasons(f"NodeClaim/{old[0]}")
        story.play(10 * MINUTE)
        assert not set(old) & set(claims(story))


def test_a_window_that_closes_while_the_replacement_comes_up_rolls_it_back() -> None:
    freeze = {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "MaintenanceWindow",
        "metadata": {"name": "freeze"},
        "spec": {"actions": ["Expiration"]},
    }
    with told(*a_cluster()) as story:
        story.play(20 * MINUTE)
        old = claims(story)
        story.run_while(lambda: len(claims(story)) < 2, at_most=HOUR, step=1 * SECOND)
        story.play(10 * SECOND)
        story.apply(freeze)
        story.play(5 * MINUTE)
        assert claims(story) == old, "the replacement is removed, because no pod came"
        assert marks_of(story) == {names.EXPIRED_AT}
        assert "DisruptionCancelled" in story.reasons(f"NodeClaim/{old[0]}")


def test_a_node_that_expires_before_it_registers_carries_no_mark_of_that() -> None:
    """Karpenter copies the annotations of a claim to the Node, from which no decider takes them."""
    with told(*a_cluster(policy=a_soft_policy("1s"))) as story:
        for _ in range(60):
            story.play(10 * SECOND)
            for node in story.all(r.NODES):
                assert names.EXPIRED_AT not in (node["metadata"].get("annotations") or {})
        assert story.cloud.launch_count > 2


def test_a_claim_with_an_age_of_its_own_is_karpenters() -> None:
    cluster = a_cluster()
    cluster[1]["spec"]["template"]["spec"]["expireAfter"] = "30m"
    with told(*cluster) as story:
        story.play(60 * MINUTE)
        assert story.cloud.launch_count == 1
        assert "Expired" not in story.reasons("NodeClaim/*")
        said = [e.message for e in story.history.entries if e.reason == "NotExpired"]
        assert "Karpenter expires" in said[0]


def test_pods_that_forbid_it_are_respected() -> None:
    protected = a_deployment(replicas=1, cpu="1500m", annotations={names.DO_NOT_DISRUPT: "true"})
    for pods, more in ((protected, []), (None, [a_pdb(minAvailable=1)])):
        cluster = a_cluster(*more)
        cluster[2] = pods or cluster[2]
        with told(*cluster) as story:
            story.play(90 * MINUTE)
            assert story.cloud.launch_count == 1
            (name,) = claims(story)
            assert "DisruptionBlocked" in story.reasons(f"NodeClaim/{name}")


def test_a_cap_on_protections_of_pods_ends_them() -> None:
    policy = a_soft_policy(maxPodProtection="40m")
    cluster = a_cluster(policy=policy)
    cluster[2] = a_deployment(replicas=1, cpu="1500m", annotations={names.DO_NOT_DISRUPT: "true"})
    with told(*cluster) as story:
        story.play(38 * MINUTE)
        assert story.cloud.launch_count == 1
        story.play(10 * MINUTE)
        assert story.cloud.launch_count == 2


def test_limits_of_the_pool_hold_a_replacement_back() -> None:
    with told(*a_cluster(limits={"cpu": "2"})) as story:
        story.play(60 * MINUTE)
        assert story.cloud.launch_count == 1
        (name,) = claims(story)
        said = [e.message for e in story.history.entries if e.reason == "DisruptionBlocked"]
        assert "spec.limits.cpu of NodePool general has 0 left" in said[0]
        story.apply({**a_cluster(limits={"cpu": "4"})[1]})
        story.play(5 * MINUTE)
        assert name not in claims(story)


def test_a_node_without_pods_needs_no_replacement() -> None:
    with told(*a_cluster()) as story:
        story.play(5 * MINUTE)
        story.store.patch(r.DEPLOYMENTS, "default", "web", {"spec": {"replicas": 0}})
        story.play(40 * MINUTE)
        assert claims(story) == []
        assert story.cloud.launch_count == 1


def until_the_replacement_is_there(story: Accompanied) -> tuple[str, str]:
    """The claim that goes, and the new one, by name."""
    story.play(20 * MINUTE)
    story.run_while(lambda: len(claims(story)) < 2, at_most=HOUR, step=1 * SECOND)
    story.play(5 * SECOND)
    old, new = claims(story)
    return old, new


def test_a_replacement_that_pods_have_come_to_stays_after_a_roll_back() -> None:
    with told(*a_cluster()) as story:
        old, new = until_the_replacement_is_there(story)
        story.apply(a_deployment("late", replicas=1, cpu="1500m"))
        story.run_while(lambda: story.running("late") < 1, at_most=5 * MINUTE, step=1 * SECOND)
        late = {"apiVersion": "karpenter.sh/v1alpha1", "kind": "MaintenanceWindow"}
        story.apply({**late, "metadata": {"name": "f"}, "spec": {"actions": ["Expiration"]}})
        story.play(5 * MINUTE)
        assert story.running("web") == story.running("late") == 1
        assert marks_of(story) <= {names.EXPIRED_AT}
        assert story.cloud.launch_count <= 4
        assert old in claims(story) or new in claims(story)


def test_a_claim_that_a_user_deletes_meanwhile_leaves_a_node_like_any_other() -> None:
    with told(*a_cluster()) as story:
        old, new = until_the_replacement_is_there(story)
        story.store.delete(r.NODE_CLAIMS, "", old)
        story.play(5 * MINUTE)
        assert claims(story) == [new]
        assert story.running("web") == 1
        assert marks_of(story) == set()


def test_a_replacement_that_a_user_deletes_is_created_again_after_a_pause() -> None:
    with told(*a_cluster()) as story:
        old, new = until_the_replacement_is_there(story)
        story.store.delete(r.NODE_CLAIMS, "", new)
        story.play(50 * SECOND)
        assert "ReplacementFailed" in story.reasons(f"NodeClaim/{old}")
        story.play(5 * MINUTE)
        assert old not in claims(story)
        assert story.running("web") == 1


def test_two_nodes_at_a_time_where_the_budget_says_so_and_never_more_launches() -> None:
    """Replacements that never come up: as many in each round as the budget lets go."""
    two = {"budgets": [{"nodes": "2"}], "consolidateAfter": "Never"}
    with told(*a_cluster(replicas=4, disruption=two)) as story:
        story.play(20 * MINUTE)
        story.infrastructure.faults.set(never_ready_rate=1.0)
        story.play(3 * HOUR)
        assert story.running("web") == 4
        launched = story.when("NeededAsReplacement")
        by_hour = Counter((at - launched[0]) // HOUR for at in launched)
        assert max(by_hour.values()) <= 6, by_hour


# -- graceful repair -------------------------------------------------------------------


def repaired(**more: Any) -> list[Manifest]:
    return a_cluster(policy=a_soft_policy("Never", repair={"policies": [{**REPAIR, **more}]}))


def test_an_unhealthy_node_is_replaced_first_and_then_leaves() -> None:
    with told(*repaired(terminationGracePeriod="5m")) as story:
        story.play(5 * MINUTE)
        (old,), _ = claims(story), break_node(story)
        story.play(50 * SECOND)
        assert claims(story) == [old], "it is tolerated for a minute"
        deadlines: set[str] = set()
        for _ in range(36):
            story.play(5 * SECOND)
            found = story.store.find(r.NODE_CLAIMS, "", old) or {"metadata": {"annotations": {}}}
            deadlines.add(found["metadata"]["annotations"].get(names.TERMINATION_TIMESTAMP, ""))
        assert old not in claims(story)
        assert (story.running("web"), story.cloud.launch_count) == (1, 2)
        assert len(deadlines) == 2, "stamped once, within the bound"
        assert marks_of(story) == set()


def test_a_node_that_recovers_keeps_its_claim() -> None:
    with told(*repaired()) as story:
        story.play(5 * MINUTE)
        (old,), node = claims(story), break_node(story)
        story.run_while(lambda: len(claims(story)) < 2, at_most=HOUR, step=1 * SECOND)
        story.kubelets.set_condition(node, BROKEN, "False", "Test", "")
        story.play(5 * MINUTE)
        assert claims(story) == [old]
        assert marks_of(story) == set()


def test_while_karpenter_repairs_or_may_repair_tenure_does_not() -> None:
    on = msgspec.structs.replace(BESIDE, karpenter_feature_gates="NodeRepair=true")
    for settings, known in ((on, "NodeRepair is on"), (BESIDE, "NodeRepair cannot be read")):
        with told(*repaired(), settings=settings) as story:
            story.play(5 * MINUTE)
            break_node(story)
            story.play(20 * MINUTE)
            assert story.cloud.launch_count == 1
            said = [
                e.message for e in story.history.entries if e.reason == "NodeRepairLeftToKarpenter"
            ]
            assert said
            assert known in said[0]


def test_where_karpenter_repairs_from_now_on_a_replacement_is_rolled_back_and_goes() -> None:
    """Also if it is up: a node without pods that Karpenter must not remove would stay for ever."""
    for gates in ("NodeRepair=true", ""):
        with told(*repaired()) as story:
            story.play(5 * MINUTE)
            (old,), _ = claims(story), break_node(story)
            story.run_while(lambda: len(claims(story)) < 2, at_most=HOUR, step=1 * SECOND)
            story.set_settings(msgspec.structs.replace(BESIDE, karpenter_feature_gates=gates))
            story.play(5 * MINUTE)
            assert claims(story) == [old]
            assert marks_of(story) == set()
            assert "ReplacementLeftOver" in story.reasons("NodeClaim/*")


def test_expiration_that_is_rolled_back_leaves_nothing_where_karpenter_repairs() -> None:
    freeze = {"apiVersion": "karpenter.sh/v1alpha1", "kind": "MaintenanceWindow"}
    with told(*a_cluster(), settings=BESIDE) as story:
        old, _ = until_the_replacement_is_there(story)
        story.apply({**freeze, "metadata": {"name": "f"}, "spec": {"actions": ["Expiration"]}})
        story.play(5 * MINUTE)
        assert claims(story) == [old]
        assert marks_of(story) == {names.EXPIRED_AT}


def test_expiration_goes_on_where_karpenter_repairs() -> None:
    on = msgspec.structs.replace(BESIDE, karpenter_feature_gates="NodeRepair=true")
    with told(*a_cluster(), settings=on) as story:
        story.play(45 * MINUTE)
        assert story.cloud.launch_count == 2


def test_beside_an_unknown_karpenter_nothing_is_replaced_or_marked() -> None:
    unknown = msgspec.structs.replace(KNOWN, karpenter_version="")
    with told(*a_cluster(), settings=unknown) as story:
        story.play(60 * MINUTE)
        assert story.cloud.launch_count == 1
        assert "OnlyLooks" in story.reasons("NodePool/*")
        assert marks_of(story) == set()


def test_a_command_stands_still_while_karpenter_is_not_known() -> None:
    unknown = msgspec.structs.replace(KNOWN, karpenter_version="")
    with told(*a_cluster()) as story:
        story.play(20 * MINUTE)
        story.run_while(lambda: len(claims(story)) < 2, at_most=HOUR, step=1 * SECOND)
        story.play(5 * SECOND)
        old, new = claims(story)
        story.set_settings(unknown)
        story.play(20 * MINUTE)
        assert claims(story) == [old, new]
        story.set_settings(KNOWN)
        story.play(2 * MINUTE)
        assert claims(story) == [new]


def test_a_node_that_falls_due_by_force_does_not_wait_for_its_replacement() -> None:
    worse = {**REPAIR, "conditionType": "Worse", "terminationMode": "Forceful"}
    policy = a_soft_policy("Never", repair={"policies": [REPAIR, worse], "maxUnhealthy": "100%"})
    with told(*a_cluster(policy=policy)) as story:
        story.play(5 * MINUTE)
        (old,), node = claims(story), break_node(story)
        story.infrastructure.faults.set(never_ready_rate=1.0)
        story.run_while(lambda: len(claims(story)) < 2, at_most=HOUR, step=1 * SECOND)
        story.play(10 * SECOND)
        story.kubelets.set_condition(node, "Worse", "True", "Test", "disk is gone")
        story.play(90 * SECOND)
        assert old not in claims(story)
        assert story.running("web") == 0, "its replacement is not up, and it did not wait for that"


# -- what does not come up -------------------------------------------------------------


def test_a_pool_whose_replacements_never_come_up_launches_few() -> None:
    """The bound of cost: nothing is launched for a command while its pool pauses."""
    with told(*a_cluster()) as story:
        story.play(20 * MINUTE)
        (old,) = claims(story)
        story.infrastructure.faults.set(never_ready_rate=1.0)
        story.play(6 * HOUR)
        assert story.running("web") == 1
        assert old in claims(story)
        launched = story.when("NeededAsReplacement")
        by_hour = Counter((at - launched[0]) // HOUR for at in launched)
        assert max(by_hour.values()) <= 3, by_hour
        assert len(story.all(r.NODES)) <= 2, "what failed is removed"


def test_claims_that_karpenter_gives_up_at_once_are_created_ever_less_often() -> None:
    """As for an instance type that is sold out: Karpenter deletes the claim."""
    with told(*a_cluster()) as story:
        story.play(20 * MINUTE)
        (old,) = claims(story)
        story.infrastructure.faults.set(cloud_dry=(("*", "*", "*"),))
        story.play(3 * HOUR)
        assert claims(story)[0] == old
        launched = story.when("NeededAsReplacement")
        in_an_hour = sum(at < launched[0] + timedelta(hours=1) for at in launched)
        assert in_an_hour <= 7
        assert sum(at >= launched[0] + timedelta(hours=2) for at in launched) <= 3


# -- another program's deadline --------------------------------------------------------


def test_a_deadline_that_a_user_sets_meanwhile_ends_the_command_and_stays() -> None:
    """The replacement is a node like any other then, and Karpenter's to remove."""
    with told(*a_cluster()) as story:
        story.play(20 * MINUTE)
        (old,) = claims(story)
        story.run_while(lambda: len(claims(story)) < 2, at_most=HOUR, step=SECOND)
        theirs = {names.TERMINATION_TIMESTAMP: "2027-01-01T00:00:00Z"}
        body = {"metadata": {"annotations": theirs}}
        story.store.patch(r.NODE_CLAIMS, "", old, body)
        story.play(10 * MINUTE)
        claim = story.store.get(r.NODE_CLAIMS, "", old)
        assert "deletionTimestamp" not in claim["metadata"]
        found = claim["metadata"]["annotations"]
        assert found.items() >= theirs.items()
        assert not found.keys() & {names.REPLACED_BY, names.DISRUPTED_BY, names.DISRUPTION_REASON}
