"""Reads may be stale; they never go back, and what is gone stays gone."""

from __future__ import annotations

from typing import Any

import msgspec

from tenure.kube.cache.cache import GONE_MAX, Cache
from tenure.model.api.meta import ApiObject, ObjectMeta
from tenure.model.api.node import Node, NodeStatus
from tenure.model.api.pod import Pod, PodSpec
from tenure.model.api.resource import NODES, PODS
from tenure.model.snapshot.amounts import ALLOCATABLE
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import stand_in
from tenure.model.values.quantity import UNIT


def a_pod(version: int, *, name: str = "web", uid: str = "u1", node: str = "", **meta: Any) -> Pod:
    metadata = ObjectMeta(
        name=name, namespace="default", uid=uid, resource_version=str(version), **meta
    )
    return Pod(metadata=metadata, spec=PodSpec(node_name=node))


class Watched(Cache):
    """A cache that counts how often it woke the loop."""

    def __init__(self, *pods: ApiObject, version: str = "10") -> None:
        self.wakes = 0
        super().__init__(self._count)
        self.replace(PODS, list(pods), version)
        self.take_changes()
        self.wakes = 0

    def _count(self) -> None:
        self.wakes += 1

    def version(self, name: str = "web") -> str:
        pod = self.tables.table(PODS).get(f"default/{name}")
        return pod.metadata.resource_version if pod else "gone"

    def moves(self) -> list[tuple[str, str]]:
        """(old version, new version) of each change."""
        return [(_version(change.old), _version(change.new)) for change in self.take_changes()]


def _version(item: ApiObject | None) -> str:
    return item.metadata.resource_version if item else ""


def test_a_late_event_does_not_undo_our_own_write() -> None:
    cache = Watched(a_pod(5))
    cache.upsert(PODS, a_pod(9, node="n1"))  # the answer to our write
    cache.upsert(PODS, a_pod(8, node="n0"))  # the watch, late
    cache.upsert(PODS, a_pod(9, node="n1"))  # the watch's copy of our own write
    assert cache.version() == "9"
    assert cache.moves() == [("5", "9")]


def test_a_late_answer_does_not_bring_back_what_the_watch_saw_go() -> None:
    cache = Watched(a_pod(5))
    cache.remove(PODS, a_pod(12))
    cache.upsert(PODS, a_pod(11))
    assert cache.version() == "gone"


def test_a_late_answer_does_not_bring_back_what_a_list_lacked() -> None:
    """Never seen, created by us, deleted by another client, and only then is our answer there."""
    cache = Watched(version="20")
    cache.upsert(PODS, a_pod(15))
    assert cache.version() == "gone"
    assert not cache.take_changes()


def test_a_list_does_not_take_away_what_was_written_after_it() -> None:
    cache = Watched(version="10")
    cache.upsert(PODS, a_pod(25))
    cache.replace(PODS, [], "20")
    assert cache.version() == "25"


def test_a_list_says_once_what_was_deleted_meanwhile() -> None:
    cache = Watched(a_pod(5), a_pod(6, name="db", uid="u2"))
    cache.replace(PODS, [a_pod(6, name="db", uid="u2")], "30")
    assert cache.moves() == [("5", "")]
    cache.replace(PODS, [a_pod(6, name="db", uid="u2")], "31")
    assert cache.moves() == []


def test_a_server_that_was_set_back_is_believed() -> None:
    cache = Watched(a_pod(500), version="500")
    cache.replace(PODS, [a_pod(7, name="db", uid="u2")], "9")
    assert (cache.version(), cache.version("db")) == ("gone", "7")
    cache.replace(PODS, [a_pod(8, name="db", uid="u2")], "10")
    assert cache.version("db") == "8"


def test_a_namesake_is_another_object() -> None:
    cache = Watched(a_pod(5))
    cache.upsert(PODS, a_pod(9, uid="u2"))
    assert cache.moves() == [("5", ""), ("", "9")]


def test_late_news_of_the_old_object_does_not_touch_its_namesake() -> None:
    cache = Watched(a_pod(5))
    cache.upsert(PODS, a_pod(9, uid="u2"))
    cache.upsert(PODS, a_pod(7))
    cache.remove(PODS, a_pod(8))
    assert cache.version() == "9"


def test_what_happened_to_one_object_between_two_looks_is_one_change() -> None:
    cache = Watched(a_pod(5))
    for version in (6, 7, 8):
        cache.upsert(PODS, a_pod(version, node=f"n{version}"))
    assert cache.moves() == [("5", "8")]


def test_what_came_and_went_between_two_looks_is_no_change() -> None:
    cache = Watched()
    cache.upsert(PODS, a_pod(11))
    cache.remove(PODS, a_pod(12))
    assert cache.moves() == []


def test_a_change_of_no_field_that_we_read_does_not_wake_the_loop() -> None:
    cache = Watched(a_pod(5))
    cache.upsert(PODS, a_pod(11))
    assert cache.version() == "11"
    assert cache.wakes == 0
    assert cache.moves() == []


def test_a_kind_that_a_list_leaves_out_is_no_change() -> None:
    cache = Watched(a_pod(5))
    cache.upsert(PODS, msgspec.structs.replace(a_pod(11), kind="Pod", api_version="v1"))
    assert cache.wakes == 0


def test_an_unseen_change_is_told_to_who_acts_on_the_object() -> None:
    cache = Watched(a_pod(5))
    cache.upsert(PODS, a_pod(11))
    (change,) = cache.take_changes([(PODS, "default/web")])
    assert change == Change(PODS, "default/web", a_pod(5), a_pod(11))
    assert cache.take_changes([(PODS, "default/web")]) == []


def test_an_unseen_change_is_part_of_the_next_one_that_counts() -> None:
    cache = Watched(a_pod(5))
    cache.upsert(PODS, a_pod(11))
    cache.upsert(PODS, a_pod(12, node="n1"))
    assert cache.wakes == 1
    assert cache.moves() == [("5", "12")]


def test_a_stand_in_takes_the_place_of_what_cannot_be_read_until_it_is_mended() -> None:
    cache = Watched(a_pod(5))
    cache.upsert(PODS, stand_in(a_pod(11), "bad"))
    assert set(cache.tables.unreadable) == {(PODS, a_pod(11).key)}
    assert cache.moves() == [("5", "11")]
    cache.upsert(PODS, a_pod(10))
    assert cache.version() == "11", "a late event does not mend it"
    cache.upsert(PODS, a_pod(12))
    assert cache.version() == "12"
    assert not cache.tables.unreadable


def test_an_unreadable_object_that_is_deleted_is_gone() -> None:
    broken = stand_in(a_pod(11), "bad")
    cache = Watched(a_pod(5))
    cache.upsert(PODS, broken)
    cache.remove(PODS, broken)
    assert not cache.tables.unreadable


def test_the_memory_of_the_gone_is_bounded() -> None:
    cache = Watched()
    for number in range(GONE_MAX + 50):
        cache.upsert(PODS, a_pod(11 + number, name=f"p{number}", uid=f"u{number}"))
        cache.remove(PODS, a_pod(11 + number, name=f"p{number}", uid=f"u{number}"))
    cache.take_changes()
    assert len(cache._gone) == GONE_MAX
    assert not cache._quiet


def a_node(version: int, cpu: str) -> Node:
    metadata = ObjectMeta(name="n1", uid="u1", resource_version=str(version))
    return Node(metadata=metadata, status=NodeStatus(allocatable={"cpu": cpu}))


def test_what_was_derived_from_a_node_outlives_its_heartbeats_and_nothing_else() -> None:
    cache = Cache()
    snapshot = Snapshot(cache.tables)
    cache.upsert(NODES, a_node(1, "2"))
    derived = snapshot.derived.of(ALLOCATABLE, snapshot.nodes["n1"])
    cache.upsert(NODES, a_node(2, "2"))
    assert snapshot.derived.of(ALLOCATABLE, snapshot.nodes["n1"]) is derived
    cache.upsert(NODES, a_node(3, "4"))
    assert snapshot.derived.of(ALLOCATABLE, snapshot.nodes["n1"]) == {"cpu": 4 * UNIT}


def test_an_object_that_was_set_aside_is_read_again_when_it_changes() -> None:
    read: list[str] = []
    cache = Cache(readers={NODES: [lambda node: read.append(node.metadata.resource_version)]})
    cache.upsert(NODES, a_node(1, "2"))
    cache.upsert(NODES, a_node(2, "2"))
    assert read == ["1"], "a heartbeat says nothing new"
    cache.tables.set_aside(NODES, "n1", "a decider failed")
    cache.upsert(NODES, a_node(3, "2"))
    assert read == ["1", "3"]
    assert not Snapshot(cache.tables).unreadable()
