"""When a new node begins to take pods: once the pods that it was launched for are named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tenure.core.claim.facts import NodeNotReady, TaintRemains
from tenure.core.decision import Create, Patch, Verdict
from tenure.core.marks.taints import RESERVED
from tenure.core.opening.decider import OpeningDecider
from tenure.core.provision.decider import ProvisionDecider
from tenure.core.provision.facts import (
    CapacityTaken,
    HigherPriorityWaits,
    NameMissing,
    Opens,
    OpensAtLatest,
    PodWithAffinityWaits,
    SpreadPodWaits,
)
from tenure.core.reasons import Reason
from tenure.model.api.names import NOMINATED_PODS, RESERVED_TAINT
from tenure.model.api.node import Node, Taint
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import (
    Affinity,
    LabelSelector,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
)
from tenure.model.settings import Settings
from tests.core.build import (
    INITIALIZED,
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
    fact_of,
    types,
)

#: Both conditions of the nodes here are of this instant.
READY_AT = ago(3)
OTHER = Taint(key="example.com/agent", effect="NoSchedule")


def pod(name: str = "web", *, priority: int = 0, named: str = "", **spec: Any) -> Pod:
    spec = {"priority": priority, **spec}
    return a_pending_pod(name, creation_timestamp=ago(90), nominated=named, spec=spec)


def claim(name: str, *pods: Pod, stage: int = REGISTERED, **spec: Any) -> NodeClaim:
    marks = {NOMINATED_PODS: ",".join(one.uid for one in pods)}
    spec = {"startup_taints": (RESERVED,), **spec}
    registered = condition("Registered", at=READY_AT)
    created = ago(80)
    return a_claim(
        name,
        stage=stage,
        conditions=(registered,),
        spec=spec,
        annotations=marks,
        creation_timestamp=created,
    )


def node(name: str, *more: Taint, ready: bool = True, **fields: Any) -> Node:
    reports = condition("Ready", "True" if ready else "False", at=READY_AT)
    fields = {"creation_timestamp": ago(60), **fields}
    fields["status"] = {"conditions": (reports,)}
    return a_node(f"node-{name}", claim=name, taints=(RESERVED, *more), **fields)


def opened(*objects: Any, **settings: Any) -> Sequence[Verdict]:
    settings = {"settings": Settings(**settings)} if settings else {}
    return evaluated(OpeningDecider(), a_class(), a_pool(), *objects, **settings)


def of(found: Sequence[Verdict], name: str = "a") -> Verdict:
    return about(found, f"Node/node-{name}")


NAMED = pod(named="node-a")


def test_a_node_whose_pods_are_named_takes_pods() -> None:
    verdict = of(opened(claim("a", NAMED), node("a"), NAMED))
    assert (verdict.reason, verdict.facts) == (Reason.NODE_OPENED, (Opens(1),))
    assert isinstance(verdict.action, Patch)
    assert verdict.action.body["spec"] == {"taints": []}
    assert verdict.action.body["metadata"]["resourceVersion"]


def test_the_taints_of_others_stay() -> None:
    own = Taint(key="example.com/dedicated", effect="NoSchedule")
    verdict = of(opened(claim("a", NAMED, taints=(own,)), node("a", own), NAMED))
    assert isinstance(verdict.action, Patch)
    kept = [taint["key"] for taint in verdict.action.body["spec"]["taints"]]
    assert kept == ["example.com/dedicated"]


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        pytest.param(
            [claim("a", pod()), node("a"), pod()], NameMissing("default/web", "node-a"), id="name"
        ),
        pytest.param(
            [claim("a", NAMED, startup_taints=(RESERVED, OTHER)), node("a", OTHER), NAMED],
            TaintRemains("example.com/agent:NoSchedule", startup=True),
            id="the startup taint of another program",
        ),
    ],
)
def test_a_ready_node_waits_ten_seconds_at_the_most_for(objects: list[Any], why: object) -> None:
    verdict = of(opened(*objects))
    assert verdict.reason is Reason.NODE_NOT_OPEN_YET
    assert verdict.facts == (why, OpensAtLatest(ahead(7)))
    assert (verdict.action, verdict.recheck_at) == (None, ahead(7))


def test_a_node_that_is_not_ready_keeps_the_taint() -> None:
    verdict = of(opened(claim("a", NAMED), node("a", ready=False), NAMED))
    assert (verdict.reason, verdict.recheck_at) == (Reason.NODE_NOT_OPEN_YET, None)
    assert isinstance(verdict.facts[0], NodeNotReady)


def test_ten_seconds_after_it_is_ready_a_node_takes_pods_whatever_it_waits_for() -> None:
    registered = condition("Registered", at=ago(10))
    reports = condition("Ready", at=ago(11))
    old = a_node(taints=(RESERVED,), status={"conditions": (reports,)}, creation_timestamp=ago(60))
    ours = a_claim(
        stage=REGISTERED,
        conditions=(registered,),
        annotations={NOMINATED_PODS: pod().uid},
        spec={"startup_taints": (RESERVED,)},
    )
    assert of(opened(ours, old, pod())).reason is Reason.NODE_OPENED


def test_a_node_whose_pods_are_bound_elsewhere_takes_pods() -> None:
    assert of(opened(claim("a", pod()), node("a"))).facts == (Opens(0),)


def test_without_nominations_a_node_takes_pods_at_once() -> None:
    found = opened(claim("a", pod()), node("a"), pod(), nominate_pods=False)
    assert of(found).reason is Reason.NODE_OPENED


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([a_claim(stage=REGISTERED), node("a")], id="its claim was created without"),
        pytest.param([claim("a", stage=INITIALIZED), node("a")], id="it was in service before"),
    ],
)
def test_a_taint_that_a_user_has_added_is_left_alone(objects: list[Any]) -> None:
    assert opened(*objects) == []


# -- priorities ---------------------------------------------------------------------------------

LOW = pod("low", named="node-a")
HIGHEST = pod("highest", priority=1_000_000, named="node-a")
HIGH = pod("high", priority=1000, named="node-b")


def test_a_node_waits_for_the_node_of_a_pod_of_higher_priority() -> None:
    """The scheduler tries that pod first, and the room here is not kept from it."""
    booting = [claim("b", HIGH), node("b", ready=False)]
    verdict = of(opened(claim("a", LOW), node("a"), *booting, LOW, HIGH))
    assert verdict.reason is Reason.NODE_NOT_OPEN_YET
    assert fact_of(verdict, HigherPriorityWaits) == HigherPriorityWaits(
        "default/high", 1000, "node-b"
    )
    assert verdict.recheck_at == ahead(7)


def test_also_for_one_that_has_only_a_claim() -> None:
    high = pod("high", priority=1000)
    coming = claim("b", high, stage=1)
    verdict = of(opened(claim("a", LOW), node("a"), coming, LOW, high))
    assert fact_of(verdict, HigherPriorityWaits).node == "b"


@pytest.mark.parametrize(
    "high",
    [
        pytest.param(pod("high", priority=0, named="node-b"), id="of equal priority"),
        pytest.param(
            pod("high", priority=1000, named="node-b", node_selector={"example.com/other": "x"}),
            id="that may not run here",
        ),
    ],
)
def test_not_for_the_node_of_a_pod(high: Pod) -> None:
    booting = [claim("b", high), node("b", ready=False)]
    found = opened(claim("a", LOW), node("a"), *booting, LOW, high)
    assert of(found).reason is Reason.NODE_OPENED


def test_a_taint_of_the_pool_keeps_the_pod_of_higher_priority_away() -> None:
    own = Taint(key="example.com/dedicated", effect="NoSchedule")
    booting = [claim("b", HIGH), node("b", ready=False)]
    here = [claim("a", LOW, taints=(own,)), node("a", own)]
    assert of(opened(*here, *booting, LOW, HIGH)).reason is Reason.NODE_OPENED


def test_two_that_are_ready_begin_together_the_one_with_the_higher_priority_first() -> None:
    """Each pod goes to the node that its status names. Alone, the first node would get pods of the other."""
    found = opened(claim("a", LOW), node("a"), claim("b", HIGH), node("b"), LOW, HIGH)
    opens = [(v.subject.name, v.reason) for v in found]
    assert opens == [("node-b", Reason.NODE_OPENED), ("node-a", Reason.NODE_OPENED)]


def test_a_node_waits_for_the_names_of_pods_that_would_do_harm_there() -> None:
    """A moment later each of them goes to its own node."""
    high = pod("high", priority=1000)
    found = opened(claim("a", LOW), node("a"), claim("b", high), node("b"), LOW, high)
    assert fact_of(of(found), NameMissing) == NameMissing("default/high", "node-b")
    equal = pod("equal")
    found = opened(claim("a", LOW), node("a"), claim("b", equal), node("b"), LOW, equal)
    assert of(found).reason is Reason.NODE_OPENED


def test_two_that_are_ready_and_have_pods_of_both_priorities_begin_together() -> None:
    low_too, high_too = pod("low-2", named="node-b"), pod("high-2", priority=1000, named="node-a")
    here = [claim("a", LOW, high_too), node("a")]
    there = [claim("b", HIGH, low_too), node("b")]
    found = opened(*here, *there, LOW, HIGH, low_too, high_too)
    assert {v.reason for v in found} == {Reason.NODE_OPENED}


NEAR = Affinity(
    pod_affinity=PodAffinity(
        required_during_scheduling_ignored_during_execution=(
            PodAffinityTerm(topology_key="topology.kubernetes.io/zone"),
        )
    )
)


def test_a_node_waits_for_the_node_of_a_pod_that_must_be_near_others() -> None:
    """The first of them that is bound decides where all of them run, whatever its priority."""
    near = pod("near", named="node-b", affinity=NEAR)
    booting = [claim("b", near), node("b", ready=False)]
    verdict = of(opened(claim("a", HIGHEST), node("a"), *booting, HIGHEST, near))
    assert verdict.reason is Reason.NODE_NOT_OPEN_YET
    assert fact_of(verdict, PodWithAffinityWaits) == PodWithAffinityWaits("default/near", "node-b")


def test_the_node_of_such_pods_waits_for_pods_of_higher_priority() -> None:
    near = pod("near", named="node-b", affinity=NEAR)
    booting = [claim("a", HIGHEST), node("a", ready=False)]
    verdict = of(opened(claim("b", near), node("b"), *booting, HIGHEST, near), "b")
    assert fact_of(verdict, HigherPriorityWaits).pod == "default/highest"


def test_the_nodes_of_such_pods_begin_with_the_others() -> None:
    near = pod("near", named="node-b", affinity=NEAR)
    found = opened(claim("a", HIGHEST), node("a"), claim("b", near), node("b"), HIGHEST, near)
    assert {v.reason for v in found} == {Reason.NODE_OPENED}


def shy(name: str, avoids: str, node: str) -> Pod:
    term = PodAffinityTerm(
        topology_key="kubernetes.io/hostname",
        label_selector=LabelSelector(match_labels={"app": avoids}),
    )
    avoided = PodAffinity(required_during_scheduling_ignored_during_execution=(term,))
    return pod(name, named=node, affinity=Affinity(pod_anti_affinity=avoided))


def test_a_node_waits_for_the_node_of_a_pod_that_keeps_others_away() -> None:
    """Bound here first, it would keep the pods from their own node. One that avoids its own kind does no harm."""
    for avoids, waits in (("noisy", True), ("web", False)):
        other = shy("shy", avoids, "node-b")
        booting = [claim("b", other), node("b", ready=False)]
        verdict = of(opened(claim("a", LOW), node("a"), *booting, LOW, other))
        assert (verdict.reason is Reason.NODE_NOT_OPEN_YET) == waits


# -- spreads ------------------------------------------------------------------------------------


def spread_pod(name: str, node: str, key: str = "topology.kubernetes.io/zone", **more: Any) -> Pod:
    rule = TopologySpreadConstraint(topology_key=key, max_skew=1, **more)
    return pod(name, named=node, topology_spread_constraints=(rule,))


def test_nodes_of_pods_that_are_spread_over_zones_wait_for_each_other() -> None:
    """Before its sibling in the other zone is bound, the pod is not allowed its place, and loses it."""
    here, there = spread_pod("web-1", "node-a"), spread_pod("web-2", "node-b")
    booting = [claim("b", there), node("b", ready=False)]
    verdict = of(opened(claim("a", here), node("a"), *booting, here, there))
    assert verdict.facts == (SpreadPodWaits("default/web-2", "node-b"), OpensAtLatest(ahead(7)))
    both = opened(claim("a", here), node("a"), claim("b", there), node("b"), here, there)
    assert {v.reason for v in both} == {Reason.NODE_OPENED}


@pytest.mark.parametrize(
    ("key", "more"),
    [
        pytest.param("kubernetes.io/hostname", {}, id="over nodes"),
        pytest.param("zone", {"when_unsatisfiable": "ScheduleAnyway"}, id="where it can be"),
    ],
)
def test_not_those_of_pods_that_are_spread(key: str, more: Any) -> None:
    here, there = spread_pod("web-1", "node-a", key, **more), spread_pod("b", "node-b", key, **more)
    booting = [claim("b", there), node("b", ready=False)]
    found = opened(claim("a", here), node("a"), *booting, here, there)
    assert of(found).reason is Reason.NODE_OPENED


# -- new claims ---------------------------------------------------------------------------------


def startup_taints(*pods: Pod, **settings: Any) -> list[list[str]]:
    """Of the claims that are created for the pods."""
    found = evaluated(
        ProvisionDecider(),
        a_class(),
        a_pool(),
        *pods,
        instance_types=types(),
        settings=Settings(**settings),
    )
    created = [v.action.body["spec"] for v in found if isinstance(v.action, Create)]
    assert created
    return [[taint["key"] for taint in spec.get("startupTaints", [])] for spec in created]


def test_a_claim_for_pods_that_cannot_change_places_has_the_taint() -> None:
    choosy = pod("choosy", node_selector={"kubernetes.io/os": "linux"})
    assert startup_taints(pod(), choosy) == [[RESERVED_TAINT]]


def test_a_claim_for_pods_that_can_has_none() -> None:
    assert startup_taints(pod(), pod("other", priority=1000)) == [[]]


def test_nor_has_one_where_pods_are_not_named() -> None:
    choosy = pod("choosy", node_selector={"kubernetes.io/os": "linux"})
    assert startup_taints(pod(), choosy, nominate_pods=False) == [[]]


# -- while the scheduler binds them -------------------------------------------------------------


def placed(*objects: Any) -> Verdict:
    found = evaluated(ProvisionDecider(), a_class(), a_pool(), *objects, instance_types=types())
    return about(found, "Pod/default/web")


@pytest.mark.parametrize(
    ("seconds", "startup", "reason", "waits"),
    [
        pytest.param(1, (RESERVED,), Reason.BATCHING, True, id="just opened"),
        pytest.param(4, (RESERVED,), Reason.NOMINATED, False, id="opened a while ago"),
        pytest.param(1, (), Reason.NOMINATED, False, id="without the taint"),
    ],
)
def test_a_pod_that_has_lost_its_room_waits_while_its_node_is_filled(
    seconds: int, startup: tuple[Taint, ...], reason: Reason, waits: bool
) -> None:
    """Those that took the room are bound before those whose own room is free now."""
    web = pod(named="node-a")
    serving = a_claim(
        conditions=(condition("Initialized", at=ago(seconds)),),
        annotations={NOMINATED_PODS: web.uid},
        creation_timestamp=ago(80),
        spec={"startup_taints": startup},
    )
    full = a_pod("guest", requests={"cpu": "4"})
    verdict = placed(serving, a_node(), full, web)
    assert verdict.reason is reason
    until = {fact.until for fact in verdict.facts if isinstance(fact, CapacityTaken)}
    assert until == ({ahead(2)} if waits else set())
