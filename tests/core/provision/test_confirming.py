"""The cluster changes while nodes are planned: claims that still hold are created, the others are planned anew."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.core.decider import Progress
from tenure.core.decision import Create, Verdict
from tenure.core.provision.decider import ProvisionDecider, ProvisionView
from tenure.core.provision.facts import NeedsNewClaim, PlannedAnew
from tenure.core.reasons import Reason
from tenure.model.api.names import NOMINATED_PODS
from tenure.model.api.pod import Affinity, Container, Pod, PodSpec, ResourceRequirements
from tenure.model.snapshot.observations import Observations
from tenure.providers.kwok.repairs import kwok_statements
from tests.core.build import (
    NOW,
    SETTINGS,
    a_claim,
    a_class,
    a_daemon_set,
    a_pending_pod,
    a_pod,
    a_pool,
    a_type,
    about,
    ago,
    types,
)
from tests.core.launchbreaker.test_breaker import a_launch, launches, waiting
from tests.core.outage import members, pools
from tests.snapshots import snapshot_with

DECIDER = ProvisionDecider()


def view_of(*objects: Any, **known: Any) -> ProvisionView | None:
    observations = Observations(**{"instance_types": types(), **known})
    return DECIDER.view(snapshot_with(a_class(), *objects, observations=observations), "cluster")


def planned(before: list[Any], after: list[Any], **known: Any) -> list[Verdict]:
    """What is said of a plan that was begun before, and ends after the change; ``known``: observed after it."""
    view, progress = view_of(*before), Progress()
    assert view is not None
    progress.view_now = lambda: view_of(*after, **known)
    *_, found = DECIDER.deciding(view, SETTINGS, NOW, progress)
    assert found is not None
    return list(found)


def created(found: list[Verdict]) -> set[str]:
    """The pods, by name, that each new claim is for."""
    bodies = [one.action.body for one in found if isinstance(one.action, Create)]
    uids = [body["metadata"]["annotations"][NOMINATED_PODS] for body in bodies]
    return {",".join(sorted(uid.removeprefix("uid-") for uid in each.split(","))) for each in uids}


def alone(name: str, **fields: Any) -> Pod:
    """It leaves no room for another one on its node."""
    return a_pending_pod(name, requests={"cpu": "3"}, **fields)


def half(name: str) -> Pod:
    return a_pending_pod(name, requests={"cpu": "1500m"})


def test_pods_that_stay_get_their_nodes_whatever_others_do() -> None:
    there = [a_pool(), alone("x"), alone("y")]
    found = planned([*there, alone("gone")], [*there, alone("new")])
    assert created(found) == {"x", "y"}
    assert about(found, "Pod/default/x").reason is Reason.NOMINATED
    assert isinstance(about(found, "Pod/default/x").facts[0], NeedsNewClaim)
    assert not [one for one in found if one.subject.name in ("gone", "new")]


def test_a_claim_is_not_created_where_one_of_its_pods_is_gone_and_the_others_are_told() -> None:
    there = [a_pool(), half("a")]
    found = planned([*there, half("b"), alone("x")], [*there, alone("x")])
    assert created(found) == {"x"}
    told = about(found, "Pod/default/a")
    assert (told.reason, told.facts, told.action) == (Reason.BATCHING, (PlannedAnew(),), None)


def tenth(name: str, **fields: Any) -> Pod:
    """Ten of these fill a node."""
    return a_pending_pod(name, requests={"cpu": "300m"}, **fields)


def test_a_claim_is_created_for_most_of_its_pods_where_a_few_are_gone() -> None:
    stay = [tenth(f"p{number}") for number in range(6)]
    gone = [tenth(f"q{number}") for number in range(4)]
    found = planned([a_pool(), *stay, *gone], [a_pool(), *stay])
    assert created(found) == {"p0,p1,p2,p3,p4,p5"}
    assert not [one for one in found if one.subject.name.startswith("q")]
    assert len({one.subject.name for one in found if one.subject.kind == "NodeClaim"}) == 1


def test_a_pod_that_leaves_its_claim_to_the_others_is_told_so() -> None:
    stay = [tenth(f"p{number}") for number in range(6)]
    other = tenth("q", labels={"another": "label"})
    found = planned([a_pool(), *stay, tenth("q")], [a_pool(), *stay, other])
    assert created(found) == {"p0,p1,p2,p3,p4,p5"}
    assert about(found, "Pod/default/q").facts == (PlannedAnew(),)


def test_a_node_is_not_launched_for_small_pods_after_the_large_one_is_gone() -> None:
    small = [a_pending_pod(f"p{number}", requests={"cpu": "100m"}) for number in range(6)]
    large = a_pending_pod("large", requests={"cpu": "2"})
    assert created(planned([a_pool(), *small, large], [a_pool(), *small])) == set()


def test_pods_that_have_to_be_near_others_are_planned_anew() -> None:
    """The one that they have to be near may be the one that is gone."""
    near = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "labelSelector": {"matchLabels": {"app": "cache"}},
                    "topologyKey": "kubernetes.io/hostname",
                }
            ]
        }
    }
    affinity = msgspec.convert(near, Affinity)
    followers = [tenth(f"p{number}", spec={"affinity": affinity}) for number in range(5)]
    before = [a_pool(), *followers, tenth("cache", labels={"app": "cache"})]
    assert len(created(planned(before, before))) == 1
    found = planned(before, [a_pool(), *followers])
    assert created(found) == set()
    assert about(found, "Pod/default/p0").facts == (PlannedAnew(),)


def test_what_the_scheduler_writes_into_the_status_of_a_pod_changes_nothing() -> None:
    found = planned([a_pool(), alone("x")], [a_pool(), alone("x", said="0/5 nodes are available")])
    assert created(found) == {"x"}


def test_a_pod_that_was_bound_meanwhile_gets_no_node() -> None:
    bound = a_pod("x", node="node-a")
    found = planned([a_pool(), alone("x"), alone("y")], [a_pool(), bound, alone("y")])
    assert created(found) == {"y"}


def test_a_pod_that_another_claim_names_by_now_gets_no_second_one() -> None:
    marks = {NOMINATED_PODS: "uid-x"}
    other = a_claim("general-other", stage=0, annotations=marks, creation_timestamp=ago(5))
    before = [a_pool(), alone("x"), alone("y")]
    assert created(planned(before, [*before, other])) == {"y"}


def test_a_pod_with_the_same_name_and_another_size_is_planned_anew() -> None:
    larger = a_pending_pod("x", requests={"cpu": "3500m"})
    found = planned([a_pool(), alone("x")], [a_pool(), larger])
    assert created(found) == set()
    assert about(found, "Pod/default/x").facts == (PlannedAnew(),)


@pytest.mark.parametrize(
    "pools",
    [
        pytest.param([], id="deleted"),
        pytest.param([a_pool(template_meta={"labels": {"team": "red"}})], id="another template"),
        pytest.param(
            [a_pool(template={"taints": [{"key": "a", "effect": "NoSchedule"}]})], id="a taint"
        ),
    ],
)
def test_nothing_is_created_in_a_pool_that_has_changed(pools: list[Any]) -> None:
    assert created(planned([a_pool(), alone("x")], [*pools, alone("x")])) == set()


def test_of_a_limit_that_others_have_used_meanwhile_only_what_is_left_is_used() -> None:
    pool = a_pool(limits={"cpu": "8"})
    pods = [alone("x"), alone("y")]
    assert created(planned([pool, *pods], [pool, *pods])) == {"x", "y"}
    other = a_claim("general-other", status={"capacity": {"cpu": "4"}})
    found = planned([pool, *pods], [pool, *pods, other])
    assert len(created(found)) == 1


def test_instance_types_that_are_smaller_by_now_are_not_launched() -> None:
    before = [a_pool(), alone("x")]
    assert created(planned(before, before, instance_types=types(a_type(cpu="2")))) == set()
    dearer = types(a_type(price=200_000))
    assert created(planned(before, before, instance_types=dearer)) == {"x"}, "a price is no reason"


def test_what_a_new_daemon_set_takes_was_not_counted() -> None:
    spec = PodSpec(containers=(Container(resources=ResourceRequirements(requests={"cpu": "2"})),))
    before = [a_pool(), alone("x")]
    assert created(planned(before, [*before, a_daemon_set(spec=spec)])) == set()


def test_where_nothing_waits_any_more_nothing_is_created_and_no_pod_is_told() -> None:
    assert planned([a_pool(), alone("x")], [a_pool()]) == []


def test_on_an_unchanged_view_it_says_what_a_decision_in_one_go_does() -> None:
    there = [a_pool(), alone("x"), half("a"), half("b")]
    view = view_of(*there)
    assert view is not None
    assert planned(there, there) == DECIDER.decide(view, SETTINGS, NOW)


def test_nothing_is_launched_in_a_zone_that_has_been_in_an_outage_only_since_then() -> None:
    red_and_blue = [*pools(), *map(alone, "wxyz")]  # Three of these have room on nodes.
    names = ("red-1", "red-2", "blue-1")
    healthy = members(names, zone="zone-a")
    unhealthy = members(names, zone="zone-a", unhealthy_since=ago(600))
    known = {"repair_statements": kwok_statements()}
    before, after = [*red_and_blue, *healthy], [*red_and_blue, *unhealthy]
    assert len(created(planned(before, before, **known))) == 1
    assert created(planned(before, after, **known)) == set()


def test_a_launch_breaker_that_has_opened_meanwhile_keeps_its_pods_from_a_node() -> None:
    others = [a_pool(), *launches(5, 3), alone("x"), tenth("y")]
    web = waiting(requests={"cpu": "100m"})
    before, after = [*others, web], [*others, web, *a_launch("n2", ago(36))]
    assert created(planned(before, before)) == {"web-0,x,y"}
    assert created(planned(before, after)) == {"x,y"}
