"""Where a Service leads: its EndpointSlices and its Endpoints, filled from the pods that its selector finds.

Namespaces without a Service with a selector cost a look-up for each write of a pod. What changes within a moment is one
write, and of the slices only those whose pods have changed are written: a pod stays in its slice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Final, NamedTuple

from tenure.errors import ApiError
from tenure.model.api.names import ZONE
from tenure.model.api.resource import NODES, PODS, SERVICES
from tenure.sim.apiserver.objects.storedkinds import ENDPOINT_SLICES, ENDPOINTS
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import DELETED
from tenure.sim.serve.controllers.places import (
    OF_SERVICE,
    Place,
    Ports,
    endpoints_of,
    place_of,
    ports_of,
    selects,
    slice_of,
)
from tenure.sim.virtual.environment import Environment

REACTION: Final = timedelta(milliseconds=100)
#: Pods in a slice, at most: as kube-controller-manager has it.
MOST_IN_SLICE: Final = 100


class _Slice(NamedTuple):
    ports: Ports
    places: dict[str, Place]


class _Service:
    """A Service with a selector, the pods that it leads to, and its slices by name."""

    def __init__(self, obj: Obj) -> None:
        self.obj = obj
        self.places: dict[str, Place] = {}
        self.slices: dict[str, _Slice] = {}
        #: Its labels or ports may have changed since its slices were written.
        self.is_new = True

    def put(self, name: str, pod: Obj | None) -> bool:
        """Take the pod's new state; whether that changes where the Service leads."""
        before = self.places.pop(name, None)
        after = place_of(self.obj, pod) if pod is not None else None
        if after is not None:
            self.places[name] = after
        return before != after

    def arranged(self) -> tuple[dict[str, _Slice], list[_Slice]]:
        """The slices that there are, as they should be, and those to make. Empty ones have to go."""
        left = dict(self.places)
        kept = {}
        for name, one in self.slices.items():
            here = [pod for pod in one.places if pod in left and left[pod].ports == one.ports]
            kept[name] = _Slice(one.ports, {pod: left.pop(pod) for pod in here})
        added: list[_Slice] = []
        for place in left.values():
            room = next(_with_room((*kept.values(), *added), place.ports), None)
            if room is None:
                room = _Slice(place.ports, {})
                added.append(room)
            room.places[place.name] = place
        if not self.places:  # One stays, and says which ports there would be.
            empty = _Slice(ports_of(self.obj), {})
            first = next(iter(kept), None)
            return ({}, [empty]) if first is None else ({first: empty}, [])
        return {name: one for name, one in kept.items() if one.places}, added


def _with_room(slices: Iterable[_Slice], ports: Ports) -> Iterator[_Slice]:
    return (one for one in slices if one.ports == ports and len(one.places) < MOST_IN_SLICE)


class Endpoints:
    def __init__(self, environment: Environment, store: Store) -> None:
        self._environment, self._store = environment, store
        #: Namespace → name → Service.
        self._services: dict[str, dict[str, _Service]] = {}
        self._changed: dict[tuple[str, str], None] = {}
        store.subscribe(SERVICES, self._on_service, replay=True)
        store.subscribe(PODS, self._on_pod)
        store.subscribe(ENDPOINT_SLICES, self._on_written)
        store.subscribe(ENDPOINTS, self._on_written)

    def _on_service(self, type_: str, obj: Obj, _old: Obj | None) -> None:
        metadata = obj["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        services = self._services.setdefault(namespace, {})
        known = services.pop(name, None)
        if type_ == DELETED:
            # Slices have an owner, and go with it.
            if known is not None and self._store.find(ENDPOINTS, namespace, name) is not None:
                self._store.delete(ENDPOINTS, namespace, name)
        elif selects(obj):
            service = services[name] = _Service(obj)
            if known is not None and known.obj["metadata"]["uid"] == metadata["uid"]:
                service.slices = known.slices
            for pod in self._store.list(PODS, namespace):
                service.put(pod["metadata"]["name"], pod)
            self._write_later(namespace, name)
        if not services:
            del self._services[namespace]

    def _on_pod(self, type_: str, pod: Obj, _old: Obj | None) -> None:
        metadata = pod["metadata"]
        for name, service in self._services.get(metadata["namespace"], {}).items():
            if service.put(metadata["name"], None if type_ == DELETED else pod):
                self._write_later(metadata["namespace"], name)

    def _on_written(self, type_: str, obj: Obj, _old: Obj | None) -> None:
        """One that a user deletes is made again."""
        metadata = obj["metadata"]
        name = (metadata.get("labels") or {}).get(OF_SERVICE, metadata["name"])
        service = self._services.get(metadata["namespace"], {}).get(name)
        if type_ == DELETED and service is not None:
            if obj["kind"] == ENDPOINT_SLICES.kind and metadata["name"] not in service.slices:
                return  # It went because it was empty.
            service.slices.pop(metadata["name"], None)
            self._write_later(metadata["namespace"], name)

    def _write_later(self, namespace: str, name: str) -> None:
        if not self._changed:
            self._environment.after(REACTION, self._write)
        self._changed[namespace, name] = None

    def _write(self) -> None:
        changed, self._changed = [*self._changed], {}
        for namespace, name in changed:
            if (service := self._services.get(namespace, {}).get(name)) is not None:
                try:
                    self._write_slices(service)
                    self._write_endpoints(service)
                except ApiError:
                    continue  # Its namespace is going, or a quota is full.

    def _write_slices(self, service: _Service) -> None:
        namespace, before = service.obj["metadata"]["namespace"], service.slices
        kept, added = service.arranged()
        service.slices = kept
        for name in before.keys() - kept.keys():
            if self._store.find(ENDPOINT_SLICES, namespace, name) is not None:
                self._store.delete(ENDPOINT_SLICES, namespace, name)
        for name, one in kept.items():
            found = self._store.find(ENDPOINT_SLICES, namespace, name)
            if found is not None and (service.is_new or before[name] != one):
                wanted = self._slice(service, one)
                metadata = {**found["metadata"], "labels": wanted["metadata"]["labels"]}
                self._store.update(ENDPOINT_SLICES, {**found, **wanted, "metadata": metadata})
        for one in added:
            made = self._store.create(ENDPOINT_SLICES, self._slice(service, one))
            service.slices[made["metadata"]["name"]] = one
        service.is_new = False

    def _slice(self, service: _Service, one: _Slice) -> Obj:
        return slice_of(service.obj, one.ports, one.places.values(), self._zone_of)

    def _zone_of(self, node: str) -> str:
        found = self._store.find(NODES, "", node)
        return dig(found, "metadata", "labels", ZONE) or ""

    def _write_endpoints(self, service: _Service) -> None:
        wanted = endpoints_of(service.obj, service.places)
        own = wanted["metadata"]
        found = self._store.find(ENDPOINTS, own["namespace"], own["name"])
        if found is None:
            self._store.create(ENDPOINTS, wanted)
            return
        kept = {key: value for key, value in found.items() if key != "subsets"}
        metadata = {**found["metadata"], **own}
        self._store.update(ENDPOINTS, {**kept, **wanted, "metadata": metadata})
