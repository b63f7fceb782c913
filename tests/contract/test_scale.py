"""The scale of a workload or a pool: its replicas as an object of its own."""

from __future__ import annotations

from typing import Any

from tenure.model.api.resource import DEPLOYMENTS, NODE_POOLS, PODS, Resource
from tenure.ports.transport import JSON_PATCH
from tests.contract.backends import WORKLOAD, Answer, Backend
from tests.contract.test_custom_kinds import a_pool

Json = dict[str, Any]


async def a_deployment(api: Backend, replicas: int = 2) -> Json:
    spec = {**WORKLOAD, "replicas": replicas}
    return await api.created(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})


async def scale_of(api: Backend, resource: Resource, name: str) -> Answer:
    return await api.send("GET", api.path(resource, name, "scale"))


async def test_a_deployment_says_how_many_it_should_be_and_whom_it_selects(api: Backend) -> None:
    created = await a_deployment(api)
    scale = (await scale_of(api, DEPLOYMENTS, "web")).body
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["spec"] == {"replicas": 2}
    assert scale["status"] == {"replicas": 0, "selector": "app=web"}
    version = created["metadata"]["resourceVersion"]
    assert scale["metadata"]["resourceVersion"] == version


async def test_a_changed_scale_changes_the_deployment(api: Backend) -> None:
    await a_deployment(api)
    scale = (await scale_of(api, DEPLOYMENTS, "web")).body
    scale["spec"]["replicas"] = 5
    answer = await api.send("PUT", api.path(DEPLOYMENTS, "web", "scale"), scale)
    assert (answer.status, answer.body["spec"]) == (200, {"replicas": 5})
    deployment = (await api.get(DEPLOYMENTS, "web")).body
    assert (deployment["spec"]["replicas"], deployment["metadata"]["generation"]) == (5, 2)


async def test_a_stale_scale_is_a_conflict(api: Backend) -> None:
    await a_deployment(api)
    scale = (await scale_of(api, DEPLOYMENTS, "web")).body
    await api.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 3}})
    answer = await api.send("PUT", api.path(DEPLOYMENTS, "web", "scale"), scale)
    assert (answer.status, answer.reason) == (409, "Conflict")


async def test_a_scale_can_be_patched(api: Backend) -> None:
    await a_deployment(api)
    merged = await api.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 4}}, subresource="scale")
    assert (merged.status, merged.body["spec"]) == (200, {"replicas": 4})
    change = [{"op": "replace", "path": "/spec/replicas", "value": 6}]
    answer = await api.patch(DEPLOYMENTS, "web", change, JSON_PATCH, subresource="scale")
    assert (answer.status, answer.body["spec"]) == (200, {"replicas": 6})


async def test_fewer_than_none_are_refused(api: Backend) -> None:
    await a_deployment(api)
    answer = await api.patch(DEPLOYMENTS, "web", {"spec": {"replicas": -1}}, subresource="scale")
    assert (answer.status, answer.fields) == (422, ["spec.replicas"])


async def test_a_missing_object_is_not_found(api: Backend) -> None:
    assert (await scale_of(api, DEPLOYMENTS, "missing")).status == 404


async def test_a_static_pool_is_scaled_by_its_nodes(api: Backend) -> None:
    name = (await api.created(NODE_POOLS, a_pool(api, replicas=2)))["metadata"]["name"]
    await api.patch(NODE_POOLS, name, {"status": {"nodes": 1}}, subresource="status")
    scale = (await scale_of(api, NODE_POOLS, name)).body
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (2, 1)
    answer = await api.patch(NODE_POOLS, name, {"spec": {"replicas": 3}}, subresource="scale")
    assert (answer.status, answer.body["spec"]["replicas"]) == (200, 3)
    assert (await api.get(NODE_POOLS, name)).body["spec"]["replicas"] == 3


async def test_a_pool_that_follows_its_pods_has_no_scale(api: Backend) -> None:
    name = (await api.created(NODE_POOLS, a_pool(api)))["metadata"]["name"]
    assert (await scale_of(api, NODE_POOLS, name)).status == 500


async def test_a_pod_has_no_scale(api: Backend) -> None:
    await api.running_pod("a")
    answer = await scale_of(api, PODS, "a")
    assert (answer.status, answer.reason) == (404, "NotFound")
