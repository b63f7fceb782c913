"""A turn takes so many changes of each kind, the oldest first."""

from __future__ import annotations

from tenure.kube.cache.cache import Cache
from tenure.model.api.meta import ObjectMeta
from tenure.model.api.node import Node
from tenure.model.api.resource import NODES, PODS
from tenure.model.snapshot.snapshot import Change
from tests.kube.cache.test_cache import a_pod


def names(changes: list[Change]) -> str:
    return "".join(change.key.removeprefix("default/") for change in changes)


def pods(cache: Cache, names: str, version: int = 1, node: str = "") -> None:
    for name in names:
        cache.upsert(PODS, a_pod(version, name=name, uid=f"u-{name}", node=node))


def test_the_rest_is_for_the_next_turn() -> None:
    cache = Cache()
    pods(cache, "abcde")
    assert (names(cache.take_changes(most=2)), cache.behind) == ("ab", True)
    assert (names(cache.take_changes(most=2)), cache.behind) == ("cd", True)
    assert (names(cache.take_changes(most=2)), cache.behind) == ("e", False)
    assert cache.take_changes(most=2) == []


def test_a_node_does_not_wait_behind_pods() -> None:
    cache = Cache()
    pods(cache, "abcde")
    cache.upsert(NODES, Node(metadata=ObjectMeta(name="n", uid="u", resource_version="2")))
    assert names(cache.take_changes(most=2)) == "abn"


def test_an_object_that_changes_all_the_time_keeps_its_place() -> None:
    cache = Cache()
    pods(cache, "abcd")
    pods(cache, "a", version=2, node="n1")
    (first,) = cache.take_changes(most=1)
    assert (first.key, first.old) == ("default/a", None)
    assert first.new == cache.tables.table(PODS)["default/a"]


def test_what_came_and_went_before_its_turn_is_no_change() -> None:
    cache = Cache()
    pods(cache, "abc")
    cache.remove(PODS, a_pod(1, name="b", uid="u-b"))
    assert names(cache.take_changes(most=5)) == "ac"


def test_a_change_of_what_an_action_is_about_is_taken_in_any_case() -> None:
    cache = Cache()
    pods(cache, "abcde")
    assert names(cache.take_changes([(PODS, "default/d")], most=2)) == "abd"
    assert names(cache.take_changes(most=5)) == "ce"


def test_without_a_limit_all_are_taken() -> None:
    cache = Cache()
    pods(cache, "abcde")
    assert names(cache.take_changes()) == "abcde"
