"""From where a volume can be used: node labels, as requirement alternatives."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

from tenure.model.api.names import HOSTNAME
from tenure.model.api.pod import NodeSelectorTerm
from tenure.model.api.workload import PersistentVolume, StorageClass
from tenure.model.matching.requirements import Requirement, Requirements

#: The node satisfies one of these.
Alternatives = tuple[Requirements, ...]

ANYWHERE: Final[Alternatives] = (Requirements(),)


def affinity_of(volume: PersistentVolume, hosts: AbstractSet[str]) -> Alternatives:
    """``hosts``: hostnames of the nodes there are. Raises SpecError where it cannot be read.

    A directory of a node is used there and nowhere else, so its pod stays there. Once the node is gone
    the pod may have another one: what was there is lost.
    """
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return ANYWHERE
    gone = None if not is_on_a_host(volume) else hosts
    return tuple(
        _requirements(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]", gone)
        for index, term in enumerate(affinity.required.node_selector_terms)
    )


def is_on_a_host(volume: PersistentVolume) -> bool:
    return volume.spec.local is not None or volume.spec.host_path is not None


def _requirements(term: NodeSelectorTerm, at: str, hosts: AbstractSet[str] | None) -> Requirements:
    """Without the hostname where no node has it; None: it counts in any case."""
    written = [
        one
        for one in term.match_expressions
        if hosts is None or one.key != HOSTNAME or not hosts.isdisjoint(one.values)
    ]
    return Requirements.from_wire(written, f"{at}.matchExpressions")


def allowed_by(storage_class: StorageClass) -> Alternatives:
    """Where the class provisions volumes."""
    return (
        tuple(
            Requirements().add(
                *(Requirement.of(one.key, "In", one.values) for one in term.match_label_expressions)
            )
            for term in storage_class.allowed_topologies
        )
        or ANYWHERE
    )
