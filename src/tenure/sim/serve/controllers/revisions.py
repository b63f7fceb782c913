"""The earlier templates of DaemonSets and StatefulSets: ``kubectl rollout history`` and ``undo`` read them.

Those of Deployments are their ReplicaSets. A template that comes back gets the newest number, as on a real cluster.
"""

from __future__ import annotations

from typing import Final

from tenure.model.api.resource import DAEMON_SETS, STATEFUL_SETS, Resource
from tenure.sim.actors.workloads.podtemplate import owner_reference, template_revision
from tenure.sim.apiserver.objects.storedkinds import CONTROLLER_REVISIONS
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import DELETED

_LABEL: Final = "controller-revision-hash"
_KEPT: Final = 10
_CAUSE: Final = "kubernetes.io/change-cause"


def keep_revisions(store: Store) -> None:
    for resource in (DAEMON_SETS, STATEFUL_SETS):
        store.subscribe(resource, _Keeper(store, resource).on_workload, replay=True)


class _Keeper:
    def __init__(self, store: Store, resource: Resource) -> None:
        self._store, self._resource = store, resource

    def on_workload(self, type_: str, obj: Obj, old: Obj | None) -> None:
        if type_ == DELETED or (old is not None and _template(old) is _template(obj)):
            return
        metadata = obj["metadata"]
        current = self._store.find(self._resource, metadata["namespace"], metadata["name"])
        if current is None or current["metadata"]["uid"] != metadata["uid"]:
            return  # It has gone meanwhile, and its revisions with it.
        known = sorted(self._of(metadata), key=lambda one: int(one["revision"]))
        newest = int(known[-1]["revision"]) if known else 0
        name = f"{metadata['name']}-{template_revision(obj)}"
        same = next((one for one in known if one["metadata"]["name"] == name), None)
        if same is None:
            self._store.create(CONTROLLER_REVISIONS, self._revision(obj, name, newest + 1))
            self._forget(obj, known)
        elif same["revision"] != newest:
            self._store.rewrite(CONTROLLER_REVISIONS, {**same, "revision": newest + 1})

    def _of(self, metadata: Obj) -> list[Obj]:
        found = self._store.list(CONTROLLER_REVISIONS, metadata["namespace"])
        return [
            one
            for one in found
            if any(owner["uid"] == metadata["uid"] for owner in one["metadata"]["ownerReferences"])
        ]

    def _revision(self, obj: Obj, name: str, number: int) -> Obj:
        metadata, template = obj["metadata"], _template(obj)
        labels = dig(template, "metadata", "labels") or {}
        cause = (metadata.get("annotations") or {}).get(_CAUSE)
        return {
            "metadata": {
                "name": name,
                "namespace": metadata["namespace"],
                "labels": {**labels, _LABEL: template_revision(obj)},
                "annotations": {_CAUSE: cause} if cause else {},
                "ownerReferences": [owner_reference(obj, self._resource)],
            },
            "data": {"spec": {"template": {**(template or {}), "$patch": "replace"}}},
            "revision": number,
        }

    def _forget(self, obj: Obj, known: list[Obj]) -> None:
        limit = dig(obj, "spec", "revisionHistoryLimit")
        kept = limit if isinstance(limit, int) else _KEPT
        for one in known[: max(len(known) - kept, 0)]:
            metadata = one["metadata"]
            self._store.delete(CONTROLLER_REVISIONS, metadata["namespace"], metadata["name"])


def _template(obj: Obj) -> Obj | None:
    found: Obj | None = dig(obj, "spec", "template")
    return found
