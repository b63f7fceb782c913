"""Namespaces: nothing is created in one that is missing or going, and a going one empties.

On a real cluster the last part is a controller's work; it is here because an object that
outlives its namespace would be a state no cluster can be in.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tenure.errors import Cause
from tenure.model.api.resource import NAMESPACES, Resource
from tenure.sim.apiserver.objects.refusals import bad_request, forbidden, not_found
from tenure.sim.apiserver.objects.tree import Obj, drop, put, with_metadata
from tenure.sim.apiserver.store.deletion import finished

if TYPE_CHECKING:
    from tenure.sim.apiserver.store.store import Store

INITIAL: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
_PERMANENT: Final = frozenset({"default", "kube-public", "kube-system"})


def check_open(store: Store, resource: Resource, namespace: str, name: str) -> None:
    """Refuse to create in a namespace that is missing (404) or being deleted (403)."""
    if not namespace:
        raise bad_request("an empty namespace may not be set during creation")
    found = store.find(NAMESPACES, "", namespace)
    if found is None:
        raise not_found(NAMESPACES, namespace)
    if "deletionTimestamp" in found["metadata"]:
        why = (
            f"unable to create new content in namespace {namespace} because it is being terminated"
        )
        cause = Cause(
            "NamespaceTerminating",
            f"namespace {namespace} is being terminated",
            "metadata.namespace",
        )
        raise forbidden(resource, name, why, [cause])


def closed(namespace: Obj, now: str) -> Obj:
    """The namespace marked for deletion."""
    metadata = namespace["metadata"]
    if metadata["name"] in _PERMANENT:
        raise forbidden(NAMESPACES, metadata["name"], "this namespace may not be deleted")
    if "deletionTimestamp" in metadata:
        return namespace
    marked = with_metadata(namespace, deletionTimestamp=now)
    return put(marked, ("status", "phase"), "Terminating")


class Sweeper:
    """Deletes what is in a namespace that is going, then the namespace."""

    def __init__(self, store: Store, after: timedelta) -> None:
        self._store = store
        self._after = after
        self._going: dict[str, None] = {}

    def wrote(self, resource: Resource, new: Obj | None, old: Obj | None) -> None:
        if resource == NAMESPACES and new is not None:
            name = new["metadata"]["name"]
            if "deletionTimestamp" in new["metadata"] and name not in self._going:
                self._going[name] = None
                self._sweep_later(name)
        elif new is None and old is not None and self._going:
            namespace = old["metadata"].get("namespace", "")
            if namespace in self._going:
                self._sweep_later(namespace)

    def _sweep_later(self, name: str) -> None:
        at = self._store.clock.now() + self._after
        self._store.schedule(at, lambda: self._sweep(name))

    def _sweep(self, name: str) -> None:
        if name not in self._going:
            return
        content = [
            (kind.resource, obj)
            for kind in self._store.kinds
            if kind.resource.namespaced and kind.stored_as is None
            for obj in self._store.list(kind.resource, name)
        ]
        for resource, obj in content:
            if "deletionTimestamp" not in obj["metadata"]:
                self._store.delete(
                    resource, name, obj["metadata"]["name"], propagation_policy="Background"
                )
        if not content:
            del self._going[name]
            emptied = drop(self._store.get(NAMESPACES, "", name), ("spec", "finalizers"))
            if finished(emptied):
                self._store.discard(NAMESPACES, emptied)
            else:  # Another program's finalizer still blocks it.
                self._store.rewrite(NAMESPACES, emptied)
