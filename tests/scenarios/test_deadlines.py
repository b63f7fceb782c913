"""Leaving by a deadline, told in virtual time, to the second."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from tenure.model.api.names import DO_NOT_DISRUPT, TERMINATION_TIMESTAMP
from tenure.model.api.resource import EVENTS, NODE_CLAIMS, NODE_POOLS, NODES, PODS
from tenure.ports.transport import Response
from tenure.sim.scenario.dsl import Story
from tests.builders import (
    HOUR,
    MINUTE,
    SECOND,
    Manifest,
    a_cluster,
    a_deployment,
    a_node_class,
    a_pdb,
    a_pod,
    a_pool,
    a_stateful_set,
)
from tests.runtime.worlds import Tapped


def a_bounded_cluster(period: str, *more: Manifest, **pool: Any) -> list[Manifest]:
    template = {"terminationGracePeriod": period}
    return [a_node_class(), a_pool(template=template, **pool), *more]


def events(story: Story, reason: str) -> list[Any]:
    return [event for event in story.store.list(EVENTS) if event["reason"] == reason]


class Leaving(Story):
    """Notes when each pod was told to go, and when it was gone, counted from ``begin``."""

    def __init__(self, *manifests: Manifest) -> None:
        super().__init__(*manifests)
        self.asked: dict[str, datetime] = {}
        self.gone: dict[str, datetime] = {}
        self.store.subscribe(PODS, self._pod)

    def _pod(self, type_: str, new: Any, old: Any) -> None:
        name = new["metadata"]["name"]
        if "deletionTimestamp" in new["metadata"]:
            self.asked.setdefault(name, self.now)
        if type_ == "DELETED":
            self.gone[name] = self.now

    def leave(self) -> datetime:
        """Delete the oldest claim at a whole second; that instant."""
        self.run(timedelta(microseconds=-self.now.microsecond % 1_000_000))
        self.delete_claim()
        return self.now

    def after(self, instants: dict[str, datetime], begin: datetime) -> list[timedelta]:
        return sorted(
            timedelta(seconds=round((at - begin).total_seconds())) for at in instants.values()
        )


def test_pods_that_a_budget_holds_get_all_of_their_grace_before_the_deadline() -> None:
    """A Deployment of three, 10m of grace each, one at a time, and 15m for the node.

    Nothing can hold them longer than until 5m: then every one that is left is told to stop, so
    that it has its ten minutes.
    """
    web = a_deployment(
        replicas=3, terminationGracePeriodSeconds=600, annotations={DO_NOT_DISRUPT: "true"}
    )
    with Leaving(*a_bounded_cluster("15m", web, a_pdb(maxUnavailable=1))) as story:
        story.run(5 * MINUTE)
        begin = story.leave()
        story.run(20 * MINUTE)
        assert story.after(story.asked, begin) == [5 * MINUTE] * 3
        assert story.running("web") == 3


def test_three_that_may_go_one_by_one_all_get_their_ten_minutes() -> None:
    """A StatefulSet (Parallel) of three, 10m of grace and all of it needed, maxUnavailable 1, 15m.

    The first is evicted at once and gone at 10m. The other two cannot be evicted meanwhile; they
    are deleted at 5m, in spite of the budget, so that they stop with the deadline. The successor of
    each is created only when it is gone.
    """
    db = a_stateful_set(replicas=3, policy="Parallel", terminationGracePeriodSeconds=600)
    with Leaving(*a_bounded_cluster("15m", db, a_pdb("db", maxUnavailable=1))) as story:
        story.run(5 * MINUTE)
        story.pace("db", stop_takes=10 * MINUTE)
        assert len({pod["spec"]["nodeName"] for pod in story.all(PODS)}) == 1
        begin = story.leave()
        story.run(20 * MINUTE)
        assert story.after(story.asked, begin) == [timedelta(), 5 * MINUTE, 5 * MINUTE]
        assert story.after(story.gone, begin) == [10 * MINUTE, 15 * MINUTE, 15 * MINUTE]
        assert len(events(story, "Disrupted")) == 2
        assert story.running("db") == 3


def test_as_soon_as_the_first_ones_successor_is_ready_the_next_one_goes() -> None:
    """The same, unprotected: the budget lets them go one by one as new ones become Ready."""
    web = a_deployment(replicas=3, terminationGracePeriodSeconds=600)
    with Leaving(*a_bounded_cluster("15m", web, a_pdb(maxUnavailable=1))) as story:
        story.run(5 * MINUTE)
        begin = story.leave()
        story.run(20 * MINUTE)
        first, second, third = story.after(story.asked, begin)
        assert first == timedelta()
        assert timedelta() < second < third < 5 * MINUTE
        assert not events(story, "Disrupted")
        assert story.running("web") == 3


def test_a_protection_of_hours_ends_and_the_node_goes_long_before_its_72_hours() -> None:
    """72h count from the deletion of the claim, 4h from the creation of the pod."""
    web = a_deployment(annotations={DO_NOT_DISRUPT: "4h"})
    with Leaving(*a_bounded_cluster("72h", web)) as story:
        story.run(HOUR)
        (pod,) = story.all(PODS)
        created = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
        story.leave()
        story.run(6 * HOUR)
        assert story.asked[pod["metadata"]["name"]] - created < 4 * HOUR + 2 * SECOND
        assert story.asked[pod["metadata"]["name"]] >= created + 4 * HOUR
        assert story.count("claims", "leaving") == 0


def test_a_pod_protected_for_ever_is_forced_in_time_for_its_grace() -> None:
    web = a_deployment(annotations={DO_NOT_DISRUPT: "true"}, terminationGracePeriodSeconds=60)
    with Leaving(*a_bounded_cluster("72h", web)) as story:
        story.run(5 * MINUTE)
        begin = story.leave()
        story.run(73 * HOUR)
        assert story.after(story.asked, begin) == [72 * HOUR - MINUTE]
        (event,) = events(story, "Disrupted")
        assert event["message"].endswith("and the pod's grace period is 60s")


def test_a_grace_longer_than_the_nodes_is_cut_at_the_start() -> None:
    web = a_deployment(terminationGracePeriodSeconds=3600, annotations={DO_NOT_DISRUPT: "true"})
    with Leaving(*a_bounded_cluster("10m", web)) as story:
        story.run(5 * MINUTE)
        begin = story.leave()
        story.run(SECOND)
        (leaving,) = [pod for pod in story.all(PODS) if "deletionTimestamp" in pod["metadata"]]
        stops_by = datetime.fromisoformat(leaving["metadata"]["deletionTimestamp"])
        assert begin + 10 * MINUTE - 2 * SECOND <= stops_by <= begin + 10 * MINUTE


def test_no_time_at_all_means_now_and_still_a_second_for_each() -> None:
    web = a_deployment(replicas=3, annotations={DO_NOT_DISRUPT: "true"})
    with Leaving(*a_bounded_cluster("0s", web, a_pdb(maxUnavailable=0))) as story:
        story.run(5 * MINUTE)
        begin = story.leave()
        story.run(5 * MINUTE)
        assert story.after(story.asked, begin) == [timedelta()] * 3
        assert story.count("claims", "leaving") == 0
        assert story.running("web") == 3


def test_a_deadline_can_be_brought_forward_by_hand_and_not_pushed_back() -> None:
    web = a_deployment(annotations={DO_NOT_DISRUPT: "true"}, terminationGracePeriodSeconds=30)
    with Leaving(*a_bounded_cluster("10m", web)) as story:
        story.run(5 * MINUTE)
        name = story.the(NODE_CLAIMS)["metadata"]["name"]
        begin = story.leave()

        def stamp(at: datetime) -> None:
            patch = {"metadata": {"annotations": {TERMINATION_TIMESTAMP: at.isoformat()}}}
            story.store.patch(NODE_CLAIMS, "", name, patch)

        stamp(begin + HOUR)
        story.run(MINUTE)
        assert not story.asked
        stamp(begin + 3 * MINUTE)
        story.run(5 * MINUTE)
        assert story.after(story.asked, begin) == [150 * SECOND]


def test_a_stamp_on_a_claim_that_stays_is_taken_off_and_changes_nothing() -> None:
    with Story(*a_cluster(a_deployment())) as story:
        story.run(3 * MINUTE)
        name = story.the(NODE_CLAIMS)["metadata"]["name"]
        stamp = {TERMINATION_TIMESTAMP: story.now.isoformat()}
        story.store.patch(NODE_CLAIMS, "", name, {"metadata": {"annotations": stamp}})
        story.run(MINUTE)
        kept = story.the(NODE_CLAIMS)["metadata"]
        assert (kept["name"], kept.get("annotations", {}).get(TERMINATION_TIMESTAMP)) == (
            name,
            None,
        )


def test_without_a_deadline_a_held_node_waits_and_says_for_whom() -> None:
    web = a_deployment(annotations={DO_NOT_DISRUPT: "true"})
    with Leaving(*a_cluster(web)) as story:
        story.run(3 * MINUTE)
        story.leave()
        story.run(48 * HOUR)
        assert not story.asked
        (said,) = events(story, "FailedDraining")
        assert (
            'karpenter.sh/do-not-disrupt: "true" protects from disruption for ever'
            in said["message"]
        )


@pytest.mark.parametrize("value", ["4 hours", "0", "-1h", "", "TRUE", "Never"])
def test_a_value_that_means_nothing_protects_and_is_shown_in_one_warning(value: str) -> None:
    with Leaving(*a_cluster(a_deployment(annotations={DO_NOT_DISRUPT: value}))) as story:
        story.run(3 * MINUTE)
        story.leave()
        story.run(6 * HOUR)
        assert not story.asked
        (warning,) = events(story, "InvalidDoNotDisruptAnnotation")
        assert warning["type"] == "Warning"
        assert f'karpenter.sh/do-not-disrupt: "{value}"' in warning["message"]
        assert warning["count"] <= 2


def test_the_manual_way_delete_the_node_then_delete_its_pods() -> None:
    """``kubectl delete node``, then ``kubectl drain --disable-eviction --grace-period=1``."""
    lone = a_pod("lone")
    lone["metadata"]["annotations"] = {DO_NOT_DISRUPT: "true"}
    with Leaving(*a_cluster(lone)) as story:
        story.run(3 * MINUTE)
        node = story.the(NODES)["metadata"]["name"]
        story.store.delete(NODES, "", node)
        story.run(10 * MINUTE)
        assert story.store.find(NODES, "", node) is not None
        story.store.delete(PODS, "default", "lone", grace_period_seconds=1)
        story.run(2 * MINUTE)
        assert story.store.find(NODES, "", node) is None
        assert story.count("claims") == 0


def test_setting_the_period_drifts_the_fleet_and_living_claims_keep_theirs() -> None:
    stay = {"budgets": [{"nodes": "0", "reasons": ["Drifted"]}]}
    with Story(a_node_class(), a_pool(disruption=stay), a_deployment()) as story:
        story.run(3 * MINUTE)
        template = {"template": {"spec": {"terminationGracePeriod": "15m"}}}
        story.store.patch(NODE_POOLS, "", "general", {"spec": template})
        story.run(MINUTE)
        claim = story.the(NODE_CLAIMS)
        told = {c["type"]: c["status"] for c in claim["status"]["conditions"]}
        assert told["Drifted"] == "True"
        assert "terminationGracePeriod" not in claim["spec"]
        gone = {"template": {"spec": {"terminationGracePeriod": None}}}
        story.store.patch(NODE_POOLS, "", "general", {"spec": gone})
        story.run(MINUTE)
        told = {c["type"]: c["status"] for c in story.the(NODE_CLAIMS)["status"]["conditions"]}
        assert told["Drifted"] == "False"


@pytest.mark.parametrize(
    "refusal",
    [
        {"code": 403, "reason": "Forbidden", "message": "denied by policy"},
        {"code": 500, "reason": "InternalError", "message": 'failed calling webhook "policy"'},
    ],
    ids=["denied", "webhook down"],
)
def test_a_pod_that_the_api_never_deletes_holds_the_instance_for_its_last_minute_only(
    refusal: dict[str, Any],
) -> None:
    body = {"kind": "Status", "status": "Failure", **refusal}
    stubborn = a_stateful_set(replicas=1, annotations={DO_NOT_DISRUPT: "true"})
    with Tapped(*a_bounded_cluster("10m", stubborn)) as story:
        story.run(3 * MINUTE)
        story.api_tap.spoil = lambda verb, what: (
            Response(status=refusal["code"], body=json.dumps(body).encode())
            if verb == "DELETE" and "/pods/" in what
            else None
        )
        (claim,) = story.store.list(NODE_CLAIMS)
        story.delete_claim()
        story.run(11 * MINUTE - SECOND)
        assert story.store.get(NODE_CLAIMS, "", claim["metadata"]["name"])
        story.run(MINUTE)
        assert [one["metadata"]["name"] for one in story.store.list(NODE_CLAIMS)] != [
            claim["metadata"]["name"]
        ]
