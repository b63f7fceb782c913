"""A pod for which others leave room in a moment gets no new node; where they do not, it gets one."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core.decision import Create, Verdict
from tenure.core.disrupt.pipeline import DisruptionDecider
from tenure.core.provision.decider import ProvisionDecider
from tenure.core.provision.facts import Fits, RoomComing, SchedulerDisagrees, Target
from tenure.core.reasons import Reason
from tests.core.build import (
    a_claim,
    a_class,
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

NODE_A = Target("Node", "node-a")
DECIDER = ProvisionDecider()


def verdicts(*objects: Any, claim: Any = None, node: Any = None, **known: Any) -> list[Verdict]:
    """Beside a node of four cpus."""
    known = {"instance_types": types()} | known
    there = [a_claim() if claim is None else claim, a_node() if node is None else node]
    return evaluated(DECIDER, a_class(), a_pool(), *there, *objects, **known)


def on(name: str, found: list[Verdict]) -> Verdict:
    return about(found, f"Pod/default/{name}")


def created(found: list[Verdict]) -> list[Create]:
    return [one.action for one in found if isinstance(one.action, Create)]


def next_pod(name: str = "next", *, since: float = 5, cpu: str = "2", **fields: Any) -> Any:
    return a_pending_pod(name, since=ago(since), requests={"cpu": cpu}, **fields)


def leaving(name: str = "old", *, ends: float = 25, cpu: str = "2", **fields: Any) -> Any:
    """It terminates; its grace period ends in so many seconds."""
    return a_pod(name, requests={"cpu": cpu}, deletion_timestamp=ahead(ends), **fields)


STAYS = a_pod("stays", requests={"cpu": "2"})


def test_a_pod_waits_for_the_room_of_one_that_terminates() -> None:
    found = verdicts(STAYS, leaving(), next_pod())
    assert created(found) == []
    said = on("next", found)
    assert (said.reason, said.facts) == (Reason.ROOM_SOON, (RoomComing(NODE_A, ahead(30)),))
    assert said.recheck_at == ahead(30)


def test_it_gets_a_node_where_the_other_pod_stays_after_its_grace_period() -> None:
    found = verdicts(STAYS, leaving(ends=-5), next_pod(since=35))
    assert len(created(found)) == 1
    assert on("next", found).reason is Reason.NOMINATED


@pytest.mark.parametrize(
    "gone",
    [
        pytest.param(leaving(ends=600), id="a long grace period"),
        pytest.param(leaving(owner="StatefulSet"), id="its next pod comes to the same place"),
        pytest.param(leaving(owner="DaemonSet"), id="and so does that of a DaemonSet"),
        pytest.param(leaving(cpu="500m"), id="too little room"),
    ],
)
def test_it_gets_a_node_at_once_where_no_room_is_to_come(gone: Any) -> None:
    filler = a_pod("filler", requests={"cpu": "1500m"})
    assert len(created(verdicts(STAYS, filler, gone, next_pod()))) == 1


def test_a_pod_that_has_waited_for_40_seconds_waits_no_more() -> None:
    assert len(created(verdicts(STAYS, leaving(ends=10), next_pod(since=40)))) == 1


@pytest.mark.parametrize(
    ("claim", "node"),
    [
        pytest.param(None, a_node(unschedulable=True), id="cordoned"),
        pytest.param(a_claim(deletion_timestamp=ago(1)), None, id="leaving"),
        pytest.param(a_claim(stage=2), None, id="not initialized"),
    ],
)
def test_a_node_that_takes_no_pods_has_no_room_to_come(claim: Any, node: Any) -> None:
    found = verdicts(STAYS, leaving(), next_pod(), claim=claim, node=node)
    assert on("next", found).reason is not Reason.ROOM_SOON


def test_the_room_of_one_pod_is_for_one_pod() -> None:
    found = verdicts(STAYS, leaving(), next_pod("x"), next_pod("y"))
    reasons = {on(name, found).reason for name in "xy"}
    assert reasons == {Reason.ROOM_SOON, Reason.NOMINATED}
    (create,) = created(found)
    assert create.body["spec"]["resources"]["requests"]["cpu"] == "2"


def test_pods_that_are_expected_on_the_node_have_their_room_first() -> None:
    """One fits there now, and takes what would be free for the other."""
    small = next_pod("small", cpu="500m")
    found = verdicts(a_pod("stays", requests={"cpu": "1500m"}), leaving(), small, next_pod(cpu="3"))
    assert on("small", found).facts == (Fits(NODE_A),)
    assert len(created(found)) == 1


def test_the_room_of_pods_that_are_preempted_is_for_another_pod() -> None:
    """The next pod of the one that is preempted would wait in vain."""
    first = a_pending_pod(
        "first", requests={"cpu": "2"}, spec={"priority": 1000}, nominated="node-a"
    )
    found = verdicts(STAYS, leaving(), first, next_pod())
    assert len(created(found)) == 1
    assert on("next", found).reason is Reason.NOMINATED


def test_the_scheduler_has_half_a_minute_from_when_there_is_room() -> None:
    """It has waited for that room for 35 seconds, so it is no fault of the scheduler."""
    left = {"pods_left": {"node-a": ago(3)}}
    found = on("next", verdicts(STAYS, next_pod(since=35), **left))
    assert (found.reason, found.facts) == (Reason.NOMINATED, (Fits(NODE_A),))
    assert found.recheck_at == ahead(27)
    late = on("next", verdicts(STAYS, next_pod(since=90), **left))
    assert isinstance(late.facts[0], SchedulerDisagrees)


def test_the_node_stays_although_it_is_empty_but_for_pods_that_terminate() -> None:
    said = condition("Empty", reason="NoReschedulablePods", at=ago(20))
    pool = a_pool(disruption={"consolidateAfter": "0s"})
    objects = [a_class(), pool, a_claim(conditions=[said]), a_node()]
    known: dict[str, Any] = {"instance_types": types()}
    alone = evaluated(DisruptionDecider(), *objects, leaving(cpu="4"), **known)
    assert about(alone, "NodeClaim/a").action is not None
    waited = evaluated(DisruptionDecider(), *objects, leaving(cpu="4"), next_pod(cpu="4"), **known)
    assert about(waited, "NodeClaim/a").action is None
    assert about(waited, "NodeClaim/a").recheck_at == ahead(30)


def test_no_command_waits_for_pods_that_wait_for_room() -> None:
    """Where pods come and go all the time some pod always does. Their room is not given to others."""
    said = condition("Drifted", reason="NodePoolDrifted", at=ago(20))
    pool = a_pool(disruption={"consolidateAfter": "Never"})
    there = [a_claim(), a_node(), leaving(cpu="4"), next_pod(cpu="4")]
    drifted = a_claim("b", conditions=[said]), a_node("node-b", claim="b")
    moves = a_pod("moves", node="node-b", requests={"cpu": "1"})
    other = a_claim("c"), a_node("node-c", claim="c")
    full = a_pod("full", node="node-c", requests={"cpu": "2"})
    known: dict[str, Any] = {"instance_types": types()}
    objects = [a_class(), pool, *there, *drifted, moves, *other, full]
    found = about(evaluated(DisruptionDecider(), *objects, **known), "NodeClaim/b")
    assert found.action is not None
    long = [one for one in objects if getattr(one, "name", "") != "old"]
    kept = evaluated(DisruptionDecider(), *long, leaving(cpu="4", ends=600), **known)
    assert about(kept, "NodeClaim/b").action is None
