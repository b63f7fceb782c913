"""Patches: merge, JSON and strategic merge."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.model.api.resource import CONFIG_MAPS, NODES, PODS
from tenure.ports.transport import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH
from tests.contract.backends import Backend, a_cluster_node, a_pod

DATA = {"a": "1", "b": "2"}


async def test_a_merge_patch_sets_and_removes(api: Backend) -> None:
    await api.created(CONFIG_MAPS, {"metadata": {"name": "a"}, "data": DATA})
    patch = {"data": {"a": None, "c": "3"}, "metadata": {"labels": {"x": "y"}}}
    answer = await api.patch(CONFIG_MAPS, "a", patch)
    assert answer.body["data"] == {"b": "2", "c": "3"}
    assert answer.body["metadata"]["labels"] == {"x": "y"}


async def test_a_merge_patch_with_an_old_version_is_a_conflict(api: Backend) -> None:
    first = await api.created(CONFIG_MAPS, {"metadata": {"name": "a"}, "data": DATA})
    version = first["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": version}, "data": {"a": "x"}}
    assert (await api.patch(CONFIG_MAPS, "a", patch)).status == 200
    late = await api.patch(CONFIG_MAPS, "a", {**patch, "data": {"a": "y"}})
    assert (late.status, late.reason) == (409, "Conflict")


async def test_a_merge_patch_replaces_lists(api: Backend) -> None:
    node = await a_cluster_node(api, "n", taints=[{"key": "a", "effect": "NoSchedule"}])
    taints = [{"key": "b", "effect": "NoExecute"}]
    answer = await api.patch(NODES, node["metadata"]["name"], {"spec": {"taints": taints}})
    assert answer.body["spec"]["taints"] == taints


@pytest.mark.parametrize(
    ("operations", "data"),
    [
        pytest.param(
            [{"op": "add", "path": "/data/c", "value": "3"}], {**DATA, "c": "3"}, id="add"
        ),
        pytest.param([{"op": "remove", "path": "/data/a"}], {"b": "2"}, id="remove"),
        pytest.param(
            [{"op": "replace", "path": "/data/a", "value": "9"}], {"a": "9", "b": "2"}, id="replace"
        ),
        pytest.param(
            [{"op": "copy", "from": "/data/a", "path": "/data/c"}], {**DATA, "c": "1"}, id="copy"
        ),
        pytest.param(
            [{"op": "move", "from": "/data/a", "path": "/data/c"}], {"b": "2", "c": "1"}, id="move"
        ),
        pytest.param(
            [{"op": "replace", "path": "/data/c", "value": "3"}],
            {**DATA, "c": "3"},
            id="replace a field that is not there",
        ),
        pytest.param([{"op": "test", "path": "/data/a", "value": "1"}], DATA, id="test"),
        pytest.param([{"op": "test", "path": "/data/z", "value": None}], DATA, id="test for null"),
        pytest.param(
            [{"op": "add", "path": "/data", "value": {"x": "0"}}], {"x": "0"}, id="add over it"
        ),
    ],
)
async def test_a_json_patch_does_what_it_says(
    api: Backend, operations: list[Any], data: dict[str, str]
) -> None:
    await api.created(CONFIG_MAPS, {"metadata": {"name": "a"}, "data": DATA})
    answer = await api.patch(CONFIG_MAPS, "a", operations, JSON_PATCH)
    assert (answer.status, answer.body["data"]) == (200, data)


@pytest.mark.parametrize(
    "operations",
    [
        pytest.param([{"op": "test", "path": "/data/a", "value": "2"}], id="a test that fails"),
        pytest.param([{"op": "remove", "path": "/data/z"}], id="removing what is not there"),
        pytest.param(
            [{"op": "add", "path": "/nope/z", "value": ""}], id="adding below what is not there"
        ),
    ],
)
async def test_a_json_patch_that_does_not_apply_changes_nothing(
    api: Backend, operations: list[Any]
) -> None:
    created = await api.created(CONFIG_MAPS, {"metadata": {"name": "a"}, "data": DATA})
    first = {"op": "add", "path": "/data/c", "value": "3"}
    answer = await api.patch(CONFIG_MAPS, "a", [first, *operations], JSON_PATCH)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert (await api.get(CONFIG_MAPS, "a")).body == created


async def test_a_json_pointer_escapes_slashes(api: Backend) -> None:
    await api.created(CONFIG_MAPS, {"metadata": {"name": "a", "labels": {"x.y/z": "1"}}})
    operations = [{"op": "replace", "path": "/metadata/labels/x.y~1z", "value": "2"}]
    answer = await api.patch(CONFIG_MAPS, "a", operations, JSON_PATCH)
    assert answer.body["metadata"]["labels"] == {"x.y/z": "2"}


async def test_a_json_patch_edits_lists_by_index(api: Backend) -> None:
    taints = [{"key": key, "effect": "NoExecute"} for key in "ab"]
    node = await a_cluster_node(api, "n", taints=taints)
    added = {"key": "c", "effect": "NoExecute"}
    operations = [
        {"op": "test", "path": "/spec/taints/0/key", "value": "a"},
        {"op": "remove", "path": "/spec/taints/0"},
        {"op": "add", "path": "/spec/taints/0", "value": added},
        {"op": "add", "path": "/spec/taints/-", "value": {**added, "key": "d"}},
    ]
    answer = await api.patch(NODES, node["metadata"]["name"], operations, JSON_PATCH)
    keys = [taint["key"] for taint in answer.body["spec"]["taints"]]
    assert keys == ["c", "b", "node.kubernetes.io/not-ready", "d"]


async def test_a_strategic_patch_merges_conditions_by_type(api: Backend) -> None:
    name = (await a_cluster_node(api, "n"))["metadata"]["name"]
    conditions = [{"type": t, "status": "True"} for t in ("Ready", "DiskPressure")]
    await api.patch(NODES, name, {"status": {"conditions": conditions}}, subresource="status")
    patch = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Broken"}]}}
    answer = await api.patch(NODES, name, patch, STRATEGIC_MERGE_PATCH, "status")
    seen = {c["type"]: (c["status"], c.get("reason")) for c in answer.body["status"]["conditions"]}
    assert seen == {"Ready": ("False", "Broken"), "DiskPressure": ("True", None)}


async def test_a_strategic_patch_replaces_taints(api: Backend) -> None:
    node = await a_cluster_node(api, "n", taints=[{"key": "a", "effect": "NoSchedule"}])
    patch = {"spec": {"taints": [{"key": "b", "effect": "NoSchedule"}]}}
    answer = await api.patch(NODES, node["metadata"]["name"], patch, STRATEGIC_MERGE_PATCH)
    assert [taint["key"] for taint in answer.body["spec"]["taints"]] == ["b"]


async def test_a_strategic_patch_adds_finalizers_and_takes_them_away(api: Backend) -> None:
    metadata = {"name": "a", "finalizers": ["example.com/one"]}
    await api.created(PODS, a_pod("a", metadata=metadata))
    patch: dict[str, Any] = {"metadata": {"finalizers": ["example.com/two"]}}
    added = await api.patch(PODS, "a", patch, STRATEGIC_MERGE_PATCH)
    assert sorted(added.body["metadata"]["finalizers"]) == ["example.com/one", "example.com/two"]
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/one"]}}
    removed = await api.patch(PODS, "a", patch, STRATEGIC_MERGE_PATCH)
    assert removed.body["metadata"]["finalizers"] == ["example.com/two"]


async def test_a_strategic_patch_deletes_an_element_by_directive(api: Backend) -> None:
    name = (await a_cluster_node(api, "n"))["metadata"]["name"]
    conditions = [{"type": t, "status": "True"} for t in ("Ready", "DiskPressure")]
    await api.patch(NODES, name, {"status": {"conditions": conditions}}, subresource="status")
    patch = {"status": {"conditions": [{"type": "Ready", "$patch": "delete"}]}}
    answer = await api.patch(NODES, name, patch, STRATEGIC_MERGE_PATCH, "status")
    assert [c["type"] for c in answer.body["status"]["conditions"]] == ["DiskPressure"]


@pytest.mark.parametrize("content_type", ["text/plain", "application/json"])
async def test_an_unknown_kind_of_patch_is_refused(api: Backend, content_type: str) -> None:
    await api.created(CONFIG_MAPS, {"metadata": {"name": "a"}})
    answer = await api.patch(CONFIG_MAPS, "a", {}, content_type)
    assert (answer.status, answer.reason) == (415, "UnsupportedMediaType")


async def test_a_patch_of_a_missing_object_is_not_found(api: Backend) -> None:
    answer = await api.patch(CONFIG_MAPS, "missing", {"data": {}}, MERGE_PATCH)
    assert (answer.status, answer.reason) == (404, "NotFound")


async def test_which_patches_are_taken_is_said_before_the_object_is_looked_for(
    api: Backend,
) -> None:
    answer = await api.patch(PODS, "missing", {}, "application/made-up+json")
    assert (answer.status, answer.reason) == (415, "UnsupportedMediaType")
