"""The scale of a workload or a pool: its number of replicas, as an object of its own.

``kubectl scale`` reads and writes it without knowing the kind behind it. Writing it is
writing ``spec.replicas`` there, with all that the kind's own rules say about that.
"""

from __future__ import annotations

from typing import Any, Final

from tenure.errors import ApiError, Cause
from tenure.model.api import resource as r
from tenure.model.api.resource import Resource
from tenure.ports.transport import MERGE_PATCH
from tenure.sim.apiserver.objects.refusals import invalid, malformed
from tenure.sim.apiserver.objects.strictness import Strictness
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.ownership.managers import Writer
from tenure.sim.apiserver.patch.merge import json_patch, merge_patch_object
from tenure.sim.apiserver.store.selection import written
from tenure.sim.apiserver.store.store import Store

SCALED: Final = frozenset({r.DEPLOYMENTS, r.REPLICA_SETS, r.STATEFUL_SETS, r.NODE_POOLS})
#: The kind of the scale itself; it lives nowhere.
_SCALE: Final = Resource("autoscaling", "v1", "Scale", "scales", True)
_KEPT_METADATA: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(resource: Resource, obj: Obj) -> Obj:
    replicas = dig(obj, "spec", "replicas")
    if replicas is None:
        raise _nothing_to_scale()
    status: Obj = {"replicas": dig(obj, "status", "replicas") or 0}
    if resource == r.NODE_POOLS:
        status["replicas"] = dig(obj, "status", "nodes") or 0
    elif selector := written(dig(obj, "spec", "selector")):
        status["selector"] = selector
    metadata = {key: obj["metadata"][key] for key in _KEPT_METADATA if key in obj["metadata"]}
    return {
        "kind": _SCALE.kind,
        "apiVersion": _SCALE.api_version,
        "metadata": metadata,
        "spec": {"replicas": replicas},
        "status": status,
    }


def rescale(
    store: Store,
    resource: Resource,
    namespace: str,
    name: str,
    change: Any,
    content_type: str | None,
    strictness: Strictness,
    writer: Writer,
) -> Obj:
    """Write a changed scale; ``content_type`` is that of a patch, None puts it as a whole."""
    scale: Any = change
    if content_type is not None:
        present = store.get(resource, namespace, name)
        whole = dig(present, "spec", "replicas") is not None
        base: Obj = scale_of(resource, present) if whole else {"metadata": {}, "spec": {}}
        patched = json_patch if isinstance(change, list) else merge_patch_object
        scale = patched(base, change)
    replicas = dig(scale, "spec", "replicas") or 0
    if isinstance(replicas, bool) or not isinstance(replicas, int):
        raise strictness.unreadable(_SCALE, f"spec.replicas: got {replicas!r}")
    if replicas < 0:
        raise invalid(_SCALE, name, [malformed("spec.replicas", "must not be negative")])
    patch: Obj = {"spec": {"replicas": replicas}}
    if version := dig(scale, "metadata", "resourceVersion"):
        patch["metadata"] = {"resourceVersion": version}
    obj = store.patch(
        resource, namespace, name, patch, MERGE_PATCH, "scale", strictness=strictness, writer=writer
    )
    return scale_of(resource, obj)


def _nothing_to_scale() -> ApiError:
    why = 'the spec replicas field ".spec.replicas" does not exist'
    return ApiError(f"Internal error occurred: {why}", causes=[Cause(message=why)])
