"""The manifest of a new claim: the pool's template, narrowed by the pods it is for."""

from __future__ import annotations

import hashlib
from collections.abc import Container
from typing import Any, Final

import msgspec

from tenure.core.hash import HASH_VERSION, template_hash
from tenure.model import names
from tenure.model.nodepool import NodePool
from tenure.model.quantity import format_resources
from tenure.model.resource import NODE_CLAIMS, NODE_POOLS
from tenure.packing.result import PlannedClaim

#: As Kubernetes draws generated names: no vowels, no digits that look like letters.
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX: Final = 5


def claim_name(planned: PlannedClaim, taken: Container[str]) -> str:
    """A free name that follows from what the claim is for, so that a repeat meets itself."""
    attempt = 0
    while True:
        seed = "/".join((planned.pool, *planned.pods, str(attempt)))
        number = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big")
        letters = []
        for _ in range(_SUFFIX):
            number, index = divmod(number, len(_ALPHABET))
            letters.append(_ALPHABET[index])
        name = f"{planned.pool}-{''.join(letters)}"
        if name not in taken:
            return name
        attempt += 1


def claim_manifest(planned: PlannedClaim, pool: NodePool, name: str) -> dict[str, Any]:
    """Born with the finalizer: there is no instant at which it could be lost with an instance."""
    template = pool.spec.template
    ref = template.spec.node_class_ref
    labels = {
        **_concrete_labels(planned),
        **template.metadata.labels,
        names.NODEPOOL: pool.name,
        f"{ref.group}/{ref.kind.lower()}": ref.name,
    }
    annotations = {
        **template.metadata.annotations,
        names.NODEPOOL_HASH: template_hash(template),
        names.NODEPOOL_HASH_VERSION: HASH_VERSION,
        names.MIN_VALUES_RELAXED: "false",
    }
    owner = {
        "apiVersion": NODE_POOLS.api_version,
        "kind": NODE_POOLS.kind,
        "name": pool.name,
        "uid": pool.uid,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": NODE_CLAIMS.api_version,
        "kind": NODE_CLAIMS.kind,
        "metadata": {
            "name": name,
            "labels": dict(sorted(labels.items())),
            "annotations": dict(sorted(annotations.items())),
            "ownerReferences": [owner],
            "finalizers": [names.FINALIZER],
        },
        "spec": _spec(planned, pool),
    }


def _concrete_labels(planned: PlannedClaim) -> dict[str, str]:
    """One value for each custom key; the provider answers for the well-known ones."""
    return {
        key: value
        for key, requirement in planned.requirements.items()
        if key not in names.WELL_KNOWN_LABELS
        and key != names.HOSTNAME
        and not _providers_own(key)
        and (value := requirement.any()) is not None
    }


def _providers_own(key: str) -> bool:
    """Labels that instance types define, such as a size or a family."""
    return key.startswith(f"{names.KWOK_GROUP}/instance-")


def _spec(planned: PlannedClaim, pool: NodePool) -> dict[str, Any]:
    written = pool.spec.template.spec
    spec: dict[str, Any] = {
        "requirements": planned.requirements.to_wire(),
        "resources": {"requests": format_resources(planned.requests)},
        "nodeClassRef": msgspec.to_builtins(written.node_class_ref),
    }
    if written.taints:
        spec["taints"] = msgspec.to_builtins(written.taints)
    if written.startup_taints:
        spec["startupTaints"] = msgspec.to_builtins(written.startup_taints)
    frozen = {
        "terminationGracePeriod": written.termination_grace_period,
        "expireAfter": written.expire_after,
        "readinessTTL": written.readiness_ttl,
        "initializationTTL": written.initialization_ttl,
    }
    return spec | {key: value for key, value in frozen.items() if value is not None}
