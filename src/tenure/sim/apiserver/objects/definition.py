"""A kind that a client has defined by a CustomResourceDefinition: one ``Definition`` for each served version.

Objects are stored in the version that the definition says, if that is served; else in the first that is.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from tenure.model.api.resource import Resource
from tenure.schema.structure.crd import AGE, Column
from tenure.schema.structure.defined import DefinedSchema
from tenure.sim.apiserver.objects.tree import Obj, dig

#: The definitions themselves.
DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False
)


Path = tuple[str, ...]


class Scaled(NamedTuple):
    """Where an object has its number of replicas: what is wanted, what is there, and how its pods are found."""

    wanted: Path
    present: Path
    #: A selector as text; nothing if the kind has none.
    selector: Path = ()


class Definition(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    resource: Resource
    schema: DefinedSchema
    singular: str
    columns: tuple[Column, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    status: bool = False
    scale: Scaled | None = None


def defined_kinds(obj: Obj) -> list[Definition]:
    """The kind in each version that the stored definition serves; first the one in which it is stored."""
    stored = base_version(obj)
    others = [one for one in obj["spec"]["versions"] if one.get("served") and one is not stored]
    return [_defined(obj, version) for version in (stored, *others)]


def _defined(obj: Obj, version: Obj) -> Definition:
    spec = obj["spec"]
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
        scale=_scale(dig(version, "subresources", "scale")),
    )


def _scale(raw: Any) -> Scaled | None:
    if not isinstance(raw, dict):
        return None
    return Scaled(
        wanted=_path(raw.get("specReplicasPath")),
        present=_path(raw.get("statusReplicasPath")),
        selector=_path(raw.get("labelSelectorPath")),
    )


def _path(text: Any) -> Path:
    return tuple(filter(None, str(text or "").split(".")))


def storage_version(obj: Obj) -> str:
    """The version that the definition marks as the stored one."""
    return next((str(one["name"]) for one in obj["spec"]["versions"] if one.get("storage")), "")


def base_version(obj: Obj) -> Obj:
    """The version in which the embedded cluster keeps its objects."""
    versions: list[Obj] = obj["spec"]["versions"]
    best = [one for one in versions if one.get("served") and one.get("storage")]
    served = [one for one in versions if one.get("served")]
    return (best or served or versions)[0]


def _column(raw: dict[str, Any]) -> Column:
    wide = bool(raw.get("priority"))
    return Column(raw.get("name", ""), raw.get("jsonPath", ""), raw.get("type", "string"), wide)
