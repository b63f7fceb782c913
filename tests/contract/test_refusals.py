"""Refusals: code, reason and the field that is at fault."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.model.api.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    EVENTS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    Resource,
)
from tenure.ports.transport import Request
from tests.contract.backends import WORKLOAD, Backend, a_pod

Json = dict[str, Any]


async def test_an_unknown_group_is_answered_in_plain_text(api: Backend) -> None:
    response = await api.transport.request(Request(method="GET", path="/apis/no.such/v1/things"))
    assert response.status == 404
    assert response.headers["Content-Type"].startswith("text/plain")


async def test_an_unknown_resource_of_a_known_group_is_a_status(api: Backend) -> None:
    answer = await api.send("GET", "/api/v1/things")
    assert (answer.status, answer.reason) == (404, "NotFound")


async def test_a_missing_object_is_named(api: Backend) -> None:
    answer = await api.get(PODS, "missing")
    assert (answer.status, answer.reason) == (404, "NotFound")
    assert answer.body["details"] == {"name": "missing", "kind": "pods"}


@pytest.mark.parametrize(
    ("resource", "obj", "fields"),
    [
        pytest.param(CONFIG_MAPS, {"metadata": {}}, ["metadata.name"], id="no name"),
        pytest.param(
            CONFIG_MAPS, {"metadata": {"name": "A_b"}}, ["metadata.name"], id="a bad name"
        ),
        pytest.param(
            CONFIG_MAPS,
            {"metadata": {"name": "a", "labels": {"k": "not a value"}}},
            ["metadata.labels"],
            id="a bad label value",
        ),
        pytest.param(
            CONFIG_MAPS,
            {"metadata": {"name": "a", "labels": {"-k": ""}}},
            ["metadata.labels"],
            id="a bad label key",
        ),
        pytest.param(
            CONFIG_MAPS,
            {"metadata": {"name": "a", "annotations": {"no good": ""}}},
            ["metadata.annotations"],
            id="a bad annotation key",
        ),
        pytest.param(
            CONFIG_MAPS,
            {"metadata": {"name": "a", "finalizers": ["not good!"]}},
            ["metadata.finalizers", "metadata.finalizers[0]"],
            id="a bad finalizer",
        ),
        pytest.param(
            CONFIG_MAPS,
            {"metadata": {"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod"}]}},
            ["metadata.ownerReferences.name", "metadata.ownerReferences.uid"],
            id="an owner without name and uid",
        ),
        pytest.param(
            PODS, {"metadata": {"name": "a"}, "spec": {}}, ["spec.containers"], id="no containers"
        ),
        pytest.param(
            PODS,
            {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}]}},
            ["spec.containers[0].image"],
            id="a container without an image",
        ),
        pytest.param(
            PODS, a_pod("a", restartPolicy="Maybe"), ["spec.restartPolicy"], id="a bad policy"
        ),
        pytest.param(
            PODS,
            a_pod("a", tolerations=[{"key": "k", "operator": "Exists", "effect": "Now"}]),
            ["spec.tolerations[0].effect"],
            id="a toleration of an unknown effect",
        ),
        pytest.param(
            NODES,
            {"metadata": {"name": "a"}, "spec": {"taints": [{"key": "k", "effect": "Now"}]}},
            ["metadata.taints[0].effect"],
            id="a taint of an unknown effect",
        ),
        pytest.param(
            NODES,
            {
                "metadata": {"name": "a"},
                "spec": {
                    "taints": [{"key": "k", "effect": "NoSchedule", "value": v} for v in "ab"]
                },
            },
            ["metadata.taints[1]"],
            id="the same taint twice",
        ),
        pytest.param(
            DEPLOYMENTS,
            {"metadata": {"name": "a"}, "spec": {**WORKLOAD, "replicas": -1}},
            ["spec.replicas"],
            id="fewer replicas than none",
        ),
        *(
            pytest.param(
                DEPLOYMENTS,
                {
                    "metadata": {"name": "a"},
                    "spec": {**WORKLOAD, "strategy": {"rollingUpdate": {"maxUnavailable": value}}},
                },
                ["spec.strategy.rollingUpdate.maxUnavailable"],
                id=f"{value} may be missing",
            )
            for value in ("some", "101%", -1)
        ),
        pytest.param(
            POD_DISRUPTION_BUDGETS,
            {"metadata": {"name": "a"}, "spec": {"minAvailable": 1, "maxUnavailable": 1}},
            ["spec"],
            id="a budget with both limits",
        ),
        pytest.param(
            DEPLOYMENTS,
            {
                "metadata": {"name": "a"},
                "spec": {
                    "selector": {"matchLabels": {"a": "b"}},
                    "template": {"metadata": {"labels": {"a": "c"}}, "spec": a_pod("x")["spec"]},
                },
            },
            ["spec.template.metadata.labels"],
            id="a selector that misses its template",
        ),
    ],
)
async def test_an_invalid_object_is_refused_at_its_field(
    api: Backend, resource: Resource, obj: Json, fields: list[str]
) -> None:
    answer = await api.create(resource, obj)
    assert (answer.status, answer.reason, answer.fields) == (422, "Invalid", fields)


async def test_a_body_that_is_no_json_is_a_bad_request(api: Backend) -> None:
    response = await api.transport.request(
        Request(method="POST", path=api.path(PODS), body=b'{"metadata":')
    )
    assert response.status == 400


async def test_a_body_of_another_kind_is_a_bad_request(api: Backend) -> None:
    answer = await api.create(NODES, {**a_pod("a"), "kind": "Pod"})
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_name_and_namespace_must_agree_with_the_path(api: Backend) -> None:
    elsewhere = {"metadata": {"name": "a", "namespace": "default"}}
    assert (await api.create(CONFIG_MAPS, elsewhere)).status == 400
    await api.created(CONFIG_MAPS, {"metadata": {"name": "a"}})
    path = api.path(CONFIG_MAPS, "a")
    answer = await api.send("PUT", path, {"metadata": {"name": "b"}})
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_a_method_that_is_not_offered_is_405(api: Backend) -> None:
    answer = await api.send("POST", api.path(PODS, "a", "status"), {})
    assert (answer.status, answer.reason) == (405, "MethodNotAllowed")


async def test_an_unknown_priority_class_is_forbidden(api: Backend) -> None:
    answer = await api.create(PODS, a_pod("a", priorityClassName="no-such-class"))
    assert (answer.status, answer.reason) == (403, "Forbidden")


async def test_a_bound_pod_cannot_be_moved_by_an_update(api: Backend) -> None:
    pod = await api.running_pod("a")
    moved = {**pod, "spec": {**pod["spec"], "nodeName": "node-2"}}
    answer = await api.put(PODS, moved)
    assert (answer.status, answer.reason, answer.fields) == (422, "Invalid", ["spec"])


async def test_the_uid_of_an_object_cannot_be_patched(api: Backend) -> None:
    await api.created(CONFIG_MAPS, {"metadata": {"name": "a"}})
    answer = await api.patch(CONFIG_MAPS, "a", {"metadata": {"uid": "another"}})
    assert (answer.status, answer.reason, answer.fields) == (422, "Invalid", ["metadata.uid"])


@pytest.mark.parametrize(
    ("patch", "status", "fields"),
    [
        pytest.param({"metadata": {"name": "b"}}, 400, [], id="its name"),
        pytest.param({"metadata": {"namespace": "b"}}, 400, [], id="its namespace"),
        pytest.param({"kind": "Secret"}, 422, ["patch"], id="its kind"),
        pytest.param(
            {"metadata": {"deletionTimestamp": "2031-01-01T00:00:00Z"}},
            422,
            ["metadata.deletionTimestamp"],
            id="its deletion",
        ),
        pytest.param([], 400, [], id="a list for an object"),
    ],
)
async def test_what_an_object_is_cannot_be_patched(
    api: Backend, patch: Any, status: int, fields: list[str]
) -> None:
    created = await api.created(CONFIG_MAPS, {"metadata": {"name": "a"}})
    answer = await api.patch(CONFIG_MAPS, "a", patch)
    assert (answer.status, answer.fields) == (status, fields)
    assert (await api.get(CONFIG_MAPS, "a")).body == created


async def test_server_fields_in_a_patch_are_ignored(api: Backend) -> None:
    created = await api.created(CONFIG_MAPS, {"metadata": {"name": "a"}})
    patch = {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z", "generation": 7}}
    answer = await api.patch(CONFIG_MAPS, "a", patch)
    assert (answer.status, answer.body["metadata"]["creationTimestamp"]) == (
        200,
        created["metadata"]["creationTimestamp"],
    )


async def test_an_unknown_propagation_policy_is_refused(api: Backend) -> None:
    await api.created(CONFIG_MAPS, {"metadata": {"name": "a"}})
    answer = await api.delete(CONFIG_MAPS, "a", propagationPolicy="Sideways")
    assert (answer.status, answer.fields) == (422, ["propagationPolicy"])


async def test_the_whole_cluster_cannot_be_written_at_once(api: Backend) -> None:
    for method in ("POST", "DELETE"):
        answer = await api.send(method, PODS.path(), a_pod("a"))
        assert (answer.status, answer.reason) == (405, "MethodNotAllowed")


@pytest.mark.parametrize(
    ("namespace", "about", "status"),
    [
        pytest.param("", {"kind": "Pod", "name": "p"}, 422, id="elsewhere than a node's"),
        pytest.param("default", {"kind": "Node", "name": "n"}, 201, id="a node's, in default"),
        pytest.param("kube-system", {"kind": "Node", "name": "n"}, 422, id="not in kube-system"),
        pytest.param(
            "default",
            {"kind": "Pod", "name": "p", "namespace": "kube-system"},
            422,
            id="elsewhere than its pod",
        ),
    ],
)
async def test_an_event_lies_beside_what_it_is_about(
    api: Backend, namespace: str, about: Json, status: int
) -> None:
    name = api.unique("event")
    event = {"metadata": {"name": name}, "involvedObject": about, "reason": "R", "type": "Normal"}
    path = EVENTS.path(namespace or api.namespace)
    answer = await api.send("POST", path, event)
    assert answer.status == status
    if status == 422:
        assert answer.fields == ["involvedObject.namespace"]
    await api.send("DELETE", f"{path}/{name}")


async def test_a_bad_taint_is_refused_on_update_too(api: Backend) -> None:
    name = api.unique("n")
    await api.created(NODES, {"metadata": {"name": name}})
    answer = await api.patch(NODES, name, {"spec": {"taints": [{"key": "k", "effect": "Now"}]}})
    assert (answer.status, answer.fields) == (422, ["metadata.taints[0].effect"])


async def test_a_provider_id_is_given_once(api: Backend) -> None:
    name = api.unique("n")
    await api.created(NODES, {"metadata": {"name": name}})
    first = await api.patch(NODES, name, {"spec": {"providerID": "cloud://1"}})
    second = await api.patch(NODES, name, {"spec": {"providerID": "cloud://2"}})
    assert (first.status, second.status, second.fields) == (200, 422, ["spec.providerID"])
