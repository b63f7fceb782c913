"""Sets of fields: every field of an object has a path, and a set of fields is a set of paths.

A step of a path is written as in ``managedFields``: ``f:name`` for a field or a map's key,
``k:{"name":"web"}`` for an element of a list by its keys, ``v:"x"`` for an element of a set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from tenure.schema.structure.structural import Schema
from tenure.sim.apiserver.objects.tree import Obj, same
from tenure.sim.apiserver.ownership.forms import Form, elements, form_of, under

Path = tuple[str, ...]
FieldSet = frozenset[Path]

#: The value of what is merged part by part, and so has no value of its own.
_BRANCH: Final = object()
_EMPTY: Final[tuple[Any, ...]] = ({}, [])
NOTHING: Final[FieldSet] = frozenset()


class Comparison(NamedTuple):
    added: FieldSet
    removed: FieldSet
    modified: FieldSet

    @property
    def written(self) -> FieldSet:
        return self.added | self.modified


def fields_of(value: Obj, schema: Schema) -> FieldSet:
    """What a manager who wrote exactly this owns."""
    return frozenset(path for path, _, owned in _nodes(value, schema) if owned)


def all_fields_of(value: Obj, schema: Schema) -> FieldSet:
    """The same, with everything that contains one of them."""
    return frozenset(path for path, _, _ in _nodes(value, schema))


def with_parents(paths: Iterable[Path]) -> FieldSet:
    return frozenset(path[:size] for path in paths for size in range(1, len(path) + 1))


def compared(old: Obj, new: Obj, schema: Schema) -> Comparison:
    before = {path: value for path, value, _ in _nodes(old, schema)}
    after = {path: value for path, value, _ in _nodes(new, schema)}
    return Comparison(
        frozenset(after.keys() - before.keys()),
        frozenset(before.keys() - after.keys()),
        frozenset(
            path for path in before.keys() & after.keys() if _differ(before[path], after[path])
        ),
    )


def _differ(old: Any, new: Any) -> bool:
    if old is _BRANCH or new is _BRANCH:
        # A map that gets its first key has not changed itself; a text that becomes a map has.
        return old is not new and old not in _EMPTY and new not in _EMPTY
    return not same(old, new)


def _nodes(
    value: Any, schema: Schema, path: Path = (), owned: bool = False
) -> Iterator[tuple[Path, Any, bool]]:
    """(path, value, whether it is owned by itself) of everything in it, the root left out."""
    form = form_of(value, schema)
    if form is Form.LEAF:
        yield path, value, True
        return
    empty = not value
    if path:
        yield path, (value if empty else _BRANCH), owned or (empty and form is Form.MAP)
    if form is Form.MAP:
        for key, item in value.items():
            below, declared = under(schema, key)
            yield from _nodes(item, below, (*path, f"f:{key}"), not declared)
    else:
        for step, item, below in elements(value, schema):
            yield from _nodes(item, below, (*path, step), True)


def written(paths: FieldSet) -> Obj:
    """As ``fieldsV1`` has it."""
    tree: Obj = {}
    for path in sorted(paths):
        below = tree
        for step in path:
            below = below.setdefault(step, {})
        below["."] = {}
    return _without_dots(tree)


def _without_dots(tree: Obj) -> Obj:
    """A dot says that the place itself is owned; where nothing is below it, it goes without saying."""
    return {
        step: {} if step == "." or below.keys() == {"."} else _without_dots(below)
        for step, below in tree.items()
    }


def read(tree: Mapping[str, Any]) -> FieldSet:
    return frozenset(_paths(tree, ()))


def _paths(tree: Mapping[str, Any], path: Path) -> Iterator[Path]:
    for step, below in tree.items():
        if step == ".":
            yield path
        elif not below:
            yield (*path, step)
        else:
            yield from _paths(below, (*path, step))
