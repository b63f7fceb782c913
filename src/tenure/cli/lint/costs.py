"""Annotations that say what the eviction of a pod costs: values that cannot be read, or stand in the wrong place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tenure.core.disrupt.consolidation.podcost import ONE_POD, read_cost
from tenure.errors import shown
from tenure.model.api.names import POD_DELETION_COST, POD_DISRUPTION_COST
from tenure.schema.findings import Code, Finding

COSTS: Final = (POD_DISRUPTION_COST, POD_DELETION_COST)


def unreadable_costs(annotations: Mapping[str, Any]) -> tuple[str, ...]:
    """The annotations that are there and have no effect."""
    return tuple(name for name in COSTS if _is_unreadable(annotations.get(name)))


def cost_findings(annotations: Mapping[str, Any], at: str) -> Iterator[Finding]:
    """``at``: the path of the annotations."""
    for name in unreadable_costs(annotations):
        said = f'"{shown(str(annotations[name]))}" is no whole number of 32 bits and is ignored'
        yield Finding(Code.INVALID_COST, f"{at}.{name}", said)
    written = annotations.get(POD_DISRUPTION_COST)
    cost = read_cost(written) if isinstance(written, str) else None
    if cost and abs(cost) < ONE_POD // 100:
        said = f"{cost} is less than a hundredth of a pod: {ONE_POD} counts as one more pod"
        yield Finding(Code.COST_SMALL, f"{at}.{POD_DISRUPTION_COST}", said)


def misplaced_costs(annotations: Mapping[str, Any], kind: str) -> Iterator[Finding]:
    """On a workload: its pods do not inherit them."""
    for name in COSTS:
        if name in annotations:
            said = f"says nothing of its pods on a {kind}: they do not inherit it"
            yield Finding(Code.ANNOTATION_MISPLACED, f"metadata.annotations.{name}", said)


def _is_unreadable(written: object) -> bool:
    return written is not None and (not isinstance(written, str) or read_cost(written) is None)
