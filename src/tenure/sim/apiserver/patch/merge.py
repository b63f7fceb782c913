"""Merge patch and JSON patch over immutable trees.

Both return the very same tree when the patch changes nothing, so that a no-op write is
recognised by identity. Strategic merge patch is in ``tenure.sim.apiserver.patch.strategic``.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tenure.errors import ApiError, Invalid
from tenure.parse.limits import BODY, depth
from tenure.sim.apiserver.objects.numbers import is_number
from tenure.sim.apiserver.objects.refusals import bad_request
from tenure.sim.apiserver.objects.tree import same

_MISSING = object()
#: As an API server's.
_OPERATIONS_MAX: Final = 10_000


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386: null removes, dicts merge, everything else replaces."""
    if type(patch) is not dict:
        return patch
    fresh = type(target) is not dict
    source: dict[str, Any] = {} if fresh else target
    changed: dict[str, Any] | None = source if fresh else None
    for key, value in patch.items():
        before = source.get(key, _MISSING)
        if value is None:
            if before is _MISSING:
                continue
            changed = dict(source) if changed is None else changed
            del changed[key]
            continue
        after = merge_patch(before, value) if type(value) is dict else value
        if after is before or (after == before and type(after) is type(before)):
            continue
        changed = dict(source) if changed is None else changed
        changed[key] = after
    return source if changed is None else changed


def merge_patch_object(target: Any, patch: Any) -> Any:
    """``merge_patch`` where only an object can be meant."""
    if type(patch) is not dict:
        raise bad_request("a merge patch is an object")
    return merge_patch(target, patch)


def json_patch(target: Any, operations: Any) -> Any:
    """RFC 6902. A failed test or a path that is not there refuses the whole patch (422)."""
    if not isinstance(operations, list):
        raise bad_request("a JSON patch is a list of operations")
    if len(operations) > _OPERATIONS_MAX:
        raise _too_large(f"{len(operations)} operations", f"{_OPERATIONS_MAX}")
    copied = 0
    for operation in operations:
        if not isinstance(operation, dict) or not isinstance(operation.get("path"), str):
            raise bad_request('a JSON patch operation needs "op" and "path"')
        if operation.get("op") == "copy":
            # Each copy can double the object, so it is counted before the next one.
            copied += len(msgspec.json.encode(_find(target, _source(operation))))
            if copied > BODY.size:
                raise _too_large(f"{copied} bytes copied", f"{BODY.size}")
        target = _apply(target, operation)
    return target


def _too_large(got: str, most: str) -> ApiError:
    message = f"the JSON patch has {got}, at most {most} are allowed"
    return ApiError(message, status=413, reason="RequestEntityTooLarge")


def _apply(target: Any, operation: dict[str, Any]) -> Any:
    name, path = operation.get("op"), _pointer(operation["path"])
    match name:
        case "add":
            return _edit(target, path, _value(operation), insert=True)
        case "replace":
            # Not RFC 6902: the API server's library also replaces a field that is not there.
            return _edit(target, path, _value(operation), insert=False)
        case "remove":
            _find(target, path)
            return _edit(target, path, _MISSING, insert=False)
        case "copy":
            return _edit(target, path, _find(target, _source(operation)), insert=True)
        case "move":
            source = _source(operation)
            moved = _find(target, source)
            return _edit(_edit(target, source, _MISSING, insert=False), path, moved, insert=True)
        case "test":
            return _tested(target, path, operation)
    raise Invalid(f"unknown JSON patch operation {name!r}")


def _tested(target: Any, path: list[str], operation: dict[str, Any]) -> Any:
    expected = operation.get("value")
    try:
        actual = _find(target, path)
    except Invalid:
        if expected is None:  # A field that is not there is null.
            return target
        raise
    if not same(actual, expected):
        raise Invalid(f"testing value {operation['path']} failed")
    return target


def _value(operation: dict[str, Any]) -> Any:
    if "value" not in operation:
        raise bad_request(f'operation {operation.get("op")!r} needs a "value"')
    return operation["value"]


def _source(operation: dict[str, Any]) -> list[str]:
    if not isinstance(operation.get("from"), str):
        raise bad_request(f'operation {operation.get("op")!r} needs "from"')
    return _pointer(operation["from"])


def _pointer(text: str) -> list[str]:
    if text and not text.startswith("/"):
        raise bad_request(f"JSON pointer {text!r} must start with a slash")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _index(items: list[Any], part: str, *, past_end: bool) -> int:
    if past_end and part == "-":
        return len(items)
    if not is_number(part) or int(part) >= len(items) + past_end:
        raise Invalid(f"no element {part!r} in a list of {len(items)}")
    return int(part)


def _find(target: Any, path: list[str]) -> Any:
    for part in path:
        if isinstance(target, list):
            target = target[_index(target, part, past_end=False)]
        elif isinstance(target, dict) and part in target:
            target = target[part]
        else:
            raise Invalid(f"no such path: /{'/'.join(path)}")
    return target


def _edit(target: Any, path: list[str], value: Any, *, insert: bool) -> Any:
    """The tree with ``value`` at ``path``; without it when the value is ``_MISSING``."""
    if len(path) + depth(value, BODY.depth + 1) > BODY.depth:
        raise _too_large(f"more than {BODY.depth} levels of nesting", f"{BODY.depth}")
    return _edited(target, path, value, insert=insert)


def _edited(target: Any, path: list[str], value: Any, *, insert: bool) -> Any:
    if not path:
        return value
    head, rest = path[0], path[1:]
    if isinstance(target, list):
        return _edit_list(target, head, rest, value, insert=insert)
    if not isinstance(target, dict) or (rest and head not in target):
        raise Invalid(f"no such path: /{'/'.join(path)}")
    if rest:
        return {**target, head: _edited(target[head], rest, value, insert=insert)}
    if value is _MISSING:
        return {key: item for key, item in target.items() if key != head}
    return {**target, head: value}


def _edit_list(items: list[Any], head: str, rest: list[str], value: Any, *, insert: bool) -> Any:
    index = _index(items, head, past_end=insert and not rest)
    before, after = items[:index], items[index + 1 :]
    if rest:
        return [*before, _edited(items[index], rest, value, insert=insert), *after]
    if value is _MISSING:
        return [*before, *after]
    return [*before, value, *items[index:]] if insert else [*before, value, *after]
