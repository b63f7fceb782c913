"""Which pods need capacity, and since when."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core.provision.decider import ProvisionDecider
from tenure.core.provision.demand import Demand, pods_to_schedule
from tenure.model.api.pod import Pod, SchedulingGate, Toleration
from tenure.model.api.resource import POD_DISRUPTION_BUDGETS
from tenure.model.api.workload import PodDisruptionBudget
from tenure.model.snapshot.snapshot import Change
from tests.core.build import (
    FOREIGN,
    MINUTE_AGO,
    NOW,
    a_claim,
    a_leaving_claim,
    a_leaving_node,
    a_node,
    a_pdb,
    a_pending_pod,
    a_pod,
    ago,
    ahead,
    condition,
)
from tests.snapshots import snapshot_with


def demands(*objects: Any) -> list[Demand]:
    return pods_to_schedule(snapshot_with(*objects))


def test_an_unschedulable_pod_counts_from_the_schedulers_condition() -> None:
    pod = a_pending_pod()
    assert demands(pod) == [Demand(pod, MINUTE_AGO)]


def test_where_the_scheduler_gave_no_time_it_has_waited_since_its_creation() -> None:
    pod = a_pending_pod(since=None)
    assert demands(pod) == [Demand(pod, ago(3600))]


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(
            a_pending_pod(spec={"scheduling_gates": (SchedulingGate(name="quota"),)}),
            id="a gated pod is not to be scheduled yet",
        ),
        pytest.param(a_pending_pod(owner="DaemonSet"), id="a daemon pod belongs to a node"),
        pytest.param(a_pending_pod(owner="Node"), id="a mirror pod belongs to a node"),
        pytest.param(a_pending_pod(deletion_timestamp=NOW), id="a deleted pod needs nothing"),
        pytest.param(
            a_pod(node="", phase="Pending", conditions=()), id="the scheduler has not tried it yet"
        ),
        pytest.param(
            a_pod(node="", conditions=(condition("PodScheduled", "False", "SchedulingGated"),)),
            id="it is not unschedulable but gated",
        ),
    ],
)
def test_no_new_node_is_needed_because(pod: Any) -> None:
    assert demands(pod) == []


HIGH = a_pending_pod(nominated="node-a", spec={"priority": 1000})


def test_a_pod_waits_for_those_that_it_preempts() -> None:
    assert demands(a_node(), a_pod("low", deletion_timestamp=NOW), HIGH) == []


@pytest.mark.parametrize(
    "other",
    [
        pytest.param([], id="the node that its status names is gone"),
        pytest.param([a_node()], id="the node was launched for it"),
        pytest.param([a_node(), a_pod("low")], id="no pod leaves for it"),
        pytest.param(
            [a_node(), a_pod("high", deletion_timestamp=NOW, spec={"priority": 1000})],
            id="the pod that leaves is as important",
        ),
    ],
)
def test_a_pod_that_preempts_no_other_needs_capacity(other: list[Any]) -> None:
    assert demands(*other, HIGH) == [Demand(HIGH, ago(60))]


def test_a_pod_of_a_terminating_node_needs_capacity_before_it_is_evicted() -> None:
    pod = a_pod()
    found = demands(a_leaving_claim(), a_leaving_node(closed=False), pod)
    assert found == [Demand(pod, ago(30), "node-a")]


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"owner": ""}, id="no controller will create it again"),
        pytest.param({"owner": "DaemonSet"}, id="daemon pods come with their node"),
        pytest.param({"owner": "Node"}, id="mirror pods come with their node"),
        pytest.param({"phase": "Succeeded"}, id="it has finished"),
        pytest.param({"deletion_timestamp": NOW}, id="its successor exists already"),
        pytest.param(
            {"spec": {"tolerations": (Toleration(operator="Exists"),)}}, id="it stays to the end"
        ),
        pytest.param({"protected": "true"}, id="it is protected for ever"),
        pytest.param({"protected": "1d"}, id="it is protected by mistake"),
        pytest.param(
            {"owner": "StatefulSet", "phase": "Failed", "deletion_timestamp": NOW},
            id="a finished pod of a StatefulSet has stopped",
        ),
    ],
)
def test_a_pod_of_a_terminating_node_needs_no_capacity_because(fields: Any) -> None:
    assert demands(a_leaving_claim(), a_leaving_node(), a_pod(**fields)) == []


def test_a_terminating_pod_of_a_stateful_set_still_needs_capacity() -> None:
    """The new pod has the same name, so it is created only when the old one is gone."""
    pod = a_pod(owner="StatefulSet", deletion_timestamp=ahead(20))
    assert demands(a_leaving_claim(), a_leaving_node(), pod) == [Demand(pod, ago(30), "node-a")]


def test_a_protected_pod_needs_capacity_when_the_protection_ends() -> None:
    pod = a_pod(protected="2h")
    (demand,) = demands(a_leaving_claim(), a_leaving_node(), pod)
    assert demand == Demand(pod, ahead(3600), "node-a")
    assert not demand.needs_capacity(ahead(3599))
    assert demand.needs_capacity(ahead(3600))


def test_a_protection_that_is_over_changes_nothing() -> None:
    pod = a_pod(protected="30m")
    (demand,) = demands(a_leaving_claim(), a_leaving_node(), pod)
    assert demand.since == ago(30)
    assert demand.needs_capacity(NOW)


def test_a_pending_pod_needs_capacity_whatever_its_timestamp() -> None:
    assert Demand(a_pending_pod(), ahead(5)).needs_capacity(NOW)


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([a_claim(), a_node()], id="its node stays"),
        pytest.param(
            [a_leaving_claim(ref=FOREIGN), a_leaving_node()], id="its node is another provider's"
        ),
        pytest.param(
            [a_leaving_claim(), a_leaving_node(finalizers=("x",))],
            id="its node lacks our finalizer",
        ),
    ],
)
def test_pods_of_these_nodes_are_not_provisioned_for(objects: Any) -> None:
    assert demands(*objects, a_pod()) == []


def test_they_come_in_the_order_of_their_uids() -> None:
    pods = [a_pending_pod(name) for name in ("c", "a", "b")]
    assert [demand.pod.name for demand in demands(*pods)] == ["a", "b", "c"]


# -- pods that no PDB ever lets go -------------------------------------------------------------

#: maxUnavailable 0, in the words of its status.
NEVER: dict[str, Any] = {"expected_pods": 2, "desired_healthy": 2, "current_healthy": 2}


def web(**fields: Any) -> Pod:
    return a_pod("web", labels={"app": "web"}, conditions=[condition("Ready")], **fields)


def test_a_pod_that_can_never_be_evicted_needs_no_other_node() -> None:
    node, claim, pod = a_leaving_node(), a_leaving_claim(), web()
    assert [one.pod for one in demands(node, claim, pod)] == [pod]
    assert demands(node, claim, pod, a_pdb(**NEVER)) == []


def test_before_a_deadline_it_needs_one() -> None:
    claim = a_leaving_claim(spec={"termination_grace_period": "1h"})
    (demand,) = demands(a_leaving_node(), claim, web(), a_pdb(**NEVER))
    assert demand.needs_capacity(NOW)


@pytest.mark.parametrize(
    ("pod", "pdb"),
    [
        pytest.param(web(), a_pdb(**NEVER | {"expected_pods": 3}), id="it waits for another pod"),
        pytest.param(web(), a_pdb(app="db", **NEVER), id="the PDB is of other pods"),
        pytest.param(web(phase="Pending"), a_pdb(**NEVER), id="the pod has not started"),
        pytest.param(
            a_pod("web", labels={"app": "web"}), a_pdb(**NEVER), id="the PDB has enough without it"
        ),
    ],
)
def test_one_that_may_be_evicted_later_counts(pod: Pod, pdb: PodDisruptionBudget) -> None:
    assert [one.pod for one in demands(a_leaving_node(), a_leaving_claim(), pod, pdb)] == [pod]


def test_provisioning_looks_again_when_a_pdb_may_allow_an_eviction_after_all() -> None:
    snapshot, decider = snapshot_with(), ProvisionDecider()
    never, more = a_pdb(**NEVER), a_pdb(**NEVER | {"expected_pods": 3})
    fewer = a_pdb(**NEVER | {"expected_pods": 3, "current_healthy": 1})
    for old, new, touched in ((never, more, True), (None, never, True), (more, fewer, False)):
        change = Change(POD_DISRUPTION_BUDGETS, "default/web", old, new)
        assert bool(list(decider.touched(change, snapshot))) is touched
