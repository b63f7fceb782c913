"""What is true: the objects of the store and the instances of the cloud themselves, not Tenure's view."""

from __future__ import annotations

from collections.abc import Iterator

from tenure.model.api import resource as r
from tenure.model.api.resource import Resource
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.routes import Route
from tenure.sim.apiserver.store.store import Store
from tenure.sim.check import read
from tenure.sim.cloud.cloud import SimulatedCloud


class Truth:
    def __init__(self, store: Store, cloud: SimulatedCloud) -> None:
        self._store, self._cloud = store, cloud

    def stored(self, target: Route) -> Obj | None:
        return self._store.find(target.resource, target.namespace, target.name)

    def pool_of(self, obj: Obj) -> Obj | None:
        """Of a claim or a Node, by its label."""
        name = read.labels(obj).get("karpenter.sh/nodepool", "")
        return self._store.find(r.NODE_POOLS, "", name)

    def node(self, name: str) -> Obj | None:
        """The Node; when it is gone, as it was last: it may have gone a moment ago."""
        shelf = self._store.shelf(r.NODES)
        record = shelf.records.get(name)
        if record is None:
            past = (event.record for event in reversed(shelf.history.since(shelf.history.floor)))
            record = next((one for one in past if one.obj["metadata"]["name"] == name), None)
        return record.obj if record is not None else None

    def nodes(self) -> dict[str, Obj]:
        """By name."""
        return {name: one.obj for name, one in self._store.shelf(r.NODES).records.items()}

    def nodes_of(self, claim: Obj) -> list[Obj]:
        return list(read.nodes_of(claim, self.nodes()))

    def pods(self) -> Iterator[Obj]:
        return (record.obj for record in self._store.shelf(r.PODS).records.values())

    def claim_of(self, node: Obj) -> Obj | None:
        return self.claim_where(("status", "providerID"), dig(node, "spec", "providerID") or "")

    def claim_where(self, path: tuple[str, str], value: str) -> Obj | None:
        records = self._store.shelf(r.NODE_CLAIMS).records.values() if value else ()
        return next((one.obj for one in records if dig(one.obj, *path) == value), None)

    def has_instance(self, resource: Resource, obj: Obj) -> bool:
        """Whether the cloud still knows an instance of that claim, or of that Node's claim."""
        uid = obj["metadata"]["uid"]
        if resource == r.NODES:
            claim = self.claim_of(obj)
            if claim is None:
                return False  # Its instance went with its claim, or was never ours.
            uid = claim["metadata"]["uid"]
        return any(instance.claim_uid == uid for instance in self._cloud.instances())

    def is_terminated(self, node: Obj) -> bool:
        """Whether the cloud no longer knows the instance of a Node."""
        provider_id = dig(node, "spec", "providerID")
        return all(one.provider_id != provider_id for one in self._cloud.instances())
