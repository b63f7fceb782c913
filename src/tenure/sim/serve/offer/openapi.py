"""The schemas of what is served, for ``kubectl explain`` and ``kubectl apply``.

``/openapi/v3`` lists a document for each group and version. It holds the paths of its kinds
(kubectl looks there for the kind behind a name, and whether the server checks fields by
itself) and the schemas that they are made of. Older clients' ``/openapi/v2`` is empty: kubectl does without.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

import msgspec

from tenure.model.api.resource import Resource
from tenure.schema.structure.crd import schema_of
from tenure.schema.structure.structural import Schema
from tenure.sim.apiserver.objects.customkinds import SERVED_KINDS
from tenure.sim.apiserver.shapes.definitions import (
    definition,
    definitions,
    name_of,
    with_type_and_metadata,
)
from tenure.sim.serve.offer.catalogue import Served

INDEX: Final = "/openapi/v3"
Json = dict[str, Any]

_encode = msgspec.json.encode
_ACTIONS: Final = {
    "list": ("get", "list"),
    "create": ("post", "post"),
    "deletecollection": ("delete", "deletecollection"),
    "get": ("get", "get"),
    "update": ("put", "put"),
    "patch": ("patch", "patch"),
    "delete": ("delete", "delete"),
}
_OF_ALL: Final = ("list", "create", "deletecollection")
_OF_ONE: Final = ("get", "update", "patch", "delete")
_WRITES: Final = ("create", "update", "patch")


class OpenApi:
    """The documents of these kinds; ``schemas``: those of the custom ones."""

    def __init__(self, served: Sequence[Served], schemas: Mapping[Resource, Schema]) -> None:
        self._served = served
        self._schemas = schemas
        self._prefixes = tuple(dict.fromkeys(one.resource.prefix for one in served))
        self._made: dict[str, bytes] = {}

    def document(self, path: str) -> bytes | None:
        """What lies at a path at or below the index; None if there is nothing."""
        prefix = path.removeprefix(INDEX)
        if path != INDEX and (path == prefix or prefix not in self._prefixes):
            return None
        if path not in self._made:
            made = self._index() if path == INDEX else self._of_version(prefix)
            self._made[path] = made
        return self._made[path]

    def _index(self) -> bytes:
        return _encode({"paths": dict(self._places())})

    def _places(self) -> Iterator[tuple[str, Json]]:
        for prefix in self._prefixes:
            mark = hashlib.sha256(self.document(f"{INDEX}{prefix}") or b"").hexdigest()
            yield prefix.removeprefix("/"), {"serverRelativeURL": f"{INDEX}{prefix}?hash={mark}"}

    def _of_version(self, prefix: str) -> bytes:
        served = [one for one in self._served if one.resource.prefix == prefix]
        return _encode(
            {
                "openapi": "3.0.0",
                "info": {"title": "The embedded cluster of Tenure", "version": "unversioned"},
                "paths": {path: item for one in served for path, item in _paths(one)},
                "components": {
                    "schemas": _schemas([one.resource for one in served], self._schemas)
                },
            }
        )


def _paths(served: Served) -> Iterator[tuple[str, Json]]:
    resource = served.resource
    among = "/namespaces/{namespace}" if resource.namespaced else ""
    collection = f"{resource.prefix}{among}/{resource.plural}"
    if resource.namespaced:
        everywhere = {"get": _operation(resource, "list")}
        yield f"{resource.prefix}/{resource.plural}", everywhere
    yield collection, _operations(served, _OF_ALL)
    yield f"{collection}/{{name}}", _operations(served, _OF_ONE)


def _operations(served: Served, verbs: tuple[str, ...]) -> Json:
    offered = (verb for verb in verbs if verb in served.verbs)
    return {_ACTIONS[verb][0]: _operation(served.resource, verb) for verb in offered}


def _operation(resource: Resource, verb: str) -> Json:
    operation: Json = {
        "x-kubernetes-action": _ACTIONS[verb][1],
        "x-kubernetes-group-version-kind": _kind(resource),
        "responses": {"200": {"description": "OK"}},
    }
    if verb in _WRITES:
        operation["parameters"] = [_parameter("dryRun"), _parameter("fieldValidation")]
    return operation


def _parameter(name: str) -> Json:
    return {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}


def _kind(resource: Resource) -> Json:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _schemas(resources: list[Resource], custom: Mapping[Resource, Schema]) -> dict[str, Schema]:
    """Those of the kinds, and everything that they refer to."""
    found = {}
    for resource in resources:
        schema = custom.get(resource) or definition(resource)
        found[resource.kind] = {**schema, "x-kubernetes-group-version-kind": [_kind(resource)]}
    missing = set(_references(found)) - found.keys()
    while missing:
        name = missing.pop()
        found[name] = definitions()[name]
        missing |= set(_references(found[name])) - found.keys()
    return dict(sorted(found.items()))


@cache
def own_schemas() -> dict[Resource, Schema]:
    return {kind.resource: with_type_and_metadata(schema_of(kind)) for kind in SERVED_KINDS}


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for item in node:
            yield from _references(item)
    elif isinstance(node, dict):
        if name := name_of(node):
            yield name
            return
        for item in node.values():
            yield from _references(item)
