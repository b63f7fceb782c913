"""The status of a pod names the node that it is placed on, where that matters."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core.decision import Patch, Verdict
from tenure.core.marks.taints import RESERVED
from tenure.core.opening.naming import ReserveDecider, may_wait
from tenure.core.provision.decider import ProvisionDecider
from tenure.core.provision.facts import NamedFrom, Reserved
from tenure.core.reasons import Reason
from tenure.model.api.names import NOMINATED_PODS
from tenure.model.api.node import Taint
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change
from tests.core.build import (
    INITIALIZED,
    LAUNCHED,
    REGISTERED,
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

WEB = a_pending_pod(creation_timestamp=ago(90))
#: May run on fewer nodes than the other.
CHOOSY = a_pending_pod(
    "choosy", creation_timestamp=ago(90), spec={"node_selector": {"kubernetes.io/os": "linux"}}
)
BOOTING, READY = a_node(ready=False), a_node()
STARTING = a_node(taints=(Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule"),))


def for_web(stage: int = REGISTERED, **fields: Any) -> Any:
    marks = {NOMINATED_PODS: f"{WEB.uid},{CHOOSY.uid}"}
    return a_claim("a", stage=stage, annotations=marks, creation_timestamp=ago(80), **fields)


def reserved(*objects: Any, **settings: Any) -> list[Verdict]:
    settings = {"settings": Settings(**settings)} if settings else {}
    return list(evaluated(ReserveDecider(), a_class(), a_pool(), *objects, **settings))


def names(verdicts: Any) -> dict[str, str | None]:
    """By pod: the name that is written; None where it is removed."""
    return {
        v.subject.name: v.action.body["status"]["nominatedNodeName"]
        for v in verdicts
        if isinstance(v.action, Patch)
    }


def test_the_node_that_was_launched_for_a_pod_is_written_as_soon_as_it_takes_pods() -> None:
    found = reserved(for_web(), READY, WEB, CHOOSY)
    assert names(found) == {"web": "node-a", "choosy": "node-a"}
    assert {(v.reason, v.facts) for v in found} == {(Reason.NODE_RESERVED, (Reserved("node-a"),))}


def test_it_is_written_for_this_pod_on_any_version() -> None:
    (patch,) = (
        v.action for v in reserved(for_web(), READY, CHOOSY, WEB) if v.subject.name == "web"
    )
    assert isinstance(patch, Patch)
    assert (patch.resource, patch.subresource, patch.uid) == (PODS, "status", WEB.uid)
    assert patch.body["metadata"] == {"uid": WEB.uid}


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([for_web(LAUNCHED), WEB, CHOOSY], id="there is no Node yet"),
        pytest.param([for_web(), BOOTING, WEB, CHOOSY], id="the Node is not Ready"),
        pytest.param([for_web(), STARTING, WEB, CHOOSY], id="a taint keeps pods away"),
        pytest.param([for_web(), READY, WEB], id="there is no other pod"),
        pytest.param(
            [for_web(), READY, WEB, a_pending_pod("other", requests={"cpu": "3"})],
            id="all that wait can change places, whatever their size",
        ),
        pytest.param(
            [for_web(deletion_timestamp=ago(1)), READY, WEB, CHOOSY], id="the claim is deleted"
        ),
        pytest.param(
            [
                for_web(INITIALIZED, conditions=(condition("Initialized", at=ago(40)),)),
                a_node(),
                WEB,
                CHOOSY,
            ],
            id="the scheduler should have bound them",
        ),
    ],
)
def test_nothing_is_written_where(objects: list[Any]) -> None:
    assert names(reserved(*objects)) == {}


def test_a_node_in_service_is_reserved_for_half_a_minute() -> None:
    serving = for_web(INITIALIZED, conditions=(condition("Initialized", at=ago(5)),))
    found = reserved(serving, a_node(), WEB, CHOOSY)
    assert [v.recheck_at for v in found] == [ahead(25), ahead(25)]


def test_it_can_be_turned_off() -> None:
    assert reserved(for_web(), READY, WEB, CHOOSY, nominate_pods=False) == []


def test_a_name_that_is_there_is_not_written_again() -> None:
    web = a_pending_pod(creation_timestamp=ago(90), nominated="node-a")
    assert names(reserved(for_web(), READY, web, CHOOSY)) == {"choosy": "node-a"}


@pytest.mark.parametrize(
    ("stage", "priority", "written"),
    [
        pytest.param(REGISTERED, 0, {"web": "node-a", "choosy": "node-a"}, id="it is the next one"),
        pytest.param(REGISTERED, 1000, {}, id="another one is first"),
        pytest.param(LAUNCHED, 0, {}, id="it is not registered"),
    ],
)
def test_a_reserved_node_is_written_when_it_is_about_to_take_pods(
    stage: int, priority: int, written: dict[str, str]
) -> None:
    """Early names would be removed and written again without end."""
    first = a_pending_pod("first", creation_timestamp=ago(90), spec={"priority": priority})
    marks = {NOMINATED_PODS: first.uid}
    coming = a_claim("b", stage=LAUNCHED, annotations=marks, creation_timestamp=ago(80))
    told = registered(3) if stage == REGISTERED else ()
    here = for_web(stage, spec={"startup_taints": (RESERVED,)}, conditions=told)
    found = reserved(here, closed(), coming, WEB, CHOOSY, first)
    assert names(found) == written


def closed() -> Any:
    return a_node(taints=(RESERVED,), creation_timestamp=ago(80))


def registered(seconds: int) -> Any:
    return (condition("Registered", at=ago(seconds)),)


def test_a_node_that_waits_for_another_names_its_pods_before_it_takes_them_all_the_same() -> None:
    """Ten seconds are over for every node at some time; without names any pod would take the room."""
    first = a_pending_pod("first", creation_timestamp=ago(90), spec={"priority": 1000})
    marks = {NOMINATED_PODS: first.uid}
    coming = a_claim("b", stage=LAUNCHED, annotations=marks, creation_timestamp=ago(80))

    def at(seconds: int) -> list[Verdict]:
        here = for_web(spec={"startup_taints": (RESERVED,)}, conditions=registered(seconds))
        return reserved(here, closed(), coming, WEB, CHOOSY, first)

    (waits,) = at(3)
    assert (waits.subject.name, waits.reason) == ("node-a", Reason.NODE_NOT_OPEN_YET)
    assert (waits.facts, waits.recheck_at) == ((NamedFrom(ahead(5)),), ahead(5))
    assert names(at(8)) == names(at(12)) == {"web": "node-a", "choosy": "node-a"}


def test_a_pod_whose_room_is_taken_is_not_named_again() -> None:
    """The scheduler would remove the name at once, and try all waiting pods again, without end."""
    serving = for_web(INITIALIZED, conditions=(condition("Initialized", at=ago(5)),))
    fills = a_pod("fills", requests={"cpu": "3800m"})
    assert names(reserved(serving, a_node(), WEB, CHOOSY)) == {"web": "node-a", "choosy": "node-a"}
    assert names(reserved(serving, a_node(), WEB, CHOOSY, fills)) == {}


def test_a_name_that_the_scheduler_removed_is_written_at_once() -> None:
    before = a_pending_pod(nominated="node-a")
    assert not may_wait(Change(PODS, "default/web", before, a_pending_pod()))
    assert may_wait(Change(PODS, "default/web", a_pending_pod(), a_pending_pod(said="no node")))


def test_a_node_that_becomes_ready_is_looked_at_at_once_and_its_heartbeats_are_not() -> None:
    assert not may_wait(Change(NODES, "node-a", None, BOOTING))
    assert not may_wait(Change(NODES, "node-a", BOOTING, READY))
    assert not may_wait(Change(NODES, "node-a", STARTING, READY))
    assert may_wait(Change(NODES, "node-a", READY, a_node(labels={"example.com/agent": "v2"})))
    assert not may_wait(Change(NODE_CLAIMS, "a", a_claim(stage=0), a_claim(stage=LAUNCHED)))


# -- by the verdict on the pod's placement ----------------------------------------------------


def placed(*objects: Any, **known: Any) -> Any:
    known = {"instance_types": types()} | known
    return evaluated(ProvisionDecider(), a_class(), a_pool(), *objects, **known)


def test_a_pod_that_fits_another_node_by_now_names_that_one() -> None:
    web = a_pending_pod(creation_timestamp=ago(20), since=ago(15), nominated="node-a")
    full = a_pod("guest", requests={"cpu": "4"})
    serving = for_web(INITIALIZED, conditions=(condition("Initialized", at=ago(5)),))
    other = [a_claim("b"), a_node("node-b", claim="b")]
    assert names(placed(serving, a_node(), full, *other, web)) == {"web": "node-b"}


def test_one_that_fits_a_node_which_takes_no_pods_yet_names_none() -> None:
    web = a_pending_pod(creation_timestamp=ago(20), since=ago(15))
    other = [a_claim("b", stage=REGISTERED), a_node("node-b", claim="b", ready=False)]
    assert names(placed(*other, web, CHOOSY)) == {}


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param([a_node(), a_pod("g", requests={"cpu": "4"})], Reason.NOMINATED, id="is full"),
        pytest.param([], Reason.NOMINATED, id="is gone"),
    ],
)
def test_a_pod_that_gets_a_new_claim_names_no_node(objects: list[Any], reason: Reason) -> None:
    web = a_pending_pod(creation_timestamp=ago(90), nominated="node-a")
    serving = for_web(INITIALIZED, conditions=(condition("Initialized", at=ago(5)),))
    found = placed(serving, *objects, web)
    assert about(found, "Pod/default/web").reason is reason
    assert names(found) == {"web": None}


def test_a_name_is_removed_when_the_scheduler_should_have_bound_the_pod() -> None:
    """Other pods get the room then."""
    web = a_pending_pod(creation_timestamp=ago(90), nominated="node-a")
    serving = for_web(INITIALIZED, conditions=(condition("Initialized", at=ago(40)),))
    found = placed(serving, a_node(), web)
    assert about(found, "Pod/default/web").reason is Reason.SCHEDULER_DISAGREES
    assert names(found) == {"web": None}


def test_pods_that_can_change_places_name_no_node() -> None:
    pods = [a_pending_pod(f"web-{i}", creation_timestamp=ago(90)) for i in range(3)]
    other = [a_claim("b", stage=REGISTERED), a_node("node-b", claim="b", ready=False)]
    assert names(placed(*other, *pods)) == {}


def test_the_name_of_a_pod_that_preempts_others_is_left_alone() -> None:
    high: Pod = a_pending_pod(
        "high", creation_timestamp=ago(90), nominated="node-a", spec={"priority": 1000}
    )
    leaves = a_pod("low", deletion_timestamp=ago(1))
    assert names(placed(for_web(), a_node(), leaves, high, CHOOSY)).keys() <= {"choosy"}
