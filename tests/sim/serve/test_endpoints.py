"""EndpointSlices and Endpoints in ``tenure up``: what a Service leads to, and what it costs where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tenure.model.api.resource import NAMESPACES, NODES, PODS, SERVICES
from tenure.sim.apiserver.objects.storedkinds import ENDPOINT_SLICES, ENDPOINTS
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.serve.controllers.endpoints import Endpoints
from tests.sim.workworld import World, a_node, a_world

LABELS = {"app": "web"}


@pytest.fixture
def world() -> Iterator[World]:
    with a_world() as world:
        world.add(NODES, a_node("a", cpu="64", labels={"topology.kubernetes.io/zone": "z1"}))
        Endpoints(world.env, world.store)
        yield world


def a_service(world: World, name: str = "web", *ports: Obj, **spec: Any) -> Obj:
    found = {"selector": LABELS, "ports": [*ports] or [{"port": 80, "targetPort": 8080}], **spec}
    obj = {"metadata": {"name": name, "namespace": "default", "labels": {"team": "a"}}}
    return world.store.create(SERVICES, {**obj, "spec": found})


def a_pod(
    world: World, number: int, *, ready: bool = True, phase: str = "Running", **spec: Any
) -> Obj:
    container = {"name": "c", "image": "registry.example/c:1", **spec.pop("container", {})}
    metadata = {"name": f"web-{number}", "namespace": "default", "labels": LABELS}
    spec = {"containers": [container], **spec}  # No kubelet has it, unless it is bound.
    pod = world.store.create(PODS, {"metadata": metadata, "spec": spec})
    status = {**pod["status"], "phase": phase, "podIP": f"10.0.{number >> 8}.{number & 255}"}
    status["conditions"] = [{"type": "Ready", "status": str(ready)}]
    return world.store.update(PODS, {**pod, "status": status}, "status")


def slices(world: World) -> list[Obj]:
    world.run(0.5)
    return world.store.list(ENDPOINT_SLICES, "default")


def endpoints(world: World, name: str = "web") -> Obj:
    world.run(0.5)
    return world.store.get(ENDPOINTS, "default", name)


def ready(of: list[Obj]) -> dict[str, bool]:
    return {
        one["targetRef"]["name"]: one["conditions"]["ready"]
        for slice_ in of
        for one in slice_["endpoints"]
    }


def test_a_service_leads_to_the_pods_that_its_selector_finds(world: World) -> None:
    a_pod(world, 1, nodeName="a")
    service = a_service(world)
    a_pod(world, 2, ready=False)
    a_pod(world, 3, phase="Succeeded")
    (found,) = slices(world)
    assert found["metadata"]["labels"] == {
        "team": "a",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    assert found["metadata"]["name"].startswith("web-")
    assert found["metadata"]["ownerReferences"][0]["uid"] == service["metadata"]["uid"]
    assert found["ports"] == [{"name": "", "port": 8080, "protocol": "TCP"}]
    first, second = found["endpoints"]
    assert first["addresses"] == ["10.0.0.1"]
    assert first["conditions"] == {"ready": True, "serving": True, "terminating": False}
    assert (first["nodeName"], first["zone"]) == ("a", "z1")
    assert second["conditions"]["ready"] is False
    (subset,) = endpoints(world)["subsets"]
    assert [one["ip"] for one in subset["addresses"]] == ["10.0.0.1"]
    assert [one["ip"] for one in subset["notReadyAddresses"]] == ["10.0.0.2"]
    assert subset["ports"] == [{"port": 8080, "protocol": "TCP"}]


def test_a_pod_that_terminates_is_not_ready_and_then_gone(world: World) -> None:
    a_service(world)
    a_pod(world, 1, nodeName="a")
    world.run(1)
    world.store.delete(PODS, "default", "web-1")
    (found,) = slices(world)
    assert found["endpoints"][0]["conditions"] == {
        "ready": False,
        "serving": True,
        "terminating": True,
    }
    assert "subsets" not in endpoints(world)
    world.run(1)
    (found,) = slices(world)
    assert (found["endpoints"], found["ports"][0]["port"]) == ([], 8080)


def test_a_named_port_is_looked_up_in_each_pod(world: World) -> None:
    a_service(world, "web", {"name": "http", "port": 80, "targetPort": "web"})
    for number, port in ((1, 8080), (2, 9090), (3, 8080)):
        ports = [{"name": "web", "containerPort": port}]
        a_pod(world, number, container={"ports": ports})
    by_port = {one["ports"][0]["port"]: ready([one]) for one in slices(world)}
    assert by_port == {8080: {"web-1": True, "web-3": True}, 9090: {"web-2": True}}


def test_unready_pods_are_published_where_the_service_says_so(world: World) -> None:
    a_service(world, publishNotReadyAddresses=True, clusterIP="None")
    a_pod(world, 1, ready=False, hostname="web-1")
    (found,) = slices(world)
    assert ready([found]) == {"web-1": True}
    assert found["endpoints"][0]["hostname"] == "web-1"
    assert "service.kubernetes.io/headless" in found["metadata"]["labels"]
    assert endpoints(world)["subsets"][0]["addresses"][0]["ip"] == "10.0.0.1"


def test_what_changes_is_written_once_and_in_its_own_slice(world: World) -> None:
    a_service(world)
    for number in range(250):
        a_pod(world, number)
    found = slices(world)
    assert sorted(len(one["endpoints"]) for one in found) == [50, 100, 100]
    before = {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in found}
    pod = world.store.get(PODS, "default", "web-7")
    status = {**pod["status"], "conditions": [{"type": "Ready", "status": "False"}]}
    world.store.update(PODS, {**pod, "status": status}, "status")
    after = {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in slices(world)}
    assert before.keys() == after.keys()
    assert sum(before[name] != after[name] for name in before) == 1
    version = world.store.version
    world.store.patch(PODS, "default", "web-8", {"metadata": {"annotations": {"a": "b"}}})
    world.run(1)
    assert world.store.version == version + 1


def test_services_without_a_selector_and_their_pods_are_left_alone(world: World) -> None:
    metadata = {"name": "own", "namespace": "default"}
    world.store.create(SERVICES, {"metadata": metadata, "spec": {"ports": [{"port": 80}]}})
    world.store.create(ENDPOINTS, {"metadata": metadata})
    a_service(world, "outside", type="ExternalName", externalName="example.com")
    a_pod(world, 1)
    assert slices(world) == []
    world.store.delete(SERVICES, "default", "own")
    assert endpoints(world, "own")


def test_with_the_service_goes_where_it_led(world: World) -> None:
    a_service(world)
    a_pod(world, 1)
    world.run(1)
    world.store.delete(SERVICES, "default", "web", propagation_policy="Background")
    assert slices(world) == []
    assert world.store.find(ENDPOINTS, "default", "web") is None


@pytest.mark.parametrize("resource", [ENDPOINT_SLICES, ENDPOINTS], ids=str)
def test_one_that_a_user_deletes_is_made_again(world: World, resource: Any) -> None:
    a_service(world)
    a_pod(world, 1)
    world.run(1)
    (there,) = world.store.list(resource, "default")
    world.store.delete(resource, "default", there["metadata"]["name"])
    world.run(1)
    (again,) = world.store.list(resource, "default")
    assert again["metadata"]["uid"] != there["metadata"]["uid"]
    assert ready(slices(world)) == {"web-1": True}


def test_other_ports_and_another_selector_are_followed(world: World) -> None:
    service = a_service(world)
    a_pod(world, 1)
    world.run(1)
    changed = {**service["spec"], "ports": [{"port": 80, "targetPort": 9090}]}
    world.store.patch(SERVICES, "default", "web", {"spec": changed})
    (found,) = slices(world)
    assert (found["ports"][0]["port"], ready([found])) == (9090, {"web-1": True})
    world.store.patch(SERVICES, "default", "web", {"spec": {"selector": {"app": "none"}}})
    assert ready(slices(world)) == {}


def test_a_namespace_that_goes_takes_them_along(world: World) -> None:
    world.add(NAMESPACES, {"metadata": {"name": "brief"}})
    obj = {"metadata": {"name": "web", "namespace": "brief"}}
    world.store.create(SERVICES, {**obj, "spec": {"selector": LABELS, "ports": [{"port": 80}]}})
    world.run(1)
    world.store.delete(NAMESPACES, "", "brief")
    world.run(5)
    assert world.store.find(NAMESPACES, "", "brief") is None
    assert world.store.list(ENDPOINT_SLICES, "brief") == []
