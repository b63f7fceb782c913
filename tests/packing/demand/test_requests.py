"""What a pod reserves on a node."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.model.api.pod import Pod
from tenure.model.values.quantity import parse_resources
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
    assert port.conflicts(other) == other.conflicts(port)
