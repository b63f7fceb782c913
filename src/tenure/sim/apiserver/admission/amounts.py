"""Amounts of resources that users write as numbers: ``cpu: 1``, ``nvidia.com/gpu: 0.5``.

The API server reads a quantity from a JSON number as well as from text, and what it stores
is text: a later reader of the object finds ``"1"`` and ``"500m"``. What is text
already stays as it was written, and what no quantity can be made of stays too, for
validation to find.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tenure.errors import SpecError
from tenure.model.api import resource as r
from tenure.model.api.resource import Resource
from tenure.model.values.quantity import format_quantity, parse_quantity
from tenure.sim.apiserver.objects.storedkinds import RESOURCE_QUOTAS
from tenure.sim.apiserver.objects.tree import Obj

_TEMPLATED: Final = frozenset(
    {r.DEPLOYMENTS, r.REPLICA_SETS, r.STATEFUL_SETS, r.DAEMON_SETS, r.JOBS}
)


def with_text_amounts(resource: Resource, obj: Obj) -> Obj:
    """The object with texts for all amounts; itself when it has no others."""
    changed: Obj = obj
    if resource == r.PODS:
        changed = _changed(obj, "spec", _pod_spec)
    elif resource == r.NODES:
        changed = _changed(obj, "status", _node_status)
    elif resource == r.PERSISTENT_VOLUMES:
        changed = _changed(obj, "spec", lambda spec: _changed(spec, "capacity", _texts))
    elif resource == r.PERSISTENT_VOLUME_CLAIMS:
        changed = _changed(obj, "spec", lambda spec: _changed(spec, "resources", _resources))
    elif resource == r.LIMIT_RANGES:
        changed = _changed(obj, "spec", lambda spec: _changed(spec, "limits", _limits))
    elif resource == RESOURCE_QUOTAS:
        changed = _changed(obj, "spec", lambda spec: _changed(spec, "hard", _texts))
    elif resource in _TEMPLATED:
        changed = _changed(obj, "spec", lambda spec: _changed(spec, "template", _template))
    return changed


def _changed(tree: Any, key: str, change: Callable[[Any], Any]) -> Any:
    """The tree with one field changed; itself when the change changes nothing."""
    if not isinstance(tree, dict) or key not in tree:
        return tree
    value = change(tree[key])
    return tree if value is tree[key] else {**tree, key: value}


def _template(template: Any) -> Any:
    return _changed(template, "spec", _pod_spec)


def _pod_spec(spec: Any) -> Any:
    for field in ("containers", "initContainers"):
        spec = _changed(spec, field, _containers)
    return _changed(_changed(spec, "overhead", _texts), "resources", _resources)


def _containers(containers: Any) -> Any:
    if not isinstance(containers, list):
        return containers
    changed = [_changed(container, "resources", _resources) for container in containers]
    same = all(new is old for new, old in zip(changed, containers, strict=True))
    return containers if same else changed


def _resources(resources: Any) -> Any:
    return _changed(_changed(resources, "requests", _texts), "limits", _texts)


def _limits(items: Any) -> Any:
    return [_limit(item) for item in items] if isinstance(items, list) else items


def _limit(item: Any) -> Any:
    for field in ("default", "defaultRequest", "max", "min", "maxLimitRequestRatio"):
        item = _changed(item, field, _texts)
    return item


def _node_status(status: Any) -> Any:
    return _changed(_changed(status, "capacity", _texts), "allocatable", _texts)


def _texts(amounts: Any) -> Any:
    if not isinstance(amounts, dict) or all(type(amount) is str for amount in amounts.values()):
        return amounts
    return {name: _text(amount) for name, amount in amounts.items()}


def _text(amount: Any) -> Any:
    if isinstance(amount, bool) or not isinstance(amount, int | float):
        return amount
    try:
        return format_quantity(parse_quantity(repr(amount)))
    except SpecError:  # Infinity, and what is beyond all bounds.
        return amount
