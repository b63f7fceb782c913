"""Lists: selectors, order, pages."""

from __future__ import annotations

import pytest

from tenure.model.api.resource import CONFIG_MAPS, NODES, PODS
from tests.contract.backends import Answer, Backend, a_pod


def names(answer: Answer) -> list[str]:
    assert answer.status == 200, answer
    return [item["metadata"]["name"] for item in answer.body["items"]]


async def configs(api: Backend, *wanted: str, **labels: str) -> None:
    for name in wanted:
        await api.created(CONFIG_MAPS, {"metadata": {"name": name, "labels": labels}})


async def test_a_list_is_ordered_by_name_and_typed_as_a_whole(api: Backend) -> None:
    await configs(api, "c", "a", "b")
    answer = await api.list(CONFIG_MAPS)
    assert names(answer) == ["a", "b", "c"]
    assert (answer.body["kind"], answer.body["apiVersion"]) == ("ConfigMapList", "v1")
    assert "kind" not in answer.body["items"][0]
    assert int(answer.body["metadata"]["resourceVersion"]) > 0


async def test_a_list_over_all_namespaces_contains_ours(api: Backend) -> None:
    await configs(api, "mine")
    answer = await api.send("GET", CONFIG_MAPS.path())
    ours = [i for i in answer.body["items"] if i["metadata"]["namespace"] == api.namespace]
    assert [item["metadata"]["name"] for item in ours] == ["mine"]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("tier=web", ["web"]),
        ("tier==web", ["web"]),
        ("tier!=web", ["db", "plain"]),
        ("tier", ["db", "web"]),
        ("!tier", ["plain"]),
        ("tier in (web, db)", ["db", "web"]),
        ("tier notin (web)", ["db", "plain"]),
        ("tier in (web,db),tier!=db", ["web"]),
        ("tier=", []),
    ],
)
async def test_objects_are_selected_by_label(
    api: Backend, selector: str, expected: list[str]
) -> None:
    await configs(api, "web", tier="web")
    await configs(api, "db", tier="db")
    await configs(api, "plain")
    assert names(await api.list(CONFIG_MAPS, labelSelector=selector)) == expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("spec.nodeName=node-1", ["a"]),
        ("spec.nodeName=", ["c"]),
        ("spec.nodeName!=node-1", ["b", "c"]),
        ("status.phase=Pending,metadata.name!=a", ["b", "c"]),
        ("metadata.name=b", ["b"]),
    ],
)
async def test_pods_are_selected_by_field(api: Backend, selector: str, expected: list[str]) -> None:
    await api.created(PODS, a_pod("a", nodeName="node-1"))
    await api.created(PODS, a_pod("b", nodeName="node-2"))
    await api.created(PODS, a_pod("c"))
    assert names(await api.list(PODS, fieldSelector=selector)) == expected


async def test_the_pods_of_a_node_are_listed_as_they_are_in_all_namespaces(api: Backend) -> None:
    """Without a limit or a version, right after the writes."""

    async def listed() -> dict[str, str]:
        answer = await api.send("GET", PODS.path(), fieldSelector=f"spec.nodeName={node}")
        assert "continue" not in answer.body["metadata"]
        found = [item["metadata"] for item in answer.body["items"]]
        return {meta["name"]: meta["resourceVersion"] for meta in found}

    node = f"node-of-{api.namespace}"
    made = await api.created(PODS, a_pod("a", nodeName=node))
    await api.created(PODS, a_pod("b", schedulerName="missing"))
    assert await listed() == {"a": made["metadata"]["resourceVersion"]}
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "b"}, "target": target}
    assert (await api.send("POST", api.path(PODS, "b", "binding"), body)).status == 201
    assert set(await listed()) == {"a", "b"}
    answer = await api.patch(PODS, "a", {"metadata": {"annotations": {"kept": "true"}}})
    assert (await listed())["a"] == answer.body["metadata"]["resourceVersion"]


@pytest.mark.parametrize("selector", ["a b", "tier in web", "tier in (web", "=web"])
async def test_a_label_selector_that_cannot_be_read_is_a_bad_request(
    api: Backend, selector: str
) -> None:
    answer = await api.list(CONFIG_MAPS, labelSelector=selector)
    assert (answer.status, answer.reason) == (400, "BadRequest")


@pytest.mark.parametrize("selector", ["spec.foo=1", "nonsense"])
async def test_only_offered_fields_can_be_selected(api: Backend, selector: str) -> None:
    answer = await api.list(NODES, fieldSelector=selector)
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_pages_show_the_instant_of_the_first_one(api: Backend) -> None:
    await configs(api, "a", "b", "c", "d", "e")
    first = await api.list(CONFIG_MAPS, limit="2")
    assert names(first) == ["a", "b"]
    assert first.body["metadata"]["remainingItemCount"] == 3
    await api.delete(CONFIG_MAPS, "c")
    await configs(api, "ca")
    await api.patch(CONFIG_MAPS, "d", {"data": {"new": "1"}})
    second = await api.list(
        CONFIG_MAPS, limit="2", **{"continue": first.body["metadata"]["continue"]}
    )
    assert names(second) == ["c", "d"]
    assert "data" not in second.body["items"][1]
    version = first.body["metadata"]["resourceVersion"]
    assert second.body["metadata"]["resourceVersion"] == version
    third = await api.list(
        CONFIG_MAPS, limit="2", **{"continue": second.body["metadata"]["continue"]}
    )
    assert names(third) == ["e"]
    assert "continue" not in third.body["metadata"]


async def test_a_page_that_is_too_old_is_gone(api: Backend) -> None:
    await configs(api, "a", "b")
    first = await api.list(CONFIG_MAPS, limit="1")
    await api.delete(CONFIG_MAPS, "b")
    await api.restart_history()
    answer = await api.list(
        CONFIG_MAPS, limit="1", **{"continue": first.body["metadata"]["continue"]}
    )
    assert (answer.status, answer.reason) == (410, "Expired")


async def test_a_token_that_is_none_is_a_bad_request(api: Backend) -> None:
    answer = await api.list(CONFIG_MAPS, limit="1", **{"continue": "nonsense"})
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_a_version_of_the_future_is_too_large(api: Backend) -> None:
    answer = await api.list(CONFIG_MAPS, resourceVersion="99999999")
    assert (answer.status, answer.reason) == (504, "Timeout")
