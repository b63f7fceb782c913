"""Node classes of other clouds that the embedded cloud launches for: it says that it reads none of their fields.

A class without a word on whether it is Ready is Ready a moment later, as its cloud's controller would have it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

from tenure.errors import ApiError
from tenure.model.api.resource import EVENTS, Resource
from tenure.sim.apiserver.objects.foreignclasses import FOREIGN_NODE_CLASSES
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import DELETED
from tenure.sim.cloud.awslabels import AWS_GROUPS
from tenure.sim.virtual.environment import Environment

#: Those of AWS alone: the catalogue has the labels that their NodePools ask for.
STAND_INS: Final = tuple(one for one in FOREIGN_NODE_CLASSES if one.group in AWS_GROUPS)
REASON: Final = "StandIn"
_BY: Final = "embedded-cloud"


class StandIns:
    def __init__(
        self, environment: Environment, store: Store, node_classes: Iterable[Resource]
    ) -> None:
        self._environment, self._store = environment, store
        for resource in node_classes:
            store.subscribe(resource, partial(self._on_class, resource), replay=True)

    def _on_class(self, resource: Resource, type_: str, obj: Obj, _old: Obj | None) -> None:
        if type_ != DELETED and not _says_whether(obj):
            self._environment.soon(self._ready, resource, obj["metadata"]["name"])

    def _ready(self, resource: Resource, name: str) -> None:
        found = self._store.find(resource, "", name)
        if found is None or _says_whether(found):
            return
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": REASON,
            "message": _told(resource),
            "lastTransitionTime": self._store.stamp(),
        }
        self._store.update(resource, {**found, "status": {"conditions": [ready]}}, "status")
        self._tell(resource, found)

    def _tell(self, resource: Resource, obj: Obj) -> None:
        metadata, now = obj["metadata"], self._store.stamp()
        event = {
            "metadata": {
                "name": f"{metadata['name'][:230]}.{metadata['uid']}",
                "namespace": "default",
            },
            "involvedObject": {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "name": metadata["name"],
                "uid": metadata["uid"],
            },
            "reason": REASON,
            "message": _told(resource),
            "type": "Normal",
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": _BY},
            "reportingComponent": _BY,
            "reportingInstance": "",
        }
        try:
            self._store.create(EVENTS, event)
        except ApiError:
            return  # It is there.


def _says_whether(obj: Obj) -> bool:
    conditions = dig(obj, "status", "conditions") or ()
    return any(one.get("type") == "Ready" for one in conditions)


def _told(resource: Resource) -> str:
    return f"the embedded cloud stands in for the cloud of {resource.kind}: no field of its spec is read"
