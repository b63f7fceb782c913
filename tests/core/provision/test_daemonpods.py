"""What new nodes reserve for DaemonSets: by their pods, else by template and LimitRanges."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.core.provision.daemons.daemonpods import daemons
from tenure.model.api.pod import (
    Affinity,
    Container,
    ContainerPort,
    NodeAffinity,
    NodeSelector,
    Pod,
    PodSpec,
    ResourceRequirements,
    SchedulingGate,
)
from tenure.model.api.resource import DAEMON_SETS, PODS
from tenure.model.api.workload import DaemonSetStatus
from tenure.model.snapshot.snapshot import Change, Snapshot, Tables
from tenure.model.snapshot.unreadable import stand_in
from tenure.model.values.quantity import parse_resources
from tenure.packing.demand.requests import HostPort, Resources, host_ports, spec_requests
from tests.core.build import a_daemon_set, a_limit_range, a_node, a_pod, ago, condition
from tests.snapshots import snapshot_with

GENERATION = "deprecated.daemonset.template.generation"


def spec(ports: tuple[int, ...] = (), **resources: Any) -> PodSpec:
    container = Container(
        resources=msgspec.convert(resources, ResourceRequirements),
        ports=tuple(ContainerPort(host_port=port) for port in ports),
    )
    return PodSpec(containers=(container,))


def a_daemon_pod(name: str, cpu: str, *, ports: tuple[int, ...] = (), **metadata: Any) -> Pod:
    pod = a_pod(name, owner="DaemonSet", **metadata)
    (owner,) = pod.metadata.owner_references
    owners = (msgspec.structs.replace(owner, name="agent"),)
    tied = Affinity(
        node_affinity=NodeAffinity(
            required_during_scheduling_ignored_during_execution=NodeSelector()
        )
    )
    return msgspec.structs.replace(
        pod,
        metadata=msgspec.structs.replace(pod.metadata, owner_references=owners),
        spec=msgspec.structs.replace(
            spec(ports, requests={"cpu": cpu}), affinity=tied, node_name="node-a"
        ),
    )


def kept(*objects: Any) -> Resources | None:
    """What is kept for the one DaemonSet; None when it is not counted on."""
    found = daemons(snapshot_with(*objects))
    return spec_requests(found[0].spec) if found else None


def amounts(**written: str) -> dict[str, int]:
    return parse_resources({**written, "pods": "1"})


def test_without_pods_and_limit_ranges_the_template_counts() -> None:
    assert kept(a_daemon_set(spec=spec(requests={"cpu": "1"}))) == amounts(cpu="1")


def test_nothing_is_reserved_for_daemon_sets_that_are_being_deleted() -> None:
    assert kept(a_daemon_set(deletion_timestamp=ago(1))) is None


def test_the_pods_of_a_daemon_set_that_cannot_be_read_count() -> None:
    agent = stand_in(a_daemon_set(spec=spec(requests={"cpu": "1"})), "generation is no number")
    (found,) = daemons(snapshot_with(agent, a_daemon_pod("live", "2", ports=(9100,))))
    assert spec_requests(found.spec) == amounts(cpu="2")
    assert host_ports(found.spec)
    assert (found.spec.node_name, found.spec.affinity) == ("", None), "it is for any new node"


def test_nothing_is_reserved_for_a_daemon_set_that_cannot_be_read_and_has_no_pods() -> None:
    agent = stand_in(a_daemon_set(spec=spec(requests={"cpu": "1"})), "generation is no number")
    assert kept(agent) is None
    gated = a_daemon_pod("gated", "2")
    waits = msgspec.structs.replace(
        gated.spec, node_name="", scheduling_gates=(SchedulingGate(name="example.com/wait"),)
    )
    assert kept(agent, msgspec.structs.replace(gated, spec=waits)) is None


def test_the_newest_pod_counts_before_the_template() -> None:
    agent = a_daemon_set(spec=spec(requests={"cpu": "1"}))
    older = a_daemon_pod("older", "2", creation_timestamp=ago(90))
    newer = a_daemon_pod("newer", "3", ports=(9100,), creation_timestamp=ago(60))
    gone = a_daemon_pod("gone", "4", creation_timestamp=ago(30), deletion_timestamp=ago(5))
    (found,) = daemons(snapshot_with(agent, older, newer, gone))
    assert spec_requests(found.spec) == amounts(cpu="3")
    assert host_ports(found.spec) == (HostPort(9100),)
    assert found.spec.affinity is None, "which nodes it comes to is the template's to say"


def test_a_pod_of_an_older_template_does_not_count() -> None:
    agent = a_daemon_set(spec=spec(requests={"cpu": "1"}), annotations={GENERATION: "2"})
    old = a_daemon_pod("old", "3", labels={"pod-template-generation": "1"})
    assert kept(agent, old) == amounts(cpu="1")
    new = a_daemon_pod("new", "4", labels={"pod-template-generation": "2"})
    assert kept(agent, new) == amounts(cpu="4")


def test_a_created_or_removed_pod_is_noticed() -> None:
    tables = Tables()
    tables.put(DAEMON_SETS, a_daemon_set(spec=spec(requests={"cpu": "1"})))
    snapshot = Snapshot(tables)

    def now() -> Resources:
        (found,) = daemons(snapshot)
        return spec_requests(found.spec)

    first = a_daemon_pod("first", "2", creation_timestamp=ago(60))
    second = a_daemon_pod("second", "3", creation_timestamp=ago(30))
    changes: list[Change] = []
    for pod, cpu in ((first, "2"), (second, "3")):
        changes.append(tables.put(PODS, pod))
        assert now() == amounts(cpu=cpu)
    tables.put(PODS, a_daemon_pod("second", "5", creation_timestamp=ago(30)))
    assert now() == amounts(cpu="5")
    tables.remove(PODS, second.key)
    assert now() == amounts(cpu="2")
    tables.remove(PODS, first.key)
    assert now() == amounts(cpu="1")


LIMITED = [
    pytest.param({}, amounts(cpu="2", memory="1Gi"), id="what is not said"),
    pytest.param(
        {"requests": {"cpu": "500m"}}, amounts(cpu="500m", memory="1Gi"), id="what is said stays"
    ),
    pytest.param(
        {"limits": {"cpu": "3"}}, amounts(cpu="3", memory="1Gi"), id="a limit is the request"
    ),
]


@pytest.mark.parametrize(("resources", "expected"), LIMITED)
def test_a_limit_range_fills_in_what_the_template_does_not_say(
    resources: Any, expected: dict[str, int]
) -> None:
    given = {"cpu": "2", "memory": "1Gi"}
    limits = a_limit_range(default=given, defaultRequest=given)
    assert kept(a_daemon_set(spec=spec(**resources)), limits) == expected


def test_a_limit_range_of_another_namespace_changes_nothing() -> None:
    limits = a_limit_range(defaultRequest={"cpu": "2"})
    agent = a_daemon_set(spec=spec(requests={"cpu": "1"}), namespace="other")
    assert kept(agent, limits) == amounts(cpu="1")


REFUSED = [
    pytest.param({"max": {"cpu": "2"}}, {"requests": {"cpu": "64"}, "limits": {"cpu": "64"}}),
    pytest.param({"min": {"cpu": "1"}}, {"requests": {"cpu": "500m"}}),
    pytest.param({"type": "Pod", "max": {"cpu": "2"}}, {"limits": {"cpu": "3"}}),
    pytest.param(
        {"maxLimitRequestRatio": {"cpu": "2"}}, {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}}
    ),
]


@pytest.mark.parametrize(("item", "resources"), REFUSED)
def test_nothing_is_reserved_for_pods_that_admission_refuses(item: Any, resources: Any) -> None:
    assert kept(a_daemon_set(spec=spec(**resources)), a_limit_range(**item)) is None


def test_a_limit_range_that_cannot_be_read_refuses_nothing() -> None:
    limits = a_limit_range(max={"cpu": "many"})
    assert kept(a_daemon_set(spec=spec(requests={"cpu": "1"})), limits) == amounts(cpu="1")


# -- DaemonSets whose pods do not run although they should --------------------------------


def a_told_daemon_set(desired: int, current: int, ready: int = 0, **more: Any) -> Any:
    status = DaemonSetStatus(
        observed_generation=1,
        desired_number_scheduled=desired,
        current_number_scheduled=current,
        number_ready=ready,
        **more,
    )
    found = a_daemon_set(spec=spec(requests={"cpu": "200"}), generation=1)
    return msgspec.structs.replace(found, status=status)


def waiting(pod: Pod, **fields: Any) -> Pod:
    """Not bound yet; the scheduler has tried it."""
    told = condition("PodScheduled", "False", "Unschedulable")
    return msgspec.structs.replace(
        pod,
        spec=msgspec.structs.replace(pod.spec, node_name="", **fields),
        status=msgspec.structs.replace(pod.status, conditions=(told,)),
    )


def test_nothing_is_reserved_if_no_pods_are_allowed_on_existing_nodes() -> None:
    """As with a ResourceQuota of no pods: the controller tries in vain."""
    assert kept(a_told_daemon_set(desired=3, current=0)) is None


def test_before_there_is_a_node_for_it_the_template_counts() -> None:
    assert kept(a_told_daemon_set(desired=0, current=0)) == amounts(cpu="200")


def test_what_the_controller_has_not_seen_yet_is_no_evidence() -> None:
    told = a_told_daemon_set(desired=3, current=0)
    newer = msgspec.structs.replace(told.metadata, generation=2)
    assert kept(msgspec.structs.replace(told, metadata=newer)) == amounts(cpu="200")


def test_nothing_is_reserved_for_gated_pods_unless_others_run() -> None:
    gated = waiting(a_daemon_pod("p", "200"), scheduling_gates=(SchedulingGate(name="later"),))
    assert kept(a_told_daemon_set(desired=1, current=1), gated, a_node()) is None
    assert kept(a_told_daemon_set(desired=2, current=2, ready=1), gated, a_node()) is not None


def test_nothing_is_reserved_for_pods_larger_than_every_node() -> None:
    told = a_told_daemon_set(desired=1, current=1)
    assert kept(told, waiting(a_daemon_pod("p", "200")), a_node()) is None


def test_capacity_is_reserved_for_pods_that_wait_because_nodes_are_full() -> None:
    told = a_told_daemon_set(desired=1, current=1)
    assert kept(told, waiting(a_daemon_pod("p", "1")), a_node()) == amounts(cpu="1")
