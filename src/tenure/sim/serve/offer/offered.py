"""What is told of everything that is served, made anew when a client has defined a kind."""

from __future__ import annotations

from functools import lru_cache

from tenure.model.api.resource import Resource
from tenure.schema.structure.structural import Schema
from tenure.sim.apiserver.api import Api
from tenure.sim.apiserver.objects.kinds import Kind
from tenure.sim.apiserver.shapes.definitions import with_type_and_metadata
from tenure.sim.serve.offer.catalogue import SERVED, defined
from tenure.sim.serve.offer.discovery import Discovery
from tenure.sim.serve.offer.openapi import OpenApi, own_schemas


class Offered:
    def __init__(self, kinds: tuple[Kind, ...]) -> None:
        found = [kind.definition for kind in kinds if kind.definition is not None]
        served = (*SERVED, *map(defined, found))
        schemas: dict[Resource, Schema] = {
            one.resource: with_type_and_metadata(one.schema.schema) for one in found
        }
        self.discovery = Discovery(served)
        self.openapi = OpenApi(served, {**own_schemas(), **schemas})

    def document(self, path: str) -> bytes | None:
        return self.discovery.documents.get(path) or self.openapi.document(path)


@lru_cache(maxsize=1)
def _from_the_start() -> Offered:
    """The same for every cluster in which nothing was defined."""
    return Offered(())


class Offers:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._version = 0
        self._offered = _from_the_start()

    def now(self) -> Offered:
        if self._version != self._api.served_version:
            self._version = self._api.served_version
            self._offered = Offered(self._api.defined)
        return self._offered
