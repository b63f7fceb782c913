"""The manifest of a replacement that Karpenter launches.

Karpenter launches any claim of its node class. It belongs to the pool by its label, and has not drifted by the two
hashes. There is no finalizer: that is Karpenter's to set. ``karpenter.sh/do-not-disrupt`` is there from the
start, because Karpenter copies annotations of a claim to its Node when it registers, and removes an empty Node
within seconds; our marks beside it say that it is a lever.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenure.core.beside.kinds import DISRUPTION
from tenure.core.beside.mark import Lever
from tenure.core.beside.replacing.likeness import Likeness
from tenure.core.marks.command import replacement_marks
from tenure.core.marks.ownership import class_label
from tenure.core.marks.templatehash import hashes_beside
from tenure.core.provision.newclaim import claim_spec, not_ours, owned_by
from tenure.model.api import names
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.resource import NODE_CLAIMS
from tenure.model.snapshot.governed import as_written
from tenure.packing.result import PlannedClaim


def replacement_manifest(
    name: str, replaced: NodeClaim, pool: NodePool, planned: PlannedClaim, like: Likeness
) -> dict[str, Any]:
    pool = as_written(pool)  # Policies act on claims as they are now.
    template = pool.spec.template
    labels = {
        **like.labels,
        **template.metadata.labels,
        names.NODEPOOL: pool.name,
        **class_label(template.spec.node_class_ref),
    }
    annotations = {
        **_lever(replaced, template.metadata.annotations),
        **not_ours(template.metadata.annotations),
        **hashes_beside(pool),
        **replacement_marks((replaced,), by_marks=True),
    }
    return {
        "apiVersion": NODE_CLAIMS.api_version,
        "kind": NODE_CLAIMS.kind,
        "metadata": {
            "name": name,
            "labels": dict(sorted(labels.items())),
            "annotations": dict(sorted(annotations.items())),
            "ownerReferences": [owned_by(pool)],
        },
        "spec": claim_spec(planned, pool),
    }


def because_of(replaced: NodeClaim) -> str:
    return f"replaces NodeClaim {replaced.name}"


def _lever(replaced: NodeClaim, template: Mapping[str, str]) -> dict[str, str]:
    """None where users protect every node of the pool: that value is theirs."""
    return (
        {}
        if names.DO_NOT_DISRUPT in template
        else Lever(DISRUPTION, because_of(replaced)).written()
    )
