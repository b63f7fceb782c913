"""Bodies that cannot be read, or not wholly: types, and fields that do not exist."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.model.api.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    LEASES,
    NODE_POOLS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    SERVICES,
    Resource,
)
from tenure.ports.transport import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, Request
from tests.contract.backends import WORKLOAD, Backend, a_node, a_pod
from tests.contract.test_custom_kinds import a_pool

Json = dict[str, Any]
NAMED: Json = {"metadata": {"name": "a"}}


def container(**fields: Any) -> Json:
    return {"containers": [{"name": "main", "image": "registry.example/app:1", **fields}]}


UNREADABLE = [
    pytest.param(PODS, {**NAMED, "spec": "none"}, id="a text for an object"),
    pytest.param(PODS, {**NAMED, "spec": {"containers": {"name": "a"}}}, id="an object for a list"),
    pytest.param(PODS, {**NAMED, "spec": container(name=5)}, id="a number for a text"),
    pytest.param(PODS, a_pod("a", hostNetwork="yes"), id="a text for true or false"),
    pytest.param(PODS, a_pod("a", priority="high"), id="a text for a number"),
    pytest.param(PODS, a_pod("a", priority=2**31), id="too large a number"),
    pytest.param(
        DEPLOYMENTS, {**NAMED, "spec": {**WORKLOAD, "replicas": 2**62}}, id="more than can be"
    ),
    pytest.param(PODS, a_pod("a", priority=1.5), id="a fraction for a whole number"),
    pytest.param(
        PODS,
        {**NAMED, "spec": container(resources={"requests": {"cpu": "much"}})},
        id="no amount",
    ),
    pytest.param(
        PODS, {**NAMED, "spec": container(resources={"requests": {"cpu": {}}})}, id="odd amount"
    ),
    pytest.param(PODS, {**NAMED, "spec": {"nodeSelector": {"a": True}}}, id="a label that is true"),
    pytest.param(
        CONFIG_MAPS, {"metadata": {"name": "a", "labels": {"n": 1}}}, id="a label that is a number"
    ),
    pytest.param(CONFIG_MAPS, {"metadata": {"name": 5}}, id="a name that is a number"),
    pytest.param(CONFIG_MAPS, {**NAMED, "data": {"a": 1}}, id="data that is a number"),
    pytest.param(
        NODES, {**NAMED, "spec": {"taints": {"key": "a"}}}, id="a taint that is not in a list"
    ),
    pytest.param(DEPLOYMENTS, {**NAMED, "spec": {"replicas": "3"}}, id="a number in quotes"),
    pytest.param(
        POD_DISRUPTION_BUDGETS, {**NAMED, "spec": {"minAvailable": True}}, id="a share that is true"
    ),
    pytest.param(
        LEASES, {**NAMED, "spec": {"renewTime": "yesterday"}}, id="an instant that is none"
    ),
    pytest.param(PODS, a_pod("a", volumes=["data"]), id="a volume that is a text"),
    pytest.param(PODS, a_pod("a", securityContext=5), id="a number for an object"),
    pytest.param(
        NODE_POOLS, {"metadata": {"name": "a", "labels": {"n": 1}}}, id="metadata of a custom kind"
    ),
]


@pytest.mark.parametrize(("resource", "obj"), UNREADABLE)
async def test_a_value_of_the_wrong_type_is_a_bad_request(
    api: Backend, resource: Resource, obj: Json
) -> None:
    answer = await api.create(resource, obj)
    assert (answer.status, answer.reason) == (400, "BadRequest"), answer


UNKNOWN = [
    pytest.param(PODS, a_pod("a", colour="blue"), "spec.colour", id="of a pod"),
    pytest.param(
        PODS,
        {**NAMED, "spec": container(colour="blue")},
        "spec.containers[0].colour",
        id="of a container",
    ),
    pytest.param(NODES, a_node("a", colour="blue"), "spec.colour", id="of a node"),
    pytest.param(CONFIG_MAPS, {**NAMED, "colour": "blue"}, "colour", id="at the top"),
    pytest.param(
        CONFIG_MAPS, {"metadata": {"name": "a", "colour": "b"}}, "metadata.colour", id="of metadata"
    ),
    pytest.param(
        SERVICES,
        {**NAMED, "spec": {"ports": [{"port": 80, "colour": 1}]}},
        "colour",
        id="of a port",
    ),
    pytest.param(
        JOBS,
        {**NAMED, "spec": {"template": {"spec": container(colour=1)}}},
        "colour",
        id="of a job",
    ),
]


@pytest.mark.parametrize(("resource", "obj", "field"), UNKNOWN)
async def test_who_asks_for_strictness_is_told_of_fields_that_do_not_exist(
    api: Backend, resource: Resource, obj: Json, field: str
) -> None:
    answer = await api.create(resource, obj, fieldValidation="Strict")
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert f'{field}"' in answer.body["message"]


async def test_else_such_a_field_is_dropped_and_warned_about(api: Backend) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", **a_pod("a", colour="blue")}
    path, body = api.path(PODS), msgspec.json.encode(pod)
    response = await api.transport.request(Request(method="POST", path=path, body=body))
    assert response.status == 201
    assert 'unknown field \\"spec.colour\\"' in response.headers["Warning"]
    assert "colour" not in msgspec.json.decode(response.body)["spec"]


async def test_or_dropped_in_silence(api: Backend) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", **a_pod("a", colour="blue")}
    request = Request(
        method="POST",
        path=api.path(PODS),
        query={"fieldValidation": "Ignore"},
        body=msgspec.json.encode(pod),
    )
    response = await api.transport.request(request)
    assert (response.status, "Warning" in response.headers) == (201, False)


async def test_another_wish_is_refused(api: Backend) -> None:
    answer = await api.create(PODS, a_pod("a"), fieldValidation="Perhaps")
    assert (answer.status, answer.fields) == (422, ["fieldValidation"])


@pytest.mark.parametrize(
    ("content_type", "patch"),
    [
        pytest.param(MERGE_PATCH, {"spec": {"replicas": "3"}}, id="merged"),
        pytest.param(STRATEGIC_MERGE_PATCH, {"spec": {"replicas": "3"}}, id="merged cleverly"),
        pytest.param(
            JSON_PATCH, [{"op": "replace", "path": "/spec/replicas", "value": "3"}], id="by pointer"
        ),
    ],
)
async def test_a_patch_to_something_unreadable_is_refused(
    api: Backend, content_type: str, patch: Any
) -> None:
    await a_deployment(api)
    answer = await api.patch(DEPLOYMENTS, "web", patch, content_type)
    assert answer.status in (400, 422), answer


async def a_deployment(api: Backend) -> None:
    await api.created(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": WORKLOAD})


@pytest.mark.parametrize("content_type", [MERGE_PATCH, STRATEGIC_MERGE_PATCH])
async def test_a_strict_patch_with_a_field_that_does_not_exist_is_invalid(
    api: Backend, content_type: str
) -> None:
    await a_deployment(api)
    patch = {"spec": {"replicass": 3}}
    answer = await api.patch(DEPLOYMENTS, "web", patch, content_type, fieldValidation="Strict")
    assert (answer.status, answer.fields) == (422, ["patch"]), answer
    assert "spec.replicass" in answer.body["message"]


async def test_a_strict_patch_of_a_custom_kind_too(api: Backend) -> None:
    name = (await api.created(NODE_POOLS, a_pool(api)))["metadata"]["name"]
    patch = {"spec": {"colour": "blue"}}
    answer = await api.patch(NODE_POOLS, name, patch, fieldValidation="Strict")
    assert (answer.status, answer.fields) == (422, ["patch"]), answer


async def test_a_body_is_read_before_it_is_compared_with_what_is_there(api: Backend) -> None:
    pool = await api.created(NODE_POOLS, a_pool(api))
    again = {**a_pool(api, colour="blue"), "metadata": {"name": pool["metadata"]["name"]}}
    answer = await api.create(NODE_POOLS, again, fieldValidation="Strict")
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_a_null_is_as_absent_in_a_built_in_kind(api: Backend) -> None:
    created = await api.created(PODS, a_pod("a", priorityClassName=None, nodeSelector=None))
    assert "nodeSelector" not in created["spec"]


@pytest.mark.parametrize(
    ("resource", "obj", "fields"),
    [
        pytest.param(
            PODS, a_pod("a", tolerations=[None]), ["spec.tolerations[0].operator"], id="toleration"
        ),
        pytest.param(
            NODES,
            a_node("a", taints=[None]),
            ["metadata.taints[0].effect", "metadata.taints[0].key"],
            id="taint",
        ),
    ],
)
async def test_a_null_in_a_list_is_an_empty_element(
    api: Backend, resource: Resource, obj: Json, fields: list[str]
) -> None:
    answer = await api.create(resource, obj)
    assert (answer.status, answer.fields) == (422, fields), answer


async def test_a_null_in_a_list_of_texts_is_an_empty_text(api: Backend) -> None:
    created = await api.created(PODS, {**NAMED, "spec": container(args=["a", None])})
    assert created["spec"]["containers"][0]["args"] == ["a", ""]


async def test_a_text_that_every_such_object_has_is_empty_if_it_is_missing(api: Backend) -> None:
    name = (await api.created(NODES, a_node(api.unique("a"))))["metadata"]["name"]
    for condition in ({"reason": "Testing"}, {"type": None}, None):
        patch = {"status": {"conditions": [condition]}}
        answer = await api.patch(NODES, name, patch, subresource="status")
        stored = answer.body["status"]["conditions"][0]
        assert (stored["type"], stored["status"]) == ("", "")


async def test_an_amount_may_be_a_number(api: Backend) -> None:
    spec = container(resources={"requests": {"cpu": 1, "memory": 1024}})
    created = await api.created(PODS, {**NAMED, "spec": spec})
    requests = created["spec"]["containers"][0]["resources"]["requests"]
    assert requests == {"cpu": "1", "memory": "1024"}


async def test_an_event_with_every_field_is_read(api: Backend) -> None:
    event = {
        "metadata": {"name": "a"},
        "involvedObject": {"kind": "Pod", "name": "a", "namespace": api.namespace},
        "reason": "Testing",
        "message": "all is well",
        "type": "Normal",
        "count": 1,
        "firstTimestamp": "2031-05-02T08:00:00Z",
        "lastTimestamp": "2031-05-02T08:00:00Z",
        "source": {"component": "test", "host": "here"},
        "reportingComponent": "test",
        "reportingInstance": "test-1",
    }
    answer = await api.create(EVENTS, event, fieldValidation="Strict")
    assert answer.status == 201, answer
