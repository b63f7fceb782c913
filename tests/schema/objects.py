"""Valid objects of the kinds, and a way to say what is different about one."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

Json = dict[str, Any]

NODE_CLASS_REF = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}

_VALID: dict[str, Json] = {
    "NodePool": {
        "apiVersion": "karpenter.sh/v1",
        "spec": {"template": {"spec": {"nodeClassRef": NODE_CLASS_REF, "requirements": []}}},
    },
    "NodeClaim": {
        "apiVersion": "karpenter.sh/v1",
        "spec": {"nodeClassRef": NODE_CLASS_REF, "requirements": []},
    },
    "MaintenanceWindow": {
        "apiVersion": "karpenter.sh/v1alpha1",
        "spec": {"actions": ["Drift"]},
    },
    "NodePoolPolicy": {"apiVersion": "tenure.dev/v1alpha1", "spec": {}},
    "KWOKNodeClass": {"apiVersion": "karpenter.kwok.sh/v1alpha1", "spec": {}},
}


def an_object(kind: str, changes: Json | None = None) -> Json:
    """A valid object with values put at dotted paths; ``None`` takes the field away."""
    obj = {"kind": kind, "metadata": {"name": "sample"}, **deepcopy(_VALID[kind])}
    for path, value in (changes or {}).items():
        put(obj, path, value)
    return obj


def put(obj: Json, path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for parent in parents:
        obj = obj.setdefault(parent, {})
    if value is None:
        obj.pop(last, None)
    else:
        obj[last] = value


def a_pool(changes: Json | None = None) -> Json:
    return an_object("NodePool", changes)


def a_window(changes: Json | None = None) -> Json:
    return an_object("MaintenanceWindow", changes)
