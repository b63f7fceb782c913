"""What the installed CRDs of Karpenter's kinds say: whether ``v1`` is served, and whose they are.

They are read by name, now and then. Where that is not allowed, the release of Karpenter alone counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from tenure.core.beside.facts.karpenter import CrdNotServed
from tenure.core.facts import Fact
from tenure.model.api.deployment import CustomResourceDefinition
from tenure.model.api.resource import CRDS, NODE_CLAIMS, NODE_POOLS
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_unreadable

NODE_POOLS_CRD: Final = f"{NODE_POOLS.plural}.{NODE_POOLS.group}"
#: By name: those that are read.
NAMES: Final = (NODE_POOLS_CRD, f"{NODE_CLAIMS.plural}.{NODE_CLAIMS.group}")
#: What levers and claims are written in.
VERSION: Final = NODE_POOLS.version


class Crds(msgspec.Struct, frozen=True, kw_only=True):
    #: Why Tenure only looks; None: ``v1`` is served, as far as that is known.
    problem: Fact | None = None
    #: The CRD of NodePool is Tenure's: it stores inline fields that Karpenter's drops.
    ours: bool = False
    #: Why they cannot be read; empty: they were, or were not asked for.
    unread: str = ""


def crds_of(snapshot: Snapshot) -> Crds:
    found = snapshot.once_of(CRDS, _read)
    why = snapshot.unlisted(CRDS)
    return msgspec.structs.replace(found, unread=why) if why else found


def _read(crds: Mapping[str, CustomResourceDefinition]) -> Crds:
    """Asked for anew only when a CRD has changed."""
    for name, crd in sorted(crds.items()):
        if is_unreadable(crd):
            continue
        served = tuple(one.name for one in crd.spec.versions if one.served)
        if VERSION not in served:
            return Crds(problem=CrdNotServed(name, VERSION, served))
    pools = crds.get(NODE_POOLS_CRD)
    return Crds(ours=pools is not None and not is_unreadable(pools) and _is_ours(pools))


def _is_ours(crd: CustomResourceDefinition) -> bool:
    schemas = (one.validation.schema for one in crd.spec.versions if one.name == VERSION)
    return any(schema.has("spec", "repair") for schema in schemas)
