"""Whether the labels of a claim satisfy the requirements of its pool as they are now.

As in Karpenter: a requirement that was widened is still satisfied, so it drifts nothing. A label that
the claim lacks satisfies ``NotIn`` and ``DoesNotExist`` alone. Old names of labels are the same label.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from tenure.core.drift.facts import UnmetRequirement
from tenure.errors import shown
from tenure.model.api.names import NORMALIZED_LABELS
from tenure.model.matching.requirement import Requirement
from tenure.model.matching.requirements import Requirements

#: By the name of a label now: all of its names.
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    now: (now, *(old for old, new in NORMALIZED_LABELS.items() if new == now))
    for now in NORMALIZED_LABELS.values()
}


def unmet(requirements: Requirements, labels: Mapping[str, str]) -> Iterator[UnmetRequirement]:
    """By key."""
    for key in sorted(requirements):
        requirement = requirements[key]
        values = [labels[name] for name in _NAMES.get(key, (key,)) if name in labels]
        if not values and not _allows_absence(requirement):
            yield UnmetRequirement(str(requirement), None)
        for value in values:
            if not requirement.has(value):
                yield UnmetRequirement(str(requirement), shown(value))
                break


def _allows_absence(requirement: Requirement) -> bool:
    """Karpenter goes by the operator that is left of all requirements on the key: of ``Exists`` and
    ``NotIn`` that is ``NotIn``, and of two that contradict each other ``DoesNotExist``."""
    return requirement.impossible or requirement.operator in ("NotIn", "DoesNotExist")
