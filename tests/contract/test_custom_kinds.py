"""Custom kinds: pruning, defaults, schema and CEL rules, and their own habits."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS
from tenure.ports.transport import STRATEGIC_MERGE_PATCH, Request
from tests.contract.backends import Backend, Json

CLASS_REF = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}


def a_pool(api: Backend, **spec: Any) -> Json:
    template = {"spec": {"nodeClassRef": CLASS_REF, "requirements": []}}
    return {"metadata": {"name": api.unique("pool")}, "spec": {"template": template, **spec}}


def a_claim(api: Backend, **metadata: Any) -> Json:
    spec: Json = {"nodeClassRef": CLASS_REF, "requirements": []}
    return {"metadata": {"name": api.unique("claim"), **metadata}, "spec": spec}


async def test_a_pool_gets_the_defaults_of_its_schema(api: Backend) -> None:
    created = await api.created(NODE_POOLS, a_pool(api))
    disruption = created["spec"]["disruption"]
    assert disruption["consolidateAfter"] == "0s"
    assert disruption["consolidationPolicy"] == "WhenEmptyOrUnderutilized"
    assert disruption["budgets"] == [{"nodes": "10%"}]
    assert created["spec"]["template"]["spec"]["expireAfter"] == "720h"


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        pytest.param(("weight",), 101, "spec.weight", id="too heavy"),
        pytest.param(("weight",), "heavy", "spec.weight", id="a word for a number"),
        pytest.param(
            ("template", "spec", "expireAfter"),
            "1d",
            "spec.template.spec.expireAfter",
            id="a duration in days",
        ),
        pytest.param(
            ("template", "spec", "nodeClassRef", "name"),
            "",
            "spec.template.spec.nodeClassRef.name",
            id="an empty name",
        ),
        pytest.param(
            ("template", "spec", "requirements"),
            [{"key": "kubernetes.io/arch", "operator": "Near", "values": ["arm64"]}],
            "spec.template.spec.requirements[0].operator",
            id="an unknown operator",
        ),
        pytest.param(
            ("template", "spec", "requirements"),
            [{"key": "kubernetes.io/arch", "operator": "In", "values": []}],
            "spec.template.spec.requirements",
            id="In without values",
        ),
        pytest.param(
            ("disruption", "consolidationPolicy"),
            "Sometimes",
            "spec.disruption.consolidationPolicy",
            id="an unknown policy",
        ),
        pytest.param(
            ("disruption", "budgets"),
            [{"nodes": "10%", "schedule": "@daily"}],
            "spec.disruption",
            id="a schedule without a duration",
        ),
    ],
)
async def test_a_bad_pool_is_refused_at_its_field(
    api: Backend, path: tuple[str, ...], value: Any, field: str
) -> None:
    pool = a_pool(api, disruption={"consolidateAfter": "0s"})
    *parents, last = path
    place = pool["spec"]
    for key in parents:
        place[key] = dict(place[key])
        place = place[key]
    place[last] = value
    answer = await api.create(NODE_POOLS, pool)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert any(name.startswith(field) for name in answer.fields), answer.fields


async def test_what_is_required_must_be_there(api: Backend) -> None:
    pool = {"metadata": {"name": api.unique("pool")}, "spec": {"template": {"spec": {}}}}
    answer = await api.create(NODE_POOLS, pool)
    assert answer.status == 422
    assert "spec.template.spec.nodeClassRef" in answer.fields


async def test_unknown_fields_are_dropped(api: Backend) -> None:
    created = await api.created(NODE_POOLS, a_pool(api, colour="blue"))
    assert "colour" not in created["spec"]


async def test_unknown_fields_are_warned_about(api: Backend) -> None:
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", **a_pool(api, colour="blue")}
    answer = await api.create(NODE_POOLS, pool, fieldValidation="Strict")
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert "spec.colour" in answer.body["message"]
    response = await api.transport.request(_post(pool))
    assert response.status == 201
    assert "spec.colour" in response.headers["Warning"]


def _post(obj: Json) -> Request:
    return Request(method="POST", path=NODE_POOLS.path(), body=msgspec.json.encode(obj))


async def test_a_null_is_as_absent(api: Backend) -> None:
    created = await api.created(NODE_POOLS, a_pool(api, weight=None))
    assert "weight" not in created["spec"]


async def test_generation_counts_the_spec_and_the_deletion(api: Backend) -> None:
    created = await api.created(NODE_POOLS, {**a_pool(api), "status": {"nodes": 3}})
    name = created["metadata"]["name"]
    assert created.get("status", {}).get("nodes", 0) == 0, "a new object has no status"
    patches: list[tuple[Json, str]] = [
        ({"metadata": {"labels": {"a": "b"}, "finalizers": ["karpenter.sh/termination"]}}, ""),
        ({"status": {"nodes": 1}}, "status"),
        ({"spec": {"weight": 5}}, ""),
    ]
    generations = []
    for patch, subresource in patches:
        answer = await api.patch(NODE_POOLS, name, patch, subresource=subresource)
        generations.append(answer.body["metadata"]["generation"])
    generations.append((await api.delete(NODE_POOLS, name)).body["metadata"]["generation"])
    assert generations == [1, 1, 2, 3]
    await api.patch(NODE_POOLS, name, {"metadata": {"finalizers": None}})
    assert (await api.get(NODE_POOLS, name)).status == 404


async def test_the_status_subresource_writes_nothing_but_the_status(api: Backend) -> None:
    name = (await api.created(NODE_POOLS, a_pool(api)))["metadata"]["name"]
    patch = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"weight": 7},
        "status": {"nodes": 4},
    }
    body = (await api.patch(NODE_POOLS, name, patch, subresource="status")).body
    assert body["status"]["nodes"] == 4
    assert "labels" not in body["metadata"]
    assert "weight" not in body["spec"]


async def test_the_main_resource_leaves_the_status_alone(api: Backend) -> None:
    name = (await api.created(NODE_POOLS, a_pool(api)))["metadata"]["name"]
    before = await api.patch(NODE_POOLS, name, {"status": {"nodes": 4}}, subresource="status")
    after = await api.patch(NODE_POOLS, name, {"status": {"nodes": 5}})
    assert after.body == before.body


async def test_a_stale_status_patch_is_a_conflict(api: Backend) -> None:
    created = await api.created(NODE_POOLS, a_pool(api))
    name, version = created["metadata"]["name"], created["metadata"]["resourceVersion"]
    await api.patch(NODE_POOLS, name, {"status": {"nodes": 1}}, subresource="status")
    late = {"metadata": {"resourceVersion": version}, "status": {"nodes": 2}}
    answer = await api.patch(NODE_POOLS, name, late, subresource="status")
    assert (answer.status, answer.reason) == (409, "Conflict")


async def test_the_spec_of_a_claim_cannot_change(api: Backend) -> None:
    name = (await api.created(NODE_CLAIMS, a_claim(api)))["metadata"]["name"]
    answer = await api.patch(NODE_CLAIMS, name, {"spec": {"expireAfter": "1h"}})
    assert (answer.status, answer.reason, answer.fields) == (422, "Invalid", ["spec"])


async def test_an_update_must_say_which_version_it_means(api: Backend) -> None:
    created = await api.created(NODE_POOLS, a_pool(api))
    del created["metadata"]["resourceVersion"]
    answer = await api.put(NODE_POOLS, created)
    assert (answer.status, answer.fields) == (422, ["metadata.resourceVersion"])


async def test_an_update_cannot_leave_out_what_is_required(api: Backend) -> None:
    created = await api.created(NODE_POOLS, a_pool(api))
    del created["spec"]
    answer = await api.put(NODE_POOLS, created)
    assert (answer.status, answer.fields[-1]) == (422, "spec")


async def test_unknown_metadata_is_dropped(api: Backend) -> None:
    name = (await api.created(NODE_POOLS, a_pool(api)))["metadata"]["name"]
    answer = await api.patch(NODE_POOLS, name, {"metadata": {"colour": "blue"}})
    assert answer.status == 200
    assert "colour" not in answer.body["metadata"]


async def test_a_custom_kind_takes_no_strategic_patch(api: Backend) -> None:
    name = (await api.created(NODE_POOLS, a_pool(api)))["metadata"]["name"]
    answer = await api.patch(NODE_POOLS, name, {"spec": {"weight": 1}}, STRATEGIC_MERGE_PATCH)
    assert (answer.status, answer.reason) == (415, "UnsupportedMediaType")


async def test_a_custom_object_must_say_its_kind(api: Backend) -> None:
    answer = await api.send("POST", NODE_POOLS.path(), a_pool(api))
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_listed_custom_objects_say_their_kind(api: Backend) -> None:
    name = (await api.created(NODE_POOLS, a_pool(api)))["metadata"]["name"]
    answer = await api.list(NODE_POOLS, fieldSelector=f"metadata.name={name}")
    assert [item["kind"] for item in answer.body["items"]] == ["NodePool"]


async def test_a_finalizer_without_a_domain_is_good_enough(api: Backend) -> None:
    claim = await api.created(NODE_CLAIMS, a_claim(api, finalizers=["mine"]))
    name = claim["metadata"]["name"]
    await api.delete(NODE_CLAIMS, name)
    assert (await api.get(NODE_CLAIMS, name)).status == 200
    await api.patch(NODE_CLAIMS, name, {"metadata": {"finalizers": []}})
    assert (await api.get(NODE_CLAIMS, name)).status == 404
