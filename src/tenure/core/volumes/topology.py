"""From where a volume can be used: node labels, as requirement alternatives."""

from __future__ import annotations

from typing import Final

from tenure.model.api.names import HOSTNAME
from tenure.model.api.pod import NodeSelectorTerm
from tenure.model.api.workload import PersistentVolume, StorageClass
from tenure.model.matching.requirements import Requirement, Requirements

#: The node satisfies one of these.
Alternatives = tuple[Requirements, ...]

ANYWHERE: Final[Alternatives] = (Requirements(),)


def affinity_of(volume: PersistentVolume) -> Alternatives:
    """Raises SpecError where it cannot be read."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return ANYWHERE
    # The directory of a node that is replaced is not on the next one, wherever that is.
    on_a_host = volume.spec.local is not None or volume.spec.host_path is not None
    return tuple(
        _requirements(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]", on_a_host)
        for index, term in enumerate(affinity.required.node_selector_terms)
    )


def _requirements(term: NodeSelectorTerm, at: str, on_a_host: bool) -> Requirements:
    written = [one for one in term.match_expressions if not (on_a_host and one.key == HOSTNAME)]
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
