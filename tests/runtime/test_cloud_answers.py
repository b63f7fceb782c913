"""What the cloud answers, and what becomes of it: shortages, throttling, lost answers."""

from __future__ import annotations

from tenure.core.reasons import Reason
from tenure.errors import OutOfCapacity, ProviderError
from tenure.model.api.meta import format_time
from tenure.model.api.names import (
    DO_NOT_DISRUPT,
    NOT_READY_TAINT,
    TERMINATION_TIMESTAMP,
    UNREACHABLE_TAINT,
)
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, NODES
from tests.builders import (
    HOUR,
    MINUTE,
    SECOND,
    Manifest,
    a_cluster,
    a_deployment,
    a_node_class,
)
from tests.runtime.worlds import Tapped, outcomes


def bought(story: Tapped) -> list[tuple[str, str, str]]:
    return [(i.instance_type, i.zone, i.capacity_type) for i in story.cloud.instances()]


def test_a_dry_offering_costs_a_claim_and_another_offering_is_used() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=1))) as story:
        story.run(MINUTE)
        favourite = bought(story)[0]
        story.infrastructure.faults.set(cloud_dry=((favourite[0], "*", "*"),))
        story.apply(a_deployment("more", replicas=3))
        story.run(3 * MINUTE)
        assert story.running("more") == 3
        assert bought(story)[1][0] != favourite[0]
        assert story.count("claims") == story.count("instances") == 2


def test_what_was_sold_out_is_left_alone_for_three_minutes_and_then_bought_again() -> None:
    with Tapped(*a_cluster()) as story:
        story.run(SECOND)
        requirement = {"key": "node.kubernetes.io/instance-type", "operator": "In"}
        spec = story.store.get(NODE_POOLS, "", "general")["spec"]["template"]["spec"]
        only = {**spec, "requirements": [{**requirement, "values": ["t4g.small"]}]}
        story.store.patch(NODE_POOLS, "", "general", {"spec": {"template": {"spec": only}}})
        story.infrastructure.faults.set(cloud_dry=(("t4g.small", "*", "*"),))
        story.apply(a_deployment(replicas=1))
        story.run(5 * SECOND)
        story.infrastructure.faults.clear()
        assert story.reasons("NodeClaim/*").count(Reason.INSUFFICIENT_CAPACITY) == 1
        assert story.count("claims") == 0, "the claim that could not be had is deleted"
        story.run(2 * MINUTE)
        assert len(story.cloud_tap.of("launch")) == 1, "what is sold out is not asked for"
        story.run(3 * MINUTE)
        assert story.running("web") == 1
        first, second = story.cloud_tap.times("launch")
        assert 180 < second - first < 183


def test_a_throttling_cloud_is_asked_less_and_less_and_then_obeys() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=1))) as story:
        story.run(0.5 * SECOND)
        story.infrastructure.faults.set(cloud_throttle_rate=1.0)
        story.run(5 * MINUTE)
        assert story.running("web") == 0
        assert 5 < len(story.cloud_tap.of("launch")) < 20
        assert story.count("claims") == 1, "the same claim is tried again"
        refused = outcomes(story, "NodeClaim/", "Launch")
        assert set(refused) == {
            "refused: the embedded cloud asks to slow down: RequestLimitExceeded"
        }
        story.infrastructure.faults.clear()
        story.run(3 * MINUTE)
        assert story.running("web") == 1


def test_types_that_could_not_be_had_at_the_start_are_asked_for_again_soon() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=1))) as story:
        story.cloud_tap.spoil = lambda verb, what: (
            ProviderError("not now") if verb == "types" else None
        )
        story.run(30 * SECOND)
        story.cloud_tap.spoil = lambda verb, what: None
        story.run(90 * SECOND)
        assert story.running("web") == 1


def test_a_pools_own_status_does_not_make_us_ask_for_types() -> None:
    asked: list[str] = []
    with Tapped(*a_cluster(a_deployment(replicas=30, cpu="1"))) as story:

        def note(verb: str, what: str) -> None:
            if verb == "types":
                asked.append(what)

        story.cloud_tap.spoil = note
        story.run(4 * MINUTE)
        assert story.running("web") == 30
        assert 1 <= len(asked) <= 2


def test_a_launch_whose_answer_is_lost_starts_one_instance() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=1))) as story:
        lost: list[str] = []

        def lose_twice(verb: str, what: str) -> bool:
            lost.append(what)
            return verb == "launch" and len(lost) <= 2

        story.cloud_tap.lose = lose_twice
        story.run(3 * MINUTE)
        assert story.running("web") == 1
        assert story.cloud.launch_count == 1
        assert len(story.cloud_tap.of("launch")) == 3


def test_a_claim_deleted_after_a_lost_answer_takes_its_unknown_instance_along() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=1))) as story:
        story.cloud_tap.lose = lambda verb, what: verb == "launch"
        story.run(3 * SECOND)
        assert story.cloud.launch_count == 1
        story.apply(a_deployment(replicas=0))
        story.run(0.2 * SECOND)
        story.delete_claim()
        story.run(2 * MINUTE)
        assert story.count("claims") == story.count("instances") == 0


def test_a_claim_deleted_while_its_launch_is_under_way_leaves_no_instance_behind() -> None:
    """Asked too early, the cloud would say that there is nothing to end."""
    with Tapped(*a_cluster(a_deployment(replicas=1))) as story:
        story.run(0.9 * SECOND)
        story.infrastructure.faults.set(cloud_latency=30 * SECOND)
        story.run(1.5 * SECOND)
        assert story.cloud_tap.under_way[""] == 1
        story.infrastructure.faults.clear()
        story.apply(a_deployment(replicas=0))
        story.run(0.2 * SECOND)
        name = story.delete_claim()
        for _ in range(120):
            story.run(SECOND)
            assert story.checkers.instances.unclaimed() == ()
        assert story.store.find(NODE_CLAIMS, "", name) is None
        assert story.count("instances") == 0
        assert story.cloud.launch_count == 1


def test_a_node_class_that_cannot_be_used_is_left_alone_until_it_changes() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=1))) as story:
        story.infrastructure.faults.set(node_class_broken="no such image")
        story.run(HOUR)
        assert story.reasons("NodeClaim/*").count(Reason.NODE_CLASS_NOT_READY) >= 1
        assert 2 <= len(story.cloud_tap.of("launch")) < 10
        assert story.count("claims") == 0
        story.infrastructure.faults.clear()
        story.apply(a_node_class(nodeRegistrationDelay="5s"))
        story.run(2 * MINUTE)
        assert story.running("web") == 1


def test_a_cause_outside_the_node_class_is_found_mended_in_time() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=1))) as story:
        story.infrastructure.faults.set(node_class_broken="no permission")
        story.run(5 * MINUTE)
        story.infrastructure.faults.clear()
        story.run(15 * MINUTE)
        assert story.running("web") == 1


def test_a_cloud_that_has_nothing_and_names_nothing_is_not_hammered() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=1))) as story:
        story.cloud_tap.spoil = lambda verb, what: (
            OutOfCapacity("nothing left") if verb == "launch" else None
        )
        story.run(HOUR)
        assert 2 <= len(story.cloud_tap.of("launch")) < 200
        story.cloud_tap.spoil = lambda verb, what: None
        story.run(6 * MINUTE)
        assert story.running("web") == 1


# -- an instance that is asked for by itself ---------------------------------------------


def protected_and_silent(story: Tapped) -> str:
    """A leaving node with a protected pod, whose kubelet has fallen silent."""
    story.run(3 * MINUTE)
    story.delete_claim()
    story.run(10 * SECOND)
    node = story.the(NODES)["metadata"]["name"]
    story.kubelets.silence(node)
    return str(node)


def a_protected_deployment() -> Manifest:
    """It stays where it is when its node is silent."""
    keys = (NOT_READY_TAINT, UNREACHABLE_TAINT)
    tolerations = [{"key": key, "operator": "Exists"} for key in keys]
    notes = {DO_NOT_DISRUPT: "true"}
    return a_deployment("held", replicas=1, annotations=notes, tolerations=tolerations)


def test_an_instance_that_is_there_is_asked_for_once_as_long_as_its_node_is_not_ready() -> None:
    with Tapped(*a_cluster(a_protected_deployment())) as story:
        protected_and_silent(story)
        story.run(9 * MINUTE)
        assert len(story.cloud_tap.of("get")) == 1
        assert story.count("nodes", "leaving") == 1, "its pod may be healthy: that cannot be known"
        assert story.cloud_tap.of("terminate") == []


def test_a_cloud_that_does_not_answer_is_asked_again_and_holds_nothing_up() -> None:
    with Tapped(*a_cluster(a_protected_deployment())) as story:
        failing = ProviderError("throttled")
        story.cloud_tap.spoil = lambda verb, _: failing if verb == "get" else None
        node = protected_and_silent(story)
        story.run(6 * MINUTE)
        assert 3 < len(story.cloud_tap.of("get")) < 25
        stamp = {TERMINATION_TIMESTAMP: format_time(story.now)}
        name = story.the(NODE_CLAIMS)["metadata"]["name"]
        story.store.patch(NODE_CLAIMS, "", name, {"metadata": {"annotations": stamp}})
        story.run(3 * MINUTE)
        assert story.store.find(NODES, "", node) is None, "its deadline ends it all the same"


def test_a_new_leader_asks_once_more() -> None:
    with Tapped(*a_cluster(a_protected_deployment())) as story:
        protected_and_silent(story)
        story.run(5 * MINUTE)
        story.crash()
        story.run(4 * MINUTE)
        assert len(story.cloud_tap.of("get")) == 2
