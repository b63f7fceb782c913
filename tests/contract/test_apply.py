"""Server-side apply: who owns which field, and what a conflict says."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.model.api.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NODE_POOLS,
    NODES,
    PODS,
    SERVICES,
    Resource,
)
from tenure.ports.transport import APPLY_PATCH, JSON_PATCH, MERGE_PATCH
from tests.contract.backends import Answer, Backend, Json, a_cluster_node, a_pod

CONTAINER = {"name": "main", "image": "registry.example/app:1"}
NODE_CLASS = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}


async def apply(
    api: Backend, resource: Resource, name: str, obj: Json, by: str, **query: str
) -> Answer:
    whole = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name},
        **obj,
    }
    subresource = query.pop("subresource", "")
    return await api.patch(
        resource, name, whole, APPLY_PATCH, subresource, fieldManager=by, **query
    )


def managers(obj: Json) -> dict[tuple[str, ...], Any]:
    """(manager, operation, subresource) → what it owns."""
    return {
        (one["manager"], one["operation"], one.get("subresource", "")): one["fieldsV1"]
        for one in obj["metadata"].get("managedFields", ())
    }


def conflicts(answer: Answer) -> list[tuple[str, str, str]]:
    return sorted((c["reason"], c["field"], c["message"]) for c in answer.causes)


def config(**data: str) -> Json:
    return {"data": data}


async def test_apply_creates_and_says_who_owns_it(api: Backend) -> None:
    answer = await apply(api, CONFIG_MAPS, "a", config(x="1", y="2"), "anna")
    assert answer.status == 201
    assert answer.body["data"] == {"x": "1", "y": "2"}
    assert managers(answer.body) == {("anna", "Apply", ""): {"f:data": {"f:x": {}, "f:y": {}}}}
    entry = answer.body["metadata"]["managedFields"][0]
    assert (entry["apiVersion"], entry["fieldsType"]) == ("v1", "FieldsV1")


async def test_a_field_that_is_left_out_goes(api: Backend) -> None:
    await apply(api, CONFIG_MAPS, "a", config(x="1", y="2"), "anna")
    answer = await apply(api, CONFIG_MAPS, "a", config(x="1"), "anna")
    assert (answer.status, answer.body["data"]) == (200, {"x": "1"})


async def test_a_field_of_another_manager_is_a_conflict(api: Backend) -> None:
    await apply(api, CONFIG_MAPS, "a", config(x="1", y="2"), "anna")
    answer = await apply(api, CONFIG_MAPS, "a", config(x="9"), "bert")
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert answer.body["message"] == 'Apply failed with 1 conflict: conflict with "anna": .data.x'
    assert conflicts(answer) == [("FieldManagerConflict", ".data.x", 'conflict with "anna"')]
    assert "name" not in answer.body["details"]
    assert (await api.get(CONFIG_MAPS, "a")).body["data"]["x"] == "1"


async def test_several_conflicts_are_told_by_manager(api: Backend) -> None:
    await apply(api, CONFIG_MAPS, "a", config(x="1", y="2"), "anna")
    answer = await apply(api, CONFIG_MAPS, "a", config(x="9", y="9"), "bert")
    assert answer.body["message"] == (
        'Apply failed with 2 conflicts: conflicts with "anna":\n- .data.x\n- .data.y'
    )


async def test_force_takes_the_field(api: Backend) -> None:
    await apply(api, CONFIG_MAPS, "a", config(x="1", y="2"), "anna")
    answer = await apply(api, CONFIG_MAPS, "a", config(x="9"), "bert", force="true")
    assert answer.body["data"] == {"x": "9", "y": "2"}
    assert managers(answer.body) == {
        ("anna", "Apply", ""): {"f:data": {"f:y": {}}},
        ("bert", "Apply", ""): {"f:data": {"f:x": {}}},
    }


async def test_the_same_value_is_owned_together(api: Backend) -> None:
    await apply(api, CONFIG_MAPS, "a", config(x="1"), "anna")
    shared = await apply(api, CONFIG_MAPS, "a", config(x="1"), "bert")
    assert len(managers(shared.body)) == 2
    left = await apply(api, CONFIG_MAPS, "a", {}, "anna")
    assert left.body["data"] == {"x": "1"}, "bert still wants it"
    gone = await apply(api, CONFIG_MAPS, "a", {}, "bert")
    assert "data" not in gone.body


async def test_applying_the_same_again_changes_nothing(api: Backend) -> None:
    first = await apply(api, CONFIG_MAPS, "a", config(x="1"), "anna")
    again = await apply(api, CONFIG_MAPS, "a", config(x="1"), "anna")
    assert (again.status, again.body) == (200, first.body)


async def test_an_update_takes_a_field_and_apply_then_conflicts(api: Backend) -> None:
    await apply(api, CONFIG_MAPS, "a", config(x="1", y="2"), "anna")
    await api.patch(CONFIG_MAPS, "a", {"data": {"x": "8"}}, MERGE_PATCH, fieldManager="editor")
    seen = managers((await api.get(CONFIG_MAPS, "a")).body)
    assert seen == {
        ("anna", "Apply", ""): {"f:data": {"f:y": {}}},
        ("editor", "Update", ""): {"f:data": {"f:x": {}}},
    }
    answer = await apply(api, CONFIG_MAPS, "a", config(x="1", y="2"), "anna")
    assert conflicts(answer) == [
        ("FieldManagerConflict", ".data.x", 'conflict with "editor" using v1')
    ]


async def test_what_was_created_is_owned_by_its_creator(api: Backend) -> None:
    answer = await api.create(
        CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"x": "1"}}, fieldManager="maker"
    )
    assert managers(answer.body) == {
        ("maker", "Update", ""): {"f:data": {".": {}, "f:x": {}}},
    }
    refused = await apply(api, CONFIG_MAPS, "a", config(x="2"), "anna")
    assert [field for _, field, _ in conflicts(refused)] == [".data.x"]


async def test_labels_are_owned_one_by_one(api: Backend) -> None:
    labels = {"metadata": {"name": "a", "labels": {"app.example/name": "x"}}}
    await apply(api, CONFIG_MAPS, "a", labels, "anna")
    other = {"metadata": {"name": "a", "labels": {"team": "y"}}}
    answer = await apply(api, CONFIG_MAPS, "a", other, "bert")
    assert answer.body["metadata"]["labels"] == {"app.example/name": "x", "team": "y"}
    changed = {"metadata": {"name": "a", "labels": {"app.example/name": "z"}}}
    refused = await apply(api, CONFIG_MAPS, "a", changed, "bert")
    assert [field for _, field, _ in conflicts(refused)] == [".metadata.labels.app.example/name"]


def deployment(*containers: Json, **spec: Any) -> Json:
    return {
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": list(containers)},
            },
            **spec,
        }
    }


async def test_containers_are_owned_by_name(api: Backend) -> None:
    both = deployment(CONTAINER, {"name": "side", "image": "registry.example/side:1"})
    made = await apply(api, DEPLOYMENTS, "web", both, "anna")
    assert managers(made.body)[("anna", "Apply", "")] == {
        "f:spec": {
            "f:selector": {},
            "f:template": {
                "f:metadata": {"f:labels": {"f:app": {}}},
                "f:spec": {
                    "f:containers": {
                        'k:{"name":"main"}': {".": {}, "f:image": {}, "f:name": {}},
                        'k:{"name":"side"}': {".": {}, "f:image": {}, "f:name": {}},
                    }
                },
            },
        }
    }
    answer = await apply(api, DEPLOYMENTS, "web", deployment(CONTAINER), "anna")
    left = answer.body["spec"]["template"]["spec"]["containers"]
    assert [one["name"] for one in left] == ["main"]
    refused = await apply(
        api,
        DEPLOYMENTS,
        "web",
        deployment({**CONTAINER, "image": "registry.example/app:2"}),
        "bert",
    )
    assert [field for _, field, _ in conflicts(refused)] == [
        '.spec.template.spec.containers[name="main"].image'
    ]


async def test_defaults_have_no_owner(api: Backend) -> None:
    await apply(api, DEPLOYMENTS, "web", deployment(CONTAINER), "anna")
    answer = await apply(api, DEPLOYMENTS, "web", deployment(CONTAINER, replicas=4), "bert")
    assert (answer.status, answer.body["spec"]["replicas"]) == (200, 4)
    back = await apply(api, DEPLOYMENTS, "web", {}, "bert")
    assert back.body["spec"]["replicas"] == 1, "the default again"


async def test_a_scaled_deployment_conflicts_with_who_scaled_it(api: Backend) -> None:
    await apply(api, DEPLOYMENTS, "web", deployment(CONTAINER, replicas=2), "anna")
    await api.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 5}}, fieldManager="scaler")
    answer = await apply(api, DEPLOYMENTS, "web", deployment(CONTAINER, replicas=2), "anna")
    assert conflicts(answer) == [
        ("FieldManagerConflict", ".spec.replicas", 'conflict with "scaler" using apps/v1')
    ]
    without = await apply(api, DEPLOYMENTS, "web", deployment(CONTAINER), "anna")
    assert without.body["spec"]["replicas"] == 5


async def test_the_scale_is_a_part_of_its_own(api: Backend) -> None:
    await apply(api, DEPLOYMENTS, "web", deployment(CONTAINER, replicas=2), "anna")
    scale = {"spec": {"replicas": 5}}
    await api.patch(DEPLOYMENTS, "web", scale, subresource="scale", fieldManager="scaler")
    answer = await apply(api, DEPLOYMENTS, "web", deployment(CONTAINER, replicas=2), "anna")
    (conflict,) = conflicts(answer)
    assert conflict[1:] == (
        ".spec.replicas",
        'conflict with "scaler" with subresource "scale" using apps/v1',
    )


async def test_ports_have_their_protocol_by_default(api: Backend) -> None:
    ports = [
        {"port": 80, "targetPort": 8080, "name": "t"},
        {"port": 80, "protocol": "UDP", "name": "u"},
    ]
    made = await apply(api, SERVICES, "s", {"spec": {"clusterIP": "None", "ports": ports}}, "anna")
    owned = managers(made.body)[("anna", "Apply", "")]["f:spec"]["f:ports"]
    assert sorted(owned) == [
        'k:{"port":80,"protocol":"TCP"}',
        'k:{"port":80,"protocol":"UDP"}',
    ]


async def test_taints_are_one_value(api: Backend) -> None:
    name = (await a_cluster_node(api, "n"))["metadata"]["name"]
    taints = [{"key": "a", "effect": "NoSchedule"}]
    made = await apply(api, NODES, name, {"spec": {"taints": taints}}, "anna", force="true")
    assert managers(made.body)[("anna", "Apply", "")] == {"f:spec": {"f:taints": {}}}


async def test_finalizers_are_a_set(api: Backend) -> None:
    for manager in ("one", "two"):
        finalizers = {"metadata": {"name": "a", "finalizers": [f"example.com/{manager}"]}}
        answer = await apply(api, CONFIG_MAPS, "a", finalizers, manager)
    assert answer.body["metadata"]["finalizers"] == ["example.com/one", "example.com/two"]
    assert managers(answer.body)[("two", "Apply", "")] == {
        "f:metadata": {"f:finalizers": {'v:"example.com/two"': {}}}
    }
    for manager in ("one", "two"):
        answer = await apply(api, CONFIG_MAPS, "a", {}, manager)
    assert "finalizers" not in answer.body["metadata"]


def pool(name: str, **spec: Any) -> Json:
    template = {"spec": {"nodeClassRef": NODE_CLASS, "requirements": []}}
    return {"metadata": {"name": name}, "spec": {"template": template, **spec}}


async def test_a_custom_kind_is_applied_by_its_schema(api: Backend) -> None:
    name = api.unique("pool")
    made = await apply(api, NODE_POOLS, name, pool(name, weight=5), "anna")
    assert made.status == 201
    assert managers(made.body)[("anna", "Apply", "")]["f:spec"]["f:weight"] == {}
    refused = await apply(api, NODE_POOLS, name, pool(name, weight=6), "bert")
    assert conflicts(refused) == [("FieldManagerConflict", ".spec.weight", 'conflict with "anna"')]
    left = await apply(api, NODE_POOLS, name, pool(name), "anna")
    assert "weight" not in left.body["spec"]


async def test_the_status_is_applied_on_its_own(api: Backend) -> None:
    name = api.unique("pool")
    await apply(api, NODE_POOLS, name, {**pool(name), "status": {"nodes": 3}}, "anna")
    status = {"metadata": {"name": name}, "status": {"nodes": 7}}
    answer = await apply(api, NODE_POOLS, name, status, "counter", subresource="status")
    assert answer.body["status"]["nodes"] == 7
    owned = managers(answer.body)
    assert "f:status" not in owned[("anna", "Apply", "")]
    assert owned[("counter", "Apply", "status")] == {"f:status": {"f:nodes": {}}}


async def test_a_pod_status_condition_is_owned_by_type(api: Backend) -> None:
    await api.created(PODS, a_pod("a"))
    ready = {"type": "example.com/Warm", "status": "True"}
    for manager in ("one", "two"):
        condition = {**ready, "type": f"example.com/{manager}"}
        status = {"status": {"conditions": [condition]}}
        answer = await apply(api, PODS, "a", status, manager, subresource="status")
        assert answer.status == 200, answer
    types = [one["type"] for one in answer.body["status"]["conditions"]]
    assert types == ["example.com/one", "example.com/two"]


async def test_managers_can_be_handed_over(api: Backend) -> None:
    """As kubectl does when a user goes over to server-side apply."""
    await api.create(
        CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"x": "1"}}, fieldManager="csa"
    )
    live = (await api.get(CONFIG_MAPS, "a")).body
    entry = {**live["metadata"]["managedFields"][0], "manager": "anna", "operation": "Apply"}
    operations = [{"op": "replace", "path": "/metadata/managedFields", "value": [entry]}]
    answer = await api.patch(CONFIG_MAPS, "a", operations, JSON_PATCH, fieldManager="kubectl")
    assert list(managers(answer.body)) == [("anna", "Apply", "")]
    gone = await apply(api, CONFIG_MAPS, "a", config(y="2"), "anna")
    assert gone.body["data"] == {"y": "2"}


async def test_managers_can_be_forgotten(api: Backend) -> None:
    await apply(api, CONFIG_MAPS, "a", config(x="1"), "anna")
    answer = await api.patch(CONFIG_MAPS, "a", {"metadata": {"managedFields": [{}]}})
    assert "managedFields" not in answer.body["metadata"]
    refused = await apply(api, CONFIG_MAPS, "a", config(x="2"), "bert")
    assert conflicts(refused)[0][2] == 'conflict with "before-first-apply" using v1'


async def test_a_stale_version_is_a_conflict(api: Backend) -> None:
    made = await apply(api, CONFIG_MAPS, "a", config(x="1"), "anna")
    version = made.body["metadata"]["resourceVersion"]
    await apply(api, CONFIG_MAPS, "a", config(x="2"), "anna")
    stale = {"metadata": {"name": "a", "resourceVersion": version}, **config(x="3")}
    answer = await apply(api, CONFIG_MAPS, "a", stale, "anna")
    assert (answer.status, answer.reason) == (409, "Conflict")


async def test_nothing_is_stored_by_a_dry_run(api: Backend) -> None:
    tried = await apply(api, CONFIG_MAPS, "a", config(x="1"), "anna", dryRun="All")
    assert (tried.status, tried.body["data"]) == (201, {"x": "1"})
    assert (await api.get(CONFIG_MAPS, "a")).status == 404


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        pytest.param({"kind": ""}, 400, "BadRequest", id="no kind"),
        pytest.param({"apiVersion": ""}, 400, "BadRequest", id="no version"),
        pytest.param({"apiVersion": "v2"}, 400, "BadRequest", id="another version"),
        pytest.param({"metadata": {"name": "b"}}, 400, "BadRequest", id="another name"),
        pytest.param(
            {"metadata": {"name": "a", "managedFields": []}}, 400, "BadRequest", id="managers"
        ),
        pytest.param({"shoes": {"left": 1}}, 500, "", id="an unknown field"),
        pytest.param({"data": "text"}, 500, "", id="a text for an object"),
    ],
)
async def test_what_cannot_be_applied(api: Backend, change: Json, status: int, reason: str) -> None:
    answer = await apply(api, CONFIG_MAPS, "a", change, "anna")
    assert (answer.status, answer.reason) == (status, reason), answer


async def test_an_element_without_its_key_cannot_be_applied(api: Backend) -> None:
    answer = await apply(api, DEPLOYMENTS, "web", deployment({"image": "x:1"}), "anna")
    assert (answer.status, answer.fields) == (422, ["spec.template.spec.containers[0].name"])


async def test_an_invalid_object_is_refused_as_always(api: Backend) -> None:
    answer = await apply(api, DEPLOYMENTS, "web", deployment(CONTAINER, replicas=-1), "anna")
    assert (answer.status, answer.fields) == (422, ["spec.replicas"])


async def test_apply_needs_a_manager(api: Backend) -> None:
    whole = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    answer = await api.patch(CONFIG_MAPS, "a", whole, APPLY_PATCH)
    assert (answer.status, answer.reason, answer.fields) == (422, "Invalid", ["fieldManager"])


async def test_only_apply_can_be_forced(api: Backend) -> None:
    await api.created(CONFIG_MAPS, {"metadata": {"name": "a"}})
    answer = await api.patch(CONFIG_MAPS, "a", {}, MERGE_PATCH, force="true")
    assert (answer.status, answer.fields) == (422, ["force"])
