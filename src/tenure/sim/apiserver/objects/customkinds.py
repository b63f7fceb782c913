"""The custom kinds that the embedded cluster serves: Tenure's, the kwok provider's, and node classes of
other clouds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from tenure.providers.kwok.nodeclass import KWOK_KIND
from tenure.schema.structure import validate
from tenure.schema.structure.crd import CUSTOM_KINDS, CustomKind, generate
from tenure.schema.structure.validate import CustomResourceSchema
from tenure.sim.apiserver.objects.foreignclasses import FOREIGN_KINDS
from tenure.sim.apiserver.objects.tree import Obj

#: Those with CRDs of ours.
OWN_KINDS: Final[tuple[CustomKind, ...]] = (*CUSTOM_KINDS, KWOK_KIND)
SERVED_KINDS: Final[tuple[CustomKind, ...]] = (*OWN_KINDS, *FOREIGN_KINDS)


@cache
def schema_for(group: str, kind: str) -> CustomResourceSchema | None:
    """None for a kind that is built in, or not served."""
    return validate.schema_for(group, kind, SERVED_KINDS)


@cache
def served_definitions() -> Mapping[str, Obj]:
    """Name → CustomResourceDefinition of each."""
    return {one["metadata"]["name"]: one for one in generate(SERVED_KINDS)}
