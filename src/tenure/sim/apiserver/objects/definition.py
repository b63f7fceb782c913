"""A kind that a client has defined by a CustomResourceDefinition.

Of several versions one is served: the one that is stored, if it is served at all.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tenure.model.api.resource import Resource
from tenure.schema.structure.crd import AGE, Column
from tenure.schema.structure.defined import DefinedSchema
from tenure.sim.apiserver.objects.tree import Obj, dig

#: The definitions themselves.
DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False
)


class Definition(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    resource: Resource
    schema: DefinedSchema
    singular: str
    columns: tuple[Column, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    status: bool = False


def defined_kind(obj: Obj) -> Definition:
    """The kind that the stored definition defines."""
    spec, version = obj["spec"], served_version(obj)
    names = spec["names"]
    resource = Resource(
        spec["group"],
        version["name"],
        names["kind"],
        names["plural"],
        spec["scope"] == "Namespaced",
    )
    columns = tuple(map(_column, version.get("additionalPrinterColumns") or ())) or (AGE,)
    return Definition(
        resource=resource,
        schema=DefinedSchema(resource, dig(version, "schema", "openAPIV3Schema") or {}),
        singular=names.get("singular") or names["kind"].lower(),
        columns=columns,
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        status="status" in (version.get("subresources") or {}),
    )


def served_version(obj: Obj) -> Obj:
    versions: list[Obj] = obj["spec"]["versions"]
    best = [one for one in versions if one.get("served") and one.get("storage")]
    served = [one for one in versions if one.get("served")]
    return (best or served or versions)[0]


def unserved_versions(obj: Obj) -> list[str]:
    """Served by a real API server, and not here."""
    chosen = served_version(obj)
    return [
        one["name"] for one in obj["spec"]["versions"] if one.get("served") and one is not chosen
    ]


def _column(raw: dict[str, Any]) -> Column:
    wide = bool(raw.get("priority"))
    return Column(raw.get("name", ""), raw.get("jsonPath", ""), raw.get("type", "string"), wide)
