"""Whether the labels of a claim satisfy the requirements of its pool as they are now.

As in Karpenter: a requirement that was widened is still satisfied, so it drifts nothing. A label that
the claim lacks satisfies ``NotIn`` and ``DoesNotExist`` alone. Old names of labels are the same label.

Unlike there, a label that the provider never set although the claim itself asked for it drifts nothing: a
replacement would lack it, too, and would be replaced again, for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from tenure.core.drift.facts import UnmetRequirement
from tenure.errors import SpecError, shown
from tenure.model.api.names import NORMALIZED_LABELS
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.matching.requirement import Requirement
from tenure.model.matching.requirements import Requirements

#: By the name of a label now: all of its names.
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    now: (now, *(old for old, new in NORMALIZED_LABELS.items() if new == now))
    for now in NORMALIZED_LABELS.values()
}


def drifted_requirements(
    requirements: Requirements, claim: NodeClaim
) -> Iterator[UnmetRequirement]:
    """``requirements``: the pool's, as they are now."""
    for one in unmet(requirements, claim.labels):
        if one.value is not None or not _asked_for(claim, requirements[one.key]):
            yield one


def _asked_for(claim: NodeClaim, requirement: Requirement) -> bool:
    """Whether the claim was made to satisfy the requirement."""
    try:
        own = Requirements.from_wire(claim.spec.requirements).get(requirement.key)
    except SpecError:
        return True  # What it asked for is not known; nothing is said against it.
    if own is None:
        return False
    own, wanted = own.with_min_values(None), requirement.with_min_values(None)
    return own.intersection(wanted) == own


def unmet(requirements: Requirements, labels: Mapping[str, str]) -> Iterator[UnmetRequirement]:
    """By key."""
    for key in sorted(requirements):
        requirement = requirements[key]
        values = [labels[name] for name in _NAMES.get(key, (key,)) if name in labels]
        if not values and not _allows_absence(requirement):
            yield UnmetRequirement(key, str(requirement), None)
        for value in values:
            if not requirement.has(value):
                yield UnmetRequirement(key, str(requirement), shown(value))
                break


def _allows_absence(requirement: Requirement) -> bool:
    """Karpenter goes by the operator that is left of all requirements on the key: of ``Exists`` and
    ``NotIn`` that is ``NotIn``, and of two that contradict each other ``DoesNotExist``."""
    return requirement.impossible or requirement.operator in ("NotIn", "DoesNotExist")
