"""Objects as plain JSON trees that are never changed in place.

A write copies the dicts on the way to the changed field and shares everything else
with the object before it. So a stored object can be handed out without copying it,
and "did the spec change?" is mostly a comparison of identities. The price is a rule:
a caller that receives a tree from the store must not write into it.
"""

from __future__ import annotations

from operator import is_not
from typing import Any

Obj = dict[str, Any]


def put(tree: Obj, path: tuple[str, ...], value: Any) -> Obj:
    """The tree with ``value`` at ``path``; missing dicts on the way are made."""
    head, *rest = path
    if rest:
        value = put(tree.get(head) or {}, tuple(rest), value)
    return {**tree, head: value}


def drop(tree: Obj, path: tuple[str, ...]) -> Obj:
    """The tree without the field at ``path``; the same tree when it was not there."""
    head, *rest = path
    if head not in tree:
        return tree
    if not rest:
        return {key: value for key, value in tree.items() if key != head}
    below = tree[head]
    if not isinstance(below, dict):
        return tree
    changed = drop(below, tuple(rest))
    return tree if changed is below else {**tree, head: changed}


def dig(tree: Any, *path: str) -> Any:
    """The value at ``path``; None when something on the way is missing or no dict."""
    for key in path:
        if not isinstance(tree, dict):
            return None
        tree = tree.get(key)
    return tree


def with_metadata(obj: Obj, **fields: Any) -> Obj:
    """The object with these metadata fields (camel-case names) set; None removes one."""
    metadata = {**obj["metadata"], **fields}
    for key, value in fields.items():
        if value is None:
            del metadata[key]
    return {**obj, "metadata": metadata}


def without_nulls(tree: Any) -> Any:
    """The tree without null fields, as typed decoding drops them; itself when there is none."""
    if type(tree) is dict:
        kept = {key: without_nulls(value) for key, value in tree.items() if value is not None}
        unchanged = len(kept) == len(tree) and not any(map(is_not, kept.values(), tree.values()))
        return tree if unchanged else kept
    if type(tree) is list:
        items = [without_nulls(item) for item in tree]
        return items if any(map(is_not, items, tree)) else tree
    return tree


def same(left: Any, right: Any) -> bool:
    """Equality as JSON has it: unlike Python's, ``1`` and ``true`` differ."""
    if left is right:
        return True
    if type(left) is not type(right):
        return isinstance(left, int | float) and not isinstance(left, bool) and left == right
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)
