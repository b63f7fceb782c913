"""Deletion: finalizers, grace, preconditions."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

from tenure.model.api.resource import CONFIG_MAPS, NODES, PODS
from tests.contract.backends import Answer, Backend, a_pod

SECOND = timedelta(seconds=1)
ONE, TWO = "example.com/one", "example.com/two"


def due(answer: Answer | dict[str, Any]) -> datetime:
    body = answer.body if isinstance(answer, Answer) else answer
    return datetime.fromisoformat(body["metadata"]["deletionTimestamp"])


def grace(answer: Answer) -> int:
    seconds: int = answer.body["metadata"]["deletionGracePeriodSeconds"]
    return seconds


async def test_an_object_without_finalizers_is_removed_at_once(api: Backend) -> None:
    created = await api.created(CONFIG_MAPS, {"metadata": {"name": "a"}})
    answer = await api.delete(CONFIG_MAPS, "a")
    assert (answer.status, answer.body["kind"], answer.body["status"]) == (200, "Status", "Success")
    assert answer.body["details"]["uid"] == created["metadata"]["uid"]
    assert (await api.get(CONFIG_MAPS, "a")).status == 404
    assert (await api.delete(CONFIG_MAPS, "a")).status == 404


async def test_a_finalizer_holds_the_object_until_it_is_removed(api: Backend) -> None:
    name = api.unique("n")
    await api.created(NODES, {"metadata": {"name": name, "finalizers": [ONE, TWO]}})
    marked = await api.delete(NODES, name)
    assert (marked.status, marked.body["kind"], grace(marked)) == (200, "Node", 0)
    again = await api.delete(NODES, name)
    assert again.body == marked.body, "asking twice changes nothing"
    watch = await api.watch(NODES, resourceVersion=marked.body["metadata"]["resourceVersion"])
    assert (await api.patch(NODES, name, {"metadata": {"finalizers": [TWO]}})).status == 200
    last = await api.patch(NODES, name, {"metadata": {"finalizers": None}})
    assert last.status == 200
    assert "finalizers" not in last.body["metadata"]
    assert (await api.get(NODES, name)).status == 404
    events = [await watch.event(), await watch.event()]
    assert [type_ for type_, _ in events] == ["MODIFIED", "DELETED"]
    assert events[1][1]["metadata"]["finalizers"] == [TWO], "shown as it lay there"


async def test_no_finalizer_can_be_added_to_what_is_going(api: Backend) -> None:
    name = api.unique("n")
    await api.created(NODES, {"metadata": {"name": name, "finalizers": [ONE]}})
    await api.delete(NODES, name)
    answer = await api.patch(NODES, name, {"metadata": {"finalizers": [ONE, TWO]}})
    assert (answer.status, answer.fields) == (422, ["metadata.finalizers"])
    await api.patch(NODES, name, {"metadata": {"finalizers": None}})


async def test_deleting_counts_as_one_generation(api: Backend) -> None:
    await api.running_pod("a")
    first = await api.delete(PODS, "a")
    shortened = await api.delete(PODS, "a", gracePeriodSeconds=5)
    assert [a.body["metadata"]["generation"] for a in (first, shortened)] == [2, 2]


async def test_a_running_pod_is_marked_with_its_own_grace(api: Backend) -> None:
    clock = asyncio.get_running_loop().time
    began = clock()
    pod = await api.running_pod("a", terminationGracePeriodSeconds=45)
    answer = await api.delete(PODS, "a")
    passed = timedelta(seconds=clock() - began)
    assert grace(answer) == 45
    created = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
    asked = due(answer) - timedelta(seconds=45)
    assert timedelta(0) <= asked - created <= passed + SECOND, "instants are cut to whole seconds"
    assert (await api.get(PODS, "a")).status == 200


async def test_the_grace_of_the_request_wins(api: Backend) -> None:
    await api.running_pod("a", terminationGracePeriodSeconds=45)
    assert grace(await api.delete(PODS, "a", gracePeriodSeconds=7)) == 7


async def test_the_kubelet_ends_it_with_a_grace_of_zero(api: Backend) -> None:
    await api.running_pod("a")
    marked = await api.delete(PODS, "a")
    watch = await api.watch(PODS, resourceVersion=marked.body["metadata"]["resourceVersion"])
    ended = await api.delete(PODS, "a", gracePeriodSeconds=0)
    assert (ended.body["kind"], grace(ended)) == ("Pod", 0)
    assert (await api.get(PODS, "a")).status == 404
    events = [await watch.event(), await watch.event()]
    assert [type_ for type_, _ in events] == ["MODIFIED", "DELETED"]


async def test_a_pod_without_a_node_goes_at_once(api: Backend) -> None:
    await api.created(PODS, a_pod("a"))
    answer = await api.delete(PODS, "a")
    assert grace(answer) == 0
    assert (await api.get(PODS, "a")).status == 404


async def test_a_finished_pod_goes_at_once(api: Backend) -> None:
    await api.running_pod("a")
    await api.patch(PODS, "a", {"status": {"phase": "Succeeded"}}, subresource="status")
    await api.delete(PODS, "a")
    assert (await api.get(PODS, "a")).status == 404


async def test_a_pod_with_a_finalizer_outlives_its_kubelet(api: Backend) -> None:
    metadata = {"name": "a", "finalizers": [ONE]}
    await api.created(PODS, a_pod("a", metadata=metadata, nodeName="node-1"))
    await api.delete(PODS, "a", gracePeriodSeconds=0)
    held = await api.get(PODS, "a")
    assert (held.status, grace(held)) == (200, 0)
    await api.patch(PODS, "a", {"metadata": {"finalizers": None}})
    assert (await api.get(PODS, "a")).status == 404


async def test_removing_the_finalizer_of_a_running_pod_leaves_it_its_grace(api: Backend) -> None:
    metadata = {"name": "a", "finalizers": [ONE]}
    await api.created(PODS, a_pod("a", metadata=metadata, nodeName="node-1"))
    await api.delete(PODS, "a")
    await api.patch(PODS, "a", {"metadata": {"finalizers": None}})
    assert grace(await api.get(PODS, "a")) == 30


async def test_a_shortened_grace_counts_from_the_first_request(api: Backend) -> None:
    await api.running_pod("a", terminationGracePeriodSeconds=6000)
    first = await api.delete(PODS, "a")
    await api.until_later(2)
    second = await api.delete(PODS, "a", gracePeriodSeconds=2000)
    assert grace(second) == 2000
    assert due(first) - due(second) == timedelta(seconds=4000)


async def test_a_grace_that_has_run_out_leaves_one_second(api: Backend) -> None:
    await api.running_pod("a", terminationGracePeriodSeconds=60)
    clock = asyncio.get_running_loop().time
    began = clock()
    first = await api.delete(PODS, "a")
    await api.until_later(3)
    second = await api.delete(PODS, "a", gracePeriodSeconds=1)
    passed = timedelta(seconds=clock() - began)
    assert grace(second) == 1
    asked = due(first) - timedelta(seconds=60)
    # Instants are cut to whole seconds, and it has one second.
    assert timedelta(seconds=3) <= due(second) - asked <= passed + timedelta(seconds=2), "due now"


async def test_a_grace_cannot_be_prolonged(api: Backend) -> None:
    await api.running_pod("a", terminationGracePeriodSeconds=20)
    first = await api.delete(PODS, "a")
    second = await api.delete(PODS, "a", gracePeriodSeconds=60)
    third = await api.delete(PODS, "a")
    assert first.body == second.body == third.body


async def test_a_delete_of_another_uid_is_a_conflict(api: Backend) -> None:
    created = await api.created(CONFIG_MAPS, {"metadata": {"name": "a"}})
    wrong = await api.delete(CONFIG_MAPS, "a", preconditions={"uid": "another"})
    assert (wrong.status, wrong.reason) == (409, "Conflict")
    right = await api.delete(CONFIG_MAPS, "a", preconditions={"uid": created["metadata"]["uid"]})
    assert right.status == 200


async def test_a_delete_of_another_version_is_a_conflict(api: Backend) -> None:
    created = await api.created(CONFIG_MAPS, {"metadata": {"name": "a"}})
    version = created["metadata"]["resourceVersion"]
    await api.patch(CONFIG_MAPS, "a", {"data": {"k": "v"}})
    late = await api.delete(CONFIG_MAPS, "a", preconditions={"resourceVersion": version})
    assert (late.status, late.reason) == (409, "Conflict")


async def test_a_whole_collection_can_be_deleted_by_label(api: Backend) -> None:
    for name, tier in (("a", "web"), ("b", "web"), ("c", "db")):
        await api.created(CONFIG_MAPS, {"metadata": {"name": name, "labels": {"tier": tier}}})
    answer = await api.send("DELETE", api.path(CONFIG_MAPS), labelSelector="tier=web")
    assert answer.status == 200
    left = (await api.list(CONFIG_MAPS)).body["items"]
    assert [item["metadata"]["name"] for item in left] == ["c"]


async def test_a_grace_may_be_shortened_again_and_again(api: Backend) -> None:
    await api.running_pod("a", terminationGracePeriodSeconds=6000)
    asked = due(await api.delete(PODS, "a")) - timedelta(seconds=6000)
    for seconds in (3000, 1200, 600):
        answer = await api.delete(PODS, "a", gracePeriodSeconds=seconds)
        assert (grace(answer), due(answer) - asked) == (seconds, timedelta(seconds=seconds))
    longer = await api.delete(PODS, "a", gracePeriodSeconds=3000)
    assert (grace(longer), due(longer) - asked) == (600, timedelta(seconds=600))


async def test_a_grace_that_was_shortened_to_a_deadline_ends_there(api: Backend) -> None:
    await api.running_pod("a", terminationGracePeriodSeconds=600)
    first = due(await api.delete(PODS, "a"))
    await api.until_later(2)
    deadline = first - timedelta(seconds=480)
    asked = first - timedelta(seconds=600)
    seconds = (deadline - asked) // timedelta(seconds=1)
    assert due(await api.delete(PODS, "a", gracePeriodSeconds=seconds)) == deadline


async def test_a_shortened_grace_asks_for_the_same_pod(api: Backend) -> None:
    pod = await api.running_pod("a", terminationGracePeriodSeconds=600)
    await api.delete(PODS, "a")
    wrong = await api.delete(PODS, "a", gracePeriodSeconds=5, preconditions={"uid": "another"})
    assert (wrong.status, wrong.reason) == (409, "Conflict")
    uid = pod["metadata"]["uid"]
    assert grace(await api.delete(PODS, "a", gracePeriodSeconds=5, preconditions={"uid": uid})) == 5
