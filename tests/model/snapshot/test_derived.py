"""What is derived from an object: once, for as long as the object is there, and no longer."""

from __future__ import annotations

import gc
import weakref
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tenure.model.api.meta import ObjectMeta
from tenure.model.api.node import Node
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODES, PODS
from tenure.model.snapshot.derived import NOTHING_KEPT, Derivation, Derived
from tenure.model.snapshot.snapshot import Snapshot, Tables


class Name:
    """A result that can be referred to weakly."""

    def __init__(self, text: str) -> None:
        self.text = text


class Counting:
    """Derivations that note when they are made."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.name = Derivation("name", self._name)
        self.with_more = Derivation("name with more", self._with_more)

    def _name(self, node: Node) -> Name:
        self.made.append(node.name)
        return Name(node.name)

    def _with_more(self, node: Node, more: str) -> str:
        self.made.append(more)
        return node.name + more


def a_node(name: str = "n1", version: str = "1") -> Node:
    return Node(metadata=ObjectMeta(name=name, resource_version=version))


def test_it_is_derived_once_for_an_object_in_the_tables() -> None:
    tables, counting, node = Tables(), Counting(), a_node()
    tables.put(NODES, node)
    first = Snapshot(tables).derived.of(counting.name, node)
    assert Snapshot(tables).derived.of(counting.name, node) is first
    assert counting.made == ["n1"]


def test_of_an_object_that_is_not_in_the_tables_nothing_is_kept() -> None:
    tables, counting = Tables(), Counting()
    tables.put(NODES, a_node())
    equal = a_node()
    for derived in (tables.derived, NOTHING_KEPT):
        counting.made.clear()
        derived.of(counting.name, equal)
        derived.of(counting.name, equal)
        derived.keep(counting.name, equal, Name("kept"))
        assert derived.known(counting.name, equal) is None
        assert counting.made == ["n1", "n1"]


def test_with_something_else_given_it_is_derived_again() -> None:
    tables, counting, node = Tables(), Counting(), a_node()
    tables.put(NODES, node)
    asked = [tables.derived.of(counting.with_more, node, more) for more in ("a", "a", "b", "a")]
    assert asked == ["n1a", "n1a", "n1b", "n1a"]
    assert counting.made == ["a", "b", "a"], "the last one is kept"


def test_two_derivations_of_an_object_do_not_mix() -> None:
    tables, counting, node = Tables(), Counting(), a_node()
    tables.put(NODES, node)
    tables.derived.of(counting.with_more, node, "a")
    assert tables.derived.of(counting.name, node).text == "n1"


def test_another_version_is_derived_from_anew() -> None:
    tables, counting, old, new = Tables(), Counting(), a_node(), a_node(version="2")
    tables.put(NODES, old)
    tables.derived.of(counting.name, old)
    tables.put(NODES, new)
    tables.derived.of(counting.name, new)
    assert counting.made == ["n1", "n1"]


def test_a_version_that_differs_in_nothing_takes_over_what_was_derived() -> None:
    tables, counting, old, new = Tables(), Counting(), a_node(), a_node(version="2")
    tables.put(NODES, old)
    first = tables.derived.of(counting.name, old)
    tables.put(NODES, new, unchanged=True)
    assert tables.derived.of(counting.name, new) is first
    assert tables.derived.known(counting.name, old) is None, "the former version is not there"
    assert len(tables.derived) == 1


def test_an_object_that_comes_back_to_the_tables_has_a_place_of_its_own() -> None:
    tables, counting, node = Tables(), Counting(), a_node()
    tables.put(NODES, node)
    aside = tables.set_aside(NODES, "n1", "a decider failed")
    assert len(tables.derived) == 1
    Snapshot(tables).put_back(aside)
    tables.put(NODES, node)
    tables.derived.of(counting.name, node)
    tables.derived.of(counting.name, node)
    assert counting.made == ["n1"]
    assert len(tables.derived) == 1


def test_what_was_derived_is_gone_with_the_object() -> None:
    tables, counting = Tables(), Counting()
    tables.put(NODES, a_node())
    tables.put(NODES, a_node("n2"))
    made = [weakref.ref(tables.derived.of(counting.name, n)) for n in tables.table(NODES).values()]
    tables.remove(NODES, "n1")
    tables.put(NODES, a_node("n2", version="2"))
    gc.collect()
    assert [one() for one in made] == [None, None]


steps = st.lists(
    st.tuples(
        st.sampled_from([NODES, PODS]),
        st.sampled_from("abc"),
        st.sampled_from("1234"),
        st.booleans(),
    ),
    max_size=30,
)


@given(steps)
def test_it_keeps_something_for_the_objects_in_the_tables_and_for_no_other(steps: Any) -> None:
    tables = Tables()
    for resource, name, version, remove in steps:
        type_ = Node if resource == NODES else Pod
        item = type_(metadata=ObjectMeta(name=name, resource_version=version))
        if remove:
            tables.remove(resource, item.key)
        else:
            tables.put(resource, item, unchanged=item.key in tables.table(resource))
        there = [one for table in tables.objects.values() for one in table.values()]
        assert len(tables.derived) == len(there)
        assert all(id(one) in tables.derived._rows for one in there)


def test_what_is_kept_tells_no_two_views_apart() -> None:
    tables, counting, node = Tables(), Counting(), a_node()
    tables.put(NODES, node)
    tables.derived.of(counting.name, node)
    assert tables.derived == Derived() == NOTHING_KEPT
    assert hash(tables.derived) == hash(NOTHING_KEPT)
    assert tables.derived != 1
