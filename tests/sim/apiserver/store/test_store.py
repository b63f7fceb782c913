"""The store from the actors' side: callbacks, chance, time, and what is never changed."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.errors import Conflict, Gone, NotFound, TooManyRequests
from tenure.model.api.resource import (
    CONFIG_MAPS,
    LEASES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
)
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.store.store import Store

FRIDAY_8PM = datetime(2031, 5, 2, 20, tzinfo=UTC)


class World:
    """A clock that tests set, with a heap of what is due."""

    def __init__(self) -> None:
        self._now = FRIDAY_8PM
        self._due: list[tuple[datetime, int, Callable[[], None]]] = []
        self._count = itertools.count()

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return (self._now - FRIDAY_8PM).total_seconds()

    def at(self, instant: datetime, callback: Callable[[], None]) -> None:
        heapq.heappush(self._due, (instant, next(self._count), callback))

    def soon(self, callback: Callable[[], None]) -> None:
        self.at(self._now, callback)

    def advance(self, by: timedelta = timedelta(0)) -> None:
        until = self._now + by
        while self._due and self._due[0][0] <= until:
            self._now, _, callback = heapq.heappop(self._due)
            callback()
        self._now = until


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def store(world: World) -> Store:
    return Store(world, Random(1), world.at, world.soon)


def a_config(name: str, **data: str) -> Obj:
    return {"metadata": {"name": name, "namespace": "default"}, "data": data}


def a_pod(name: str, **spec: Any) -> Obj:
    spec = {"containers": [{"name": "main", "image": "app"}], **spec}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def test_callbacks_come_later_in_the_order_of_the_writes(world: World, store: Store) -> None:
    seen: list[tuple[str, str]] = []
    store.subscribe(CONFIG_MAPS, lambda type_, new, old: seen.append((type_, new["data"]["k"])))
    store.create(CONFIG_MAPS, a_config("a", k="1"))
    store.patch(CONFIG_MAPS, "default", "a", {"data": {"k": "2"}})
    store.delete(CONFIG_MAPS, "default", "a")
    assert seen == [], "never inside the write"
    world.advance()
    assert seen == [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")]


def test_a_callback_that_writes_is_not_called_within_itself(world: World, store: Store) -> None:
    depth = 0
    deepest = 0

    def count_up(type_: str, new: Obj, old: Obj | None) -> None:
        nonlocal depth, deepest
        depth += 1
        deepest = max(deepest, depth)
        if int(new["data"]["k"]) < 5:
            store.patch(
                CONFIG_MAPS, "default", "a", {"data": {"k": str(int(new["data"]["k"]) + 1)}}
            )
        depth -= 1

    store.subscribe(CONFIG_MAPS, count_up)
    store.create(CONFIG_MAPS, a_config("a", k="1"))
    world.advance()
    assert store.get(CONFIG_MAPS, "default", "a")["data"]["k"] == "5"
    assert deepest == 1


def test_a_failing_callback_does_not_keep_the_others_from_hearing(
    world: World, store: Store
) -> None:
    heard: list[str] = []

    def fail(type_: str, new: Obj, old: Obj | None) -> None:
        raise RuntimeError("actor broke")

    store.subscribe(CONFIG_MAPS, fail)
    store.subscribe(CONFIG_MAPS, lambda type_, new, old: heard.append(type_))
    store.create(CONFIG_MAPS, a_config("a"))
    with pytest.raises(RuntimeError, match="actor broke"):
        world.advance()
    world.advance()
    assert heard == ["ADDED"]


def test_a_late_subscriber_can_ask_for_what_is_there(world: World, store: Store) -> None:
    store.create(CONFIG_MAPS, a_config("a"))
    seen: list[tuple[str, str]] = []
    store.subscribe(
        CONFIG_MAPS,
        lambda type_, new, old: seen.append((type_, new["metadata"]["name"])),
        replay=True,
    )
    world.advance()
    assert seen == [("ADDED", "a")]


def test_the_same_seed_gives_the_same_uids_and_names(world: World) -> None:
    def life() -> list[Obj]:
        store = Store(world, Random(7), world.at, world.soon)
        for _ in range(3):
            store.create(CONFIG_MAPS, {"metadata": {"generateName": "x-", "namespace": "default"}})
        return store.list(CONFIG_MAPS)

    assert life() == life()


def test_timestamps_are_whole_seconds(world: World, store: Store) -> None:
    world.advance(timedelta(milliseconds=1900))
    created = store.create(CONFIG_MAPS, a_config("a"))
    assert created["metadata"]["creationTimestamp"] == "2031-05-02T20:00:01Z"


def test_computed_fields_are_seen_by_readers_and_not_stored(world: World, store: Store) -> None:
    """A lease that is renewed every ten seconds need not be written every ten seconds."""
    lease = {"metadata": {"name": "node-1", "namespace": "kube-node-lease"}, "spec": {}}
    created = store.create(LEASES, lease)
    store.compute_on_read(LEASES, lambda obj: {**obj, "spec": {"renewTime": str(world.now())}})
    world.advance(timedelta(minutes=1))
    read = store.get(LEASES, "kube-node-lease", "node-1")
    assert read["spec"]["renewTime"].startswith("2031-05-02 20:01:00")
    assert store.list(LEASES) == [read]
    assert read["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]


def test_refusals_are_errors_that_say_what_to_do(store: Store) -> None:
    with pytest.raises(NotFound):
        store.get(PODS, "default", "missing")
    store.create(CONFIG_MAPS, a_config("a"))
    with pytest.raises(Conflict):
        store.delete(CONFIG_MAPS, "default", "a", uid="another")


def test_an_actor_can_evict_and_is_told_by_whom_it_is_refused(store: Store) -> None:
    pod = a_pod("a", nodeName="node-1")
    pod["metadata"]["labels"] = {"app": "web"}
    store.create(PODS, pod)
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    store.patch(PODS, "default", "a", {"status": ready}, subresource="status")
    budget = {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 1}
    metadata = {"name": "b", "namespace": "default"}
    store.create(POD_DISRUPTION_BUDGETS, {"metadata": metadata, "spec": budget})
    with pytest.raises(TooManyRequests) as refused:
        store.evict("default", "a")
    assert refused.value.retry_after == timedelta(seconds=10)
    assert refused.value.causes[0].reason == "DisruptionBudget"


def test_a_pod_is_bound_and_its_grace_begins_with_the_first_delete(
    world: World, store: Store
) -> None:
    store.create(PODS, a_pod("a"))
    store.bind("default", "a", "node-1")
    store.delete(PODS, "default", "a")
    world.advance(timedelta(seconds=4))
    shortened = store.delete(PODS, "default", "a", 10)
    assert shortened["metadata"]["deletionTimestamp"] == "2031-05-02T20:00:10Z"
    world.advance(timedelta(seconds=8))
    overdue = store.delete(PODS, "default", "a", 5)
    assert overdue["metadata"]["deletionTimestamp"] == "2031-05-02T20:00:12Z"
    assert overdue["metadata"]["deletionGracePeriodSeconds"] == 1


def test_a_chain_of_owners_is_collected_link_by_link(world: World, store: Store) -> None:
    spec: Obj = {"selector": {"matchLabels": {"a": "b"}}}
    spec["template"] = {"metadata": {"labels": {"a": "b"}}, "spec": a_pod("x")["spec"]}
    owner = store.create(
        REPLICA_SETS, {"metadata": {"name": "rs", "namespace": "default"}, "spec": spec}
    )
    for name in ("p1", "p2"):
        pod = a_pod(name)
        pod["metadata"]["ownerReferences"] = [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "rs",
                "uid": owner["metadata"]["uid"],
                "controller": True,
            }
        ]
        store.create(PODS, pod)
    store.delete(REPLICA_SETS, "default", "rs")
    assert len(store.list(PODS)) == 2, "later, not inside the write"
    world.advance(timedelta(seconds=1))
    assert store.list(PODS) == []


def test_the_history_forgets_what_no_longer_fits(world: World) -> None:
    store = Store(world, Random(1), world.at, world.soon, history=3)
    first = store.create(CONFIG_MAPS, a_config("a", k="0"))
    for turn in range(1, 5):
        store.patch(CONFIG_MAPS, "default", "a", {"data": {"k": str(turn)}})
    history = store.shelf(CONFIG_MAPS).history
    version = int(first["metadata"]["resourceVersion"])
    with pytest.raises(Gone):
        history.since(version)
    assert [event.record.obj["data"]["k"] for event in history.since(version + 1)] == [
        "2",
        "3",
        "4",
    ]


def test_a_watch_gets_a_bookmark_every_minute_and_ends_within_the_hour(
    world: World, store: Store
) -> None:
    watch = store.feed.watch(store.shelf(CONFIG_MAPS), since=store.version, bookmarks=True)
    world.advance(timedelta(minutes=3))
    lines = [msgspec.json.decode(line) for line in watch.drain()]
    assert [line["type"] for line in lines] == ["BOOKMARK"] * 3
    assert lines[0]["object"]["metadata"]["resourceVersion"] == str(store.version)
    world.advance(timedelta(hours=1))
    assert store.shelf(CONFIG_MAPS).watches == {}, "the server ends every watch in time"


def test_a_restart_ends_every_watch(store: Store) -> None:
    watches = [store.feed.watch(store.shelf(r)) for r in (CONFIG_MAPS, NODES)]
    store.end_watches()
    assert all(not store.shelf(r).watches for r in (CONFIG_MAPS, NODES))
    assert len(watches) == 2


NAMES = st.sampled_from(["a", "b", "c"])
WRITES = st.lists(
    st.tuples(
        st.sampled_from(["create", "patch", "delete", "hold", "release"]),
        NAMES,
        st.sampled_from(["1", "2"]),
    ),
    max_size=30,
)


def write(store: Store, verb: str, name: str, value: str) -> None:
    """One write, or nothing where it makes no sense."""
    if verb == "create":
        if store.find(CONFIG_MAPS, "default", name) is None:
            store.create(CONFIG_MAPS, a_config(name, k=value))
    elif store.find(CONFIG_MAPS, "default", name) is None:
        return
    elif verb == "delete":
        store.delete(CONFIG_MAPS, "default", name)
    elif verb == "patch":
        store.patch(CONFIG_MAPS, "default", name, {"data": {"k": value}})
    else:
        obj = store.get(CONFIG_MAPS, "default", name)
        deleting = "deletionTimestamp" in obj["metadata"]
        finalizers = ["example.com/hold"] if verb == "hold" and not deleting else None
        store.patch(CONFIG_MAPS, "default", name, {"metadata": {"finalizers": finalizers}})


@given(WRITES)
def test_a_watcher_ends_up_with_what_a_list_shows(
    writes: list[tuple[str, str, str]],
) -> None:
    world = World()
    store = Store(world, Random(1), world.at, world.soon)
    watch = store.feed.watch(store.shelf(CONFIG_MAPS), since=store.version)
    for verb, name, value in writes:
        write(store, verb, name, value)
    seen: dict[str, Obj] = {}
    for line in watch.drain():
        event = msgspec.json.decode(line)
        name = event["object"]["metadata"]["name"]
        if event["type"] == "DELETED":
            del seen[name]
        else:
            assert (event["type"] == "ADDED") == (name not in seen)
            seen[name] = event["object"]
    assert [seen[name] for name in sorted(seen)] == store.list(CONFIG_MAPS)


@given(WRITES)
def test_every_past_instant_can_be_listed_again(writes: list[tuple[str, str, str]]) -> None:
    world = World()
    store = Store(world, Random(1), world.at, world.soon)
    shelf = store.shelf(CONFIG_MAPS)
    shown = {}
    for verb, name, value in writes:
        write(store, verb, name, value)
        shown[store.version] = [(key, record.obj) for key, record in shelf.listed()]
    for version, listed in shown.items():
        assert [(key, r.obj) for key, r in shelf.at_version(version)] == listed


@given(WRITES)
def test_what_was_handed_out_never_changes(writes: list[tuple[str, str, str]]) -> None:
    world = World()
    store = Store(world, Random(1), world.at, world.soon)
    handed_out: list[tuple[Obj, Obj]] = []
    for verb, name, value in writes:
        write(store, verb, name, value)
        handed_out += [(obj, deepcopy(obj)) for obj in store.list(CONFIG_MAPS)]
    assert all(obj == copy for obj, copy in handed_out)


@given(WRITES)
def test_a_version_is_new_exactly_when_something_changed(
    writes: list[tuple[str, str, str]],
) -> None:
    world = World()
    store = Store(world, Random(1), world.at, world.soon)
    for verb, name, value in writes:
        before, version = store.list(CONFIG_MAPS), store.version
        write(store, verb, name, value)
        assert (store.list(CONFIG_MAPS) != before) == (store.version != version)
