"""The cluster for a thread beside the loop: the same as the tables, however they change, at the cost of what changes."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from tenure.core.policy.readers import READERS
from tenure.core.poolpolicy.govern import govern
from tenure.model.api.meta import ApiObject, ObjectMeta
from tenure.model.api.names import NODEPOOL
from tenure.model.api.node import Node, NodeSpec
from tenure.model.api.pod import Pod, PodSpec
from tenure.model.api.resource import NODE_POOLS, NODES, PODS
from tenure.model.snapshot.derived import Derivation
from tenure.model.snapshot.observations import Observations
from tenure.model.snapshot.snapshot import MANY, Snapshot, Tables
from tenure.model.snapshot.twin import Twin


def a_node(name: str, pool: str = "general") -> Node:
    metadata = ObjectMeta(name=name, labels={NODEPOOL: pool})
    return Node(metadata=metadata, spec=NodeSpec(provider_id=f"kwok://{name}"))


def a_pod(name: str, node: str) -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=PodSpec(node_name=node))


def some_tables() -> Tables:
    tables = Tables(READERS, govern=govern)
    for number in range(3):
        tables.put(NODES, a_node(f"n{number}"))
        tables.put(PODS, a_pod(f"p{number}", f"n{number}"))
    return tables


def assert_same(found: Snapshot, tables: Tables) -> None:
    there = found.tables
    assert {kind: table for kind, table in there.objects.items() if table} == {
        kind: table for kind, table in tables.objects.items() if table
    }
    for name, index in tables._indexes.items():
        assert there._indexes[name].groups == index.groups, name
    assert there.unreadable == tables.unreadable
    assert there.unlisted == tables.unlisted


def test_it_is_the_cluster_of_the_instant_at_which_it_was_asked_for() -> None:
    tables, twin = some_tables(), Twin()
    look = twin.look(Snapshot(tables))
    tables.put(NODES, a_node("later"))
    tables.remove(NODES, "n0")
    found = look()
    assert set(found.nodes) == {"n0", "n1", "n2"}
    assert set(found.pods_on("n0")) == {"default/p0"}


def test_it_catches_up_with_what_came_changed_moved_and_went() -> None:
    tables, twin = some_tables(), Twin()
    twin.look(Snapshot(tables))()
    tables.put(NODES, a_node("n1", "batch"))
    tables.put(NODES, a_node("n3"))
    tables.remove(NODES, "n2")
    tables.remove(PODS, "default/p0")
    tables.put(PODS, a_pod("p0", "n3"))
    tables.set_aside(PODS, "default/p1", "a decider fails on it")
    tables.list_failed(NODE_POOLS, "403")
    assert_same(twin.look(Snapshot(tables))(), tables)
    tables.put(PODS, a_pod("p1", "n1"))
    tables.list_failed(NODE_POOLS, "")
    assert_same(twin.look(Snapshot(tables))(), tables)


def test_it_says_once_that_it_should_catch_up() -> None:
    """What others have replaced is kept until then, and Python's collector goes through all that is kept."""
    told: list[int] = []
    tables, twin = some_tables(), Twin(lambda: told.append(1))
    twin.look(Snapshot(tables))()
    for number in range(2 * MANY):
        assert twin.is_behind == (number >= MANY)
        tables.put(NODES, a_node(f"more{number}"))
    assert told == [1]
    assert_same(twin.look(Snapshot(tables))(), tables)
    assert not twin.is_behind


def test_only_the_first_look_reads_all_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    filled: list[int] = []
    fill = Tables.fill

    def counted(self: Tables, objects: Any, derived: Any) -> None:
        filled.append(sum(map(len, objects.values())))
        fill(self, objects, derived)

    monkeypatch.setattr(Tables, "fill", counted)
    tables, twin = some_tables(), Twin()
    for number in range(5):
        tables.put(NODES, a_node(f"more{number}"))
        assert_same(twin.look(Snapshot(tables))(), tables)
    assert filled == [7]


def test_what_is_derived_from_an_object_is_derived_once_for_both() -> None:
    made: list[str] = []

    def derive(node: Node) -> str:
        made.append(node.name)
        return node.name

    name = Derivation("name", derive)
    tables, twin = some_tables(), Twin()
    before = twin.look(Snapshot(tables))()
    assert tables.derived.of(name, tables.table(NODES)["n0"]) == "n0"
    assert before.derived.of(name, before.nodes["n0"]) == "n0"
    new = a_node("n0", "batch")
    tables.put(NODES, new)
    after = twin.look(Snapshot(tables))()
    assert after.derived.of(name, new) == "n0"
    assert tables.derived.of(name, new) == "n0"
    assert made == ["n0", "n0"]


def test_what_follows_from_all_objects_is_worked_out_again_once_something_has_changed() -> None:
    def names(snapshot: Snapshot) -> list[str]:
        return sorted(snapshot.nodes)

    def unlisted(snapshot: Snapshot) -> list[str]:
        return sorted(map(str, snapshot.unlisted_kinds()))

    tables, twin = some_tables(), Twin()
    first = twin.look(Snapshot(tables))()
    known = first.once(names)
    assert twin.look(Snapshot(tables))().once(names) is known
    assert first.once(unlisted) == []
    tables.remove(NODES, "n0")
    assert twin.look(Snapshot(tables))().once(names) == ["n1", "n2"]
    tables.list_failed(NODE_POOLS, "403")
    assert twin.look(Snapshot(tables))().once(unlisted) == [str(NODE_POOLS)]


def test_what_we_know_beside_the_objects_is_of_that_instant_too() -> None:
    observations = Observations(instance_types={"a": ()})
    look = Twin().look(Snapshot(some_tables(), observations))
    observations.instance_types["b"] = ()  # type: ignore[index]
    assert set(look().observations.instance_types) == {"a"}


def test_other_tables_begin_anew() -> None:
    twin, others = Twin(), Tables()
    first = some_tables()
    twin.look(Snapshot(first))()
    others.put(NODES, a_node("other"))
    assert_same(twin.look(Snapshot(others))(), others)
    assert not first.noted


def test_what_it_has_forgotten_is_kept_by_nothing() -> None:
    tables, twin = some_tables(), Twin()
    twin.look(Snapshot(tables))()
    assert twin.exists
    gone = weakref.ref(_dropped(tables))
    gc.collect()
    assert gone() is not None, "the twin has it until it catches up"
    twin.forget()
    gc.collect()
    assert gone() is None
    assert not tables.noted
    assert not twin.exists


def _dropped(tables: Tables) -> Any:
    """Something that belongs to an object which is in the tables no more."""
    kept: ApiObject = tables.table(NODES)["n0"]
    holder = _Holder()
    row = tables.derived._rows[id(kept)]
    row[1][Derivation("holder", _nothing)] = (), holder
    tables.remove(NODES, "n0")
    return holder


def _nothing(_: Node) -> None:
    return None


class _Holder:
    pass
