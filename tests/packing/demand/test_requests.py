"""What a pod reserves on a node."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.model.api.pod import Pod, PodStatus
from tenure.model.values.quantity import parse_resources
from tenure.packing.demand.asked import read_pods
from tenure.packing.demand.requests import HostPort, host_ports, pod_requests, ports_conflict
from tests.packing.build import a_pod, a_spec


def container(cpu: str = "", **more: Any) -> dict[str, Any]:
    requests = {"cpu": cpu} if cpu else {}
    return {"resources": {"requests": requests, **more.pop("resources", {})}, **more}


def sidecar(cpu: str) -> dict[str, Any]:
    return container(cpu, restartPolicy="Always")


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        pytest.param(
            {"containers": [container("1"), container("500m")]}, "1500m", id="containers add up"
        ),
        pytest.param(
            {"containers": [container("1")], "initContainers": [container("3"), container("2")]},
            "3",
            id="the largest init container counts where it is larger",
        ),
        pytest.param(
            {"containers": [container("1")], "initContainers": [sidecar("2")]},
            "3",
            id="a sidecar runs beside the containers",
        ),
        pytest.param(
            {"containers": [container("1")], "initContainers": [sidecar("2"), container("4")]},
            "6",
            id="an init container runs beside the sidecars before it",
        ),
        pytest.param(
            {"containers": [container("1")], "initContainers": [container("4"), sidecar("2")]},
            "4",
            id="but not beside those after it",
        ),
        pytest.param(
            {"containers": [container("1")], "resources": {"requests": {"cpu": "5"}}},
            "5",
            id="pod-level requests replace the sum",
        ),
        pytest.param(
            {"containers": [container("1")], "resources": {"limits": {"cpu": "5"}}},
            "1",
            id="a pod-level limit does not replace what containers ask for",
        ),
        pytest.param(
            {"containers": [container("1")], "overhead": {"cpu": "250m"}},
            "1250m",
            id="the runtime's overhead comes on top",
        ),
        pytest.param(
            {"containers": [container(resources={"limits": {"cpu": "2"}})]},
            "2",
            id="a limit without a request is the request",
        ),
    ],
)
def test_cpu_is_reserved_as_the_scheduler_does(spec: dict[str, Any], cpu: str) -> None:
    wanted = parse_resources({"cpu": cpu, "pods": 1})
    assert pod_requests(msgspec.convert({"spec": spec}, Pod)) == wanted


INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
DEFERRED = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}


def given(allocated: str, actual: str | None, name: str = "main") -> dict[str, Any]:
    """What a kubelet says of a container."""
    resources = {"resources": {"requests": {"cpu": actual}}} if actual is not None else {}
    return {"name": name, "allocatedResources": {"cpu": allocated}, **resources}


@pytest.mark.parametrize(
    ("status", "cpu"),
    [
        pytest.param({"containerStatuses": [given("1", "1")]}, "1", id="nothing is resized"),
        pytest.param({"containerStatuses": [given("3", "3")]}, "3", id="it is to become smaller"),
        pytest.param({"containerStatuses": [given("1", "3")]}, "3", id="it is not smaller yet"),
        pytest.param({"containerStatuses": [given("500m", "500m")]}, "1", id="it is to grow"),
        pytest.param(
            {"containerStatuses": [given("500m", "500m")], "conditions": [DEFERRED]},
            "1",
            id="it grows later",
        ),
        pytest.param(
            {"containerStatuses": [given("500m", "500m")], "conditions": [INFEASIBLE]},
            "500m",
            id="its node can never give it",
        ),
        pytest.param(
            {"containerStatuses": [given("500m", "500m")], "resize": "Infeasible"},
            "500m",
            id="the same until Kubernetes 1.32",
        ),
        pytest.param(
            {"containerStatuses": [given("3", None)]}, "1", id="an old kubelet says nothing"
        ),
        pytest.param(
            {"containerStatuses": [given("3", "3", "other")]}, "1", id="of another container"
        ),
    ],
)
def test_a_pod_that_is_resized_reserves_what_it_has_until_it_is_done(
    status: dict[str, Any], cpu: str
) -> None:
    wire = {"spec": {"containers": [container("1", name="main")]}, "status": status}
    pod = msgspec.convert(wire, Pod)
    assert pod_requests(pod) == parse_resources({"cpu": cpu, "pods": 1})
    created_again = msgspec.structs.replace(pod, status=PodStatus())
    assert [*read_pods([pod])[0]] == [*read_pods([created_again])[0]], "from its template"


def test_a_sidecar_that_is_resized_counts_and_an_init_container_does_not() -> None:
    main = container("1", name="main")
    beside = {**sidecar("1"), "name": "side"}
    first = container("1", name="first")
    spec = {"containers": [main], "initContainers": [beside, first]}
    told = [given("3", "3", "side"), given("9", "9", "first")]
    pod = msgspec.convert({"spec": spec, "status": {"initContainerStatuses": told}}, Pod)
    assert pod_requests(pod) == parse_resources({"cpu": "4", "pods": 1})


def test_what_kubelets_have_given_is_kept_only_where_it_differs() -> None:
    spec = {"containers": [container("1", name="main")]}
    same = {"containerStatuses": [given("1", "1")]}
    assert msgspec.convert({"spec": spec, "status": same}, Pod).status == PodStatus()


def test_every_pod_takes_one_of_the_nodes_pod_places() -> None:
    assert pod_requests(Pod()) == parse_resources({"pods": 1})


def test_host_ports_of_containers_and_sidecars_are_wanted() -> None:
    port = {"containerPort": 80, "hostPort": 8080}
    other = {"containerPort": 53, "hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}
    spec = a_spec(
        containers=[{"ports": [port]}],
        initContainers=[
            {"ports": [other], "restartPolicy": "Always"},
            {"ports": [{"hostPort": 9}]},
        ],
    )
    assert host_ports(spec) == (HostPort(53, "UDP", "10.0.0.1"), HostPort(8080))


def test_on_the_hosts_network_container_ports_are_host_ports() -> None:
    spec = a_spec(hostNetwork=True, containers=[{"ports": [{"containerPort": 9100}]}])
    assert host_ports(spec) == (HostPort(9100),)
    assert host_ports(a_pod().spec) == ()


@pytest.mark.parametrize(
    ("other", "conflict"),
    [
        pytest.param(HostPort(53, "UDP", "10.0.0.2"), False, id="another address is another port"),
        pytest.param(HostPort(53, "TCP", "10.0.0.1"), False, id="another protocol too"),
        pytest.param(HostPort(54, "UDP", "10.0.0.1"), False, id="another number too"),
        pytest.param(HostPort(53, "UDP", "10.0.0.1"), True, id="the same port conflicts"),
        pytest.param(HostPort(53, "UDP", ""), True, id="no address means all addresses"),
        pytest.param(HostPort(53, "UDP", "0.0.0.0"), True, id="so does the unspecified address"),  # noqa: S104
    ],
)
def test_ports_conflict_where_a_node_could_not_serve_both(other: HostPort, conflict: bool) -> None:
    port = HostPort(53, "UDP", "10.0.0.1")
    assert (ports_conflict((port,), (other,)) is not None) == conflict
    assert (ports_conflict((other,), (port,)) is not None) == conflict
