"""Watches: what they begin with, where they resume, when they are too old."""

from __future__ import annotations

import asyncio

from tenure.model.api.resource import CONFIG_MAPS, PODS
from tests.contract.backends import Backend, a_pod


async def test_a_watch_without_a_version_begins_with_what_is_there(api: Backend) -> None:
    for name in ("a", "b"):
        await api.created(CONFIG_MAPS, {"metadata": {"name": name}})
    watch = await api.watch(CONFIG_MAPS)
    seen = [await watch.event(), await watch.event()]
    assert sorted((t, obj["metadata"]["name"]) for t, obj in seen) == [
        ("ADDED", "a"),
        ("ADDED", "b"),
    ]


async def test_a_watch_tells_the_life_of_an_object_in_order(api: Backend) -> None:
    version = (await api.list(CONFIG_MAPS)).body["metadata"]["resourceVersion"]
    watch = await api.watch(CONFIG_MAPS, resourceVersion=version)
    await api.created(CONFIG_MAPS, {"metadata": {"name": "a"}})
    await api.patch(CONFIG_MAPS, "a", {"data": {"k": "v"}})
    await api.delete(CONFIG_MAPS, "a")
    events = [await watch.event() for _ in range(3)]
    assert [type_ for type_, _ in events] == ["ADDED", "MODIFIED", "DELETED"]
    versions = [int(obj["metadata"]["resourceVersion"]) for _, obj in events]
    assert versions == sorted(set(versions)), "the deletion has a version of its own"
    assert events[2][1]["data"] == {"k": "v"}, "the last event shows the last state"
    assert {obj["kind"] for _, obj in events} == {"ConfigMap"}


async def test_a_watch_resumes_after_the_version_it_is_given(api: Backend) -> None:
    first = await api.created(CONFIG_MAPS, {"metadata": {"name": "a"}})
    await api.patch(CONFIG_MAPS, "a", {"data": {"k": "1"}})
    await api.patch(CONFIG_MAPS, "a", {"data": {"k": "2"}})
    watch = await api.watch(CONFIG_MAPS, resourceVersion=first["metadata"]["resourceVersion"])
    events = [await watch.event(), await watch.event()]
    assert [(type_, obj["data"]["k"]) for type_, obj in events] == [
        ("MODIFIED", "1"),
        ("MODIFIED", "2"),
    ]


async def test_a_write_that_changes_nothing_is_not_an_event(api: Backend) -> None:
    first = await api.created(CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"k": "1"}})
    watch = await api.watch(CONFIG_MAPS, resourceVersion=first["metadata"]["resourceVersion"])
    await api.patch(CONFIG_MAPS, "a", {"data": {"k": "1"}})
    await api.patch(CONFIG_MAPS, "a", {"data": {"k": "2"}})
    type_, obj = await watch.event()
    assert (type_, obj["data"]) == ("MODIFIED", {"k": "2"})


async def test_a_version_that_is_forgotten_is_an_error_event_in_a_good_stream(api: Backend) -> None:
    first = await api.created(CONFIG_MAPS, {"metadata": {"name": "a"}})
    await api.patch(CONFIG_MAPS, "a", {"data": {"k": "1"}})
    await api.restart_history()
    watch = await api.watch(CONFIG_MAPS, resourceVersion=first["metadata"]["resourceVersion"])
    type_, status = await watch.event()
    assert (type_, status["code"], status["reason"]) == ("ERROR", 410, "Expired")
    assert await watch.ended()


async def test_the_present_version_is_never_too_old(api: Backend) -> None:
    await api.created(CONFIG_MAPS, {"metadata": {"name": "a"}})
    await api.restart_history()
    version = (await api.list(CONFIG_MAPS)).body["metadata"]["resourceVersion"]
    watch = await api.watch(CONFIG_MAPS, resourceVersion=version)
    await api.patch(CONFIG_MAPS, "a", {"data": {"k": "1"}})
    assert (await watch.event())[0] == "MODIFIED"


async def test_a_watch_from_the_future_waits_for_it(api: Backend) -> None:
    watch = await api.watch(CONFIG_MAPS, resourceVersion="99999999", timeoutSeconds="2")
    await api.created(CONFIG_MAPS, {"metadata": {"name": "a"}})
    assert await watch.ended()


async def test_a_watch_ends_after_the_time_it_was_given(api: Backend) -> None:
    watch = await api.watch(CONFIG_MAPS, timeoutSeconds="2")
    assert await watch.ended()


async def test_a_bookmark_ends_the_initial_events(api: Backend) -> None:
    await api.created(CONFIG_MAPS, {"metadata": {"name": "a"}})
    watch = await api.watch(
        CONFIG_MAPS,
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
        allowWatchBookmarks="true",
    )
    lines = [await watch.line(), await watch.line()]
    assert [type_ for type_, _ in lines] == ["ADDED", "BOOKMARK"]
    metadata = lines[1][1]["metadata"]
    assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(metadata["resourceVersion"]) >= int(lines[0][1]["metadata"]["resourceVersion"])


async def test_an_object_that_stops_matching_leaves_the_watch(api: Backend) -> None:
    version = (await api.list(PODS)).body["metadata"]["resourceVersion"]
    watch = await api.watch(PODS, labelSelector="tier=web", resourceVersion=version)
    await api.created(PODS, a_pod("a", metadata={"name": "a", "labels": {"tier": "db"}}))
    await api.patch(PODS, "a", {"metadata": {"labels": {"tier": "web"}}})
    await api.patch(PODS, "a", {"metadata": {"annotations": {"x": "y"}}})
    moved = await api.patch(PODS, "a", {"metadata": {"labels": {"tier": "db"}}})
    events = [await watch.event() for _ in range(3)]
    assert [type_ for type_, _ in events] == ["ADDED", "MODIFIED", "DELETED"]
    last = events[2][1]["metadata"]
    assert last["labels"] == {"tier": "web"}, "it is shown as it last matched"
    assert last["resourceVersion"] == moved.body["metadata"]["resourceVersion"]


async def test_a_watch_by_field_follows_pods_onto_a_node(api: Backend) -> None:
    version = (await api.list(PODS)).body["metadata"]["resourceVersion"]
    watch = await api.watch(PODS, fieldSelector="spec.nodeName=node-1", resourceVersion=version)
    await api.created(PODS, a_pod("elsewhere", nodeName="node-2"))
    await api.created(PODS, a_pod("here", nodeName="node-1"))
    type_, obj = await watch.event()
    assert (type_, obj["metadata"]["name"]) == ("ADDED", "here")


async def test_a_closed_watch_ends_for_its_reader(api: Backend) -> None:
    watch = await api.watch(CONFIG_MAPS)
    reading = asyncio.ensure_future(watch.ended())
    await asyncio.sleep(0.01)
    await watch.close()
    assert await reading
