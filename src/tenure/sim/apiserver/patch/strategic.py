"""Strategic merge patch: merge patch that knows which lists are sets of named things.

The API types say, field by field, by which key a list is merged; lists that are not in
the table are replaced whole (taints and tolerations are such). Directives: ``$patch``
(replace, delete, merge), ``$deleteFromPrimitiveList/x``, ``$setElementOrder/x`` and
``$retainKeys``.
"""

from __future__ import annotations

from typing import Any, Final

from tenure.sim.apiserver.objects.refusals import bad_request
from tenure.sim.apiserver.objects.tree import same

#: Field name -> key that tells its elements apart. The names are unique enough across the
#: built-in kinds, except ``ports``, where a container's and a service's elements differ.
_MERGE_KEYS: Final = {
    "conditions": "type",
    "addresses": "type",
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "volumes": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "schedulingGates": "name",
    "resourceClaims": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "hostAliases": "ip",
    "podIPs": "ip",
    "hostIPs": "ip",
    "topologySpreadConstraints": "topologyKey",
    "ownerReferences": "uid",
}
_PORT_KEYS: Final = ("containerPort", "port")
#: Lists of plain values that are merged as sets.
_PRIMITIVE_SETS: Final = frozenset({"finalizers", "podCIDRs"})

_DELETE_FROM: Final = "$deleteFromPrimitiveList/"
_ORDER: Final = "$setElementOrder/"


def strategic_merge_patch(target: Any, patch: Any) -> Any:
    """The patched tree; the very same tree when the patch changes nothing."""
    if not isinstance(patch, dict):
        raise bad_request("a strategic merge patch is an object")
    merged = _merge(target if isinstance(target, dict) else {}, patch)
    return target if same(merged, target) else merged


def _merge(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    directive = patch.get("$patch")
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise bad_request(f"unknown $patch directive {directive!r}")
    merged = dict(target)
    if isinstance(kept := patch.get("$retainKeys"), list):
        merged = {key: value for key, value in merged.items() if key in kept}
    for key, value in patch.items():
        if not key.startswith("$"):
            _merge_field(merged, key, value)
    _apply_list_directives(merged, patch)
    return merged


def _merge_field(merged: dict[str, Any], key: str, value: Any) -> None:
    before = merged.get(key)
    if value is None:
        merged.pop(key, None)
    elif isinstance(value, dict):
        merged[key] = _merge(before if isinstance(before, dict) else {}, value)
    elif isinstance(value, list):
        merged[key] = _merge_list(key, before if isinstance(before, list) else [], value)
    else:
        merged[key] = value


def _merge_list(field: str, before: list[Any], patch: list[Any]) -> list[Any]:
    if field in _PRIMITIVE_SETS:
        return [*before, *(item for item in patch if item not in before)]
    key = _merge_key(field, patch)
    if key is None or any(item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if not (isinstance(item, dict) and "$patch" in item)]
    merged = list(before)
    for item in patch:
        if key not in item:
            raise bad_request(f"an element of {field} lacks its merge key {key!r}")
        _merge_element(merged, key, item)
    return merged


def _merge_element(merged: list[Any], key: str, item: dict[str, Any]) -> None:
    at = next((i for i, old in enumerate(merged) if old.get(key) == item[key]), None)
    if item.get("$patch") == "delete":
        if at is not None:
            del merged[at]
    elif at is None:
        merged.append(_merge({}, item))
    else:
        merged[at] = _merge(merged[at], item)


def _merge_key(field: str, patch: list[Any]) -> str | None:
    if not all(isinstance(item, dict) for item in patch):
        return None
    if field == "ports":
        return next((k for k in _PORT_KEYS if all(k in item for item in patch)), None)
    return _MERGE_KEYS.get(field)


def _apply_list_directives(merged: dict[str, Any], patch: dict[str, Any]) -> None:
    for directive, values in patch.items():
        if directive.startswith(_DELETE_FROM):
            field = directive.removeprefix(_DELETE_FROM)
            merged[field] = [item for item in merged.get(field, []) if item not in values]
        elif directive.startswith(_ORDER):
            field = directive.removeprefix(_ORDER)
            if isinstance(merged.get(field), list):
                merged[field] = _ordered(field, merged[field], values)


def _ordered(field: str, items: list[Any], order: list[Any]) -> list[Any]:
    """Elements in the given order; those it does not name keep their place before it."""
    key = _merge_key(field, order) if order else None
    wanted = [entry.get(key) if key else entry for entry in order]

    def rank(item: Any) -> int:
        value = item.get(key) if key else item
        return wanted.index(value) if value in wanted else -1

    return sorted(items, key=rank)
