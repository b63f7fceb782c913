"""What the API server fills in for a Service: a client finds its address and its type."""

from __future__ import annotations

from tenure.model.api.resource import SERVICES
from tests.contract.backends import Backend


async def test_a_service_gets_an_address_and_keeps_it(api: Backend) -> None:
    spec = {"ports": [{"port": 80}], "selector": {"app": "web"}}
    made = await api.created(SERVICES, {"metadata": {"name": "web"}, "spec": spec})
    assert (made["spec"]["type"], made["spec"]["sessionAffinity"]) == ("ClusterIP", "None")
    assert made["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    address = made["spec"]["clusterIP"]
    assert address.startswith("10.")
    assert made["spec"]["clusterIPs"] == [address]
    changed = await api.put(SERVICES, {"metadata": {"name": "web"}, "spec": spec})
    assert (changed.status, changed.body["spec"]["clusterIP"]) == (200, address)


async def test_a_headless_service_has_none(api: Backend) -> None:
    spec = {"clusterIP": "None", "ports": [{"port": 80}], "selector": {"app": "web"}}
    made = await api.created(SERVICES, {"metadata": {"name": "web"}, "spec": spec})
    assert (made["spec"]["clusterIP"], made["spec"]["clusterIPs"]) == ("None", ["None"])


async def test_a_service_that_is_a_name_elsewhere_has_no_address(api: Backend) -> None:
    spec = {"type": "ExternalName", "externalName": "db.example.com"}
    made = await api.created(SERVICES, {"metadata": {"name": "db"}, "spec": spec})
    assert "clusterIP" not in made["spec"]
