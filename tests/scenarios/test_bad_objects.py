"""One bad object stops no other, and what cannot be read protects what it might be."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tenure.core.reasons import Reason
from tenure.model.api.names import DISRUPTED_TAINT, DO_NOT_DISRUPT, REPLACES
from tenure.model.api.pod import Pod
from tenure.model.api.resource import (
    EVENTS,
    NODE_CLAIMS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    Resource,
)
from tenure.packing.demand import asked
from tenure.sim.scenario.dsl import Story
from tests.builders import (
    MINUTE,
    SECOND,
    Manifest,
    a_deployment,
    a_job,
    a_node_class,
    a_pdb,
    a_pool,
    pod_spec,
)

MERGE = "application/merge-patch+json"
#: The last instant of all, and one that lies beyond it in UTC: real servers hand out year 10000.
LAST, BEYOND = "9999-12-31T23:59:59Z", "10000-01-01T23:58:59Z"


def a_cluster(*more: Manifest, **template: Any) -> list[Manifest]:
    return [a_node_class(), a_pool(template=template), *more]


def rewritten(story: Story, resource: Resource, change: Callable[[Any], None], **which: Any) -> Any:
    """Past all validation, as an object that an older server has let in."""
    known = story.the(resource, **which)
    new = {**known, "spec": dict(known["spec"]), "status": dict(known.get("status", {}))}
    change(new)
    return story.store.rewrite(resource, new)


def with_condition(type_: str, at: str, **more: Any) -> Callable[[Any], None]:
    def change(obj: Any) -> None:
        told = {"type": type_, "status": "True", "lastTransitionTime": at, **more}
        others = [c for c in obj["status"].get("conditions", []) if c["type"] != type_]
        obj["status"]["conditions"] = [*others, told]

    return change


def unreadable(obj: Any) -> None:
    """A text that is a number, in a field that is not validated."""
    with_condition("example.com/x", LAST, message=7)(obj)


def mended(obj: Any) -> None:
    others = [c for c in obj["status"]["conditions"] if c["type"] != "example.com/x"]
    obj["status"]["conditions"] = others


def a_running(app: str = "web", **fields: Any) -> Story:
    story = Story(
        *a_cluster(a_deployment(app, annotations=fields.pop("annotations", None)), **fields)
    )
    story.run(5 * MINUTE)
    assert story.running(app) == 1
    return story


def events(story: Story, reason: str) -> list[str]:
    found = [e for e in story.all(EVENTS) if e["reason"] == reason]
    return [f"{e['type']} {e['involvedObject']['kind']}: {e['message']}" for e in found]


# -- one bad object stops no other ------------------------------------------------------------


def test_a_pod_that_asks_for_more_than_there_is_blocks_no_other() -> None:
    limits = {"limits": {"memory": "1e200", "cpu": "1"}, "requests": {"memory": "8Mi"}}
    huge = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "huge", "namespace": "default", "labels": {"app": "huge"}},
        "spec": pod_spec(resources=limits),
    }
    with a_running() as story:
        story.apply(huge)
        story.run(MINUTE)
        story.apply(a_deployment("late", cpu="3"))
        story.run(5 * MINUTE)
        assert story.running("late") == 1


def test_a_node_that_is_ready_since_the_end_of_all_time_blocks_no_other() -> None:
    with a_running() as story:
        rewritten(story, NODES, with_condition("Ready", LAST, reason="KubeletReady"))
        story.apply(a_deployment("late", cpu="3"))
        story.run(5 * MINUTE)
        assert story.running("late") == 1


def test_a_pod_that_waits_since_the_end_of_all_time_blocks_no_other() -> None:
    with a_running() as story:
        waiting = {"status": "False", "reason": "Unschedulable"}
        story.apply(a_deployment("stuck", cpu="100"))
        story.run(10 * SECOND)
        rewritten(story, PODS, with_condition("PodScheduled", LAST, **waiting), app="stuck")
        story.apply(a_deployment("late", cpu="3"))
        story.run(5 * MINUTE)
        assert story.running("late") == 1


# -- what cannot be read protects -------------------------------------------------------------


def test_a_protected_pod_with_an_instant_beyond_the_calendar_still_protects() -> None:
    with a_running(annotations={DO_NOT_DISRUPT: "true"}) as story:
        rewritten(story, PODS, with_condition("example.com/x", BEYOND), app="web")
        story.delete_claim()
        story.run(30 * MINUTE)
        assert story.running("web") == 1
        assert not story.when("InstanceTerminating")


def test_the_node_of_a_pod_that_cannot_be_read_is_not_empty() -> None:
    with a_running() as story:
        rewritten(story, PODS, unreadable, app="web")
        story.delete_claim()
        story.run(30 * MINUTE)
        assert story.running("web") == 1
        assert not story.when("InstanceTerminating")
        (said,) = events(story, "ObjectUnreadable")
        assert said.startswith("Warning Pod: Pod default/web-")
        assert "Expected `str`, got `int` at status.conditions[" in said


def test_a_deadline_that_is_set_holds_for_a_pod_that_cannot_be_read() -> None:
    with a_running(terminationGracePeriod="10m") as story:
        rewritten(story, PODS, unreadable, app="web")
        node = story.the(NODES)["metadata"]["name"]
        story.delete_claim()
        story.run(8 * MINUTE)
        assert story.running("web") == 1
        story.run(10 * MINUTE)
        assert node not in [one["metadata"]["name"] for one in story.all(NODES)]
        assert story.running("web") == 1, "its successor"


def test_a_pod_that_is_mended_leaves_as_any_other() -> None:
    with a_running() as story:
        rewritten(story, PODS, unreadable, app="web")
        gone = story.delete_claim()
        story.run(10 * MINUTE)
        rewritten(story, PODS, mended, app="web")
        story.run(10 * MINUTE)
        assert gone not in [claim["metadata"]["name"] for claim in story.all(NODE_CLAIMS)]
        assert story.running("web") == 1


@pytest.mark.parametrize(
    "change",
    [with_condition("example.com/x", BEYOND), unreadable],
    ids=["an instant beyond the calendar", "a field of another type"],
)
def test_a_node_that_cannot_be_read_is_not_lost(change: Callable[[Any], None]) -> None:
    with a_running() as story:
        claim = story.the(NODE_CLAIMS)["metadata"]["name"]
        rewritten(story, NODES, change)
        story.run(60 * MINUTE)
        assert [one["metadata"]["name"] for one in story.all(NODE_CLAIMS)] == [claim]
        assert "NodeLost" not in story.reasons(f"NodeClaim/{claim}")
        assert story.running("web") == 1


def test_a_leaving_node_that_cannot_be_read_is_neither_drained_nor_terminated() -> None:
    with a_running() as story:
        rewritten(story, NODES, unreadable)
        claim = story.delete_claim()
        story.run(60 * MINUTE)
        assert story.running("web") == 1
        assert "BlockedByUnreadable" in story.reasons(f"NodeClaim/{claim}")
        assert not story.when("InstanceTerminating")


def test_a_finished_pod_that_cannot_be_read_holds_nothing() -> None:
    with Story(*a_cluster(a_deployment(), a_job("sum"))) as story:
        story.pace("sum", run_takes=10 * SECOND)
        story.run(3 * MINUTE)
        assert story.the(PODS, app="sum")["status"]["phase"] == "Succeeded"
        rewritten(story, PODS, unreadable, app="sum")
        gone = story.delete_claim()
        story.run(10 * MINUTE)
        assert gone not in [one["metadata"]["name"] for one in story.all(NODE_CLAIMS)]
        assert "BlockedByUnreadable" not in story.reasons(f"NodeClaim/{gone}")
        assert story.running("web") == 1


def test_a_pod_that_cannot_be_read_protects_no_instance_that_is_gone() -> None:
    with a_running() as story:
        rewritten(story, PODS, unreadable, app="web")
        instance = story.the(NODES)["spec"]["providerID"]
        gone = story.delete_claim()
        story.run(MINUTE)
        assert "BlockedByUnreadable" in story.reasons("Pod/default/web-*")
        story.cloud.vanish(instance)
        story.run(10 * MINUTE)
        assert gone not in [one["metadata"]["name"] for one in story.all(NODE_CLAIMS)]
        assert "Releasing" in story.reasons(f"NodeClaim/{gone}")


@pytest.mark.parametrize("resource", [NODES, NODE_CLAIMS], ids=["Node", "NodeClaim"])
def test_a_deadline_that_is_set_holds_for_the_pods_of_what_cannot_be_read(
    resource: Resource,
) -> None:
    """They are told to stop in time for their grace, and their successors have a place."""
    with a_running(terminationGracePeriod="10m") as story:
        story.pace("web", stop_takes=25 * SECOND)
        rewritten(story, resource, unreadable)
        gone = story.delete_claim()
        deleted_at = story.now
        story.run(9 * MINUTE)
        assert story.running("web") == 1
        assert "BlockedByUnreadable" in story.reasons(f"NodeClaim/{gone}")
        story.run(6 * MINUTE)
        forced = story.when("Disrupted")[0]
        assert timedelta(minutes=9, seconds=29) <= forced - deleted_at <= timedelta(minutes=9.6)
        assert story.when("InstanceTerminating")[0] - forced >= 30 * SECOND
        story.run(5 * MINUTE)
        assert story.running("web") == 1, "its successor"
        assert story.cloud.launch_count == 2


def test_a_budget_that_cannot_be_read_allows_no_eviction() -> None:
    with a_running() as story:
        story.apply(a_pdb(maxUnavailable=1))
        story.run(SECOND)
        odd = {"unhealthyPodEvictionPolicy": 7}
        rewritten(story, POD_DISRUPTION_BUDGETS, lambda budget: budget["spec"].update(odd))
        story.delete_claim()
        story.run(20 * MINUTE)
        assert story.running("web") == 1
        assert "Warning PodDisruptionBudget" in events(story, "ObjectUnreadable")[0]


def test_a_grace_beyond_all_calendars_is_waited_for() -> None:
    pods = a_deployment(terminationGracePeriodSeconds=10**14)
    with Story(*a_cluster(pods)) as story:
        story.run(5 * MINUTE)
        story.pace("web", stop_takes=60 * MINUTE)
        story.delete_claim()
        story.run(30 * MINUTE)
        assert not story.when("InstanceTerminating")


# -- a replacement that cannot be read --------------------------------------------------------


def replacing() -> Story:
    """Of an unhealthy node, up to the instant at which its replacement is created."""
    story = Story(*a_cluster(a_deployment(cpu="1")))
    story.run(5 * MINUTE)
    name = story.the(NODES)["metadata"]["name"]
    story.kubelets.set_condition(name, "KWOKUnhealthy", "True", "Leak", "memory leaks")
    story.run_while(lambda: len(story.all(NODE_CLAIMS)) < 2, at_most=5 * MINUTE, step=SECOND)
    return story


def spoil_replacement(
    story: Story, change: Callable[[Any], None], name: str = ""
) -> tuple[str, str]:
    """The names of both claims; others may stand beside them, for pods that wait."""
    claims = {one["metadata"]["name"]: one for one in story.all(NODE_CLAIMS)}
    old = next(one for one in claims.values() if REPLACES not in one["metadata"]["annotations"])
    # Until it was spoiled, it was the only one.
    new = claims.get(name) or next(one for one in claims.values() if one is not old)
    changed = {**new, "status": dict(new.get("status", {}))}
    change(changed)
    story.store.rewrite(NODE_CLAIMS, changed)
    return old["metadata"]["name"], new["metadata"]["name"]


def disrupted(story: Story, claim: str) -> bool:
    (node,) = [one for one in story.all(NODES) if one["metadata"]["name"].endswith(claim)]
    return DISRUPTED_TAINT in [taint["key"] for taint in node["spec"].get("taints", [])]


def test_a_replacement_that_cannot_be_read_closes_no_node_for_ever() -> None:
    with replacing() as story:
        old, _ = spoil_replacement(story, unreadable)
        story.run(20 * MINUTE)
        assert disrupted(story, old), "it may still come up"
        story.run(6 * MINUTE)
        assert not disrupted(story, old)
        assert "ReplacementFailed" in story.reasons(f"NodeClaim/{old}")
        assert story.running("web") == 1


def test_a_replacement_that_can_be_read_again_in_time_is_one() -> None:
    with replacing() as story:
        old, new = spoil_replacement(story, unreadable)
        story.run(10 * MINUTE)
        spoil_replacement(story, mended, new)
        story.run(10 * MINUTE)
        names = [one["metadata"]["name"] for one in story.all(NODE_CLAIMS)]
        assert old not in names
        replaced = [one.message for one in story.history.entries if one.reason == Reason.REPLACED]
        assert any(new in message for message in replaced), "it was waited for"
        assert "ReplacementFailed" not in story.reasons(f"NodeClaim/{old}")
        assert story.running("web") == 1


def test_a_generation_of_a_condition_that_is_no_number_makes_nothing_unreadable() -> None:
    with a_running() as story:
        odd = with_condition("example.com/x", LAST, observedGeneration="seven")
        rewritten(story, PODS, odd, app="web")
        gone = story.delete_claim()
        story.run(30 * MINUTE)
        assert events(story, "ObjectUnreadable") == []
        assert gone not in [claim["metadata"]["name"] for claim in story.all(NODE_CLAIMS)]
        assert story.running("web") == 1


@pytest.mark.failing_evaluations
@pytest.mark.parametrize("replicas", [5, 30])
def test_a_deployment_of_pods_that_evaluation_fails_on_stops_no_other(
    replicas: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One template is one mistake, however many pods it makes; readers do not find this one."""

    read = vars(asked)["_asked"]

    def poisoned(pod: Pod, *more: Any) -> Any:
        if pod.metadata.labels.get("app") == "poison":
            raise ValueError("poison")
        return read(pod, *more)

    monkeypatch.setattr(asked, "_asked", poisoned)
    with a_running() as story:
        story.apply(a_deployment("poison", replicas=replicas))
        story.run(2 * MINUTE)
        story.apply(a_deployment("late", cpu="6"))
        story.run(4 * MINUTE)
        assert story.running("late") == 1
        assert len(events(story, "EvaluationFailed")) >= replicas
