"""The scale of a workload, a pool or an object of a kind that a client has defined: its number of replicas, as an
object of its own.

``kubectl scale`` reads and writes it without knowing the kind behind it. Writing it is
writing the replicas there, with all that the kind's own rules say about that.
"""

from __future__ import annotations

from typing import Any, Final

from tenure.errors import ApiError, Cause
from tenure.model.api import resource as r
from tenure.model.api.resource import Resource
from tenure.ports.transport import MERGE_PATCH
from tenure.sim.apiserver.objects.definition import Scaled
from tenure.sim.apiserver.objects.kinds import Kind
from tenure.sim.apiserver.objects.refusals import invalid, malformed
from tenure.sim.apiserver.objects.storedkinds import REPLICATION_CONTROLLERS
from tenure.sim.apiserver.objects.strictness import Strictness
from tenure.sim.apiserver.objects.tree import Obj, dig, put
from tenure.sim.apiserver.ownership.managers import Writer
from tenure.sim.apiserver.patch.merge import json_patch, merge_patch_object
from tenure.sim.apiserver.store.selection import written
from tenure.sim.apiserver.store.store import Store

_WANTED: Final = ("spec", "replicas")
_WORKLOAD: Final = Scaled(_WANTED, ("status", "replicas"))
_SCALED: Final = {
    r.DEPLOYMENTS: _WORKLOAD,
    r.REPLICA_SETS: _WORKLOAD,
    r.STATEFUL_SETS: _WORKLOAD,
    REPLICATION_CONTROLLERS: _WORKLOAD,
    r.NODE_POOLS: Scaled(_WANTED, ("status", "nodes")),
}
#: The kind of the scale itself; it lives nowhere.
SCALES: Final = Resource("autoscaling", "v1", "Scale", "scales", True)
_KEPT_METADATA: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scaled(kind: Kind) -> Scaled | None:
    """Where objects of this kind have their replicas; None if it has no scale."""
    if kind.definition is not None:
        return kind.definition.scale
    return _SCALED.get(kind.resource)


def scale_of(kind: Kind, obj: Obj) -> Obj:
    scale = _found(kind)
    replicas = dig(obj, *scale.wanted)
    if replicas is None:
        if kind.definition is None:
            raise _nothing_to_scale()
        replicas = 0
    status: Obj = {"replicas": dig(obj, *scale.present) or 0}
    if selector := _selector(kind, scale, obj):
        status["selector"] = selector
    metadata = {key: obj["metadata"][key] for key in _KEPT_METADATA if key in obj["metadata"]}
    return {
        "kind": SCALES.kind,
        "apiVersion": SCALES.api_version,
        "metadata": metadata,
        "spec": {"replicas": replicas},
        "status": status,
    }


def _found(kind: Kind) -> Scaled:
    scale = scaled(kind)
    assert scale is not None, f"{kind.resource} has no scale"
    return scale


def _selector(kind: Kind, scale: Scaled, obj: Obj) -> str:
    if scale.selector:
        return str(dig(obj, *scale.selector) or "")
    selector = dig(obj, "spec", "selector") if scale is _WORKLOAD else None
    if kind.resource == REPLICATION_CONTROLLERS:
        selector = {"matchLabels": selector}
    return written(selector)


def rescale(
    store: Store,
    kind: Kind,
    namespace: str,
    name: str,
    change: Any,
    content_type: str | None,
    strictness: Strictness,
    writer: Writer,
) -> Obj:
    """Write a changed scale; ``content_type`` is that of a patch, None puts it as a whole."""
    scale: Any = change
    resource, place = kind.resource, _found(kind)
    if content_type is not None:
        present = store.get(resource, namespace, name)
        whole = dig(present, *place.wanted) is not None
        base: Obj = scale_of(kind, present) if whole else {"metadata": {}, "spec": {}}
        patched = json_patch if isinstance(change, list) else merge_patch_object
        scale = patched(base, change)
    replicas = dig(scale, "spec", "replicas") or 0
    if isinstance(replicas, bool) or not isinstance(replicas, int):
        raise strictness.unreadable(SCALES, f"spec.replicas: got {replicas!r}")
    if replicas < 0:
        raise invalid(SCALES, name, [malformed("spec.replicas", "must not be negative")])
    patch = put({}, place.wanted, replicas)
    if version := dig(scale, "metadata", "resourceVersion"):
        patch["metadata"] = {"resourceVersion": version}
    obj = store.patch(
        resource, namespace, name, patch, MERGE_PATCH, "scale", strictness=strictness, writer=writer
    )
    return scale_of(kind, obj)


def _nothing_to_scale() -> ApiError:
    why = 'the spec replicas field ".spec.replicas" does not exist'
    return ApiError(f"Internal error occurred: {why}", causes=[Cause(message=why)])
