"""Which part of an object a write may touch: the status, or everything but the status.

A PUT carries the whole object, so what it may not touch is not refused but put back as it
was. That is also what makes a PUT of a stale status through the main resource harmless.
"""

from __future__ import annotations

from typing import Final

from tenure.model.api import resource as r
from tenure.sim.apiserver.objects.kinds import Kind
from tenure.sim.apiserver.objects.tree import Obj

#: Metadata that the status subresource of a built-in kind does not write.
_KEPT_METADATA: Final = {r.PODS: "ownerReferences", r.DEPLOYMENTS: "labels"}
_OUTSIDE_GENERATION: Final = frozenset({"apiVersion", "kind", "metadata", "status"})


def what_may_be_written(kind: Kind, old: Obj, given: Obj, subresource: str) -> Obj:
    """The proposed object with everything that this subresource does not write put back."""
    if subresource == "status":
        metadata = old["metadata"] if kind.custom else _status_metadata(kind, old, given)
        return _with(_with(old, "metadata", metadata), "status", given.get("status"))
    if not kind.status:
        return given
    return _with(given, "status", old.get("status"))


def spec_changed(old: Obj, new: Obj) -> bool:
    """Whether anything changed that says what is wanted; this is what generation counts."""
    for key in new.keys() | old.keys():
        if key in _OUTSIDE_GENERATION:
            continue
        if new.get(key) != old.get(key):
            return True
    return False


def _status_metadata(kind: Kind, old: Obj, given: Obj) -> Obj:
    metadata: Obj = given.get("metadata") or old["metadata"]
    kept = _KEPT_METADATA.get(kind.resource)
    if kept is None:
        return metadata
    return _with(metadata, kept, old["metadata"].get(kept))


def _with(tree: Obj, key: str, value: object) -> Obj:
    """The tree with that field set, or without it for None; the same tree if it has it so."""
    if tree.get(key) is value:
        return tree
    if value is None:
        return {name: item for name, item in tree.items() if name != key}
    return {**tree, key: value}
