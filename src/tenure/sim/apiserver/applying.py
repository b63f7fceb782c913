"""``kubectl apply`` in one function: create the object, or merge into the one that is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenure.sim.apiserver.objects.kinds import BY_KIND
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.store.store import Store


def apply_manifest(store: Store, manifest: Mapping[str, Any]) -> Obj:
    resource = BY_KIND[manifest["apiVersion"], manifest["kind"]]
    given = manifest.get("metadata", {})
    namespace = given.get("namespace", "default") if resource.namespaced else ""
    name = given.get("name", "")
    if name and store.find(resource, namespace, name) is not None:
        return store.patch(resource, namespace, name, dict(manifest))
    obj = {**manifest, "metadata": {**given, "namespace": namespace} if namespace else given}
    return store.create(resource, obj)
