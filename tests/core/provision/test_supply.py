"""Where pods can be placed: nodes as they are or will be, and pools within their limits."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core.facts import NodeClassNotServed
from tenure.core.pool.offers import template_requirements
from tenure.core.provision.facts import (
    Closed,
    NodeClassRefused,
    PoolDeleting,
    PoolNotReady,
    PoolStatic,
)
from tenure.core.provision.knownnodes import closed_nodes, in_service_since, nodes_with_capacity
from tenure.core.provision.supply import open_pools
from tenure.model.api import names
from tenure.model.api.node import Taint
from tenure.model.api.nodeclaim import Requirement, ResourceRequests
from tenure.model.api.resource import NODE_CLAIMS
from tenure.model.matching.requirements import Requirement as Allowed
from tenure.model.matching.requirements import Requirements
from tenure.model.snapshot.observations import ClassRefusal, Observations
from tenure.model.snapshot.snapshot import Snapshot, Tables
from tenure.packing.demand.problem import NEW_NODE_LABELS, ExistingNode, PoolTemplate
from tests.core.build import (
    CLASS_LABEL,
    FOREIGN,
    LAUNCHED,
    REGISTERED,
    SIZE,
    UNREGISTERED,
    a_claim,
    a_class,
    a_leaving_claim,
    a_leaving_node,
    a_node,
    a_pending_pod,
    a_pod,
    a_pool,
    a_type,
    ago,
    ahead,
    condition,
    types,
    units,
)
from tests.snapshots import RESOURCE_OF, SERVED, snapshot_with

ROOM = units(cpu=4, memory=8 * 2**30, pods=20)
BATCH = Taint(key="batch", effect="NoSchedule")
AGENT = Taint(key="example.com/agent", effect="NoExecute")
STARTING = Taint(key=names.NOT_READY_TAINT, effect="NoSchedule")


def only_node(*objects: Any) -> ExistingNode:
    (node,) = nodes_with_capacity(snapshot_with(*objects))
    return node


# -- nodes ---------------------------------------------------------------------------


def test_a_node_in_service_counts_as_it_is() -> None:
    pod, done = a_pod(), a_pod("done", phase="Succeeded")
    node = a_node(taints=(BATCH, STARTING))
    assert only_node(a_claim(), node, pod, done) == ExistingNode.holding(
        [pod], name="node-a", allocatable=ROOM, labels=node.labels, taints=(BATCH, STARTING)
    )


def test_a_pod_that_is_about_to_be_bound_takes_its_room_already() -> None:
    """The scheduler names the node while it waits for a volume of the pod, and gives the room to no other pod."""
    comes = a_pod("db-0", node="", phase="Pending", nominated="node-a")
    node = only_node(a_claim(), a_node(), comes)
    assert (node.pods, node.available["cpu"]) == ((comes,), ROOM["cpu"] - 10**9 // 2)


def test_a_name_of_a_pod_that_fits_no_node_takes_no_room() -> None:
    """It counts in the plan, as a nomination; so does one of a pod that has gone on to nothing."""
    waits = a_pending_pod(nominated="node-a")
    gone = a_pod("old", node="", phase="Pending", nominated="node-a", deletion_timestamp=ago(5))
    assert only_node(a_claim(), a_node(), waits, gone).available == ROOM


@pytest.mark.parametrize("conditions", [(), (condition("Initialized", "Unknown", "Rebooting"),)])
def test_a_node_that_is_rebooted_is_counted_on_as_it_will_be(conditions: Any) -> None:
    """It will be Ready again in a moment: its evicted pods need no new node."""
    claim = a_claim(conditions=(*conditions, condition("Rebooting", "True", "RebootIssued")))
    away = [
        Taint(key=names.REBOOTING_TAINT, effect="NoSchedule"),
        Taint(key=names.UNREACHABLE_TAINT, effect="NoSchedule"),
        Taint(key=names.UNREACHABLE_TAINT, effect="NoExecute"),
        Taint(key=names.NOT_READY_TAINT, effect="NoExecute"),
    ]
    node = a_node(ready=False, taints=(BATCH, *away))
    found = only_node(claim, node)
    assert (found.taints, found.available, found.initialized) == ((BATCH,), ROOM, False)
    ready = a_node(taints=away)
    assert in_service_since(snapshot_with(claim, ready)) == {}, "the scheduler cannot use it now"


def test_pods_evicted_for_a_reboot_free_their_capacity() -> None:
    pods = a_pod("stays"), a_pod("goes", deletion_timestamp=ahead(20))
    rebooting = a_claim(conditions=[condition("Rebooting", "True", "RebootRequested")])
    assert only_node(rebooting, a_node(), *pods) == only_node(rebooting, a_node(), pods[0])
    both = only_node(a_claim(), a_node(), *pods)
    assert both.available["cpu"] < only_node(a_claim(), a_node(), pods[0]).available["cpu"]


def test_a_node_without_a_claim_accepts_pods_too() -> None:
    node = a_node(registered=False)
    assert only_node(node) == ExistingNode(name="node-a", labels={}, available=ROOM)


def test_a_node_that_is_starting_is_taken_as_it_will_be() -> None:
    claim = a_claim(
        stage=REGISTERED,
        spec={"startup_taints": (AGENT,)},
        status={"allocatable": {**SIZE, "cpu": "9", "nvidia.com/gpu": "1"}},
    )
    node = a_node(taints=(BATCH, AGENT, STARTING))
    assert only_node(claim, node) == ExistingNode(
        name="node-a",
        labels={**node.labels, **NEW_NODE_LABELS},
        taints=(BATCH,),
        available={**ROOM, "nvidia.com/gpu": 10**9},
        initialized=False,
    )


def test_a_node_that_has_not_registered_is_taken_with_its_claims_labels_and_taints() -> None:
    claim = a_claim(stage=LAUNCHED, spec={"taints": (BATCH,), "startup_taints": (AGENT,)})
    node = a_node(registered=False, taints=(UNREGISTERED,), labels={names.NODEPOOL: "wrong"})
    found = only_node(claim, node)
    assert found.taints == (BATCH,)
    assert found.labels == {names.NODEPOOL: "general", **CLASS_LABEL, **NEW_NODE_LABELS}


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([a_leaving_claim(), a_leaving_node()], id="a leaving node"),
        pytest.param([a_leaving_claim(), a_node()], id="a node whose claim is leaving"),
        pytest.param([a_claim(), a_node(unschedulable=True)], id="a cordoned node"),
        pytest.param([a_leaving_claim(stage=LAUNCHED)], id="a claim that was given up"),
        pytest.param([a_claim(stage=0, ref=FOREIGN)], id="another provider's claim"),
        pytest.param([a_claim()], id="a claim whose Node has gone and will not come again"),
    ],
)
def test_no_pod_is_put_onto(objects: Any) -> None:
    assert nodes_with_capacity(snapshot_with(*objects)) == []


@pytest.mark.parametrize(
    ("claim", "node"),
    [
        pytest.param(a_leaving_claim(), a_leaving_node(), id="a leaving node"),
        pytest.param(a_leaving_claim(), a_node(), id="a node whose claim is leaving"),
        pytest.param(a_claim(), a_node(unschedulable=True), id="a cordoned node"),
    ],
)
def test_the_pods_count_that_run_on(claim: Any, node: Any) -> None:
    pod, done = a_pod(), a_pod("done", phase="Succeeded")
    assert closed_nodes(snapshot_with(claim, node, pod, done)) == [
        ExistingNode.holding(
            [pod],
            name="node-a",
            allocatable=ROOM,
            labels=node.labels,
            taints=node.spec.taints,
            closed=True,
        )
    ]


def test_a_node_that_takes_pods_is_not_closed() -> None:
    assert closed_nodes(snapshot_with(a_claim(), a_node(), a_pod())) == []


def test_before_the_launch_is_answered_a_claim_has_the_labels_that_are_certain() -> None:
    claim = a_claim(
        stage=0,
        spec={
            "taints": (BATCH,),
            "startup_taints": (AGENT,),
            "requirements": (
                Requirement(key=names.ZONE, operator="In", values=("zone-b", "zone-a")),
                Requirement(key="team", operator="Exists"),
            ),
        },
    )
    assert only_node(claim) == ExistingNode(
        name="a",
        labels={names.NODEPOOL: "general", **CLASS_LABEL, **NEW_NODE_LABELS},
        taints=(BATCH,),
        available=units(cpu=1, memory=2**30, pods=2),
        initialized=False,
        undecided={names.ZONE: frozenset({"zone-a", "zone-b"})},
    )


@pytest.mark.parametrize(
    ("listed", "cpu"),
    [
        pytest.param(("small", "large"), 4, id="the least of the types that it lists"),
        pytest.param(("large",), 16, id="all of the only type that it lists"),
        pytest.param(("tiny", "large"), 16, id="not counting a type that is too small for it"),
        pytest.param(("unknown",), 2, id="what it requests where no type is known"),
    ],
)
def test_before_the_launch_is_answered_a_claim_has_the_capacity(
    listed: tuple[str, ...], cpu: int
) -> None:
    wanted = Requirement(key=names.INSTANCE_TYPE, operator="In", values=listed)
    requests = ResourceRequests(requests={"cpu": "2"})
    claim = a_claim(stage=0, spec={"requirements": (wanted,), "resources": requests})
    sold = types(a_type("tiny", cpu="1"), a_type(), a_type("large", cpu="16"))
    (node,) = nodes_with_capacity(
        snapshot_with(claim, observations=Observations(instance_types=sold))
    )
    assert node.available["cpu"] == units(cpu=cpu)["cpu"]


def test_after_the_launch_it_has_the_capacity_of_the_instance() -> None:
    assert only_node(a_claim(stage=LAUNCHED)).available == ROOM


def test_a_claim_that_cannot_be_read_has_only_its_labels() -> None:
    unreadable = (Requirement(key=names.ZONE, operator="Is", values=("zone-b",)),)
    found = only_node(a_claim(stage=0, spec={"requirements": unreadable}))
    assert found.labels == {names.NODEPOOL: "general", **CLASS_LABEL, **NEW_NODE_LABELS}


# -- pools ---------------------------------------------------------------------------


def pools(*objects: Any, **known: Any) -> tuple[list[PoolTemplate], dict[str, Closed]]:
    known = {"instance_types": types()} | known
    return open_pools(snapshot_with(*objects, observations=Observations(**known)))


def remaining(*objects: Any, **known: Any) -> Any:
    (template,), _ = pools(a_class(), *objects, **known)
    return template.remaining


def test_an_open_pool_offers_what_its_template_says() -> None:
    pool = a_pool(
        weight=10,
        requirements=[{"key": names.ARCH, "operator": "In", "values": ["amd64"]}],
        template={
            "taints": [{"key": "batch", "effect": "NoSchedule"}],
            "startupTaints": [{"key": "example.com/agent", "effect": "NoExecute"}],
        },
        template_meta={"labels": {"team": "platform"}},
    )
    templates, closed = pools(a_class(), pool)
    assert closed == {}
    assert templates == [
        PoolTemplate(
            pool="general",
            weight=10,
            requirements=Requirements.of(
                [
                    Allowed.of(names.ARCH, "In", ["amd64"]),
                    Allowed.label("team", "platform"),
                    Allowed.label(names.NODEPOOL, "general"),
                    Allowed.label("karpenter.kwok.sh/kwoknodeclass", "default"),
                ]
            ),
            taints=(BATCH,),
            startup_taints=(AGENT,),
            instance_types=(a_type(),),
        )
    ]
    assert templates[0].requirements == template_requirements(pool)


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        pytest.param([a_class(), a_pool(deletion_timestamp=ago(1))], PoolDeleting(), id="leaving"),
        pytest.param([a_class(), a_pool(replicas=3)], PoolStatic(), id="static"),
        pytest.param(
            [a_pool()], PoolNotReady("KWOKNodeClass default does not exist"), id="without a class"
        ),
    ],
)
def test_a_pool_that_may_not_launch_says_why(objects: Any, why: Closed) -> None:
    templates, closed = pools(*objects)
    assert (templates, closed) == ([], {"general": why})


REFUSAL = ClassRefusal(message="no such image", at=ago(10), until=ahead(50))


def test_a_pool_whose_class_the_cloud_refused_quotes_it_and_says_when_it_retries() -> None:
    refused = {"KWOKNodeClass/default": REFUSAL}
    templates, closed = pools(a_class(), a_pool(), instance_types={}, refused_classes=refused)
    assert templates == []
    refused_class = NodeClassRefused(
        "KWOKNodeClass default", REFUSAL.at, "no such image", REFUSAL.until
    )
    assert closed["general"] == refused_class


def test_a_class_whose_types_are_known_again_is_tried_again() -> None:
    templates, closed = pools(
        a_class(), a_pool(), refused_classes={"KWOKNodeClass/default": REFUSAL}
    )
    assert (len(templates), closed) == (1, {})


def test_another_providers_pool_is_closed_and_says_why() -> None:
    """The pod's verdict says so: a mistyped group looks like another provider."""
    not_served = NodeClassNotServed("OtherClass", "example.com")
    assert pools(a_pool(ref=FOREIGN)) == ([], {"general": not_served})


def test_a_pool_whose_types_are_not_known_yet_offers_none() -> None:
    (template,), _ = pools(a_class(), a_pool(), instance_types={})
    assert template.instance_types == ()


def test_a_pool_without_limits_has_no_end() -> None:
    assert remaining(a_pool()) is None


def test_limits_are_lessened_by_what_is_there() -> None:
    limits = {"cpu": "10", "nodes": 3, "nvidia.com/gpu": "1"}
    assert remaining(a_pool(limits=limits), a_claim(), a_node(), a_leaving_claim("b")) == {
        "cpu": 6 * 10**9,
        "nodes": 2 * 10**9,
        "nvidia.com/gpu": 10**9,
    }


def test_an_unanswered_launch_counts_as_the_largest_it_may_turn_out_to_be() -> None:
    kinds = types(a_type("small", cpu="4"), a_type("large", cpu="16"), a_type("huge", cpu="64"))
    wanted = (Requirement(key=names.INSTANCE_TYPE, operator="NotIn", values=("huge",)),)
    claim = a_claim(stage=0, spec={"requirements": wanted})
    pool = a_pool(limits={"cpu": "20", "nodes": "2"})
    assert remaining(pool, claim, instance_types=kinds) == units(cpu=4, nodes=1)


def test_with_unknown_types_it_counts_at_least_its_requests() -> None:
    pool = a_pool(limits={"cpu": "20"})
    assert remaining(pool, a_claim(stage=0), instance_types={}) == units(cpu=19)


def test_a_claim_that_is_deleted_before_its_launch_does_not_count() -> None:
    pool = a_pool(limits={"cpu": "20"})
    assert remaining(pool, a_leaving_claim(stage=0)) == units(cpu=20)


@pytest.mark.parametrize(
    ("pool", "problem"),
    [
        ({"limits": {"cpu": "plenty"}}, "spec.limits[cpu]: got 'plenty', expected a Kubernetes"),
        (
            {"template": {"expireAfter": "1d"}},
            "spec.template.spec.expireAfter: got '1d', expected",
        ),
    ],
)
def test_a_field_that_cannot_be_read_lets_nothing_through(pool: Any, problem: str) -> None:
    templates, closed = pools(a_class(), a_pool(**pool))
    assert templates == []
    invalid = closed["general"]
    assert isinstance(invalid, PoolNotReady)
    assert invalid.problem.startswith(problem)


def test_a_user_may_request_the_pseudo_resource_and_it_is_not_counted_twice() -> None:
    odd = ResourceRequests(requests={"cpu": "1", "nodes": "1"})
    claim = a_claim(stage=0, spec={"resources": odd})
    assert remaining(a_pool(limits={"nodes": "2"}), claim) == units(nodes=1)


def test_a_node_is_computed_again_only_when_it_or_an_object_there_is_replaced() -> None:
    tables = Tables()
    for item in (a_claim(), a_node(), a_pod()):
        tables.put(RESOURCE_OF[type(item)], item)
    snapshot = Snapshot(tables, ours=SERVED)
    (first,) = nodes_with_capacity(snapshot)
    assert nodes_with_capacity(snapshot)[0] is first
    for changed in (a_claim(annotations={"a": "b"}), a_node(annotations={"a": "b"}), a_pod("more")):
        (before,) = nodes_with_capacity(snapshot)
        tables.put(RESOURCE_OF[type(changed)], changed)
        assert nodes_with_capacity(snapshot)[0] is not before
    assert {pod.name for pod in nodes_with_capacity(snapshot)[0].pods} == {a_pod().name, "more"}


def test_a_claim_in_flight_is_computed_again_when_it_or_its_types_are_replaced() -> None:
    tables, sold = Tables(), types(a_type())
    tables.put(NODE_CLAIMS, a_claim(stage=0))

    def coming(sold: Any) -> ExistingNode:
        (found,) = nodes_with_capacity(
            Snapshot(tables, Observations(instance_types=sold), ours=SERVED)
        )
        return found

    first = coming(sold)
    assert coming(sold) is first
    assert coming(types(a_type())) is not first
    tables.put(NODE_CLAIMS, a_claim(stage=0, labels={"team": "a"}))
    assert coming(sold).labels["team"] == "a"
