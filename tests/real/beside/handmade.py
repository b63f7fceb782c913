"""Claims that a user, or Tenure, creates for a pool of Karpenter's: as a sibling of one that is there."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tenure.model.api.names import NODEPOOL, NODEPOOL_HASH, NODEPOOL_HASH_VERSION
from tenure.model.api.resource import NODE_CLAIMS
from tests.builders import Manifest
from tests.real.beside.onlooker import Onlooker, pool_of
from tests.real.users import Json

#: The label that names the node class: its group, and its kind in lower case.
NODE_CLASS: Final = "karpenter.kwok.sh/kwoknodeclass"
HASHES: Final = (NODEPOOL_HASH, NODEPOOL_HASH_VERSION)


def a_sibling(claim: Json, **annotations: str) -> Manifest:
    """The pool's and node class' labels, the two hashes, the owner and the spec of that claim; no more."""
    metadata = claim["metadata"]
    hashes = {key: metadata["annotations"][key] for key in HASHES}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "generateName": f"{pool_of(claim)}-",
            "labels": {key: metadata["labels"][key] for key in (NODEPOOL, NODE_CLASS)},
            "annotations": hashes | annotations,
            "ownerReferences": metadata["ownerReferences"],
        },
        "spec": claim["spec"],
    }


async def create(seen: Onlooker, manifest: Manifest) -> Json:
    made: Json = msgspec.json.decode(await seen.users.client.create(NODE_CLAIMS, manifest))
    return made


async def ready_sibling(seen: Onlooker, claim: Json, **annotations: str) -> Json:
    """Once Karpenter has launched it and it is Ready."""
    return await seen.ready(await create(seen, a_sibling(claim, **annotations)))


async def annotate(seen: Onlooker, claim: Json, annotations: dict[str, Any]) -> None:
    """The claim, not its Node."""
    patch = {"metadata": {"annotations": annotations}}
    await seen.users.client.patch(NODE_CLAIMS, claim["metadata"]["name"], patch)
