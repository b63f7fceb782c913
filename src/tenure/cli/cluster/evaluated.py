"""What there is to explain: a look at a cluster, and what Tenure concludes from it."""

from __future__ import annotations

from datetime import datetime

import msgspec

from tenure.model.api.meta import ApiObject
from tenure.model.api.resource import Resource
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.runtime.evaluate.evaluator import Evaluator


class EvaluatedCluster(msgspec.Struct, frozen=True, kw_only=True):
    at: datetime
    snapshot: Snapshot
    evaluator: Evaluator
    #: By which it was judged.
    settings: Settings = Settings()
    #: The same instant in other words, if there are any: how long after the start.
    also_at: str = ""
    #: Which clock ``at`` is of, where it is not that of this machine; empty where it is.
    clock: str = ""

    def find(self, resource: Resource, namespace: str, name: str) -> ApiObject | None:
        """Also one that cannot be read."""
        key = f"{namespace}/{name}" if namespace else name
        known: ApiObject | None = self.snapshot.objects(resource).get(key)
        return known

    def names(self, resource: Resource, namespace: str) -> list[str]:
        """Of that namespace, if the kind has one."""
        objects = self.snapshot.objects(resource).values()
        return sorted(item.name for item in objects if item.namespace == namespace)
