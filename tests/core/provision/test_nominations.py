"""A pod stays with the claim that was created for it, until that has an end."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core.decision import Create
from tenure.core.provision.decider import ProvisionDecider
from tenure.core.provision.demand import pods_to_schedule
from tenure.core.provision.facts import CapacityTaken, Fits, Target
from tenure.core.provision.nominations import Nomination, nominations_in
from tenure.core.reasons import Reason
from tenure.model.api.names import NOMINATED_PODS, UNREACHABLE_TAINT
from tenure.model.api.node import Taint
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import NODE_CLAIMS
from tests.core.build import (
    FOREIGN,
    INITIALIZED,
    LAUNCHED,
    REGISTERED,
    a_claim,
    a_class,
    a_leaving_claim,
    a_leaving_node,
    a_node,
    a_pending_pod,
    a_pod,
    a_pool,
    about,
    ago,
    ahead,
    condition,
    evaluated,
    types,
)
from tests.snapshots import snapshot_with

WEB = a_pending_pod(creation_timestamp=ago(90))


def for_web(name: str = "a", *, stage: int = 0, **fields: Any) -> NodeClaim:
    marks = {NOMINATED_PODS: f"uid-other,{WEB.uid}"}
    return a_claim(name, stage=stage, annotations=marks, creation_timestamp=ago(80), **fields)


def nomination(*objects: Any) -> Nomination | None:
    snapshot = snapshot_with(a_class(), a_pool(), *objects)
    return nominations_in(snapshot, pods_to_schedule(snapshot)).get(WEB.uid)


READY_ONCE = condition("ReadyOnce", at=ago(20))


@pytest.mark.parametrize(
    ("objects", "found"),
    [
        pytest.param([for_web()], Nomination("a"), id="before its launch is answered"),
        pytest.param([for_web(stage=LAUNCHED)], Nomination("a"), id="while its Node is to come"),
        pytest.param(
            [for_web(stage=REGISTERED), a_node(ready=False)],
            Nomination("node-a"),
            id="while its Node is not Ready",
        ),
        pytest.param(
            [for_web(stage=REGISTERED, conditions=(READY_ONCE,)), a_node()],
            Nomination("node-a", ahead(580)),
            id="a Ready Node has ten minutes to be initialized",
        ),
        pytest.param(
            [
                for_web(stage=INITIALIZED, conditions=(condition("Initialized", at=ago(5)),)),
                a_node(),
            ],
            Nomination("node-a", ahead(25)),
            id="in service: until the scheduler should have bound it",
        ),
    ],
)
def test_a_pod_is_nominated(objects: list[Any], found: Nomination) -> None:
    assert nomination(WEB, *objects) == found


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([], id="its claim is gone"),
        pytest.param([a_claim(stage=LAUNCHED)], id="the claim names other pods"),
        pytest.param([for_web(deletion_timestamp=ago(1))], id="its claim is being deleted"),
        pytest.param([for_web(ref=FOREIGN)], id="the claim is another provider's"),
        pytest.param(
            [for_web(stage=INITIALIZED), a_node(ready=False)],
            id="its Node was in service and is not any more",
        ),
    ],
)
def test_a_pod_is_not_nominated(objects: list[Any]) -> None:
    assert nomination(WEB, *objects) is None


def test_of_two_claims_the_younger_counts() -> None:
    """It was created because the nomination to the older one had lapsed."""
    marks = {NOMINATED_PODS: WEB.uid}
    younger = a_claim("z", stage=0, annotations=marks, creation_timestamp=ago(5))
    in_service = for_web(stage=INITIALIZED, conditions=(condition("Initialized", at=ago(40)),))
    full = a_pod("guest", node="node-a", requests={"cpu": "4"})
    assert nomination(WEB, younger, in_service, a_node(), full) == Nomination("z")
    assert created(verdicts(WEB, younger, in_service, a_node(), full)) == []


def test_a_pod_of_a_terminating_node_stays_nominated_until_it_is_evicted() -> None:
    """The scheduler does not handle the pod before that, so it cannot be late."""
    leaving = a_pod("web", creation_timestamp=ago(90))
    there = [a_leaving_claim("b"), a_leaving_node("node-b", claim="b")]
    moved = a_pod("web", node="node-b", creation_timestamp=ago(90))
    assert leaving.uid == WEB.uid
    found = nomination(moved, *there, for_web(stage=INITIALIZED), a_node())
    assert found == Nomination("node-a")


def test_a_pod_that_was_placed_elsewhere_is_nominated_there() -> None:
    """Its status names the Node, also for a replica that starts anew."""
    moved = a_pending_pod(creation_timestamp=ago(90), nominated="node-b")
    there = [a_claim("b", stage=REGISTERED), a_node("node-b", claim="b", ready=False)]
    assert nomination(moved, for_web(stage=LAUNCHED), *there) == Nomination("node-b")


@pytest.mark.parametrize(
    "there",
    [
        pytest.param([], id="the Node is gone"),
        pytest.param([a_node("node-b", claim="b", unschedulable=True)], id="the Node is cordoned"),
        pytest.param([a_leaving_claim("b"), a_leaving_node("node-b", claim="b")], id="it leaves"),
    ],
)
def test_a_name_that_does_not_hold_counts_for_nothing(there: list[Any]) -> None:
    moved = a_pending_pod(creation_timestamp=ago(90), nominated="node-b")
    assert nomination(moved, for_web(stage=LAUNCHED), *there) == Nomination("a")


def test_a_younger_claim_counts_more_than_the_name_of_an_older_ones_node() -> None:
    web = a_pending_pod(creation_timestamp=ago(90), nominated="node-a")
    marks = {NOMINATED_PODS: web.uid}
    younger = a_claim("z", stage=0, annotations=marks, creation_timestamp=ago(5))
    assert nomination(web, for_web(stage=REGISTERED), a_node(), younger) == Nomination("z")


# -- what provisioning makes of it -----------------------------------------------------


def verdicts(*objects: Any, **known: Any) -> Any:
    known = {"instance_types": types()} | known
    return evaluated(ProvisionDecider(), a_class(), a_pool(), *objects, **known)


def created(found: Any) -> list[str]:
    return [v.subject.name for v in found if isinstance(v.action, Create)]


def test_a_new_claim_says_which_pods_it_is_for() -> None:
    claim, *_ = verdicts(WEB, a_pending_pod("y"))
    assert claim.action.resource == NODE_CLAIMS
    named = claim.action.body["metadata"]["annotations"][NOMINATED_PODS]
    assert set(named.split(",")) == {WEB.uid, "uid-y"}


def test_a_pod_gets_no_second_claim_while_its_claim_exists() -> None:
    """Other pods fit there, too, but the nominated pod comes first."""
    others = [
        a_pending_pod(f"a{i}", requests={"cpu": "1"}, creation_timestamp=ago(90)) for i in range(4)
    ]
    web = a_pending_pod(requests={"cpu": "3"}, creation_timestamp=ago(90))
    found = verdicts(for_web(stage=LAUNCHED), web, *others, pods_decided_at=ago(80))
    verdict = about(found, "Pod/default/web")
    assert (verdict.reason, verdict.facts) == (Reason.NOMINATED, (Fits(Target("NodeClaim", "a")),))
    named = [v.action.body["metadata"]["annotations"][NOMINATED_PODS] for v in found if v.action]
    assert web.uid not in ",".join(named)


def test_a_pod_whose_capacity_was_taken_waits_for_its_node_in_flight() -> None:
    """The verdict says so, and no claim is created for it while its node is in flight."""
    large = a_pending_pod(requests={"cpu": "6"}, creation_timestamp=ago(90))
    found = verdicts(for_web(stage=LAUNCHED), large)
    verdict = about(found, "Pod/default/web")
    assert (verdict.reason, verdict.action) == (Reason.BATCHING, None)
    assert verdict.facts == (CapacityTaken(Target("NodeClaim", "a"), None),)
    assert not created(found)


def test_a_pod_whose_capacity_was_taken_on_a_node_in_service_gets_a_new_claim() -> None:
    guests = [a_pod(f"guest-{i}", requests={"cpu": "2"}) for i in range(2)]
    serving = for_web(stage=INITIALIZED, conditions=(condition("Initialized", at=ago(5)),))
    assert len(created(verdicts(serving, a_node(), WEB, *guests))) == 1


def test_a_pod_is_placed_elsewhere_when_its_node_gets_a_taint() -> None:
    away = Taint(key=UNREACHABLE_TAINT, effect="NoSchedule")
    serving = for_web(stage=INITIALIZED, conditions=(condition("Initialized", at=ago(5)),))
    assert len(created(verdicts(serving, a_node(taints=(away,)), WEB))) == 1
