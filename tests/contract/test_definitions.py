"""Kinds that a client defines: stored, served, validated, and gone with their definition."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.model.api.resource import Resource
from tenure.ports.transport import APPLY_PATCH
from tenure.sim.apiserver.objects.definition import DEFINITIONS
from tests.contract.backends import Answer, Backend, Json
from tests.contract.test_apply import conflicts

SPEC: Json = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 50},
        "colour": {"type": "string", "enum": ["black", "brown"], "default": "black"},
        "laces": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "length": {"type": "integer"}},
            },
        },
        "notes": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "by": {"type": "object", "additionalProperties": {"type": "string"}},
        "pair": {"x-kubernetes-int-or-string": True},
        "sole": {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
    },
    "x-kubernetes-validations": [
        {"rule": "self.size != 13", "message": "no shoes of size 13"},
        {"rule": "self.colour == oldSelf.colour", "message": "colours do not change"},
    ],
}
SCHEMA: Json = {
    "type": "object",
    "properties": {
        "spec": SPEC,
        "status": {"type": "object", "properties": {"worn": {"type": "integer"}}},
    },
}


def shoes(api: Backend) -> Resource:
    return Resource(f"{api.unique('shop')}.example.com", "v1", "Shoe", "shoes", True)


def definition(resource: Resource, **version: Any) -> Json:
    return {
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {"plural": resource.plural, "kind": resource.kind, "shortNames": ["sh"]},
            "versions": [
                {
                    "name": resource.version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": SCHEMA},
                    "subresources": {"status": {}},
                    **version,
                }
            ],
        },
    }


async def defined(api: Backend, **version: Any) -> Resource:
    resource = shoes(api)
    await api.created(DEFINITIONS, definition(resource, **version))
    await served(api, resource)
    return resource


async def served(api: Backend, resource: Resource) -> None:
    """Established, and on a real server a moment later served."""
    await api.until_seen(DEFINITIONS, f"{resource.plural}.{resource.group}", established)
    tried = shoe("tried", size=1)
    await api.until_answered(
        lambda: api.create(resource, tried, dryRun="All"), lambda answer: answer.status == 201
    )


def established(answer: Answer) -> bool:
    conditions = answer.body.get("status", {}).get("conditions") or ()
    return {one["type"] for one in conditions if one["status"] == "True"} >= {
        "Established",
        "NamesAccepted",
    }


def shoe(name: str, **spec: Any) -> Json:
    return {"metadata": {"name": name}, "spec": spec}


async def test_a_definition_is_completed_and_established(api: Backend) -> None:
    resource = await defined(api)
    body = (await api.get(DEFINITIONS, f"shoes.{resource.group}")).body
    names = {"plural": "shoes", "singular": "shoe", "kind": "Shoe", "listKind": "ShoeList"}
    assert body["spec"]["names"] == {**names, "shortNames": ["sh"]}
    assert body["status"]["acceptedNames"] == body["spec"]["names"]
    assert body["status"]["storedVersions"] == ["v1"]
    reasons = {one["type"]: one["reason"] for one in body["status"]["conditions"]}
    assert reasons == {"NamesAccepted": "NoConflicts", "Established": "InitialNamesAccepted"}


async def test_its_objects_are_stored_with_defaults_and_without_unknown_fields(
    api: Backend,
) -> None:
    resource = await defined(api)
    made = await api.created(resource, shoe("a", size=42, heel="high", notes={"any": {"thing": 1}}))
    assert made["spec"] == {"size": 42, "colour": "black", "notes": {"any": {"thing": 1}}}
    assert made["metadata"]["generation"] == 1
    listed = await api.list(resource)
    assert (listed.body["kind"], len(listed.body["items"])) == ("ShoeList", 1)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param({}, "spec.size", id="required"),
        pytest.param({"size": 51}, "spec.size", id="too large"),
        pytest.param({"size": "large"}, "spec.size", id="another type"),
        pytest.param({"size": 1, "colour": "red"}, "spec.colour", id="not in the enumeration"),
        pytest.param({"size": 13}, "spec", id="a rule"),
        pytest.param({"size": 1, "by": {"x": 1}}, "spec.by.x", id="a value of a map"),
        pytest.param({"size": 1, "pair": True}, "spec.pair", id="neither number nor text"),
        pytest.param(
            {"size": 1, "laces": [{"name": "a"}, {"name": "a"}]}, "spec.laces[1]", id="twice"
        ),
    ],
)
async def test_what_its_schema_does_not_allow_is_refused(
    api: Backend, spec: Json, field: str
) -> None:
    resource = await defined(api)
    answer = await api.create(resource, shoe("a", **spec))
    assert (answer.status, answer.reason) == (422, "Invalid"), answer
    assert field in answer.fields


@pytest.mark.parametrize("sole", [{}, {"a": "1", "b": "2"}], ids=["no form", "both forms"])
async def test_of_two_forms_it_has_to_be_one(api: Backend, sole: Json) -> None:
    resource = await defined(api)
    answer = await api.create(resource, shoe("a", size=1, sole=sole))
    assert answer.status == 422
    told = '"spec.sole" must validate one and only one schema (oneOf)'
    assert any(told in cause["message"] and cause["field"] == "<nil>" for cause in answer.causes)


async def test_a_rule_that_compares_with_the_past(api: Backend) -> None:
    resource = await defined(api)
    await api.created(resource, shoe("a", size=1))
    answer = await api.patch(resource, "a", {"spec": {"colour": "brown"}})
    assert (answer.status, answer.fields) == (422, ["spec"])
    assert "colours do not change" in answer.body["message"]


async def test_its_status_is_a_part_of_its_own(api: Backend) -> None:
    resource = await defined(api)
    await api.created(resource, {**shoe("a", size=1), "status": {"worn": 5}})
    patch = {"spec": {"size": 2}, "status": {"worn": 7}}
    answer = await api.patch(resource, "a", patch, subresource="status")
    assert (answer.body["spec"]["size"], answer.body["status"]) == (1, {"worn": 7})
    main = await api.patch(resource, "a", patch)
    assert (main.body["spec"]["size"], main.body["metadata"]["generation"]) == (2, 2)


async def test_without_the_subresource_the_status_is_written_with_the_rest(api: Backend) -> None:
    resource = await defined(api, subresources={})
    made = await api.created(resource, {**shoe("a", size=1), "status": {"worn": 5}})
    assert made["status"] == {"worn": 5}
    answer = await api.patch(resource, "a", {"status": {"worn": 6}}, subresource="status")
    assert answer.status == 404


async def test_its_objects_are_watched(api: Backend) -> None:
    resource = await defined(api)
    listed = await api.list(resource)
    version = listed.body["metadata"]["resourceVersion"]
    watching = await api.watch(resource, resourceVersion=version)
    await api.created(resource, shoe("a", size=1))
    type_, obj = await watching.event()
    assert (type_, obj["kind"], obj["metadata"]["name"]) == ("ADDED", "Shoe", "a")


async def test_its_objects_are_applied_by_its_schema(api: Backend) -> None:
    resource = await defined(api)
    whole = {"apiVersion": resource.api_version, "kind": "Shoe"}
    for manager in ("anna", "bert"):
        laces = [{"name": manager, "length": 1}]
        body = {**whole, **shoe("a", size=1, laces=laces)}
        answer = await api.patch(resource, "a", body, APPLY_PATCH, fieldManager=manager)
    assert [one["name"] for one in answer.body["spec"]["laces"]] == ["anna", "bert"]
    body = {**whole, **shoe("a", size=1, laces=[{"name": "anna", "length": 2}])}
    refused = await api.patch(resource, "a", body, APPLY_PATCH, fieldManager="bert")
    assert [field for _, field, _ in conflicts(refused)] == ['.spec.laces[name="anna"].length']


async def test_a_deleted_definition_takes_its_objects_along(api: Backend) -> None:
    resource = await defined(api)
    await api.created(resource, shoe("a", size=1))
    name = f"shoes.{resource.group}"
    answer = await api.delete(DEFINITIONS, name)
    assert answer.status == 200
    await api.gone(DEFINITIONS, name)
    await api.until_answered(
        lambda: api.raw_status("GET", resource.path(api.namespace)), lambda seen: seen.status == 404
    )
    await api.created(DEFINITIONS, definition(resource))
    await served(api, resource)
    assert (await api.list(resource)).body["items"] == []


async def test_a_finalizer_keeps_the_definition(api: Backend) -> None:
    resource = await defined(api)
    held = shoe("a", size=1)
    held["metadata"]["finalizers"] = ["example.com/held"]
    await api.created(resource, held)
    name = f"shoes.{resource.group}"
    await api.delete(DEFINITIONS, name)
    await api.until_seen(
        resource, "a", lambda answer: "deletionTimestamp" in answer.body["metadata"]
    )
    assert (await api.get(DEFINITIONS, name)).status == 200
    await api.patch(resource, "a", {"metadata": {"finalizers": None}})
    await api.gone(DEFINITIONS, name)


async def test_a_changed_schema_counts_from_then_on(api: Backend) -> None:
    resource = await defined(api)
    await api.created(resource, shoe("a", size=1))
    name = f"shoes.{resource.group}"
    smaller = {
        **SPEC,
        "properties": {**SPEC["properties"], "size": {"type": "integer", "maximum": 5}},
    }
    schema = {**SCHEMA, "properties": {**SCHEMA["properties"], "spec": smaller}}
    versions = definition(resource, schema={"openAPIV3Schema": schema})["spec"]["versions"]
    changed = await api.patch(DEFINITIONS, name, {"spec": {"versions": versions}})
    assert changed.status == 200, changed
    await api.until_answered(
        lambda: api.create(resource, shoe("b", size=6), dryRun="All"),
        lambda answer: answer.status == 422,
    )
    assert (await api.get(resource, "a")).body["spec"]["size"] == 1


async def test_a_cluster_scope_has_no_namespaces(api: Backend) -> None:
    resource = Resource(f"{api.unique('shop')}.example.com", "v1", "Shelf", "shelves", False)
    await api.created(DEFINITIONS, definition(resource))
    await served(api, resource)
    made = await api.created(resource, shoe("a", size=1))
    assert "namespace" not in made["metadata"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param({"metadata": {"name": "others.example.com"}}, "metadata.name", id="the name"),
        pytest.param({"spec": {"scope": "Everywhere"}}, "spec.scope", id="the scope"),
        pytest.param({"spec": {"versions": []}}, "spec.versions", id="no version"),
        pytest.param({"spec": {"names": {"kind": "Shoe"}}}, "spec.names.plural", id="no plural"),
    ],
)
async def test_a_definition_that_makes_no_sense_is_refused(
    api: Backend, change: Json, field: str
) -> None:
    whole = definition(shoes(api))
    broken = {key: {**value, **change.get(key, {})} for key, value in whole.items()}
    answer = await api.create(DEFINITIONS, broken)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert field in answer.fields


async def test_a_version_without_a_schema_is_refused(api: Backend) -> None:
    answer = await api.create(DEFINITIONS, definition(shoes(api), schema=None))
    assert answer.status == 422
    assert "spec.versions[0].schema.openAPIV3Schema" in answer.fields


async def test_the_scope_of_a_kind_stays(api: Backend) -> None:
    resource = await defined(api)
    answer = await api.patch(DEFINITIONS, f"shoes.{resource.group}", {"spec": {"scope": "Cluster"}})
    assert (answer.status, answer.fields) == (422, ["spec.scope"])
