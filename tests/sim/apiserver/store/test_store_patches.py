"""Patches as functions: what they must hold for any tree."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.errors import ApiError
from tenure.sim.apiserver.objects.tree import without_nulls
from tenure.sim.apiserver.patch.merge import json_patch, merge_patch
from tenure.sim.apiserver.patch.strategic import strategic_merge_patch

KEYS = st.sampled_from(["a", "b", "c"])
LEAVES = st.none() | st.booleans() | st.integers(0, 2) | st.text("xy", max_size=1)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(KEYS, TREES, max_size=3)


def plain_merge(target: Any, patch: Any) -> Any:
    """RFC 7386, as its pseudo-code has it."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = plain_merge(result.get(key), value)
    return result


@given(OBJECTS, OBJECTS)
def test_a_merge_patch_does_what_its_rfc_says(target: Any, patch: Any) -> None:
    assert repr(_sorted(merge_patch(target, patch))) == repr(_sorted(plain_merge(target, patch)))


@given(OBJECTS, OBJECTS)
def test_a_merge_patch_applied_twice_changes_nothing_more(target: Any, patch: Any) -> None:
    once = merge_patch(target, patch)
    assert merge_patch(once, patch) is once


@given(OBJECTS)
def test_a_patch_that_changes_nothing_gives_the_very_same_tree(target: Any) -> None:
    assert merge_patch(target, without_nulls_in_dicts(target)) is target
    assert strategic_merge_patch(target, {}) is target


def without_nulls_in_dicts(tree: Any) -> Any:
    """A merge patch cannot say null, so it says nothing there."""
    if isinstance(tree, dict):
        return {k: without_nulls_in_dicts(v) for k, v in tree.items() if v is not None}
    return tree


def _sorted(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _sorted(tree[key]) for key in sorted(tree)}
    return [_sorted(item) for item in tree] if isinstance(tree, list) else tree


@given(OBJECTS)
def test_no_null_is_left_and_a_clean_tree_is_not_copied(target: Any) -> None:
    clean = without_nulls(target)
    assert without_nulls(clean) is clean
    assert "None" not in repr(_in_dicts(clean))


def _in_dicts(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _in_dicts(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_in_dicts(item) for item in tree if item is not None]
    return tree


@pytest.mark.parametrize(
    ("operations", "status"),
    [
        pytest.param({"op": "add"}, 400, id="no list"),
        pytest.param([{"op": "add", "path": "a", "value": 1}], 400, id="a path without a slash"),
        pytest.param([{"op": "add", "path": "/a"}], 400, id="an addition of nothing"),
        pytest.param([{"op": "move", "path": "/a"}], 400, id="a move from nowhere"),
        pytest.param([{"op": "zap", "path": "/a"}], 422, id="an unknown operation"),
        pytest.param([{"op": "remove", "path": "/l/5"}], 422, id="beyond the end of a list"),
        pytest.param([{"op": "add", "path": "/l/x", "value": 1}], 422, id="a word for an index"),
    ],
)
def test_a_json_patch_that_makes_no_sense_is_refused(operations: Any, status: int) -> None:
    with pytest.raises(ApiError) as refused:
        json_patch({"a": 1, "l": [1]}, operations)
    assert refused.value.status == status


def test_a_json_patch_tells_true_from_one() -> None:
    with pytest.raises(ApiError):
        json_patch({"a": True}, [{"op": "test", "path": "/a", "value": 1}])


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        pytest.param(
            {"volumes": [{"name": "a"}, {"name": "b"}]},
            {"volumes": [{"$patch": "replace"}, {"name": "c"}]},
            {"volumes": [{"name": "c"}]},
            id="a list replaced whole",
        ),
        pytest.param(
            {"env": [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}]},
            {
                "$setElementOrder/env": [{"name": "b"}, {"name": "a"}],
                "env": [{"name": "a", "value": "3"}],
            },
            {"env": [{"name": "b", "value": "2"}, {"name": "a", "value": "3"}]},
            id="a list in a new order",
        ),
        pytest.param(
            {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}},
            {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}},
            {"strategy": {"type": "Recreate"}},
            id="a union that changes its member",
        ),
        pytest.param(
            {"ports": [{"containerPort": 80, "name": "a"}]},
            {"ports": [{"containerPort": 80, "name": "b"}, {"containerPort": 81}]},
            {"ports": [{"containerPort": 80, "name": "b"}, {"containerPort": 81}]},
            id="ports of a container",
        ),
        pytest.param(
            {"spec": {"a": 1, "b": 2}},
            {"spec": {"$patch": "replace", "c": 3}},
            {"spec": {"c": 3}},
            id="an object replaced whole",
        ),
    ],
)
def test_a_strategic_patch_obeys_its_directives(target: Any, patch: Any, expected: Any) -> None:
    assert strategic_merge_patch(target, patch) == expected


def test_an_element_without_its_key_is_refused() -> None:
    with pytest.raises(ApiError) as refused:
        strategic_merge_patch({"conditions": []}, {"conditions": [{"status": "True"}]})
    assert refused.value.status == 400
