"""The manifest of a new claim: the pool's template, narrowed by the pods it is for."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from tenure.core.decision import Patch
from tenure.core.launchbreaker.ledger import launched_for
from tenure.core.marks.ownership import class_label
from tenure.core.marks.taints import RESERVED
from tenure.core.marks.templatehash import field_hashes, hash_annotations
from tenure.core.writes import patch
from tenure.model.api import names
from tenure.model.api.node import Taint
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS
from tenure.model.cloud.offering import InstanceType
from tenure.model.snapshot.governed import as_written
from tenure.model.values.quantity import format_resources
from tenure.packing.result import PlannedClaim

#: As Kubernetes draws generated names: no vowels, no digits that look like letters.
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX: Final = 5


def claim_name(planned: PlannedClaim, taken: Container[str], replaced: str = "") -> str:
    """An unused name derived from the claim's pods, so that a repeated creation conflicts.

    ``replaced``: the UIDs of the claims that it replaces. Pods come to run on another node than the
    one that was launched for them: without these the replacement of that node would get a name that
    a node had which is gone.
    """
    attempt = 0
    while True:
        seed = "/".join((planned.pool, *planned.pods, *filter(None, [replaced]), str(attempt)))
        number = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big")
        letters = []
        for _ in range(_SUFFIX):
            number, index = divmod(number, len(_ALPHABET))
            letters.append(_ALPHABET[index])
        name = f"{planned.pool}-{''.join(letters)}"
        if name not in taken:
            return name
        attempt += 1


def claim_manifest(
    planned: PlannedClaim,
    pool: NodePool,
    name: str,
    types: Iterable[InstanceType],
    pods: Mapping[str, Pod],
    *,
    reserved: bool = False,
) -> dict[str, Any]:
    """With the finalizer from the start: the claim can never be removed while it has an instance.

    ``types``: those that the pool's provider offers; ``pods``: by UID, at least the claim's pods;
    ``reserved``: its node takes pods once these are named (``core.opening``).
    """
    pool = as_written(pool)  # Policies act on claims as they are now, so a copy would be too old.
    template = pool.spec.template
    labels = {
        **_concrete_labels(planned, types),
        **template.metadata.labels,
        names.NODEPOOL: pool.name,
        **class_label(template.spec.node_class_ref),
    }
    annotations = {
        **not_ours(template.metadata.annotations),
        **hash_annotations(field_hashes(template)),
        names.MIN_VALUES_RELAXED: str(planned.min_values_relaxed).lower(),
        **_for_pods([pods[uid] for uid in planned.pods]),
    }
    return {
        "apiVersion": NODE_CLAIMS.api_version,
        "kind": NODE_CLAIMS.kind,
        "metadata": {
            "name": name,
            "labels": dict(sorted(labels.items())),
            "annotations": dict(sorted(annotations.items())),
            "ownerReferences": [owned_by(pool)],
            "finalizers": [names.FINALIZER],
        },
        "spec": claim_spec(planned, pool, (RESERVED,) if reserved else ()),
    }


def owned_by(pool: NodePool) -> dict[str, Any]:
    return {
        "apiVersion": NODE_POOLS.api_version,
        "kind": NODE_POOLS.kind,
        "name": pool.name,
        "uid": pool.uid,
        "blockOwnerDeletion": True,
    }


def not_ours(annotations: Mapping[str, str]) -> dict[str, str]:
    """Without the marks by which Tenure remembers what is under way: none is true of a new claim."""
    marks = names.MARKS | names.BESIDE_MARKS
    return {key: value for key, value in annotations.items() if key not in marks}


def _for_pods(pods: Sequence[Pod]) -> dict[str, str]:
    """For which pods and for which owners it is created.

    Two annotations for two purposes: which pods are nominated here, all of them by UID, until they
    are bound (``nominations``); and for which owners this was a launch, few and by name, because
    their pods are created again with other UIDs (``launchbreaker``).
    """
    return {
        names.NOMINATED_PODS: ",".join(pod.uid for pod in pods),
        names.LAUNCHED_FOR: launched_for(pods),
    }


def note_served(claim: NodeClaim, text: str) -> Patch:
    """``text``: as it was, with the owners that had a pod end by itself there."""
    return patch(claim, {"annotations": {names.LAUNCHED_FOR: text}})


def _concrete_labels(planned: PlannedClaim, types: Iterable[InstanceType]) -> dict[str, str]:
    """One value for each key that users have defined.

    Keys that instance types define are set by the provider, and a label that may be missing is
    left out.
    """
    provided = names.WELL_KNOWN_LABELS.union(*(kind.requirements for kind in types))
    return {
        key: value
        for key, requirement in planned.requirements.items()
        if key not in provided
        and key != names.HOSTNAME
        and not requirement.allows_absent
        and (value := requirement.any()) is not None
    }


def claim_spec(
    planned: PlannedClaim, pool: NodePool, more: tuple[Taint, ...] = ()
) -> dict[str, Any]:
    """``more``: startup taints that the pool does not have."""
    written = pool.spec.template.spec
    spec: dict[str, Any] = {
        "requirements": planned.requirements.to_wire(),
        "resources": {"requests": format_resources(planned.requests)},
        "nodeClassRef": msgspec.to_builtins(written.node_class_ref),
    }
    if written.taints:
        spec["taints"] = [msgspec.to_builtins(taint) for taint in written.taints]
    if startup := (*written.startup_taints, *more):
        spec["startupTaints"] = [msgspec.to_builtins(taint) for taint in startup]
    frozen = {
        "terminationGracePeriod": written.termination_grace_period,
        "expireAfter": written.expire_after,
        "readinessTTL": written.readiness_ttl,
        "initializationTTL": written.initialization_ttl,
    }
    return spec | {key: value for key, value in frozen.items() if value is not None}
